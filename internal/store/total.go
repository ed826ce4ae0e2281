package store

import (
	"context"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Each page of a list says how many rows the list has. Counting takes some 10 ms for every 100,000 of them, so what is
// older than an hour is counted once, and the next time only what is younger. Triggers note in list_changes that old
// rows were deleted or changed: a number that was remembered before such a change is forgotten.

const (
	oldAge      = time.Hour     // of rows that are remembered; the triggers watch rows from fifty minutes on
	rememberFor = 6 * time.Hour // how long a number is remembered

	maxTotals        = 100   // lists of an account that are remembered
	maxTotalAccounts = 1_000 // accounts with such lists
)

// totals are the long lists whose old rows were counted.
type totals struct {
	minRows  int64 // of a list that is remembered: fewer are counted in a moment
	maxYoung int64 // rows that are counted each time; with more, what has become old by now is remembered too

	mu sync.Mutex
	of map[int64]map[string]oldRows // by account, and by the list's query
}

func newTotals() *totals { return &totals{minRows: 10_000, maxYoung: 2_000} }

// oldRows is how many rows a list had with keys up to last. The zero value is a long list whose rows were not counted yet.
type oldRows struct {
	last, n int64
	changes int64       // of list_changes, from before they were counted
	at      parley.Time // when they were counted, by the database's clock
}

func (t *totals) get(userID int64, list string) (oldRows, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.of[userID][list]
	return old, ok
}

func (t *totals) put(userID int64, list string, old oldRows) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lists := t.of[userID]
	if lists == nil {
		if t.of == nil || len(t.of) >= maxTotalAccounts {
			t.of = map[int64]map[string]oldRows{}
		}
		lists = map[string]oldRows{}
		t.of[userID] = lists
	} else if len(lists) >= maxTotals {
		clear(lists)
	}
	lists[list] = old
}

// longList is a list of an account's rows in a table whose changes list_changes notes, or that never change. Its key
// ascends with created_at.
type longList struct {
	db         bun.IDB
	clock      func() any // the database's, in a query
	totals     *totals
	userID     int64
	table, key string
	rows       *bun.SelectQuery
	fresh      *bun.SelectQuery // rows again, such that the young ones are found by their key
}

// total returns how many rows the list has.
func (l longList) total(ctx context.Context) (int64, error) {
	if l.totals == nil { // a transaction sees what others don't
		return l.rows.Count(ctx)
	}
	list := l.rows.String()
	old, ok := l.totals.get(l.userID, list)
	if !ok {
		n, err := l.rows.Count(ctx)
		if err == nil && n >= l.totals.minRows { // remembered if somebody asks again
			l.totals.put(l.userID, list, oldRows{})
		}
		return n, err
	}
	if old.last > 0 {
		young, now, err := l.young(ctx, old)
		if err != nil {
			return 0, err
		}
		if now.changes == old.changes && now.at >= old.at && now.at < old.at.Add(rememberFor) {
			if young > l.totals.maxYoung {
				_, err = l.remember(ctx, list, old)
			}
			return old.n + young, err
		}
	}
	old, err := l.remember(ctx, list, oldRows{})
	if err != nil {
		return 0, err
	}
	if old.last == 0 { // nothing is old
		return l.rows.Count(ctx)
	}
	young, _, err := l.young(ctx, old)
	return old.n + young, err
}

// young counts what is younger than old, and reads when old rows have last changed.
func (l longList) young(ctx context.Context, old oldRows) (n int64, now oldRows, err error) {
	err = l.db.NewRaw("SELECT (?), ?, (?)", l.changes(), l.clock(), l.fresh.Clone().ColumnExpr("count(*)").
		Where("? > ?", bun.Ident(l.key), old.last)).Scan(ctx, &now.changes, &now.at, &n)
	return n, now, err
}

// remember counts what has become old since old was counted, and remembers all of it.
func (l longList) remember(ctx context.Context, list string, old oldRows) (oldRows, error) {
	var now oldRows
	key, clock := bun.Ident(l.key), l.clock()
	// the last key before the first young one, or of all; "+ 0" has it look among the young alone
	first := l.db.NewSelect().TableExpr(l.table).ColumnExpr("min(? + 0) - 1", key).
		Where("user_id = ? AND created_at >= (SELECT ?) - ?", l.userID, clock, oldAge.Microseconds())
	all := l.db.NewSelect().TableExpr(l.table).ColumnExpr("max(?)", key).Where("user_id = ?", l.userID)
	err := l.db.NewRaw("SELECT (?), ?, coalesce((?), (?), 0)", l.changes(), clock, first, all).Scan(ctx, &now.changes, &now.at, &now.last)
	if err != nil || now.last <= old.last || old.last > 0 && now.changes != old.changes {
		return old, err // nothing has become old, or old is not right any more
	}
	now.n, err = l.rows.Clone().Where("? > ? AND ? <= ?", key, old.last, key, now.last).Count(ctx)
	if err == nil {
		now.n += old.n
		l.totals.put(l.userID, list, now)
	}
	return now, err
}

// changes reads by what the last deletion or change of the account's old rows is known.
func (l longList) changes() *bun.RawQuery {
	return l.db.NewRaw("SELECT coalesce((SELECT changes FROM list_changes WHERE user_id = ? AND list = ?), 0)", l.userID, l.table)
}
