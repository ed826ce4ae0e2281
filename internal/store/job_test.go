package store_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

type ringArgs struct {
	Name string `json:"name"`
}

func (ringArgs) Kind() string { return "ring" }

type ringWorker struct {
	river.WorkerDefaults[ringArgs]
	rang chan string
}

func (w *ringWorker) Work(ctx context.Context, j *river.Job[ringArgs]) error {
	if j.Args.Name == "twice" && j.Attempt == 1 {
		return errors.New("not yet")
	}
	w.rang <- j.Args.Name
	return nil
}

func (w *ringWorker) NextRetry(*river.Job[ringArgs]) time.Time { return time.Now() }

// A job exists if and only if its transaction was committed, whichever worker runs it.
func TestJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		boom := errors.New("boom")
		enqueue := func(name string, fail error) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				if err := tx.Enqueue(ctx, ringArgs{name}, nil); err != nil {
					return err
				}
				return fail
			})
		}
		if err := enqueue("before", nil); err != nil {
			t.Fatal(err)
		}
		if err := enqueue("never", boom); err != boom {
			t.Fatal(err)
		}
		w := &ringWorker{rang: make(chan string, 10)}
		workers := river.NewWorkers()
		river.AddWorker(workers, w)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- db.Work(ctx, t.Context(), store.Jobs{Workers: workers,
				Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}}})
		}()
		next := func(want string) {
			select {
			case got := <-w.rang:
				if got != want {
					t.Errorf("job %q ran, not %q", got, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("job %q did not run", want)
			}
		}
		next("before")
		if err := enqueue("twice", nil); err != nil {
			t.Fatal(err)
		}
		next("twice")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What a process had begun that was killed is worked as soon as the next one starts.
func TestJobsOfAKilledProcess(t *testing.T) {
	db := storetest.SQLite(t)
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, name := range []string{"cut off", "again", "used up"} {
			if err := tx.Enqueue(ctx, ringArgs{name}, nil); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { // by then they are there
		_, err := tx.SQL().NewRaw(`UPDATE river_job SET state = 'running', attempted_at = CURRENT_TIMESTAMP, attempt =
			CASE WHEN json(args) LIKE '%used up%' THEN max_attempts WHEN json(args) LIKE '%again%' THEN 2 ELSE 1 END WHERE kind = 'ring'`).Exec(ctx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w := &ringWorker{rang: make(chan string, 10)}
	storetest.Jobs(t, db, func(workers *river.Workers) { river.AddWorker(workers, w) })
	if err := db.Write(t.Context(),
		func(ctx context.Context, tx *store.Tx) error { return tx.Enqueue(ctx, ringArgs{"new"}, nil) }); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for range 2 {
		select {
		case name := <-w.rang:
			got[name] = true
		case <-time.After(20 * time.Second):
			t.Fatalf("only %v ran", got)
		}
	}
	if !got["cut off"] || !got["new"] {
		t.Errorf("%v ran", got)
	}
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		var later int
		err := tx.SQL().NewRaw("SELECT count(*) FROM river_job WHERE state = 'scheduled' AND scheduled_at > datetime('now', '+30 seconds')").
			Scan(ctx, &later)
		if later != 1 {
			t.Errorf("%d jobs wait for a minute", later)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// What a node had begun that is silent is worked by others; what a living one has begun, or a program that is no node, stays with it.
func TestJobsOfASilentNode(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.SQLite() {
			t.Skip("there is one process")
		}
		write := func(fn func(ctx context.Context, tx *store.Tx) error) {
			t.Helper()
			if err := db.Write(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(ctx context.Context, tx *store.Tx) (err error) {
			for _, id := range []string{"alive", "silent"} {
				err = errors.Join(err, tx.SeeNode(ctx, &parley.Node{ID: id}))
			}
			for _, by := range []string{"silent", "alive", "a program", "silent, alive", "alive, silent", "silent, silent"} {
				err = errors.Join(err, tx.Enqueue(ctx, ringArgs{by}, nil))
			}
			return err
		})
		write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SQL().NewRaw(`UPDATE river_job SET state = 'running', attempted_by = string_to_array(args->>'name', ', '),
				attempt = cardinality(string_to_array(args->>'name', ', ')); UPDATE nodes SET seen_at = seen_at - 40000000 WHERE id = 'silent'`).Exec(ctx)
			return err
		})
		for silent, want := range map[time.Duration]string{time.Minute: "",
			30 * time.Second: "alive, silent scheduled; silent available; silent, silent scheduled"} {
			var got string
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				if err := tx.FreeJobs(ctx, silent); err != nil {
					return err
				}
				err := tx.SQL().NewRaw(`SELECT coalesce(string_agg(args->>'name' || ' ' || state, '; ' ORDER BY args->>'name'), '') FROM river_job
					WHERE state <> 'running' AND (state = 'available') = (scheduled_at < now() + interval '50 seconds')`).Scan(ctx, &got)
				return errors.Join(err, errBack) // the next one finds them as they were
			})
			if !errors.Is(err, errBack) || got != want {
				t.Errorf("after %v: %q, %v", silent, got, err)
			}
		}
	})
}

var errBack = errors.New("back")

// A queue that is told to stop while its parts still begin, as right after a start, logs no error.
func TestJobsStopWithoutErrors(t *testing.T) {
	var log logWhen
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(was)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := &ringWorker{rang: make(chan string, 10)}
		for range 4 { // each part waits for up to a second before it begins
			log.keep.Store(false) // on a busy machine a part may begin late, and says so
			workers := river.NewWorkers()
			river.AddWorker(workers, w)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				done <- db.Work(ctx, t.Context(), store.Jobs{Workers: workers,
					Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
					Periodic: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(time.Hour),
						func() (river.JobArgs, *river.InsertOpts) { return ringArgs{"hourly"}, nil }, &river.PeriodicJobOpts{RunOnStart: true})}})
			}()
			for deadline := time.Now().Add(20 * time.Second); !store.Led(t, db); {
				if time.Now().After(deadline) {
					t.Fatal("the queue did not begin")
				}
			}
			log.keep.Store(true)
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	if log.Len() > 0 {
		t.Errorf("stopping logged\n%s", &log.Buffer)
	}
}

// logWhen keeps what is logged while it should. One goroutine at a time writes: a handler locks.
type logWhen struct {
	bytes.Buffer
	keep atomic.Bool
}

func (l *logWhen) Write(p []byte) (int, error) {
	if !l.keep.Load() {
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
