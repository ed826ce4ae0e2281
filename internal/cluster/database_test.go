package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// hardware is what a simulated PostgreSQL has.
type hardware struct {
	cores  int
	trip   time.Duration // of a statement to the database and back
	commit time.Duration // until a commit is on the disk
	slower float64       // times slower than measured
}

var usual = hardware{cores: 8, trip: 500 * time.Microsecond, commit: time.Millisecond, slower: 1}

// database is a PostgreSQL of the model: cores that serve statements in the order in which they come, rows that a transaction locks until
// its end, and connections that can be cut.
type database struct {
	costs costs

	mu sync.Mutex
	hardware
	free   []time.Time          // when each core is free
	locked map[string]time.Time // until when, by row
	shared map[string]time.Time // the same, of those who may lock a row together
	skew   time.Duration        // of its clock
	live   int                  // calls, which the costs of some statements grow with
	seen   figures
}

// figures are what happened at the database since they were last taken.
type figures struct {
	since      time.Time
	statements int
	busy       time.Duration            // of its cores
	by         map[string]time.Duration // busy, by the store's method
	times      map[string]int           // statements
	wait       time.Duration            // the longest for a core
	lock       time.Duration            // and for a row
}

func newDatabase(c costs, h hardware) *database {
	d := &database{costs: c, hardware: h, free: make([]time.Time, h.cores), locked: map[string]time.Time{},
		shared: map[string]time.Time{}}
	d.take()
	return d
}

// load notes how many calls are live.
func (d *database) load(calls int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live = calls
}

// take returns the figures, and begins them anew.
func (d *database) take() figures {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.seen
	d.seen = figures{since: time.Now(), by: map[string]time.Duration{}, times: map[string]int{}}
	return was
}

// clock is the database's time.
func (d *database) clock() parley.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return parley.At(time.Now().Add(d.skew))
}

// serve is how long statements take that come now: they wait for a core and for all rows that they lock.
func (d *database) serve(methods []string, locks []lock, writes bool) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, busy := time.Now(), time.Duration(0)
	for _, m := range methods {
		cost := time.Duration(float64(d.costs.of(m, d.live)) * d.slower)
		busy += cost
		d.seen.by[m] += cost
		d.seen.times[m]++
	}
	d.seen.statements += len(methods)
	d.seen.busy += busy
	core := 0
	for i := range d.free {
		if d.free[i].Before(d.free[core]) {
			core = i
		}
	}
	start := now
	if d.free[core].After(now) {
		start = d.free[core]
	}
	d.free[core] = start.Add(busy)
	d.seen.wait = max(d.seen.wait, start.Sub(now))
	got := start
	for _, l := range locks {
		if at := d.locked[l.row]; l.how != passing && at.After(got) {
			got = at
		}
		if at := d.shared[l.row]; l.how == alone && at.After(got) {
			got = at
		}
	}
	d.seen.lock = max(d.seen.lock, got.Sub(start))
	end := got.Add(busy + time.Duration(len(methods))*d.trip)
	if writes {
		end = end.Add(2*d.trip + d.commit) // BEGIN and COMMIT
	}
	for _, l := range locks {
		until := d.locked
		if l.how == together {
			until = d.shared
		}
		if end.After(until[l.row]) {
			until[l.row] = end
		}
	}
	return end.Sub(now)
}

// costs are what the database's processor needs for a statement of each method of the store, with few and with many live calls.
type costs map[string][2]time.Duration

// The numbers of accounts and of live calls with which costs were measured: each campaign had room for one more.
const (
	fewAccounts, manyAccounts = 25, 250
	fewLive, manyLive         = fewAccounts * campaigns * (each - 1), manyAccounts * campaigns * (each - 1)
)

// other is the cost of a statement that was not measured.
const other = 150 * time.Microsecond

func (c costs) of(method string, live int) time.Duration {
	m, ok := c[method]
	if !ok {
		return other
	}
	return max(10*time.Microsecond, m[0]+time.Duration(float64(m[1]-m[0])*float64(live-fewLive)/(manyLive-fewLive)))
}

// readCosts reads the measured costs: a method and its microseconds with few and many live calls.
func readCosts(t testing.TB) costs {
	t.Helper()
	f, err := os.Open("testdata/costs.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := costs{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var name string
		var few, many float64
		if _, err := fmt.Sscan(lines.Text(), &name, &few, &many); err != nil {
			t.Fatalf("costs.tsv: %q: %v", lines.Text(), err)
		}
		c[name] = [2]time.Duration{time.Duration(few * 1000), time.Duration(many * 1000)}
	}
	return c
}

// record is what a transaction did.
type record struct {
	methods []string
	locks   []lock
}

// lock is a row that a transaction keeps from others until its end.
type lock struct {
	row string
	how
}

type how int

const (
	alone    how = iota
	together     // with others who lock it so: FOR SHARE
	passing      // alone, and nobody waits for it: SKIP LOCKED. In the model, who would have passed over the row works on it all the same.
)

// hows are of those methods in locking that don't lock alone.
var hows = map[string]how{"DialLead": together, "LockCampaign": passing}

type recordKey struct{}

// recorder notes what transactions do. It watches the SQLite that all nodes share.
type recorder struct{}

// BeforeQuery implements bun.QueryHook.
func (recorder) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements bun.QueryHook.
func (recorder) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	r, _ := ctx.Value(recordKey{}).(*record)
	if r == nil || strings.HasPrefix(e.Query, "SAVEPOINT") || strings.HasPrefix(e.Query, "RELEASE") || strings.HasPrefix(e.Query, "ROLLBACK") {
		return
	}
	m := method(e.Query)
	r.methods = append(r.methods, m)
	if m == "CreateCall" {
		r.methods = append(r.methods, "LockUser") // which asks nothing on SQLite; the row is the one that Reserve locks
	}
	if what := locking[m]; what != nil {
		if id := what.FindStringSubmatch(strings.ReplaceAll(e.Query, `"`, "")); id != nil {
			if l := (lock{id[1] + id[2], hows[m]}); !slices.Contains(r.locks, l) {
				r.locks = append(r.locks, l)
			}
		}
	}
}

// locking are methods after which a transaction keeps a row from others, with the kind and the id of the row in their statements.
var locking = map[string]*regexp.Regexp{
	"Post":          regexp.MustCompile(`(users).*\bid = (\d+)`),
	"Reserve":       regexp.MustCompile(`(users).*\bid = (\d+)`),
	"AddSpend":      regexp.MustCompile(`(call_spend) .*VALUES \((\d+)`),
	"CorrectSpend":  regexp.MustCompile(`(call_spend) .*\buser_id = (\d+)`),
	"CallForUpdate": regexp.MustCompile(`(calls).*c\.id = (\d+)`),
	"LockCampaign":  regexp.MustCompile(`(campaigns).*\bid = (\d+)`),
	"LockRun":       regexp.MustCompile(`(campaigns).*\bid = (\d+)`),
	"DialLead":      regexp.MustCompile(`FROM (campaigns).*\bid = (\d+)`),
}

// method is the method of the store whose statement has just run: the one that another room called.
func method(query string) string {
	m := caller()
	if m == "RunningCampaigns" && !strings.Contains(query, "user_id IN (") && !strings.Contains(query, `"user_id" IN (`) {
		return "AllRunningCampaigns" // not those of some users
	}
	return m
}

func caller() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	name := ""
	for {
		f, more := frames.Next()
		rest, ok := strings.CutPrefix(f.Function, "parley/internal/store.")
		switch {
		case ok && (strings.Contains(rest, "Write") || strings.Contains(rest, "writeSQLite")),
			!ok && name != "" && strings.HasPrefix(f.Function, "parley/"):
			return name
		case ok:
			rest, _, _ = strings.Cut(rest, ".func")
			rest = strings.TrimSuffix(rest, "[...]")
			name = rest[strings.LastIndex(rest, ".")+1:]
		}
		if !more {
			return name
		}
	}
}

// link is a node's way to the database.
type link struct {
	*database
	pool chan struct{} // has a token for each connection

	mu   sync.Mutex
	cut  cut
	told map[string][]time.Time // when statements of some methods were done
}

// cut is how a node's way to the database is interrupted.
type cut int

const (
	whole   cut = iota
	refused     // connections are refused at once
	silent      // nothing answers: after unheard the connection is given up
)

// unheard is after how long a silent connection is given up (store.unheardTime).
const unheard = 20 * time.Second

// connections are those of a node's pool (store.openPostgres).
const connections = 16

var errAway = errors.New("the database does not answer")

func (d *database) link() *link {
	return &link{database: d, pool: make(chan struct{}, connections), told: map[string][]time.Time{}}
}

func (l *link) set(c cut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = c
}

func (l *link) state() cut {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// reach waits for a connection and the way there. Without an error the connection is the caller's until it is left.
func (l *link) reach(ctx context.Context) error {
	select {
	case l.pool <- struct{}{}:
	case <-ctx.Done():
		if l.state() != whole { // those that have the connections wait for the database
			return fmt.Errorf("%w: %w", errAway, ctx.Err())
		}
		return ctx.Err()
	}
	switch l.state() {
	case whole:
		return nil
	case refused:
		time.Sleep(l.trip)
	default:
		select {
		case <-time.After(unheard):
		case <-ctx.Done():
		}
	}
	l.leave()
	return errAway
}

func (l *link) leave() { <-l.pool }

func (l *link) done(methods []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range methods {
		if m == "SeeNode" || m == "Clock" { // Clock comes with every sign of life of the calls of a node
			l.told[m] = append(l.told[m], time.Now())
		}
	}
}

type reachedKey struct{}

// BeforeQuery implements bun.QueryHook.
func (l *link) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context {
	if err := l.reach(ctx); err != nil {
		lost, cancel := context.WithCancelCause(ctx)
		cancel(err)
		return lost
	}
	return context.WithValue(ctx, reachedKey{}, true)
}

// AfterQuery implements bun.QueryHook.
func (l *link) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if ctx.Value(reachedKey{}) == nil {
		return
	}
	done := []string{method(e.Query)}
	time.Sleep(l.serve(done, nil, false))
	l.done(done)
	l.leave()
}

// Write implements store.Link.
func (l *link) Write(ctx context.Context, commit func(context.Context) error) error {
	if err := l.reach(ctx); err != nil {
		return err
	}
	defer l.leave()
	r := new(record)
	err := commit(context.WithValue(ctx, recordKey{}, r))
	time.Sleep(l.serve(r.methods, r.locks, true))
	if err == nil {
		l.done(r.methods)
	}
	return err
}

// Clock implements store.Link.
func (l *link) Clock() parley.Time { return l.clock() }
