package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// look is what was seen in a world for a while.
type look struct {
	what       string
	during     time.Duration
	nodes      int
	live       [2]int // calls on the line, the fewest and the most
	begun      float64
	failed     int
	p50, p99   time.Duration
	statements float64 // a second
	busy       float64 // cores of the database
	wait, lock time.Duration
	by         map[string]time.Duration
	beat       time.Duration // the longest between two signs of life of a node
	renew      time.Duration // and of its calls
	closed     time.Duration // until the calls of dead nodes were closed; -1: they were not
	held       time.Duration // until each trunk was registered again; -1: not
	dead       bool          // nodes died
	lost       int           // live calls that they had
	trunks     int           // that they were registered with
	faults
}

// watch has a world live on for a while, after something was done to it, and says what was seen.
func (w *world) watch(what string, during time.Duration, do func()) look {
	w.Helper()
	if f, _, _, _, _ := w.truth.take(); !f.none() {
		w.Errorf("before %q, against the rules: %v %q", what, f, w.truth.said)
	}
	w.database.load(w.truth.lines())
	w.database.take()
	began := time.Now()
	before := w.alive()
	held := map[*process]int{}
	for _, p := range before {
		held[p] = p.trunks()
	}
	do()
	alive := w.alive()
	l := look{what: what, during: during, nodes: len(alive), closed: -1, held: -1, live: [2]int{1 << 30, 0}}
	wrong := w.closedByOthers(alive)
	var dead []string
	for _, p := range before {
		if !slices.Contains(alive, p) {
			dead = append(dead, p.ID)
			l.trunks += held[p]
		}
	}
	if l.dead = len(dead) > 0; l.dead {
		l.lost = w.unclosed(dead)
	}
	double := 0
	for time.Since(began) < during {
		time.Sleep(min(time.Second, during-time.Since(began)))
		n := w.truth.lines()
		l.live[0], l.live[1] = min(l.live[0], n), max(l.live[1], n)
		w.database.load(n)
		if l.closed < 0 && l.dead && w.unclosed(dead) == 0 {
			l.closed = time.Since(began)
		}
		registered, twice := w.registrations(alive)
		if double += twice; registered == len(w.truth.trunks) {
			if l.held < 0 {
				l.held = time.Since(began)
			}
		} else {
			l.held = -1
		}
	}
	for _, p := range alive {
		l.beat, l.renew = max(l.beat, p.longest("SeeNode", began)), max(l.renew, p.longest("Clock", began))
	}
	var begun int
	l.faults, begun, l.failed, l.p50, l.p99 = w.truth.take()
	l.double, l.wrong = double, w.closedByOthers(alive)-wrong
	if l.errors > 0 {
		w.Logf("%s: the first errors logged: %q", what, w.truth.said)
	}
	seen := w.database.take()
	s := during.Seconds()
	l.begun, l.statements, l.busy = float64(begun)/s, float64(seen.statements)/s, seen.busy.Seconds()/s
	l.wait, l.lock, l.by = seen.wait, seen.lock, seen.by
	return l
}

// unclosed is how many calls of some nodes the database holds for live.
func (w *world) unclosed(nodes []string) (n int) {
	w.must(w.db.SQL().NewRaw("SELECT count(*) FROM calls WHERE ended_at = 0 AND node IN (?)", bun.List(nodes)).Scan(w.Context(), &n))
	return n
}

// closedByOthers is how many calls of some nodes others have closed.
func (w *world) closedByOthers(nodes []*process) (n int) {
	var ids []string
	for _, p := range nodes {
		ids = append(ids, p.ID)
	}
	w.must(w.db.SQL().NewRaw("SELECT count(*) FROM calls WHERE ended_reason = ? AND node IN (?)", parley.NodeLost, bun.List(ids)).
		Scan(w.Context(), &n))
	return n
}

// trunks is how many trunks a node is registered with.
func (p *process) trunks() int {
	p.own.Lock()
	defer p.own.Unlock()
	return len(p.held)
}

// registrations are how many trunks at least one of some nodes is registered with, and how many several are.
func (w *world) registrations(nodes []*process) (some, several int) {
	times := map[int64]int{}
	for _, p := range nodes {
		p.own.Lock()
		for id := range p.held {
			if p.Holds(id) {
				times[id]++
			}
		}
		p.own.Unlock()
	}
	for _, n := range times {
		if some++; n > 1 {
			several++
		}
	}
	return some, several
}

// longest is the longest time between two of what a node has told the database, since a moment.
func (l *link) longest(what string, since time.Time) (gap time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := since
	for _, at := range l.told[what] {
		if at.After(since) {
			gap, last = max(gap, at.Sub(last)), at
		}
	}
	return max(gap, time.Since(last))
}

// header is of the table of looks.
var header = "| " + strings.Join(columns, " | ") + " |\n" + strings.Repeat("|---", len(columns)) + "|\n"

var columns = []string{"what happens", "nodes, calls", "calls begun a second (refused)", "to begin one, p50 and p99", "statements a second",
	"cores of the database busy", "longest wait for a core, for a row",
	"longest between two signs of life: of a node (2 s), of its calls (5 s)", "a dead node's calls are closed after",
	"each trunk has a registration again after", "against the rules"}

// String is a row of the table.
func (l look) String() string {
	return fmt.Sprintf("| %s, %v | %d, %d to %d | %.0f (%d) | %s, %s | %.0f | %.1f | %s, %s | %s, %s | %s | %s | %s |\n",
		l.what, l.during, l.nodes, l.live[0], l.live[1], l.begun, l.failed, short(l.p50), short(l.p99), l.statements, l.busy,
		short(l.wait), short(l.lock), short(l.beat), short(l.renew), after(l.closed, l.lost > 0), after(l.held, true), l.faults)
}

// String names what was seen against the rules.
func (f faults) String() string {
	var list []string
	for _, of := range []struct {
		n    int
		what string
	}{{f.wrong, "calls of a live node closed by others"}, {f.twice, "numbers called while they were on the line"},
		{f.endeds, "calls ended twice"},
		{f.many, "times a campaign above its limit"}, {f.double, "seconds of a trunk with two registrations"},
		{f.errors, "errors logged"}} {
		if of.n > 0 {
			list = append(list, fmt.Sprint(of.n, " ", of.what))
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// costliest are the methods of the store that the database was busiest with, in cores.
func (l look) costliest() string {
	names := slices.SortedFunc(maps.Keys(l.by), func(a, b string) int { return cmp.Compare(l.by[b], l.by[a]) })
	var list []string
	for _, m := range names[:min(8, len(names))] {
		list = append(list, fmt.Sprintf("%s %.2f", m, l.by[m].Seconds()/l.during.Seconds()))
	}
	return strings.Join(list, ", ")
}

func after(d time.Duration, asked bool) string {
	switch {
	case !asked:
		return ""
	case d < 0:
		return "**not**"
	}
	return d.Round(time.Second).String()
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
