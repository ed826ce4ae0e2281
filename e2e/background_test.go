package e2e

import (
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
	parley "parley/internal/parley"
)

// With background_speech_cancellation a voice 20 dB fainter than the customer's neither pauses a reply nor is answered, and
// the customer is heard after it as before. Without the switch the same voice cuts the reply off.
func TestTalkBackground(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]bool{"kept out": true, "heard": false} {
		t.Run(name, func(t *testing.T) {
			share(t, call)
			l, v := bakeryLine(t, map[string]any{"background_speech_cancellation": on})
			c := l.greeted(t, l.phone)
			v.hears("What do you have?", "And what does it cost?")
			v.Script(aitest.Behaviour{Text: long}, aitest.Behaviour{Text: "Three dollars."})
			began := hears(t, c, asks(t, c).To())
			eventually(t, "a second of the reply", func() bool { return time.Since(began) > time.Second })
			television := append([]int16(nil), speech(t, asking)...)
			audio.Fade(television, 0.1, 0.1)
			<-c.Say(television).Done()
			if on {
				silent(t, c, 1500*time.Millisecond)
				// a frame that lies across a seam can't be attributed to either side
				if got, want := v.length(c, long), aitest.SpeechTime(long, 1); got < want-240*time.Millisecond || got > want+80*time.Millisecond {
					t.Errorf("%v of %v of the reply sounded", got, want)
				}
				list := v.on(c)
				for i, p := range list[:len(list)-1] {
					if i > 0 && p.text == "" && p.long > 100*time.Millisecond && strings.Contains(long, list[i-1].text) {
						t.Errorf("it paused for %v: %v", p.long, list)
					}
				}
				asks(t, c)
			}
			v.awaits(t, c, "Three dollars.")
			silent(t, c, 300*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			if len(row.Turns) != 5 || row.Turns[2].Interrupted == on {
				t.Errorf("turns %+v", row.Turns)
			}
		})
	}
}
