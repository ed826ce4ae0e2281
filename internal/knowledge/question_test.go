package knowledge

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/uptrace/bun"

	"parley/internal/store/storetest"
)

// queries counts the queries to the database.
type queries struct{ n atomic.Int64 }

func (q *queries) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }
func (q *queries) AfterQuery(_ context.Context, e *bun.QueryEvent)                    { q.n.Add(1) }

// A search makes the same few queries, however much there is and whoever else is there.
func TestQuestionsPerSearch(t *testing.T) {
	o, count := storetest.Options(t, "sqlite"), &queries{}
	o.Watch = count
	l := newLibrary(t, storetest.Open(t, o))
	stop := l.work()
	l.settled(l.add("Handbook", handbook+strings.Repeat("\n# More\nBread of every kind is delivered daily.\n", 300)).ID)
	stop()
	// state, words, [misspellings, their words,] postings, passages
	for query, want := range map[string]int64{"delivery bread": 4, "delivrey of braed": 6} {
		before := count.n.Load()
		if len(l.find(query)) == 0 {
			t.Errorf("%q found nothing", query)
		}
		if n := count.n.Load() - before; n != want {
			t.Errorf("%q took %d questions", query, n)
		}
	}
}
