package voicetest

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
)

// Interruptions has the customer of one call cut replies off n times at random moments, and compares what they heard
// with the transcript and with what the model holds: neither may differ by more than a word. What they heard is counted
// frame by frame at the far end of the line. What the model holds is, in a pipeline, the history of its last request;
// in the other modes it is the conversation of a Mind after what it was told to cut: by the time of the sound, or by
// the text where it writes.
//
// All of this is on fake time, which is what makes thousands of them possible. That a real session sends the same
// cuts to its server is tested with the vendor, and calls by real RTP are tested by e2e.
func Interruptions(t *testing.T, mode string, n int, seed uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, mode)
		p.mode = mode
		p.session.Persona = p.persona(1)
		p.session.Persona.Assistant.MaxDuration = 3600
		random := rand.New(rand.NewPCG(seed, 1))
		p.mind.Pause = time.Duration(random.IntN(30)) * audio.FrameTime
		p.voice.Delay = time.Duration(random.IntN(300)) * time.Millisecond
		if seed%2 == 0 { // the sound comes hardly quicker than it is heard
			p.voice.Pace = time.Duration(50+random.IntN(45)) * time.Millisecond
		}
		reply := map[string]int{} // whose a word is
		for i := range n + 1 {
			text := prose(random, 1+random.IntN(4), reply, i)
			if i == n {
				text = prose(random, 1, reply, i)
			}
			p.brain.Script(Thought{Text: text})
		}
		defer p.report()
		p.begin()
		for i := range n + 1 {
			if i > 0 {
				p.until("a reply", func(s state) bool { return s.audible })
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				synctest.Wait()
			}
			p.leg.say(p.recognizer.line("no please stop and listen to me", "", 1200*time.Millisecond)...)
			time.Sleep(1400 * time.Millisecond)
			p.until("silence", func(s state) bool { return !s.audible })
		}
		p.until("the last reply", func(s state) bool { return s.audible })
		p.until("its end", func(s state) bool { return !s.audible })
		time.Sleep(3 * time.Second)
		holds := p.holds()
		p.leg.hangUp(parley.CustomerHangup)
		<-p.done
		p.cancel(context.Canceled)
		synctest.Wait()

		heard, told, held := make([]int, n+1), make([]int, n+1), make([]int, n+1)
		for _, h := range p.leg.state().heard {
			chars := int(time.Duration(h.Frames) * audio.FrameTime / CharTime)
			for _, w := range strings.Fields(h.Text) {
				if chars -= len(w) + 1; chars >= -1 {
					heard[reply[bare(w)]]++
				}
			}
		}
		count := func(text string, of []int) {
			for _, w := range strings.Fields(text) {
				if i, ok := reply[bare(w)]; ok {
					of[i]++
				}
			}
		}
		for _, turn := range p.result.Turns {
			if turn.Speaker == parley.SpeakerAssistant {
				count(turn.Text, told)
			}
		}
		for _, text := range holds {
			count(text, held)
		}
		for i := range heard {
			if d := heard[i] - told[i]; d < -1 || d > 1 {
				p.errorf("seed %d, reply %d: %d words were heard, and %d are in the transcript", seed, i, heard[i], told[i])
			}
			if d := heard[i] - held[i]; (d < -1 || d > 1) && (i < n || mode != "pipeline") { // which asks no more
				p.errorf("seed %d, reply %d: %d words were heard, and the model holds %d", seed, i, heard[i], held[i])
			}
		}
	})
}

// holds is what the model knows of what the assistant has said.
func (p *play) holds() (texts []string) {
	if p.mode != "pipeline" {
		return p.mind.Last().Holds()
	}
	asked := p.brain.Asked()
	for _, m := range asked[len(asked)-1].Messages {
		if m.Role == ai.Assistant {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// prose is a few sentences made of unique words.
func prose(random *rand.Rand, sentences int, whose map[string]int, reply int) string {
	var all []string
	for range sentences {
		var words []string
		for range 4 + random.IntN(10) {
			w := ""
			for w == "" || whose[w] > 0 || w == "and" {
				b := make([]byte, 4+random.IntN(6))
				for i := range b {
					b[i] = "abdefgiklmnoprstuvz"[random.IntN(19)]
				}
				w = string(b)
			}
			whose[w] = reply
			words = append(words, w)
		}
		words[0] = strings.ToUpper(words[0][:1]) + words[0][1:]
		all = append(all, strings.Join(words, " ")+".")
	}
	return strings.Join(all, " ")
}

func bare(word string) string { return strings.ToLower(strings.Trim(word, ".")) }
