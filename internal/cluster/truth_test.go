package cluster

import (
	"errors"
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
}

// faults are what must never happen.
type faults struct {
	wrong  int // calls of live nodes that were closed by others
	twice  int // numbers that were called while they were on the line
	endeds int // calls whose end was told twice
	many   int // times that a campaign had more calls at once than it may
	double int // trunks seen with two registrations, in seconds
}

func (f *faults) none() bool { return *f == faults{} }

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

func (t *truth) hungUp(p *process, to string, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone[p] {
		return
	}
	if t.at[to] == p {
		t.free(to)
	}
	if errors.Is(cause, parley.NodeLost) {
		t.wrong++
	}
}

func (t *truth) over(p *process, c *parley.Call) {
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
