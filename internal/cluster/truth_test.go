package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/internal/parley"
)

// truth is what really happened in a world, as nobody in it knows it: what the telephones saw, and which nodes lived.
type truth struct {
	mu     sync.Mutex
	trunks []int64
	gone   map[*process]bool

	at       map[string]*process // who has a number on the line
	on       map[int]int         // by campaign: calls on the line
	leads    int                 // of a campaign
	parallel int                 // calls that it may have at once
	ended    map[int64]int       // by call: how often its end was told
	faults

	delays []time.Duration // of calls that were begun, until Start returned
	calls  int             // that were begun
	failed int             // that could not be begun

	disturbed bool     // a node died or was cut off
	said      []string // the first errors
}

// faults are what must never happen.
type faults struct {
	wrong  int // rows of calls of live nodes that others closed
	twice  int // numbers that were called while they were on the line
	endeds int // calls whose end was told twice
	many   int // times that a campaign had more calls at once than it may
	double int // trunks seen with two registrations, in seconds
	errors int // that were logged, and not by nodes that could not reach the database
}

func (f *faults) none() bool { return *f == faults{} }

// disturb notes that a node dies or is cut off.
func (t *truth) disturb() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disturbed = true
}

// failure counts an error, unless the nodes were disturbed and it says no more than that the database was out of reach.
func (t *truth) failure(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil || t.disturbed && (errors.Is(err, errAway) || errors.Is(err, context.Canceled)) { // Canceled: see link.BeforeQuery
		return
	}
	if t.errors++; len(t.said) < 10 {
		t.said = append(t.said, what+": "+err.Error())
	}
}

// errorLog counts what is logged at level Error.
type errorLog struct{ *truth }

func (errorLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (e errorLog) Handle(_ context.Context, r slog.Record) error {
	err := errors.New("without an error")
	r.Attrs(func(a slog.Attr) bool {
		if of, ok := a.Value.Any().(error); ok {
			err = of
		}
		return true
	})
	e.failure(r.Message, err)
	return nil
}

func (e errorLog) WithAttrs([]slog.Attr) slog.Handler { return e }
func (e errorLog) WithGroup(string) slog.Handler      { return e }

func (t *truth) init() {
	t.gone, t.at, t.ended, t.on = map[*process]bool{}, map[string]*process{}, map[int64]int{}, map[int]int{}
}

func (t *truth) killed(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone[p] = true
	for to, at := range t.at { // its far ends hear nothing more, and hang up
		if at == p {
			t.free(to)
		}
	}
}

func (t *truth) away(p *process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone[p]
}

func (t *truth) dialled(p *process, to string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone[p] {
		return
	}
	if t.at[to] != nil {
		t.twice++
		t.free(to)
	}
	t.at[to] = p
	c := t.campaign(to)
	if t.on[c]++; t.on[c] > t.parallel {
		t.many++
	}
}

func (t *truth) free(to string) {
	delete(t.at, to)
	t.on[t.campaign(to)]--
}

// campaign is which campaign a telephone number belongs to.
func (t *truth) campaign(to string) int { return lead(to) / t.leads }

func (t *truth) hungUp(p *process, to string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone[p] {
		return
	}
	if t.at[to] == p {
		t.free(to)
	}
}

func (t *truth) over(c *parley.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended[c.ID]++; t.ended[c.ID] == 2 {
		t.endeds++
	}
}

func (t *truth) started(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failed++
		return
	}
	t.calls++
	t.delays = append(t.delays, took)
}

func (t *truth) lines() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.at)
}

// take returns the faults and figures since they were last taken.
func (t *truth) take() (f faults, calls, failed int, p50, p99 time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.delays)
	if n := len(t.delays); n > 0 {
		p50, p99 = t.delays[n/2], t.delays[n*99/100]
	}
	f, calls, failed = t.faults, t.calls, t.failed
	t.faults, t.calls, t.failed, t.delays = faults{}, 0, 0, nil
	return f, calls, failed, p50, p99
}
