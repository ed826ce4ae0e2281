package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/simulator/phone"
)

// vendor is an OpenAI-compatible server that thinks, speaks and hears by script. It speaks every text as a different
// tone, so that a telephone can tell which text it hears.
type vendor struct {
	*aitest.Server

	mu    sync.Mutex
	heard map[*phone.Call]*hearing
}

// hearing is what a telephone has heard so far: the text of each 40 ms.
type hearing struct {
	samples int
	texts   []string
}

// speaking starts the program with a telephone line and such a vendor.
func speaking(t *testing.T, env ...string) (*line, *vendor) {
	t.Helper()
	v := &vendor{Server: aitest.NewServer(t), heard: map[*phone.Call]*hearing{}}
	v.Transcribe = func(aitest.Utterance) string { return "" } // speech that is not scripted is not understood
	return telephone(t, append([]string{"PARLEY_OPENAI_BASE_URL=" + v.URL, "PARLEY_OPENAI_CHAT_MODEL=" +
		aitest.ModelName, "PARLEY_OPENAI_TTS_MODEL=" + aitest.SpeechModel,
		"PARLEY_OPENAI_STT_MODEL=" + aitest.TranscriptionModel}, env...)...), v
}

// hears scripts how the next utterances are understood.
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

// texts returns the text that a telephone heard in each 40 ms. Audio that was analyzed before is not analyzed again.
func (v *vendor) texts(c *phone.Call) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.heard[c]
	if h == nil {
		h = &hearing{}
		v.heard[c] = h
	}
	pcm, rate := c.Sound(), c.Rate()
	for n := frames * rate.FrameSize(); len(pcm)-h.samples >= n; h.samples += n {
		h.texts = append(h.texts, v.Voice.Find(pcm[h.samples:h.samples+n], rate))
	}
	return h.texts
}

// frames is how many frames are analyzed together to find the text.
const frames = 2

// on returns what a telephone heard, text by text; "" is silence. Pieces of less than 60 ms are left out.
func (v *vendor) on(c *phone.Call) (out []piece) {
	for _, text := range v.texts(c) {
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

// length returns how long a text was heard in all. A long text is spoken in parts.
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
