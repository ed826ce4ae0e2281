package failover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
)

// hearer is a realtime model whose sessions follow its script, one entry each; the last entry is for all further ones.
type hearer struct {
	name   string
	free   bool // it decides by itself when it speaks
	script []session
	opened int
	voices []string
	live   int
}

// session is how one session of a hearer goes.
type session struct {
	refused error         // opening it fails with this
	opens   time.Duration // until it is open
	after   time.Duration // until the first piece of a response
	fails   error         // the response fails with this
	says    int           // how many pieces come before it fails or is complete
	lost    bool          // it breaks off instead of failing or being complete
	silent  bool          // nothing comes
}

func (h *hearer) Connect(ctx context.Context, s ai.RealtimeSetup) (ai.RealtimeSession, error) {
	how := h.script[min(h.opened, len(h.script)-1)]
	h.opened++
	select {
	case <-time.After(how.opens):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if how.refused != nil {
		return nil, how.refused
	}
	h.voices = append(h.voices, s.Voice)
	h.live++
	c := &heard{h: h, how: how, out: make(chan ai.RealtimeEvent), ask: make(chan int, 9), cut: make(chan int, 9)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	go c.run()
	return c, nil
}

func (h *hearer) Decides() bool { return h.free }

type heard struct {
	ai.RealtimeSession
	h      *hearer
	how    session
	ctx    context.Context
	cancel context.CancelFunc
	out    chan ai.RealtimeEvent
	ask    chan int
	cut    chan int
}

func (c *heard) Respond(n int, _ string, _ bool)      { c.ask <- n }
func (c *heard) Cut(n int, _ time.Duration, _ string) { c.cut <- n }
func (c *heard) Events() <-chan ai.RealtimeEvent      { return c.out }
func (c *heard) Close()                               { c.cancel(); <-drained(c.out) }
func drained(out <-chan ai.RealtimeEvent) chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range out { //nolint:revive // read it to its end
		}
	}()
	return done
}

func (c *heard) tell(e ai.RealtimeEvent) {
	select {
	case c.out <- e:
	case <-c.ctx.Done():
	}
}

func (c *heard) run() {
	defer close(c.out)
	defer func() { c.h.live-- }()
	for {
		select {
		case <-c.ctx.Done():
			return
		case n := <-c.cut:
			c.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: n})
		case n := <-c.ask:
			if c.how.silent {
				continue
			}
			for range max(c.how.says, 1) {
				select {
				case <-time.After(c.how.after):
				case <-c.ctx.Done():
					return
				}
				if c.how.says > 0 {
					c.tell(ai.RealtimeEvent{Kind: ai.RealtimeText, N: n, Text: c.h.name})
				}
			}
			if c.how.lost {
				c.tell(ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: fault(ai.Interrupted)})
				return
			}
			c.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: n, Err: c.how.fails})
		}
	}
}

// conversation has a conversation with a list of models: this many responses, with a new session whenever one is lost.
// It notes what happened.
func conversation(t *testing.T, turns int, all ...*hearer) (notes []string) {
	t.Helper()
	var circuits Circuits
	m := &Realtime{}
	for _, h := range all {
		m.Links = append(m.Links, Link[Speaking]{Name: h.name, Circuit: circuits.Of(ai.TheModel, h.name), Do: Speaking{h, "of " + h.name}})
	}
	note := func(format string, a ...any) { notes = append(notes, fmt.Sprintf(format, a...)) }
	ctx := ai.Tallied(t.Context(), &ai.Tally{Switched: func(w ai.Switch) { note("%s>%s %s", w.From, w.To, w.Why) }})
	var c ai.RealtimeSession
	began := time.Now()
	open := func() bool {
		var err error
		if c, err = m.Connect(ctx, ai.RealtimeSetup{Voice: "asked"}); err != nil {
			note("none: %s", ai.KindOf(err))
		}
		return err == nil
	}
	if !open() {
		return notes
	}
	for n, tries := 1, 0; n <= turns; tries++ {
		if tries > 9 {
			t.Fatal("it goes on for ever", notes)
		}
		c.Respond(n, "", false)
		over := false
		for e := range c.Events() {
			switch e.Kind {
			case ai.RealtimeText:
				note("%s", e.Text)
			case ai.RealtimeLost:
				note("lost %s", ai.KindOf(e.Err))
			case ai.RealtimeDone:
				note("done%s", strings.TrimRight(" "+string(ai.KindOf(e.Err)), " "))
				n, over = n+1, true
			}
			if over {
				break
			}
		}
		if !over {
			c.Close()
			if !open() {
				return notes
			}
		}
	}
	note("%v", time.Since(began))
	c.Close()
	for _, h := range all {
		if h.live != 0 {
			t.Errorf("%d sessions of %s are left", h.live, h.name)
		}
		for _, v := range h.voices {
			if v != "of "+h.name {
				t.Errorf("%s speaks as %q", h.name, v)
			}
		}
	}
	return notes
}

// However a model fails, there is one switch to the next, which stays in use.
func TestRealtimeGoesOn(t *testing.T) {
	const ms = time.Millisecond
	good := session{after: 100 * ms, says: 1}
	for name, c := range map[string]struct {
		turns int
		a, b  []session
		want  []string
	}{
		"nothing fails": {2, []session{good}, []session{good}, []string{"a", "done", "a", "done", "200ms"}},
		"it is not opened": {2, []session{{refused: fault(ai.Overloaded)}}, []session{good},
			[]string{"a>b overloaded", "b", "done", "b", "done", "200ms"}},
		"it opens too late": {1, []session{{opens: time.Minute}}, []session{good},
			[]string{"a>b stalled", "b", "done", "2.6s"}},
		"the last one may take its time": {1, []session{{refused: fault(ai.Config)}}, []session{{opens: 9 * time.Second, says: 1}},
			[]string{"a>b configuration", "b", "done", "9s"}},
		"it breaks off, and is there again": {1, []session{{says: 2, lost: true}, good}, []session{good},
			[]string{"a", "a", "lost interrupted", "a", "done", "100ms"}},
		"it breaks off, and is gone": {1, []session{{says: 2, lost: true}, {refused: fault(ai.Unreachable)}}, []session{good},
			[]string{"a", "a", "lost interrupted", "a>b unreachable", "b", "done", "100ms"}},
		"it breaks off before it says anything": {1, []session{{lost: true}, good}, []session{good},
			[]string{"lost interrupted", "a>b interrupted", "b", "done", "100ms"}},
		"it fails": {2, []session{{fails: fault(ai.RateLimited)}}, []session{good},
			[]string{"lost rate limited", "a>b rate limited", "b", "done", "b", "done", "200ms"}},
		"it fails in the middle": {1, []session{{says: 1, fails: fault(ai.Overloaded)}}, []session{good},
			[]string{"a", "lost overloaded", "a>b overloaded", "b", "done", "100ms"}},
		"it says nothing": {1, []session{{silent: true}}, []session{good},
			[]string{"lost stalled", "a>b stalled", "b", "done", "2.6s"}},
		"it stops in the middle": {1, []session{{after: 6 * time.Second, says: 2}, good}, []session{good},
			[]string{"lost stalled", "a>b stalled", "b", "done", "2.6s"}},
		"it may take longer in the middle": {1, []session{{after: 2400 * ms, says: 2}}, []session{good},
			[]string{"a", "a", "done", "4.8s"}},
		"both fail: the second's failure is told": {1, []session{{fails: fault(ai.RateLimited)}}, []session{{fails: fault(ai.Malformed)}},
			[]string{"lost rate limited", "a>b rate limited", "done malformed", "0s"}},
		"neither opens: what may pass is told": {1, []session{{refused: fault(ai.Config)}}, []session{{refused: fault(ai.Overloaded)}},
			[]string{"none: overloaded"}},
		"it is refused: nobody else is asked": {1, []session{{fails: fault(ai.Refused)}}, []session{good},
			[]string{"done refused", "0s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := conversation(t, c.turns, &hearer{name: "a", script: c.a}, &hearer{name: "b", script: c.b}); !slices.Equal(got, c.want) {
				t.Errorf("%s:\n  %q, want\n  %q", name, got, c.want)
			}
		})
	}
}

// A response that was cut off is not waited for, and its end is not counted for or against the model.
func TestRealtimeCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &hearer{name: "a", script: []session{{silent: true}}}, &hearer{name: "b", script: []session{{}}}
		m := &Realtime{Links: []Link[Speaking]{{Name: "a", Circuit: new(Circuit), Do: Speaking{a, ""}},
			{Name: "b", Circuit: new(Circuit), Do: Speaking{b, ""}}}}
		c, err := m.Connect(t.Context(), ai.RealtimeSetup{})
		if err != nil {
			t.Fatal(err)
		}
		c.Respond(1, "", false)
		time.Sleep(time.Second)
		c.Cut(1, 0, "")
		if e := <-c.Events(); e.Kind != ai.RealtimeDone {
			t.Errorf("%+v", e)
		}
		select {
		case e := <-c.Events():
			t.Errorf("%+v", e)
		case <-time.After(time.Hour):
		}
		c.Close()
		c.Close()
		if b.opened > 0 || a.live > 0 {
			t.Errorf("%d were opened of the next, %d are left", b.opened, a.live)
		}
	})
}

// A model that decides by itself when it speaks may take its time; once its session says that it has stalled, the next goes on.
func TestRealtimeDecides(t *testing.T) {
	for name, c := range map[string]struct {
		a    session
		want []string
	}{
		"it hesitates": {session{after: 3 * time.Second, says: 2}, []string{"a", "a", "done", "6s"}},
		"it stalls": {session{after: 12 * time.Second, fails: fault(ai.Stalled)},
			[]string{"lost stalled", "a>b stalled", "b", "done", "12.1s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &hearer{name: "b", free: true, script: []session{{after: 100 * time.Millisecond, says: 1}}}
			if got := conversation(t, 1, &hearer{name: "a", free: true, script: []session{c.a}}, b); !slices.Equal(got, c.want) {
				t.Errorf("%s:\n  %q, want\n  %q", name, got, c.want)
			}
		})
	}
}
