package call

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"

	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/parley"
	"parley/internal/store"
)

// Somebody may have spoken the message that an assistant leaves on voicemails. It is kept as 16-bit WAV of one channel
// at 16 kHz, whatever it was uploaded as, and read when a call begins that may need it.

// KeepVoicemail stores a WAV file as the recorded message of one of the user's assistants, in place of the former one.
func (d *Center) KeepVoicemail(ctx context.Context, userID, assistantID int64, file io.Reader) (*parley.VoicemailRecording, error) {
	if _, err := d.DB.Assistant(ctx, userID, assistantID); err != nil {
		return nil, err
	}
	pcm, err := readMessage(file)
	if err != nil {
		return nil, err
	}
	v := &parley.VoicemailRecording{AssistantID: assistantID, Blob: "sounds/" + uuid.NewString() + ".wav",
		DurationMS: int64(len(pcm)) * 1000 / int64(audio.Wide)}
	wav := audio.AppendWAVHeader(nil, int(audio.Wide), 1, int64(2*len(pcm)))
	for _, s := range pcm {
		wav = binary.LittleEndian.AppendUint16(wav, uint16(s))
	}
	if _, err := d.Blobs.Put(ctx, v.Blob, bytes.NewReader(wav)); err != nil {
		return nil, err
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		former, err := tx.KeepVoicemailRecording(ctx, userID, v)
		if err != nil || former == "" {
			return err
		}
		return removeRecordings(ctx, tx, []string{former})
	})
	if err != nil {
		return nil, errors.Join(err, d.Blobs.Delete(context.WithoutCancel(ctx), v.Blob))
	}
	return v, nil
}

// readMessage reads a message from a WAV file: one channel, at 16 kHz.
func readMessage(file io.Reader) ([]int16, error) {
	wrong := func(format string, a ...any) error {
		return parley.Fields{{Name: "file", Messages: []string{"The file " + fmt.Sprintf(format, a...)}}}.Err()
	}
	w, err := audio.NewWAVReader(file)
	if err != nil {
		return nil, wrong("must be a WAV file: 16-bit PCM, one or two channels, at 8, 16, 22.05, 24 or 48 kHz.")
	}
	raw := make([]int16, w.Channels*w.Rate*parley.MaxVoicemailSeconds+w.Channels)
	n, err := w.Read(raw)
	switch {
	case errors.Is(err, io.EOF):
		return nil, wrong("has no sound in it.")
	case err != nil:
		return nil, err
	case n == len(raw):
		return nil, wrong("may be %d seconds long at most.", parley.MaxVoicemailSeconds)
	}
	pcm := raw[:n/w.Channels]
	for i := range pcm {
		if w.Channels == 2 {
			pcm[i] = int16((int32(raw[2*i]) + int32(raw[2*i+1])) / 2)
		}
	}
	return atRate(pcm, w.Rate, int(audio.Wide))
}

// atRate is sound at another rate.
func atRate(pcm []int16, from, to int) ([]int16, error) {
	if from == to {
		return pcm, nil
	}
	r, err := audio.NewResampler(from, to)
	if err != nil {
		return nil, err
	}
	return r.Resample(nil, pcm), nil
}

// DropVoicemail removes the recorded message of one of the user's assistants.
func (d *Center) DropVoicemail(ctx context.Context, userID, assistantID int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		name, err := tx.DropVoicemailRecording(ctx, userID, assistantID)
		if err != nil {
			return err
		}
		return removeRecordings(ctx, tx, []string{name})
	})
}

// OpenVoicemail opens the recorded message of one of the user's assistants.
func (d *Center) OpenVoicemail(ctx context.Context, userID, assistantID int64) (*parley.VoicemailRecording, blob.Object, error) {
	if _, err := d.DB.Assistant(ctx, userID, assistantID); err != nil {
		return nil, nil, err
	}
	v, err := d.DB.VoicemailRecording(ctx, userID, assistantID)
	if err != nil {
		return nil, nil, err
	}
	o, err := d.openRecording(ctx, v.Blob)
	return v, o, err
}

// recorded is the recorded message of an assistant that calls somebody, at the rates of legs; nil if there is none. If it
// can't be read, the written one is spoken.
func (l *live) recorded(a *parley.Assistant) map[audio.Rate][]int16 {
	if !bool(a.EndCallOnVoicemail) || l.call.Type != parley.CallOutbound {
		return nil
	}
	sound, err := l.readVoicemail(a)
	if err != nil && !store.IsNotFound(err) {
		slog.ErrorContext(l.ctx, "the recorded message for voicemails can't be read", "call", l.id, "assistant", a.ID, "error", err)
	}
	return sound
}

func (l *live) readVoicemail(a *parley.Assistant) (map[audio.Rate][]int16, error) {
	_, o, err := l.OpenVoicemail(l.ctx, a.UserID, a.ID)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	wide, err := readMessage(o)
	if err != nil {
		return nil, err
	}
	narrow, err := atRate(wide, int(audio.Wide), int(audio.Narrow))
	return map[audio.Rate][]int16{audio.Wide: wide, audio.Narrow: narrow}, err
}

// forgetVoicemail removes the recorded messages of deleted assistants.
func (d *Center) forgetVoicemail(ctx context.Context) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		names, err := tx.StaleVoicemailRecordings(ctx, some)
		if err != nil {
			return err
		}
		return removeRecordings(ctx, tx, names)
	})
}
