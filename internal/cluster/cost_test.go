package cluster

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

var measure = flag.Bool("costs", false, "measure what statements cost on PostgreSQL, and write testdata/costs.tsv")

// watch measures how long statements take, by the store's method and by how they begin: a method may ask several things.
type watch struct {
	mu   sync.Mutex
	took map[string]map[string][]time.Duration
}

// BeforeQuery implements bun.QueryHook.
func (*watch) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements bun.QueryHook.
func (w *watch) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	took, m := time.Since(e.StartTime), method(e.Query)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.took[m] == nil {
		w.took[m] = map[string][]time.Duration{}
	}
	begins := e.Query[:min(len(e.Query), 60)]
	if what := strings.IndexAny(begins, "0123456789"); what > 0 {
		begins = begins[:what]
	}
	w.took[m][begins] = append(w.took[m][begins], took)
}

// TestCosts measures, with -costs, what the statements of one of 50 nodes cost on PostgreSQL, with few and with many live calls: how
// long an answer takes on this machine, less what a SELECT 1 takes; what reading the answer costs the program is among it.
func TestCosts(t *testing.T) {
	if !*measure {
		t.Skip("costs are measured with -costs (make simulate)")
	}
	few, many := costsOf(t, fewAccounts), costsOf(t, manyAccounts)
	var out strings.Builder
	fmt.Fprintf(&out, "# Microseconds of PostgreSQL for a statement of each method of the store, with %d and with %d live calls:\n"+
		"# make simulate ARGS=-costs. %s\n", fewLive, manyLive, facts())
	for _, m := range slices.Sorted(maps.Keys(many)) {
		if few[m] == 0 {
			few[m] = many[m]
		}
		fmt.Fprintf(&out, "%s\t%d\t%d\n", m, few[m].Microseconds(), many[m].Microseconds())
	}
	if err := os.WriteFile("testdata/costs.tsv", []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// facts are when and on what something was measured.
func facts() string {
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	return fmt.Sprintf("%s, %d cores that other work shares, the program as of %s", time.Now().UTC().Format("2 January 2006"), processors(),
		strings.TrimSpace(string(commit)))
}

// each is how many calls a campaign may have at once (parley.Campaign).
const each = 10

func costsOf(t *testing.T, accounts int) map[string]time.Duration {
	o := storetest.Options(t, "postgres")
	seen := &watch{took: map[string]map[string][]time.Duration{}}
	o.Watch = seen
	w := fill(t, o, size{accounts: accounts, parallel: each, leads: 40, trunks: 500})
	w.talk = 4 * time.Second
	storetest.Exec(t, o, `INSERT INTO nodes (id, name, roles, version, live, leaving, started_at, seen_at)
		SELECT 'node' || n, 'host', 'api,calls', 'v1', 200, FALSE, 1,
			(extract(epoch FROM now()) * 1000000)::bigint + 3600000000 FROM generate_series(1, 49) AS n`)
	var live1 []int64 // of one node
	for user := range int64(accounts) {
		list, err := w.db.Campaigns(t.Context(), user+1)
		w.must(err)
		w.write(func(ctx context.Context, tx *store.Tx) error {
			for _, c := range list {
				for i := range each - 1 { // there is room for one that the node begins
					phone := fmt.Sprintf("+1416%03d%04d", 200+c.ID, i)
					row := &parley.Call{AssistantID: c.AssistantID, CampaignID: &c.ID, Type: parley.CallOutbound, Status: parley.CallInProgress,
						CustomerPhone: &phone, AnsweredAt: 1, Node: fmt.Sprintf("node%d", 1+int(c.ID)%49), MaxDuration: 600}
					for range 20 {
						row.Turns = append(row.Turns,
							parley.CallTurn{Speaker: "customer", Text: "I would like to know when somebody can come and look at it."})
					}
					if err := tx.CreateCall(ctx, user+1, row); err != nil {
						return err
					}
					if row.Node == "node1" || len(live1) < 200 {
						live1 = append(live1, row.ID)
					}
				}
			}
			return nil
		})
	}
	storetest.Exec(t, o, "UPDATE calls SET seen_at = seen_at + 3600000000")
	storetest.Exec(t, o, "VACUUM ANALYZE")
	seen.mu.Lock()
	clear(seen.took)
	seen.mu.Unlock()
	w.room = 10 // calls at a time: how long statements wait for each other is the model's to say
	p := w.process(nil, w.db)
	time.Sleep(20 * time.Second) // it is not waited for anything: its statements are measured
	w.kill(p)
	repeat := func(fn func(context.Context, *store.Tx) error) {
		for range 40 {
			w.write(fn)
		}
	}
	live1 = live1[:200]
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(live1), " ", ","), "[]")
	storetest.Exec(t, o, "UPDATE calls SET node = 'node1' WHERE id IN ("+ids+")")
	c, err := w.db.RecordedCall(t.Context(), live1[0])
	w.must(err)
	repeat(func(ctx context.Context, tx *store.Tx) error { _, err := tx.KeepCall(ctx, c); return err })
	seen.mu.Lock()
	delete(seen.took, "RenewCalls")
	seen.mu.Unlock()
	storetest.Exec(t, o, "VACUUM calls")
	repeat(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.RenewCalls(ctx, "node1", live1, parley.Now().Add(time.Hour))
		return err
	})
	for range 100 {
		w.must(w.db.Ping(t.Context()))
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	floor := usually(seen.took["Ping"])
	of := map[string]time.Duration{}
	for m, took := range seen.took {
		if d := usually(took); m != "" && m != "Ping" {
			of[m] = max(20*time.Microsecond, d-floor)
		}
	}
	t.Logf("%d accounts: SELECT 1 takes %v; %v", accounts, floor, of)
	return of
}

// usually is how long a method's statements take on average, each kind of them as long as a quarter of it at most: the others were held
// up by what else ran.
func usually(kinds map[string][]time.Duration) time.Duration {
	var sum time.Duration
	n := 0
	for _, list := range kinds {
		slices.Sort(list)
		sum += list[len(list)/4] * time.Duration(len(list))
		n += len(list)
	}
	return sum / time.Duration(max(1, n))
}
