package failover

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/provider/rest"
)

// away is a vendor whose server answers each request with 503 after a while. Requests are sent as to real vendors.
type away struct{ asked int }

const awayTime = 100 * time.Millisecond // until it answers

func (a *away) ask(ctx context.Context) error {
	return rest.Again(ctx, "vendor", "away", func() bool { return false }, func() error {
		a.asked++
		select {
		case <-time.After(awayTime):
			return fault(ai.Overloaded)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func (a *away) Generate(ctx context.Context, _ ai.Request, _ func(ai.Delta) error) (ai.Reply, error) {
	return ai.Reply{}, a.ask(ctx)
}

func (a *away) Say(ctx context.Context, _ ai.Speech, _ string, _ func([]int16) error) error {
	return a.ask(ctx)
}

func (a *away) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	r := aitest.Recognizer{}
	inner, err := r.Listen(ctx, h)
	return &awayRecognition{inner, a, ctx, make(chan ai.Transcript, 8), 0}, err
}

// awayRecognition sends one utterance at a time.
type awayRecognition struct {
	ai.Recognition
	of  *away
	ctx context.Context
	out chan ai.Transcript
	n   int
}

func (e *awayRecognition) Write([]int16) {}

func (e *awayRecognition) End() {
	n := e.n
	e.n++
	go func() { e.out <- ai.Transcript{Utterance: n, Final: true, Err: e.of.ask(e.ctx)} }()
}

func (e *awayRecognition) Transcripts() <-chan ai.Transcript { return e.out }

// A vendor with another one behind it is asked only once: its failure costs the time of that one answer, and no more.
func TestFailureIsSeenAtOnce(t *testing.T) {
	t.Run("model", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := &away{}, &away{}
			m := models(&mind{}, &mind{}, &mind{script: []thought{{after: time.Second / 5, say: []string{"Good day."}}}})
			m.Links[0].Do, m.Links[1].Do = a, b
			s := generate(t, t.Context(), m, ai.Request{})
			if s.err != nil || s.first != 2*awayTime+time.Second/5 || a.asked != 1 || b.asked != 1 {
				t.Errorf("%+v, asked %d and %d times", s, a.asked, b.asked)
			}
		})
	})
	t.Run("voice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := &away{}, &aitest.Synthesizer{}
			b.Usually(aitest.Saying{Delay: time.Second / 5})
			got := speak(t, voices(ai.Streamed(a), b), new(ai.Tally), 0, one)
			if got.err != nil || got.first != awayTime+time.Second/5 || a.asked != 1 {
				t.Errorf("%+v, asked %d times", got, a.asked)
			}
		})
	})
	t.Run("ear", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var switches []string
			a := &away{}
			e := open(t, hearers(a, length()), &switches)
			defer e.Close()
			e.Write(tone(time.Second))
			began := time.Now()
			e.End()
			if got := final(t, e); got.Err != nil || got.Text != "1s" || time.Since(began) != awayTime || a.asked != 1 {
				t.Errorf("%+v after %s, asked %d times", got, time.Since(began), a.asked)
			}
		})
	})
}

// A vendor with none behind it is asked again as usual: when it is alone, the last of a list, or the others are down.
func TestTheLastIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(m *Model, want ...int) {
			t.Helper()
			var before []int
			for _, l := range m.Links {
				before = append(before, l.Do.(*away).asked)
			}
			m.Budget = time.Minute
			began := time.Now()
			s := generate(t, t.Context(), m, ai.Request{})
			for i, l := range m.Links {
				if n := l.Do.(*away).asked - before[i]; n != want[i] {
					t.Errorf("vendor %d was asked %d times, want %d", i, n, want[i])
				}
			}
			if pause := rest.FirstPause + 2*rest.FirstPause; ai.KindOf(s.err) != ai.Overloaded || time.Since(began) < pause {
				t.Errorf("%v after %s", s.err, time.Since(began))
			}
		}
		list := func(n int) *Model {
			m := models(make([]*mind, n)...)
			for i := range m.Links {
				m.Links[i].Do = &away{}
			}
			return m
		}
		ask(list(1), 3)
		m := list(2)
		ask(m, 1, 3)
		m = list(2)
		m.Links[1].Circuit.force().failed(fault(ai.Config)) // it is skipped
		ask(m, 3, 0)
	})
	synctest.Test(t, func(t *testing.T) {
		a, b := &away{}, &away{}
		if got := speak(t, voices(ai.Streamed(a)), new(ai.Tally), 0, one); got.err == nil || a.asked != 3 {
			t.Errorf("%+v, asked %d times", got, a.asked)
		}
		var switches []string
		a = &away{}
		e := open(t, hearers(a, b), &switches)
		defer e.Close()
		e.Write(tone(time.Second))
		e.End()
		if got := final(t, e); got.Err == nil || a.asked != 1 || b.asked != 3 {
			t.Errorf("%+v, asked %d and %d times", got, a.asked, b.asked)
		}
	})
}
