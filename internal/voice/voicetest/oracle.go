package voicetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// oracle is the external detector of a play.
type oracle struct {
	p    *play
	mu   sync.Mutex
	says map[string]verdict
	busy int
	last []string // what it was asked last
}

// verdict is what an oracle says, and after how long.
type verdict struct {
	over  float64
	after time.Duration
}

// judge implements voice.Session.Judge.
func (o *oracle) judge(ctx context.Context, language, text, question string) (float64, bool) {
	o.mu.Lock()
	o.last = []string{text, language, question}
	v, ok := o.says[text]
	if o.busy++; o.busy > 1 {
		o.p.t.Errorf("it is asked about %q while it is being asked", text)
	}
	o.mu.Unlock()
	o.p.note("detector asked: %q after %q, which is over with %v", text, question, v.over)
	err := sleep(ctx, v.after)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy--
	return v.over, ok && err == nil
}

// detector performs a line about it.
func (p *play) detector(a *args) {
	if a.is("asked") {
		p.oracle.mu.Lock()
		defer p.oracle.mu.Unlock()
		want := []string{a.text()}
		a.is("in")
		want = append(want, a.word())
		a.is("after")
		if want = append(want, a.text()); !slices.Equal(p.oracle.last, want) {
			p.errorf("the detector was asked %q, not %q", p.oracle.last, want)
		}
		return
	}
	if p.oracle == nil {
		p.oracle = &oracle{p: p, says: map[string]verdict{}}
		p.session.Judge = p.oracle.judge
	}
	a.is("says")
	v := verdict{over: a.float()}
	a.is("to")
	text := a.text()
	v.after, _ = a.timeOf("after")
	p.oracle.mu.Lock()
	defer p.oracle.mu.Unlock()
	p.oracle.says[strings.TrimSpace(text)] = v
}
