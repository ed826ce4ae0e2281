package failover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// mind is a model whose requests go as its script says, one entry each; the last entry is for all further ones.
type mind struct {
	script []thought
	asked  []ai.Request
	live   int
}

type thought struct {
	after  time.Duration
	say    []string
	each   time.Duration // between pieces
	call   *ai.ToolCall
	err    error
	forgot bool // it doesn't end until it is cancelled
}

func (m *mind) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (r ai.Reply, err error) {
	m.live++
	defer func() { m.live-- }()
	t := m.script[min(len(m.asked), len(m.script)-1)]
	m.asked = append(m.asked, req)
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := wait(t.after); err != nil {
		return r, err
	}
	for _, s := range t.say {
		if err := yield(ai.Delta{Text: s}); err != nil {
			return r, err
		}
		r.Text += s
		r.Usage.Out++
		if err := wait(t.each); err != nil {
			return r, err
		}
	}
	if t.call != nil {
		if err := yield(ai.Delta{Call: t.call}); err != nil {
			return r, err
		}
		r.Calls = append(r.Calls, *t.call)
	}
	if t.forgot {
		<-ctx.Done()
		return r, context.Cause(ctx)
	}
	r.Finish = ai.Stop
	return r, t.err
}

func fault(k ai.Kind) error { return &ai.Error{Kind: k, Err: errors.New("planted")} }

// models is a list of models named a, b and c, each with its own circuit.
func models(all ...*mind) *Model {
	var c Circuits
	m := &Model{}
	for i, one := range all {
		name := string(rune('a' + i))
		m.Links = append(m.Links, Link[ai.Model]{Name: name, Circuit: c.Of(ai.TheModel, name), Do: one})
	}
	return m
}

// said is the outcome of a request.
type said struct {
	text     string
	first    time.Duration // until the first word
	took     time.Duration
	switches []string
	err      error
}

func generate(t *testing.T, ctx context.Context, m ai.Model, req ai.Request) (s said) {
	t.Helper()
	tally := &ai.Tally{Switched: func(w ai.Switch) {
		s.switches = append(s.switches, w.From+">"+w.To+" "+string(w.Why))
	}}
	began := time.Now()
	got, err := m.Generate(ai.Tallied(ctx, tally), req, func(d ai.Delta) error {
		if s.text == "" {
			s.first = time.Since(began)
		}
		s.text += d.Text
		return nil
	})
	s.took, s.err = time.Since(began), err
	if got.Text != s.text {
		t.Errorf("the reply holds %q of %q", got.Text, s.text)
	}
	return s
}

func TestModelConforms(t *testing.T) {
	aitest.Conform(t, &Model{Links: []Link[ai.Model]{{Name: "a", Circuit: new(Circuit), Do: &aitest.Fake{}},
		{Name: "b", Circuit: new(Circuit), Do: &aitest.Fake{}}}})
}

// When a model fails before its first word, the next one takes over with the same words.
func TestModelFailsFirst(t *testing.T) {
	for _, kind := range []ai.Kind{ai.RateLimited, ai.Overloaded, ai.Unreachable, ai.Interrupted, ai.Stalled,
		ai.Malformed, ai.Config, ai.TooLong} {
		synctest.Test(t, func(t *testing.T) {
			a := &mind{script: []thought{{after: 100 * time.Millisecond, err: fault(kind)}}}
			b := &mind{script: []thought{{after: 200 * time.Millisecond, say: []string{"Good ", "day."}}}}
			req := ai.Request{System: "be kind", Messages: []ai.Message{{Role: ai.User, Text: "hello"}}}
			s := generate(t, t.Context(), models(a, b), req)
			if s.err != nil || s.text != "Good day." || s.first != 300*time.Millisecond {
				t.Errorf("%s: %+v", kind, s)
			}
			if want := []string{"a>b " + string(kind)}; !slices.Equal(s.switches, want) {
				t.Errorf("noted %q, want %q", s.switches, want)
			}
			if b.asked[0].System != req.System || len(b.asked[0].Messages) != 1 {
				t.Errorf("the next was asked %+v", b.asked[0])
			}
		})
	}
}

// A request that is refused for its content is not offered to other models. When all fail, the first one's error is
// reported.
func TestModelErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &mind{script: []thought{{err: fault(ai.Refused)}}}, &mind{script: []thought{{say: []string{"x"}}}}
		if s := generate(t, t.Context(), models(a, b), ai.Request{}); ai.KindOf(s.err) != ai.Refused || len(b.asked) > 0 {
			t.Errorf("%+v", s)
		}
		a, b = &mind{script: []thought{{err: fault(ai.Config)}}}, &mind{script: []thought{{err: fault(ai.Overloaded)}}}
		if s := generate(t, t.Context(), models(a, b), ai.Request{}); ai.KindOf(s.err) != ai.Config {
			t.Errorf("%+v", s)
		}
	})
}

// A model that is silent beyond the budget gets a rival: the first word takes the budget and the rival's own time, and
// the late model is cancelled.
func TestModelLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &mind{script: []thought{{forgot: true}}}
		b := &mind{script: []thought{{after: 60 * time.Millisecond, say: []string{"Here I am."}}}}
		m := models(a, b)
		s := generate(t, t.Context(), m, ai.Request{})
		if s.err != nil || s.first != ModelBudget+60*time.Millisecond || s.took != s.first || a.live != 0 {
			t.Errorf("%+v, %d run", s, a.live)
		}
		if want := []string{"a>b stalled"}; !slices.Equal(s.switches, want) {
			t.Errorf("noted %q", s.switches)
		}
	})
}

// The model that yields first wins, even if it is the late one.
func TestModelRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &mind{script: []thought{{after: 3 * time.Second, say: []string{"One ", "two."}, each: time.Second}}}
		b := &mind{script: []thought{{after: 2 * time.Second, say: []string{"Other."}}}}
		s := generate(t, t.Context(), models(a, b), ai.Request{})
		if s.err != nil || s.text != "One two." || s.first != 3*time.Second || len(s.switches) > 0 || b.live != 0 {
			t.Errorf("%+v, %d run", s, b.live)
		}
	})
}

// When a model breaks in the middle, the next one is told what was said, and nothing is said twice.
func TestModelBreaksInTheMiddle(t *testing.T) {
	for goes, want := range map[string]string{
		"with that.":                            "I can help you with that.",
		" with that.":                           "I can help you with that.",
		"I can help you with that.":             "I can help you with that.",
		"help you with that.":                   "I can help you with that.",
		"You with that.":                        "I can help you with that.",
		"I can help, of course.":                "I can help you I can help, of course.",
		", of course.":                          "I can help you, of course.",
		"I can help your neighbour.":            "I can help your neighbour.",
		"you":                                   "I can help you",
		"":                                      "I can help you",
		"\"I can help you,\" as I said, so far": "I can help you,\" as I said, so far",
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &mind{script: []thought{{say: []string{"I can ", "help", " you"}, err: fault(ai.Interrupted)}}}
			b := &mind{script: []thought{{say: strings.SplitAfter(goes, " ")}}}
			s := generate(t, t.Context(), models(a, b), ai.Request{Messages: []ai.Message{{Role: ai.User, Text: "help"}}})
			if s.err != nil || s.text != want {
				t.Errorf("%q: said %q, %v", goes, s.text, s.err)
			}
			told := b.asked[0].Messages
			if len(told) != 3 || told[1].Role != ai.Assistant || told[1].Text != "I can help you" || told[2].Text != goOn {
				t.Errorf("the next was told %+v", told)
			}
		})
	}
}

// When a model breaks after it has called a tool, its reply counts as complete: no other model is asked.
func TestModelBreaksAfterACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &mind{script: []thought{{call: &ai.ToolCall{ID: "1", Name: "book"}, err: fault(ai.Interrupted)}}}
		b := &mind{script: []thought{{say: []string{"x"}}}}
		got, err := models(a, b).Generate(t.Context(), ai.Request{}, func(ai.Delta) error { return nil })
		if err != nil || len(got.Calls) != 1 || got.Finish != ai.ToolCalls || len(b.asked) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// No part of a document is passed on before it is complete: the next model writes it from the start.
func TestModelSchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &mind{script: []thought{{say: []string{`{"a":`}, err: fault(ai.Interrupted)}}}
		b := &mind{script: []thought{{say: []string{`{"a":`, `1}`}}}}
		s := generate(t, t.Context(), models(a, b), ai.Request{Schema: &ai.Schema{Name: "x"}})
		if s.err != nil || s.text != `{"a":1}` || len(b.asked[0].Messages) > 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A model that is down is not waited for: after three failures it is skipped, then tried again, and used again once it
// works.
func TestModelSkipsWhoIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &mind{script: []thought{{forgot: true}, {forgot: true}, {forgot: true}, {err: fault(ai.Overloaded)},
			{say: []string{"a"}}}}
		b := &mind{script: []thought{{say: []string{"b"}}}}
		m := models(a, b)
		ask := func(text string, after time.Duration) {
			t.Helper()
			if s := generate(t, t.Context(), m, ai.Request{}); s.err != nil || s.text != text || s.first != after {
				t.Errorf("%+v, want %s after %s", s, text, after)
			}
		}
		for range 3 {
			ask("b", ModelBudget)
		}
		ask("b", 0)
		if len(a.asked) != 3 {
			t.Errorf("who is down was asked %d times", len(a.asked))
		}
		time.Sleep(firstPause)
		ask("b", 0) // the probe fails: the pause doubles
		time.Sleep(firstPause)
		ask("b", 0)
		if len(a.asked) != 4 {
			t.Errorf("who is down was asked %d times", len(a.asked))
		}
		time.Sleep(firstPause)
		ask("a", 0)
		ask("a", 0)
	})
}

// A vendor that asks for a pause gets it, and a vendor whose settings are wrong is skipped for longer.
func TestModelPauses(t *testing.T) {
	for err, pause := range map[*ai.Error]time.Duration{
		{Kind: ai.RateLimited, RetryAfter: 40 * time.Second, Err: errors.New("slow down")}: 40 * time.Second,
		{Kind: ai.RateLimited, RetryAfter: 24 * time.Hour, Err: errors.New("slow down")}:   maxRetry,
		{Kind: ai.Config, Err: errors.New("wrong key")}:                                    configPause,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &mind{script: []thought{{err: err}, {say: []string{"a"}}}}
			m := models(a, &mind{script: []thought{{say: []string{"b"}}}})
			for _, want := range []string{"b", "b"} {
				if s := generate(t, t.Context(), m, ai.Request{}); s.text != want {
					t.Errorf("%+v", s)
				}
			}
			time.Sleep(pause - time.Millisecond)
			if s := generate(t, t.Context(), m, ai.Request{}); s.text != "b" || len(a.asked) != 1 {
				t.Errorf("%v: %+v, asked %d times", err, s, len(a.asked))
			}
			time.Sleep(time.Millisecond)
			if s := generate(t, t.Context(), m, ai.Request{}); s.text != "a" {
				t.Errorf("%v: %+v", err, s)
			}
		})
	}
}

// When the caller gives up, everything stops, and nothing is held against the vendors. When all are down, one is asked
// all the same.
func TestModelGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &mind{script: []thought{{forgot: true}}}, &mind{script: []thought{{forgot: true}}}
		m, gone := models(a, b), errors.New("gone")
		for range 5 {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(gone) })
			if s := generate(t, ctx, m, ai.Request{}); !errors.Is(s.err, gone) || a.live+b.live != 0 {
				t.Fatalf("%+v, %d run", s, a.live+b.live)
			}
		}
		if len(a.asked) != 5 || len(b.asked) != 0 {
			t.Errorf("asked %d and %d times", len(a.asked), len(b.asked))
		}
		full := errors.New("full")
		a.script = []thought{{say: []string{"x"}, forgot: true}}
		_, err := m.Generate(t.Context(), ai.Request{}, func(ai.Delta) error { return full })
		if !errors.Is(err, full) || a.live != 0 {
			t.Errorf("%v, %d run", err, a.live)
		}
		down := &mind{script: []thought{{err: fault(ai.Config)}, {say: []string{"back"}}}}
		m = models(down, &mind{script: []thought{{err: fault(ai.Config)}}})
		if s := generate(t, t.Context(), m, ai.Request{}); s.err == nil {
			t.Error("nobody failed")
		}
		if s := generate(t, t.Context(), m, ai.Request{}); s.text != "back" {
			t.Errorf("%+v", s)
		}
	})
}

// A link may have a patience of its own, which is nothing to those behind it.
func TestModelBudgetOfALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &mind{script: []thought{{after: 10 * time.Second, say: []string{"late"}}}}
		b := &mind{script: []thought{{after: 2 * time.Second, say: []string{"Good day."}}}}
		c := &mind{script: []thought{{say: []string{"nobody asks"}}}}
		m := models(a, b, c)
		m.Links[0].Budget = 300 * time.Millisecond
		if s := generate(t, t.Context(), m, ai.Request{}); s.err != nil || s.text != "Good day." || s.first != 2300*time.Millisecond ||
			len(c.asked) != 0 {
			t.Errorf("%+v, the third asked %d times", s, len(c.asked))
		}
	})
}

// Who has lost a race doesn't end the reply, and asks nobody else, when the winner has broken off before the loser's end is known.
func TestLoserEndsLate(t *testing.T) {
	for name, end := range map[string]error{"well": nil, "told to stop": errOver} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			slow := &mind{script: []thought{{after: time.Hour}}}
			m := models(&mind{}, &mind{}, slow, slow)
			r := &reply{queue: line(ai.TheModel, m.Links, ""), budget: time.Hour, yield: func(ai.Delta) error { return nil }, ctx: ctx,
				news: make(chan news), ends: make(chan *attempt, 9), timer: time.NewTimer(time.Hour)}
			race := func() *attempt {
				link, pass := r.pop()
				a := &attempt{link: link, pass: pass, cancel: func(error) {}}
				r.under = append(r.under, a)
				return a
			}
			late, first := race(), race()
			r.wins(first)
			first.err = fault(ai.Interrupted)
			if over, err := r.ended(first); over || err != nil {
				t.Errorf("%s: the winner's end is the reply's: %v, %v", name, over, err)
			}
			late.err, late.reply.Usage.Out = end, 7
			if over, err := r.ended(late); over || err != nil || r.winner != nil || r.usage.Out != 7 {
				t.Errorf("%s: the loser's end is the reply's: %v, %v; usage %+v", name, over, err, r.usage)
			}
			synctest.Wait()
			if len(slow.asked) != 1 {
				t.Errorf("%s: %d others were asked", name, len(slow.asked))
			}
			cancel()
			r.wait()
		})
	}
}
