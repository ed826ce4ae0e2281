package call_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/store"
)

// wavFile is so many frames of stereo at a rate, with two values.
func wavFile(rate, frames int, left, right int16) io.Reader {
	b := audio.AppendWAVHeader(nil, rate, 2, int64(4*frames))
	for range frames {
		b = binary.LittleEndian.AppendUint16(b, uint16(left))
		b = binary.LittleEndian.AppendUint16(b, uint16(right))
	}
	return bytes.NewReader(b)
}

// A recorded message is kept as one channel at 16 kHz, is what calls of its assistant have for voicemails, is replaced by
// the next one, and goes with the assistant.
func TestVoicemailRecording(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.node()
		v, err := n.KeepVoicemail(t.Context(), h.user.ID, h.a.ID, wavFile(8000, 8000, 1000, 3000))
		h.must(err)
		if v.DurationMS < 990 || v.DurationMS > 1000 {
			t.Errorf("%d ms", v.DurationMS)
		}
		_, o, err := n.OpenVoicemail(t.Context(), h.user.ID, h.a.ID)
		h.must(err)
		w, err := audio.NewWAVReader(o)
		h.must(err)
		pcm := make([]int16, 20_000)
		got, err := w.Read(pcm)
		h.must(err)
		h.must(o.Close())
		if w.Rate != 16000 || w.Channels != 1 || got < 15_900 || pcm[8000] < 1990 || pcm[8000] > 2010 {
			t.Errorf("%d samples of %d channels at %d Hz, one of them %d", got, w.Channels, w.Rate, pcm[8000])
		}

		n.start()
		leg := h.answered()
		sound := leg.session(t).Persona.VoicemailSound
		if wide, narrow := sound[audio.Wide], sound[audio.Narrow]; len(wide) != got || len(narrow) < 7900 || len(narrow) > 8000 ||
			narrow[4000] < 1990 || narrow[4000] > 2010 {
			t.Errorf("a call has %d and %d samples", len(wide), len(narrow))
		}
		leg.hangUp(parley.CustomerHangup)
		h.change(h.a, `{"end_call_on_voicemail":0}`)
		n.start()
		leg = h.answered()
		if sound := leg.session(t).Persona.VoicemailSound; sound != nil {
			t.Error("a call that goes on with voicemails has a message")
		}
		leg.hangUp(parley.CustomerHangup)

		stranger := storetestUserOnce(h).ID
		for name, err := range map[string]error{
			"kept":    second(n.KeepVoicemail(t.Context(), stranger, h.a.ID, wavFile(8000, 8000, 1, 1))),
			"dropped": n.DropVoicemail(t.Context(), stranger, h.a.ID),
		} {
			if !store.IsNotFound(err) {
				t.Errorf("another's is %s: %v", name, err)
			}
		}
		if _, _, err := n.OpenVoicemail(t.Context(), stranger, h.a.ID); !store.IsNotFound(err) {
			t.Errorf("another's is read: %v", err)
		}
		for name, file := range map[string]io.Reader{"no WAV": strings.NewReader("sound"), "empty": wavFile(8000, 0, 0, 0),
			"too long": wavFile(8000, 61*8000, 0, 0)} {
			if _, err := n.KeepVoicemail(t.Context(), h.user.ID, h.a.ID, file); !ofKind(err, parley.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}

		next, err := n.KeepVoicemail(t.Context(), h.user.ID, h.a.ID, wavFile(48000, 4800, 5, 5))
		h.must(err)
		if now, err := h.db.VoicemailRecording(t.Context(), h.user.ID, h.a.ID); err != nil || now.Blob != next.Blob || now.Blob == v.Blob {
			t.Errorf("%+v: %v", now, err)
		}
		h.must(n.Forget(t.Context(), 0, 0))
		if _, err := h.db.VoicemailRecording(t.Context(), h.user.ID, h.a.ID); err != nil {
			t.Errorf("it is gone while its assistant is there: %v", err)
		}
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistant(ctx, h.user.ID, h.a.ID) })
		h.must(n.Forget(t.Context(), 0, 0))
		if _, err := h.db.VoicemailRecording(t.Context(), h.user.ID, h.a.ID); !store.IsNotFound(err) {
			t.Errorf("it outlives its assistant: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }
