package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/elevenlabs/elevenlabstest"
	"parley/internal/simulator/phone"
)

// A telephone call with ElevenLabs' voice and recognizer: the assistant greets, answers, and is interrupted. Words get
// longer and longer here, so how much of a reply was heard can't be guessed: it is known only from the word times that
// ElevenLabs sends. The transcript and the model's history have it right to the word.
func TestElevenLabs(t *testing.T) {
	share(t, call)
	s := elevenlabstest.New(t)
	s.Manner.Uneven = true
	l, v := speaking(t, "PARLEY_ELEVENLABS_API_KEY="+elevenlabstest.Key, "PARLEY_ELEVENLABS_BASE_URL="+s.URL)
	v.Voice = s.Speaker
	l.change(t, map[string]any{"initial_message": welcome, "post_call_evaluation": false, "record": false})
	c := l.greeted(t, l.phone)
	if got, want := v.length(c, welcome), aitest.SpeechTime(welcome, 1); got < want-80*time.Millisecond || got > want+80*time.Millisecond {
		t.Errorf("the greeting was heard for %v, it lasts %v", got, want)
	}
	s.Script(elevenlabstest.Hearing{Text: "What do you have?"}, elevenlabstest.Hearing{Text: "And what does it cost?"})
	v.Script(aitest.Behaviour{Text: long}, aitest.Behaviour{Text: "Three dollars."})
	began := hears(t, c, asks(t, c).To())
	eventually(t, "a second of the reply", func() bool { return time.Since(began) > time.Second })
	asks(t, c)
	v.awaits(t, c, "Three dollars.")
	silent(t, c, 500*time.Millisecond)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if len(row.Turns) != 5 || row.Turns[1].Text != "What do you have?" || !row.Turns[2].Interrupted {
		t.Fatalf("turns %+v", row.Turns)
	}
	stands := strings.Fields(row.Turns[2].Text)
	most, least := v.words(c, s, long, 80*time.Millisecond), v.words(c, s, long, -80*time.Millisecond)
	t.Logf("%v of the reply sounded, with %d to %d words; %d stand in the transcript", v.length(c, long), least, most, len(stands))
	if len(stands) < least-1 || len(stands) > most || !strings.HasPrefix(long, strings.Join(stands, " ")) {
		t.Errorf("the transcript has %q, of which %d to %d words were heard", row.Turns[2].Text, least, most)
	}
	told := slices.ContainsFunc(v.Requests(), func(r aitest.Request) bool {
		return slices.ContainsFunc(r.Messages, func(m ai.Message) bool {
			return m.Role == ai.Assistant && m.Text == row.Turns[2].Text
		})
	})
	if !told {
		t.Errorf("the model was never told that it said %q: %+v", row.Turns[2].Text, v.Requests())
	}
	if speech, hearing := s.Opened(); speech != 1 || hearing != 1 {
		t.Errorf("%d sockets for speech, %d for hearing", speech, hearing)
	}
	if _, _, cancelled := s.Contexts(); cancelled > 1 {
		t.Errorf("%d contexts were cancelled", cancelled)
	}
}

// words counts the words of a text that were heard, if the last of them sounded for so much longer. A long text is
// spoken in parts; the last part that was heard was cut off.
func (v *vendor) words(c *phone.Call, s *elevenlabstest.Server, text string, more time.Duration) (n int) {
	for _, part := range s.Said() {
		if !strings.Contains(text, part) {
			continue
		}
		all, heard := aitest.SpeechTime(part, 1), v.length(c, part)
		if heard > all-100*time.Millisecond {
			n += len(strings.Fields(part))
			continue
		}
		runes := []rune(part + " ")
		for i := range runes {
			if runes[i] == ' ' && s.Manner.At(i, len(runes), all) <= heard+more {
				n++
			}
		}
	}
	return n
}
