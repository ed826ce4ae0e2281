package failover

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/crash"
)

// Speaking is a realtime model with the voice in which it speaks, "" where it writes.
type Speaking struct {
	ai.RealtimeModel
	Voice string
}

// Realtime combines a list of realtime models into one, for one conversation. A model that can't be opened is followed
// by the next at once. So is one that fails at a response, is late with it, or breaks off before it has done anything:
// its session then ends as lost, and whoever holds the conversation opens another, which is the next one's. A model
// that broke off later is opened once more before that. The model that goes on stays the call's. One that decides by
// itself when it speaks is never late: its session says when it has stalled.
type Realtime struct {
	Links  []Link[Speaking] // at least two
	Budget time.Duration    // to the first of a response, and to the opening; 0 is ModelBudget

	mu     sync.Mutex
	failed map[string]ai.Kind // models that have failed since one did well
}

// Connect implements ai.RealtimeModel. The voice that s names is the first one's.
func (m *Realtime) Connect(ctx context.Context, s ai.RealtimeSetup) (ai.RealtimeSession, error) {
	var failed error
	q := m.line(ctx)
	for {
		link, pass := q.pop()
		if link == nil {
			return nil, failed
		}
		if s.Voice = link.Do.Voice; s.Writes {
			s.Voice = ""
		}
		c, err := m.open(ctx, q, link, s)
		if err == nil {
			q.acts(ctx, link.Name)
			t := &turns{RealtimeSession: c, m: m, link: link, pass: pass, budget: budgetOr(m.Budget, ModelBudget),
				patient: m.Decides(), out: make(chan ai.RealtimeEvent, 16), done: make(chan struct{}), asked: map[int]bool{},
				timer: time.NewTimer(time.Hour)}
			t.timer.Stop()
			go t.run()
			return t, nil
		}
		if ctx.Err() != nil {
			pass.void()
			return nil, context.Cause(ctx)
		}
		pass.failed(err)
		// What an operator must mend is told only if nothing else is wrong: the others may be there in a moment.
		if failed == nil || ai.KindOf(failed) == ai.Config {
			failed = err
		}
		if q.why = ai.KindOf(err); !further(err) {
			return nil, err
		}
	}
}

// Decides says whether the models decide by themselves when they speak, as all of the list do or none (ai.Decides).
func (m *Realtime) Decides() bool { return ai.Decides(m.Links[0].Do.RealtimeModel) }

// Same is the first model, in whose voice everybody is to be greeted.
func (m *Realtime) Same() any { return m.Links[0].Do }

// Steady reports whether the first model acts, and has not failed recently.
func (m *Realtime) Steady(ctx context.Context) bool {
	first := &m.Links[0]
	return ai.TallyOf(ctx).Acting(ai.TheModel, first.Name) == first.Name && first.Circuit.Steady()
}

// line is the order in which the models are asked: the one that acts first, but those that have failed last.
func (m *Realtime) line(ctx context.Context) *queue[Speaking] {
	q := line(ai.TheModel, m.Links, ai.TallyOf(ctx).Acting(ai.TheModel, m.Links[0].Name))
	m.mu.Lock()
	defer m.mu.Unlock()
	q.why = m.failed[q.links[0].Name]
	slices.SortStableFunc(q.links, func(a, b Link[Speaking]) int {
		_, one := m.failed[a.Name]
		_, other := m.failed[b.Name]
		switch {
		case one == other:
			return 0
		case one:
			return 1
		}
		return -1
	})
	return q
}

// open opens a session. One that has another behind it may take no longer than the budget.
func (m *Realtime) open(ctx context.Context, q *queue[Speaking], link *Link[Speaking],
	s ai.RealtimeSetup) (ai.RealtimeSession, error) {
	if !ai.HasNext(q.ahead(ctx)) {
		return link.Do.Connect(ctx, s)
	}
	own, cancel := context.WithCancelCause(ctx)
	patience := time.AfterFunc(budgetOr(m.Budget, ModelBudget), func() { cancel(errLate) })
	c, err := link.Do.Connect(own, s)
	if !patience.Stop() && ctx.Err() == nil { // too late, even if it opened in the last moment
		if err == nil {
			c.Close()
		}
		err = late()
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return cancelling{c, cancel}, nil
}

// cancelling is a session with a context of its own.
type cancelling struct {
	ai.RealtimeSession
	cancel context.CancelCauseFunc
}

// Close implements ai.RealtimeSession.
func (c cancelling) Close() {
	c.RealtimeSession.Close()
	c.cancel(nil)
}

// next reports whether there is a model that may do better than one that fails.
func (m *Realtime) next(name string) bool {
	m.mu.Lock()
	failed := maps.Clone(m.failed)
	m.mu.Unlock()
	return slices.ContainsFunc(m.Links, func(l Link[Speaking]) bool {
		_, bad := failed[l.Name]
		return l.Name != name && !bad && !l.Circuit.Open()
	})
}

// fails notes that a model has failed.
func (m *Realtime) fails(name string, why ai.Kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed == nil {
		m.failed = map[string]ai.Kind{}
	}
	m.failed[name] = why
}

// well notes that one has not.
func (m *Realtime) well() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.failed)
}

// turns is a session whose responses are watched.
type turns struct {
	ai.RealtimeSession
	m       *Realtime
	link    *Link[Speaking]
	pass    *pass
	budget  time.Duration
	patient bool // no response is late
	out     chan ai.RealtimeEvent
	done    chan struct{} // closed when nobody wants to know more
	close   sync.Once

	mu    sync.Mutex
	asked map[int]bool // responses that are waited for
	timer *time.Timer  // runs while there are any
	acted bool         // something of a response has come
}

// Respond implements ai.RealtimeSession.
func (t *turns) Respond(n int, instruction string, words bool) {
	t.await(n)
	t.RealtimeSession.Respond(n, instruction, words)
}

// Say implements ai.RealtimeSession.
func (t *turns) Say(n int, text string) {
	t.await(n)
	t.RealtimeSession.Say(n, text)
}

// await begins to wait for a response.
func (t *turns) await(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[n] = true
	if len(t.asked) == 1 {
		t.wait(t.budget)
	}
}

// wait gives what is asked for so much time from now on. The lock is held.
func (t *turns) wait(d time.Duration) {
	if !t.patient {
		t.timer.Reset(d)
	}
}

// Cut implements ai.RealtimeSession.
func (t *turns) Cut(n int, heard time.Duration, text string) {
	t.settled(n)
	t.RealtimeSession.Cut(n, heard, text)
}

// settled ends the wait for a response; it reports whether there was one.
func (t *turns) settled(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asked[n] {
		return false
	}
	delete(t.asked, n)
	if len(t.asked) == 0 {
		t.timer.Stop()
	} else {
		t.wait(t.budget)
	}
	return true
}

// acts notes that something of a response has come; the next of it may take twice as long.
func (t *turns) acts(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.acted = true; t.asked[n] {
		t.wait(2 * t.budget)
	}
}

// Events implements ai.RealtimeSession.
func (t *turns) Events() <-chan ai.RealtimeEvent { return t.out }

// Close implements ai.RealtimeSession.
func (t *turns) Close() {
	t.close.Do(func() { close(t.done) })
	for range t.out { // until nothing is left running
	}
}

// run passes the session's events on until it ends, or has failed.
func (t *turns) run() {
	defer close(t.out)
	defer crash.Contain(func(err error) { t.tell(ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: ai.TheModel.Of(err)}) })
	defer t.timer.Stop()
	defer t.pass.void()
	defer t.RealtimeSession.Close()
	for {
		select {
		case e, ok := <-t.RealtimeSession.Events():
			if !ok {
				return
			}
			if failed := t.judge(e); failed != nil {
				e = ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: failed}
			}
			if !t.tell(e) || e.Kind == ai.RealtimeLost {
				return
			}
		case <-t.timer.C:
			t.failed(late())
			if !t.m.next(t.link.Name) {
				continue // nobody would do better
			}
			t.m.fails(t.link.Name, ai.Stalled)
			t.tell(ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: ai.TheModel.Of(late())})
			return
		case <-t.done:
			return
		}
	}
}

func (t *turns) tell(e ai.RealtimeEvent) bool {
	select {
	case t.out <- e:
		return true
	case <-t.done:
		return false
	}
}

// judge learns from an event. It returns why the session is of no more use, if another is to go on in its place.
func (t *turns) judge(e ai.RealtimeEvent) error {
	switch e.Kind {
	case ai.RealtimeSound, ai.RealtimeText, ai.RealtimeCall:
		t.acts(e.N)
	case ai.RealtimeLost:
		t.failed(e.Err)
		if t.owes() {
			t.m.fails(t.link.Name, ai.KindOf(e.Err))
		}
	case ai.RealtimeDone:
		if !t.settled(e.N) {
			return nil // it was cut
		}
		if e.Err == nil {
			t.pass.well()
			t.m.well()
			return nil
		}
		t.failed(e.Err)
		if further(e.Err) && t.m.next(t.link.Name) {
			t.m.fails(t.link.Name, ai.KindOf(e.Err))
			return e.Err
		}
	}
	return nil
}

// owes reports whether a response was asked for, and nothing has come of any.
func (t *turns) owes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.acted && len(t.asked) > 0
}

// failed tells the circuit of a failure: that of the opening, if nothing has gone well since.
func (t *turns) failed(err error) {
	p := t.pass
	if p.done {
		p = t.link.Circuit.force()
	}
	p.failed(err)
}
