package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/deepgram/deepgramtest"
)

// A call with Deepgram's recognizer and voice over its WebSockets: the assistant greets, answers, is interrupted, and
// answers again.
func TestDeepgramTalk(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"nova-3", "flux-general-en"} {
		t.Run(model, func(t *testing.T) {
			share(t, call)
			d := deepgramtest.NewServer(t)
			l, v := bakeryLine(t, nil, "PARLEY_DEEPGRAM_API_KEY="+deepgramtest.Key, "PARLEY_DEEPGRAM_BASE_URL="+d.URL,
				"PARLEY_DEEPGRAM_STT_MODEL="+model)
			v.Voice = d.Voice // the voice is recognized by it
			c := l.greeted(t, l.phone)
			d.Hears("I would like a table.", "What do you have?", "And what does it cost?")
			v.Script(aitest.Behaviour{Text: "For how many people?"}, aitest.Behaviour{Text: long},
				aitest.Behaviour{Text: "Three dollars."})
			asks(t, c)
			v.awaits(t, c, "For how many people?")
			silent(t, c, 300*time.Millisecond)
			said := asks(t, c)
			began := hears(t, c, said.To())
			eventually(t, "a second of the reply", func() bool { return time.Since(began) > time.Second })
			into := asks(t, c)
			v.awaits(t, c, "Three dollars.")
			silent(t, c, 500*time.Millisecond)
			var last time.Time
			for _, p := range c.Packets() {
				if p.Loud() && p.At.Before(into.To()) {
					last = p.At
				}
			}
			if took := last.Sub(into.From()); took > 400*time.Millisecond {
				t.Errorf("it went on for %v after the first sound of the interruption", took)
			}
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			i := slices.IndexFunc(row.Turns, func(turn parley.CallTurn) bool { return turn.Interrupted })
			if i < 0 || !strings.HasPrefix(long, row.Turns[i].Text) {
				t.Fatalf("no reply was interrupted: %+v", row.Turns)
			}
			want := "AI: " + welcome + "\nCustomer: I would like a table.\nAI: For how many people?\nCustomer: What do you have?\nAI: " +
				row.Turns[i].Text + "\nCustomer: And what does it cost?\nAI: Three dollars."
			if row.Transcript != want {
				t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
			}
			if n := d.Got("Clear"); n < 1 {
				t.Error("what was not said was not called off")
			}
			if n := len(v.Speeches()) + len(v.Utterances()); n > 0 {
				t.Errorf("another provider was asked %d times", n)
			}
		})
	}
}

// When the speech recognizer's socket is closed in the middle of an utterance, it is replaced, and the conversation
// goes on.
func TestDeepgramRecognitionLost(t *testing.T) {
	t.Parallel()
	for model, path := range map[string]string{"nova-3": deepgramtest.ListenPath, "flux-general-en": deepgramtest.FluxPath} {
		t.Run(model, func(t *testing.T) {
			share(t, call)
			d := deepgramtest.NewServer(t)
			l, v := bakeryLine(t, nil, "PARLEY_DEEPGRAM_API_KEY="+deepgramtest.Key, "PARLEY_DEEPGRAM_BASE_URL="+d.URL,
				"PARLEY_DEEPGRAM_STT_MODEL="+model)
			v.Voice = d.Voice // the voice is recognized by it
			at := map[string]string{"flux-general-en": "StartOfTurn"}[model]
			d.Script(path, deepgramtest.Behaviour{Fault: deepgramtest.Close, At: at})
			c := l.greeted(t, l.phone)
			opened := func() (n int) {
				for _, o := range d.Opened() {
					if o.Path == path {
						n++
					}
				}
				return n
			}
			d.Hears("Nobody will know.")
			v.Script(aitest.Behaviour{Text: "For how many people?"})
			lost := asks(t, c)
			eventually(t, "another recognition", func() bool { return opened() == 2 })
			eventually(t, "the end of what was lost", func() bool { return time.Since(lost.To()) > 2*time.Second })
			d.Hears("I would like a table.")
			asks(t, c)
			v.awaits(t, c, "For how many people?")
			silent(t, c, 500*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			if !strings.Contains(row.Transcript, "Customer: I would like a table.\nAI: For how many people?") {
				t.Errorf("transcript:\n%s", row.Transcript)
			}
		})
	}
}
