package failover

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// mortal is a recognizer whose recognitions a test can break.
type mortal struct {
	*aitest.Recognizer
	tear []context.CancelFunc
}

func (m *mortal) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	ctx, cancel := context.WithCancel(ctx)
	m.tear = append(m.tear, cancel)
	return m.Recognizer.Listen(ctx, h)
}

// hearers is a list of recognizers named a, b and c, each with its own circuit.
func hearers(all ...ai.Recognizer) *Recognizer {
	var c Circuits
	r := &Recognizer{}
	for i, one := range all {
		name := string(rune('a' + i))
		r.Links = append(r.Links, Link[ai.Recognizer]{Name: name, Circuit: c.Of(ai.TheRecognizer, name), Do: one})
	}
	return r
}

// length is a recognizer whose text is how long the sound was.
func length() *aitest.Recognizer {
	return &aitest.Recognizer{Hear: func(pcm []int16, h ai.Hearing) string {
		return (time.Duration(len(pcm)) * time.Second / time.Duration(h.Rate)).String()
	}}
}

// tone is a loud sound of some length.
func tone(d time.Duration) []int16 {
	pcm := make([]int16, int(d*8000/time.Second))
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(float64(i)/3))
	}
	return pcm
}

// open opens a recognizer; what the recognizer notes is appended to the list.
func open(t *testing.T, r ai.Recognizer, switches *[]string) ai.Recognition {
	t.Helper()
	tally := &ai.Tally{Switched: func(w ai.Switch) {
		*switches = append(*switches, w.From+">"+w.To+" "+string(w.Why))
	}}
	e, err := r.Listen(ai.Tallied(t.Context(), tally), ai.Hearing{Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// final is the next final transcript.
func final(t *testing.T, e ai.Recognition) ai.Transcript {
	t.Helper()
	for got := range e.Transcripts() {
		if got.Final {
			return got
		}
	}
	t.Fatal("the ear has closed")
	return ai.Transcript{}
}

func TestRecognizerConforms(t *testing.T) {
	v := &aitest.Synthesizer{}
	say := func(t *testing.T, text string, rate audio.Rate) (all []int16) {
		err := ai.Say(t.Context(), v, ai.Speech{Rate: rate}, text, func(pcm []int16) error {
			all = append(all, pcm...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	hears := func(pcm []int16, h ai.Hearing) string { return v.Find(pcm[:min(len(pcm), int(h.Rate)/5)], h.Rate) }
	for _, turns := range []bool{false, true} {
		aitest.ConformRecognizer(t, hearers(&aitest.Recognizer{Hear: hears, Turns: turns},
			&aitest.Recognizer{Hear: hears}), aitest.Heard{Texts: []string{"first words", "second", "the third"}, Sound: say})
	}
}

// When a recognizer is lost in the middle of an utterance, the next one hears all of it.
func TestRecognitionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &mortal{Recognizer: length()}, length()
		var switches []string
		e := open(t, hearers(a, b), &switches)
		e.Write(tone(300 * time.Millisecond))
		e.End()
		if got := final(t, e); got.Text != "300ms" || got.Utterance != 0 {
			t.Errorf("%+v", got)
		}
		e.Write(tone(time.Second))
		a.tear[0]()
		synctest.Wait()
		e.Write(tone(500 * time.Millisecond))
		e.End()
		e.Write(tone(200 * time.Millisecond))
		e.End()
		for i, want := range []string{"1.5s", "200ms"} {
			if got := final(t, e); got.Text != want || got.Utterance != i+1 || got.Err != nil {
				t.Errorf("%+v, want %s", got, want)
			}
		}
		e.Close()
		if _, open := <-e.Transcripts(); open || a.Live()+b.Live() != 0 {
			t.Errorf("%d and %d ears are open", a.Live(), b.Live())
		}
		if !slices.Equal(switches, []string{"a>b interrupted"}) {
			t.Errorf("noted %q", switches)
		}
	})
}

// When an utterance is lost, or its text is late, the next recognizer hears it, and those that came after it.
func TestRecognitionLosesAnUtterance(t *testing.T) {
	for name, c := range map[string]struct {
		u     aitest.Understanding
		after time.Duration
	}{
		"lost": {aitest.Understanding{Err: fault(ai.Overloaded)}, 0},
		"late": {aitest.Understanding{Hang: true}, RecognitionBudget},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := length(), length()
			a.Script(c.u)
			var switches []string
			e := open(t, hearers(a, b), &switches)
			defer e.Close()
			began := time.Now()
			e.Write(tone(400 * time.Millisecond))
			e.End()
			e.Write(tone(100 * time.Millisecond))
			if got := final(t, e); got.Text != "400ms" || got.Err != nil || time.Since(began) != c.after {
				t.Errorf("%s: %+v after %s", name, got, time.Since(began))
			}
			e.Write(tone(100 * time.Millisecond))
			e.End()
			if got := final(t, e); got.Text != "200ms" || got.Utterance != 1 || len(switches) != 1 {
				t.Errorf("%s: %+v, %q", name, got, switches)
			}
		})
	}
}

// When no other recognizer can hear it, the utterance is lost, and a lost recognizer closes.
func TestRecognitionsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &mortal{Recognizer: length()}, &mortal{Recognizer: length()}
		a.Script(aitest.Understanding{Err: fault(ai.Overloaded)})
		b.Script(aitest.Understanding{Err: fault(ai.Malformed)})
		var switches []string
		e := open(t, hearers(a, b), &switches)
		e.Write(tone(time.Second))
		e.End()
		if got := final(t, e); ai.KindOf(got.Err) != ai.Malformed || got.Utterance != 0 {
			t.Errorf("%+v", got)
		}
		e.Write(tone(time.Second))
		e.End()
		if got := final(t, e); got.Err != nil || got.Utterance != 1 {
			t.Errorf("%+v", got)
		}
		b.tear[0]()
		e.Write(tone(time.Second))
		synctest.Wait() // a is hearing it now
		a.tear[1]()
		if _, open := <-e.Transcripts(); open {
			t.Error("it hears nothing, and is open")
		}
		e.Write(tone(time.Second))
		e.End()
		e.Close()
	})
}

// A recognizer that can't be opened is skipped, and the recognizers of the next conversation know which ones are down.
func TestRecognitionCanNotBeOpened(t *testing.T) {
	a, b := length(), length()
	a.Err = fault(ai.Config)
	r, switches := hearers(a, b), []string{}
	for range 2 {
		e := open(t, r, &switches)
		e.Write(tone(time.Second))
		e.End()
		if got := final(t, e); got.Text != "1s" {
			t.Errorf("%+v", got)
		}
		e.Close()
	}
	if len(a.Heard()) != 1 || !slices.Equal(switches, []string{"a>b configuration", "a>b configuration"}) {
		t.Errorf("asked %d times, %q", len(a.Heard()), switches)
	}
	b.Err = fault(ai.Unreachable)
	if _, err := r.Listen(t.Context(), ai.Hearing{Rate: audio.Narrow}); err == nil {
		t.Error("nobody can be opened")
	}
}

// When a recognizer is given all sound, a recognizer that takes utterances hears only the speech in it.
func TestGate(t *testing.T) {
	g, heard := newGate(audio.Narrow), &counter{}
	g.write(make([]int16, 8000), heard)
	if heard.n != 0 {
		t.Errorf("%d samples of silence", heard.n)
	}
	g.open = true
	g.write(tone(time.Second), heard)
	if heard.n != 8000 {
		t.Errorf("%d samples of speech", heard.n)
	}
}

type counter struct {
	ai.Recognition
	n int
}

func (c *counter) Write(pcm []int16) { c.n += len(pcm) }

// When the sound is too long, the tape keeps its newest part. It gives the sound back as μ-law encodes it.
func TestTape(t *testing.T) {
	tp := newTape(audio.Narrow)
	pcm := tone(20 * time.Second)
	for i := 0; i < len(pcm); i += 160 {
		tp.write(pcm[i : i+160])
	}
	var got []int16
	tp.replay(func(p []int16) { got = append(got, p...) }, func() { t.Error("nothing has ended") })
	want := pcm[len(pcm)-len(got):]
	if time.Duration(len(got))*time.Second/8000 != tapeTime {
		t.Fatalf("%d samples", len(got))
	}
	for i, v := range got {
		if d := math.Abs(float64(v) - float64(want[i])); d > 300 {
			t.Fatalf("sample %d is %d of %d", i, v, want[i])
		}
	}
	tp.ended(time.Now())
	tp.done()
	if tp.end != 0 {
		t.Error("an empty tape goes on")
	}
}

// A packet allocates nothing.
func TestRecognitionAllocates(t *testing.T) {
	e, err := hearers(silentRecognition{}, silentRecognition{}).Listen(t.Context(), ai.Hearing{Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	frame := tone(audio.FrameTime)
	if n := testing.AllocsPerRun(2000, func() { e.Write(frame) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

// silentRecognition understands nothing.
type silentRecognition struct{}

func (silentRecognition) Listen(context.Context, ai.Hearing) (ai.Recognition, error) {
	return silentRecognition{}, nil
}
func (silentRecognition) Write([]int16)                     {}
func (silentRecognition) End()                              {}
func (silentRecognition) Continuous() bool                  { return false }
func (silentRecognition) Transcripts() <-chan ai.Transcript { return nil }
func (silentRecognition) Close()                            {}
