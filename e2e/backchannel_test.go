package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	parley "parley/internal/parley"
)

// In a pause of a long story the assistant says a word of listening, and answers at the end. The word stands in neither
// the transcript nor what the model reads.
func TestTalkBackchannel(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, map[string]any{"backchannels": true, "endpoint_type": "ai"})
	c := l.greeted(t, l.phone)
	story := []string{"So last year I was at your", "bakery with all of my", "family and we wanted a", "very big cake for my",
		"mother because she", "had always wanted a", "very big one."}
	v.hears(story...)
	for range story { // a reply that is begun in a pause on a busy machine is given up unheard
		v.Script(aitest.Behaviour{Text: "How nice."})
	}
	var pcm []int16
	for range story {
		pcm = append(append(pcm, speech(t, asking)...), make([]int16, 8000*500/1000)...)
	}
	said := c.Say(pcm)
	v.awaits(t, c, "Okay.")
	select {
	case <-said.Done():
		t.Error("the word of listening came after the story")
	default:
	}
	v.awaits(t, c, "How nice.")
	silent(t, c, 300*time.Millisecond)
	var words []string
	for _, p := range v.on(c) {
		if p.text != "" {
			words = append(words, p.text)
		}
	}
	if want := []string{welcome, "Okay.", "How nice."}; !slices.Equal(words, want) {
		t.Errorf("heard: %q, want %q", words, want)
	}
	if got, want := v.length(c, "Okay."), aitest.SpeechTime("Okay.", 1); got < want-80*time.Millisecond || got > want+80*time.Millisecond {
		t.Errorf("the word was heard for %v, it lasts %v", got, want)
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if want := "AI: " + welcome + "\nCustomer: " + strings.Join(story, " ") + "\nAI: How nice."; row.Transcript != want {
		t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
	}
}
