package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/simulator/phone"
)

// vendor is an OpenAI-compatible server that thinks, speaks and hears by script. Every text that it speaks is a tone
// of its own, so that a telephone knows which is heard.
type vendor struct{ *aitest.Server }

// speaking starts the program with a telephone line and such a vendor.
func speaking(t *testing.T, env ...string) (*line, *vendor) {
	t.Helper()
	v := &vendor{aitest.NewServer(t)}
	v.Transcribe = func(aitest.Utterance) string { return "" } // what is not scripted is not understood
	return telephone(t, append([]string{"PARLEY_OPENAI_BASE_URL=" + v.URL, "PARLEY_OPENAI_CHAT_MODEL=" +
		aitest.ModelName, "PARLEY_OPENAI_TTS_MODEL=" + aitest.SpeechModel,
		"PARLEY_OPENAI_STT_MODEL=" + aitest.TranscriptionModel}, env...)...), v
}

// hears says how the next utterances are understood.
func (v *vendor) hears(texts ...string) {
	for _, text := range texts {
		v.ScriptTranscripts(aitest.Behaviour{Text: text})
	}
}

// piece is a text that was heard without a pause.
type piece struct {
	text string
	long time.Duration
}

// on is what a telephone heard, text after text; "" is silence. What lasts less than 60 ms is not told.
func (v *vendor) on(c *phone.Call) (out []piece) {
	pcm, rate := c.Sound(), c.Rate()
	const frames = 2
	n := frames * rate.FrameSize()
	for ; len(pcm) >= n; pcm = pcm[n:] {
		text := v.Voice.Find(pcm[:n], rate)
		if k := len(out) - 1; k >= 0 && out[k].text == text {
			out[k].long += frames * audio.FrameTime
		} else {
			out = append(out, piece{text, frames * audio.FrameTime})
		}
	}
	out = slices.DeleteFunc(out, func(p piece) bool { return p.long < 60*time.Millisecond && p.text != "" })
	merged := out[:0]
	for _, p := range out {
		if k := len(merged) - 1; k >= 0 && merged[k].text == p.text {
			merged[k].long += p.long
		} else {
			merged = append(merged, p)
		}
	}
	return merged
}

// length is how long a text was heard in all. A long one is spoken in parts.
func (v *vendor) length(c *phone.Call, text string) (d time.Duration) {
	for _, p := range v.on(c) {
		if p.text != "" && strings.Contains(text, p.text) {
			d += p.long
		}
	}
	return d
}

// awaits waits until a telephone hears a text.
func (v *vendor) awaits(t *testing.T, c *phone.Call, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q to be heard", text), func() bool {
		if v.length(c, text) > 0 {
			return true
		}
		if c.Ended() != "" {
			t.Fatalf("the call ended by %s before %q was heard: %v", c.Ended(), text, v.on(c))
		}
		return false
	})
}
