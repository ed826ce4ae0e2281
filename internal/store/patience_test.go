package store_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func pgProxy(t *testing.T, change func(*store.Options)) (*storetest.Proxy, *store.DB) {
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	p := storetest.NewProxy(t, storetest.Options(t, "postgres"))
	if change != nil {
		change(&p.Options)
	}
	return p, storetest.Open(t, p.Options)
}

// within fails the test when fn takes so long that it must be hanging.
func within(t *testing.T, limit time.Duration, what string, fn func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		t.Fatalf("%s hangs", what)
		return nil
	}
}

// A host is gone, without a reset: nothing waits for it for ever, with or without a deadline, and once it is back
// everything works again.
func TestHostGone(t *testing.T) {
	p, db := pgProxy(t, func(o *store.Options) { o.Answer = time.Second })
	u := storetest.User(t, db, parley.USD)
	thaw := p.Freeze()
	defer thaw()
	save := func(ctx context.Context) error {
		return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) })
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if err := within(t, 30*time.Second, "a write with a deadline", func() error { return save(short) }); err == nil {
		t.Error("a write was done without a database")
	} else if d := time.Since(begun); d > 900*time.Millisecond {
		t.Errorf("a write with a deadline of 200 ms took %v: %v", d, err)
	}
	var wg sync.WaitGroup
	for range 20 { // more often than there are connections
		wg.Go(func() {
			if err := save(t.Context()); err == nil {
				t.Error("a write was done without a database")
			}
		})
	}
	wg.Go(func() {
		if _, err := db.User(t.Context(), u.ID); err == nil {
			t.Error("a row was read without a database")
		}
	})
	within(t, 30*time.Second, "a write or a read", func() error { wg.Wait(); return nil })
	thaw()
	if err := within(t, 30*time.Second, "a write afterwards", func() error { return save(t.Context()) }); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestStatementsAreBounded(t *testing.T) {
	_, db := pgProxy(t, nil)
	for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if got := store.Show(t, db, name); got != "30s" {
			t.Errorf("%s is %s", name, got)
		}
	}
	own := storetest.Options(t, "postgres")
	own.Postgres += "?statement_timeout=5000"
	if got := store.Show(t, storetest.Open(t, own), "statement_timeout"); got != "5s" {
		t.Errorf("the address's own statement_timeout became %s", got)
	}
}

// A server that is started together with its database waits for it; an error that waiting does not fix is reported at
// once.
func TestWaitsForTheDatabase(t *testing.T) {
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	var log lines
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody listens at this address until the proxy does
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	o := storetest.Options(t, "postgres")
	absent := o
	absent.Postgres = "postgres://parley@" + address + "/none"
	if _, err := store.Open(t.Context(), absent); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("without waiting: %v", err)
	}
	wrong := o
	wrong.Postgres, wrong.Wait = o.Postgres+"-none", time.Hour
	if err := within(t, 30*time.Second, "a wrong name",
		func() error { _, err := store.Open(t.Context(), wrong); return err }); err == nil {
		t.Error("a database that is not there was opened")
	}
	p := storetest.NewProxy(t, o)
	thaw := p.Freeze()
	p.Options.Wait, p.Options.Answer = time.Minute, 500*time.Millisecond
	opened := make(chan error, 1)
	go func() {
		db, err := store.Open(t.Context(), p.Options)
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	log.await(t, "waiting for PostgreSQL to answer")
	thaw()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// Everyone who can't reach the database gets an error; the log gets at most one line a second for all of them.
func TestCalm(t *testing.T) {
	var log lines
	l := slog.New(store.Calm(slog.NewTextHandler(&log, &slog.HandlerOptions{}))).With("node", 1)
	away := store.Away(errors.New("i/o timeout"))
	for range 50 {
		l.Error("look for conversations", "error", away)
		l.WithGroup("jobs").Warn("work jobs", "err", away.Error())
	}
	for range 3 {
		l.Error("another thing", "error", errors.New("i/o timeout"))
	}
	if got := log.String(); strings.Count(got, "does not answer") != 1 || strings.Count(got, "another thing") != 3 {
		t.Errorf("logged:\n%s", got)
	}
	r := slog.NewRecord(time.Now().Add(1100*time.Millisecond), slog.LevelError, "look again", 0)
	r.AddAttrs(slog.Any("error", away))
	l.Handler().Handle(t.Context(), r)
	if got := log.String(); strings.Count(got, "does not answer") != 2 || !strings.Contains(got, "more_like_this=99") {
		t.Errorf("a second later:\n%s", got)
	}
}

// A commit whose answer is lost returns an error, and took effect.
func TestCommitWithoutAnswer(t *testing.T) {
	p, db := pgProxy(t, nil)
	u := storetest.User(t, db, 0)
	p.LoseCommit()
	u.Name = "Bo"
	if err := db.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.SaveUser(ctx, u)
	}); err == nil {
		t.Fatal("the answer was heard")
	}
	if got, err := db.User(t.Context(), u.ID); err != nil || got.Name != "Bo" {
		t.Errorf("%+v, %v", got, err)
	}
}

// lines is a log whose lines can be waited for.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		l.mu.Lock()
		if strings.Contains(l.text.String(), text) {
			l.mu.Unlock()
			return
		}
		if l.news == nil {
			l.news = make(chan struct{})
		}
		news := l.news
		l.mu.Unlock()
		select {
		case <-news:
		case <-deadline:
			t.Fatalf("%q is not in the log:\n%s", text, l.String())
		}
	}
}
