package store

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/uptrace/bun"
)

func inLine(l *line, account int64) *pending {
	p := &pending{account: account, done: make(chan struct{})}
	l.join(p)
	return p
}

// Accounts take turns, and the writes of one keep their order.
func TestLine(t *testing.T) {
	l := newLine()
	var want, got []*pending
	greedy := make([]*pending, 5)
	for i := range greedy {
		greedy[i] = inLine(l, 1)
	}
	b, c1, c2, own := inLine(l, 2), inLine(l, 3), inLine(l, 3), inLine(l, 0)
	want = []*pending{greedy[0], b, c1, own, greedy[1], c2, greedy[2], greedy[3], greedy[4]}
	for p := l.next(); p != nil; p = l.next() {
		got = append(got, p)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", accounts(got), accounts(want))
	}
	first, second, other := inLine(l, 1), inLine(l, 1), inLine(l, 2)
	if !l.leave(first) || l.leave(first) || !l.leave(other) || l.next() != second || l.next() != nil || l.leave(second) {
		t.Error("a write that left is in the line, or one that stayed is not")
	}
	inLine(l, 4)
	if left := l.close(); len(left) != 1 || l.join(&pending{}) {
		t.Errorf("%d waited when the line was closed", len(left))
	}
}

func accounts(list []*pending) (of []int64) {
	for _, p := range list {
		of = append(of, p.account)
	}
	return of
}

// commits is a query hook that counts the writes of each commit.
type commits struct{ each []int }

func (c *commits) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context { return ctx }

func (c *commits) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	switch e.Query {
	case "BEGIN":
		c.each = append(c.each, 0)
	case "SAVEPOINT one":
		c.each[len(c.each)-1]++
	}
}

// crowd runs writes that all wait when the first of them may begin, and returns how many each commit had.
func crowd(t *testing.T, all func(write func(account int64, text string))) (db *DB, together []int) {
	t.Helper()
	watch := new(commits)
	db, err := Open(t.Context(), Options{Path: t.TempDir() + "/parley.db", Secret: make([]byte, 32), Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.write.Exec("CREATE TABLE probe (account INT, text TEXT)"); err != nil {
		t.Fatal(err)
	}
	watch.each = nil
	running, hold, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- db.Write(t.Context(), func(context.Context, *Tx) error { close(running); <-hold; return nil })
	}()
	<-running
	n := 1
	all(func(account int64, text string) {
		waiting := func() int {
			db.queue.mu.Lock()
			defer db.queue.mu.Unlock()
			return len(db.queue.waiting[account])
		}
		before := waiting()
		go func() {
			done <- db.Write(By(t.Context(), Actor{UserID: account, Who: "owner"}), func(ctx context.Context, tx *Tx) error {
				_, err := tx.q.NewRaw("INSERT INTO probe VALUES (?, ?)", account, text).Exec(ctx)
				return err
			})
		}()
		for waiting() == before { // the goroutine has not come to the line yet
			runtime.Gosched()
		}
		n++
	})
	close(hold)
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return db, watch.each
}

// While one account's writes wait, another's is next, and what is committed together ends with the write that makes
// it long.
func TestWritesTakeTurns(t *testing.T) {
	type write = func(account int64, text string)
	large := strings.Repeat("x", 900<<10)
	db, together := crowd(t, func(w write) {
		for range 4 {
			w(1, large)
		}
		w(2, "small")
	})
	var order []int64
	if err := db.q.NewRaw("SELECT account FROM probe ORDER BY rowid").Scan(t.Context(), &order); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []int64{1, 2, 1, 1, 1}) {
		t.Errorf("written in the order of accounts %v", order)
	}
	if !slices.Equal(together, []int{4, 2}) {
		t.Errorf("committed together: %v", together)
	}
	if _, together = crowd(t, func(w write) {
		for range 100 {
			w(1, "small")
		}
	}); !slices.Equal(together, []int{maxTogether, 101 - maxTogether}) {
		t.Errorf("small writes committed together: %v", together)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Write(gone, func(context.Context, *Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose request is gone: %v", err)
	}
}
