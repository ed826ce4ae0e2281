package failover

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// voices is a list of voices named a, b and c, each with its own circuit.
func voices(all ...ai.Synthesizer) Synthesizer {
	var c Circuits
	var links []Link[Speaker]
	for i, one := range all {
		name := string(rune('a' + i))
		links = append(links, Link[Speaker]{Name: name, Circuit: c.Of(ai.TheVoice, name), Do: Speaker{one, "voice " + name}})
	}
	return NewSynthesizer(0, links...)
}

// spoken is the outcome of a reply.
type spoken struct {
	first    time.Duration   // until the first sound
	sound    []time.Duration // the length of each text's sound
	words    [][]ai.Word
	whole    int // how many texts were said whole
	switches []string
	err      error
}

// speak says texts, which arrive one after the other.
func speak(t *testing.T, s ai.Synthesizer, tally *ai.Tally, pause time.Duration, texts ...string) (got spoken) {
	t.Helper()
	tally.Switched = func(w ai.Switch) { got.switches = append(got.switches, w.From+">"+w.To+" "+string(w.Why)) }
	ctx, cancel := context.WithCancel(ai.Tallied(t.Context(), tally))
	defer cancel()
	lines := make(chan string)
	go func() {
		for i, text := range texts {
			if i > 0 {
				time.Sleep(pause)
			}
			select {
			case lines <- text:
			case <-ctx.Done():
				return
			}
		}
		close(lines)
	}()
	began, n := time.Now(), 0
	got.err = s.Speak(ctx, ai.Speech{Voice: "voice a", Rate: audio.Narrow}, lines, func(p ai.Sound) error {
		if p.Text < n || p.Text > len(got.sound) {
			t.Errorf("text %d after %d", p.Text, n)
		}
		if n = p.Text; n == len(got.sound) {
			got.sound, got.words = append(got.sound, 0), append(got.words, nil)
		}
		if len(p.PCM) > 0 && got.first == 0 {
			got.first = time.Since(began)
		}
		got.sound[n] += time.Duration(len(p.PCM)) * time.Second / 8000
		got.words[n] = append(got.words[n], p.Words...)
		if p.Last {
			got.whole++
		}
		return nil
	})
	return got
}

// saidBy is what a voice was asked to say.
func saidBy(s *aitest.Synthesizer) (texts []string) {
	for _, one := range s.Said() {
		texts = append(texts, one.Text)
	}
	return texts
}

func TestSynthesizerConforms(t *testing.T) {
	aitest.ConformSynthesizer(t, voices(&aitest.Synthesizer{Times: true}, &aitest.Synthesizer{}), ai.Speech{})
}

const one, two, three = "Good morning to you.", "How can I help you today?", "We are open."

// When a voice fails before its first sound, the next one takes over at once, with the same words in its own voice. A
// voice that is late costs no more than the budget and the time that the next voice needs.
func TestVoiceFailsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		how   aitest.Saying
		first time.Duration
		why   string
	}{
		"fails": {aitest.Saying{Err: aitest.ErrVoice}, 50 * time.Millisecond, "a>b unreachable"},
		"hangs": {aitest.Saying{Hang: true}, VoiceBudget + 50*time.Millisecond, "a>b stalled"},
		"slow":  {aitest.Saying{Delay: 5 * time.Second}, VoiceBudget + 50*time.Millisecond, "a>b stalled"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &aitest.Synthesizer{}, &aitest.Synthesizer{}
			a.Usually(c.how)
			b.Usually(aitest.Saying{Delay: 50 * time.Millisecond})
			got := speak(t, voices(a, b), new(ai.Tally), time.Millisecond, one, two)
			if got.err != nil || got.first != c.first || got.whole != 2 || !slices.Equal(got.switches, []string{c.why}) ||
				!slices.Equal(saidBy(b), []string{one, two}) || a.Live()+b.Live() != 0 {
				t.Errorf("%s: %+v, b said %q", name, got, saidBy(b))
			}
			if as := b.Said()[0]; as.Voice != "voice b" || as.Rate != audio.Narrow {
				t.Errorf("said as %+v", as.Speech)
			}
		})
	}
}

// The voice that has sound first goes on, even if it was late.
func TestVoiceRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &aitest.Synthesizer{}, &aitest.Synthesizer{}
		a.Usually(aitest.Saying{Delay: VoiceBudget + 100*time.Millisecond})
		b.Usually(aitest.Saying{Delay: time.Second})
		got := speak(t, voices(a, b), new(ai.Tally), 0, one)
		if got.err != nil || got.first != VoiceBudget+100*time.Millisecond || len(got.switches) > 0 || b.Live() != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// When a voice breaks in the middle of a sentence, the next one goes on from the first word that was not heard whole.
func TestVoiceBreaksInTheMiddle(t *testing.T) {
	const text = "one two three four five six seven eight"
	for name, c := range map[string]struct {
		times bool
		after time.Duration
		want  string
	}{
		"with times": {true, 600 * time.Millisecond, "three four five six seven eight"}, // "one two" is 350 ms
		"early":      {true, 100 * time.Millisecond, text},
		"at the end": {true, 1900 * time.Millisecond, "eight"},
		"by pace":    {false, time.Second, "four five six seven eight"}, // 15 letters are "one two three f"
	} {
		for hangs, gap := range map[bool]time.Duration{false: 0, true: 2 * VoiceBudget} {
			synctest.Test(t, func(t *testing.T) {
				a, b := &aitest.Synthesizer{Times: c.times}, &aitest.Synthesizer{Times: true}
				how := aitest.Saying{After: c.after, Hang: hangs}
				if !hangs {
					how.Err = &ai.Error{Kind: ai.Interrupted, Err: errors.New("cut")}
				}
				a.On(text, how)
				began := time.Now()
				got := speak(t, voices(a, b), new(ai.Tally), 0, text, two)
				if got.err != nil || got.whole != 2 || !slices.Equal(saidBy(b), []string{c.want, two}) {
					t.Errorf("%s: %+v, b said %q", name, got, saidBy(b))
				}
				if took := time.Since(began); took != gap {
					t.Errorf("%s: it took %s", name, took)
				}
				if want := c.after + aitest.SpeechTime(c.want, 1); got.sound[0] != want {
					t.Errorf("%s: %s of sound, want %s", name, got.sound[0], want)
				}
				words := got.words[0]
				last := words[len(words)-1]
				if last.Until != len(text) || last.At != got.sound[0] || !slices.IsSortedFunc(words,
					func(a, b ai.Word) int { return a.Until - b.Until }) {
					t.Errorf("%s: words %v", name, words)
				}
			})
		}
	}
}

// Between two sentences no sound is due from a voice, however long the model thinks.
func TestVoiceWaitsForText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &aitest.Synthesizer{}, &aitest.Synthesizer{}
		got := speak(t, voices(a, b), new(ai.Tally), time.Minute, one, two)
		if got.err != nil || got.whole != 2 || len(got.switches)+len(b.Said()) > 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Within a call the voice that stepped in stays, and its sound is not cached; another call begins with the first voice
// again.
func TestVoiceStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &aitest.Synthesizer{}, &aitest.Synthesizer{}
		a.On(one, aitest.Saying{Err: aitest.ErrVoice})
		s, tally := voices(a, b), new(ai.Tally)
		if !s.Steady(t.Context()) {
			t.Error("nothing has failed")
		}
		speak(t, s, tally, 0, one)
		if s.Steady(t.Context()) {
			t.Error("it has just failed")
		}
		time.Sleep(time.Minute)
		speak(t, s, tally, 0, two)
		if got := saidBy(b); !slices.Equal(got, []string{one, two}) {
			t.Errorf("b said %q", got)
		}
		if s.Steady(ai.Tallied(t.Context(), tally)) || !s.Steady(t.Context()) {
			t.Error("in this call it is another voice, in others it is not")
		}
		speak(t, s, new(ai.Tally), 0, three)
		if got := saidBy(a); !slices.Equal(got, []string{one, three}) {
			t.Errorf("a said %q", got)
		}
	})
}

// The last voice of a list is waited for. When all fail, the first one's error is reported.
func TestVoicesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &aitest.Synthesizer{}, &aitest.Synthesizer{}
		a.Usually(aitest.Saying{Err: &ai.Error{Kind: ai.Config, Err: errors.New("no key")}})
		b.Usually(aitest.Saying{Delay: 5 * time.Second})
		if got := speak(t, voices(a, b), new(ai.Tally), 0, one); got.err != nil || got.first != 5*time.Second {
			t.Errorf("%+v", got)
		}
		b.Usually(aitest.Saying{Err: aitest.ErrVoice})
		if got := speak(t, voices(a, b), new(ai.Tally), 0, one); ai.KindOf(got.err) == "" {
			t.Errorf("%+v", got)
		}
	})
}

// A cache uses the list of voices as a key: lists of the same voices are equal.
func TestVoiceListsAreComparable(t *testing.T) {
	a, b := &aitest.Synthesizer{}, &aitest.Synthesizer{}
	var c Circuits
	make := func(last string) ai.Synthesizer {
		return NewSynthesizer(0, Link[Speaker]{Name: "a", Circuit: c.Of(ai.TheVoice, "a"), Do: Speaker{a, "x"}},
			Link[Speaker]{Name: "b", Circuit: c.Of(ai.TheVoice, "b"), Do: Speaker{b, last}})
	}
	if !reflect.TypeOf(make("y")).Comparable() || make("y") != make("y") || make("y") == make("z") {
		t.Error("lists can't be told from each other")
	}
}

func TestPace(t *testing.T) {
	text := strings.Repeat("word ", 20)
	p := pace{letters: 60, took: 2 * time.Second} // 30 a second
	if n := p.said(text, time.Second, nil); n != 30 {
		t.Errorf("%d octets in a second", n)
	}
	if n := (&pace{}).said("你好世界你好世界", 200*time.Millisecond, nil); n != 9 {
		t.Errorf("%d octets of Chinese", n)
	}
}

// reader is a voice that reads numbers.
type reader struct{ ai.Synthesizer }

// Reads implements ai.Reader.
func (reader) Reads() bool { return true }

// Numbers are left as they are written only if every voice that may take over reads them.
func TestReads(t *testing.T) {
	plain := &aitest.Synthesizer{}
	if !ai.Reads(voices(reader{plain}, reader{plain})) || ai.Reads(voices(reader{plain}, plain)) || ai.Reads(voices(plain)) {
		t.Error("who reads numbers")
	}
}
