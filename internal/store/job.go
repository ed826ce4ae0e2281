package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// Work that must survive a crash is a job: a row that is inserted in the transaction that causes the work, and
// deleted when it is done. A job runs at least once; what it does must bear a second time. The rooms that own the
// work declare its arguments (river.JobArgs) and its worker; cmd registers them and calls Work.

// Enqueue inserts a job with this transaction.
func (tx *Tx) Enqueue(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) error {
	if _, err := tx.jobs.InsertTx(ctx, tx.sql.Tx, args, opts); err != nil {
		return fmt.Errorf("enqueue %s: %w", args.Kind(), err)
	}
	return nil
}

// EnqueueIn inserts a job into a queue of its own with this transaction.
func (tx *Tx) EnqueueIn(ctx context.Context, queue string, args river.JobArgs) error {
	return tx.Enqueue(ctx, args, &river.InsertOpts{Queue: queue})
}

// inserter makes the client that only inserts jobs.
func inserter(pool *sql.DB, sqlite bool) (*river.Client[*sql.Tx], error) {
	c := &river.Config{Logger: slog.Default()}
	if sqlite {
		return river.NewClient(riversqlite.New(pool), c)
	}
	return river.NewClient(riverdatabasesql.New(pool), c)
}

// Jobs say what Work does.
type Jobs struct {
	Workers  *river.Workers
	Queues   map[string]river.QueueConfig // by name; river.QueueDefault among them
	Periodic []*river.PeriodicJob
	Started  func() // called when they are being worked; may be nil
	Node     string // of this process, by which FreeJobs knows what it had begun
}

// pollJobs is how soon a job that nobody announced is seen: on SQLite all of them, on PostgreSQL those whose
// notification was lost.
const pollJobs = 200 * time.Millisecond

// Work works jobs until ctx ends. Then it takes no more, gives those under way until soft ends to finish, and cancels
// them; what was cut off is tried again by the next start.
func (db *DB) Work(ctx, soft context.Context, j Jobs) error {
	config := &river.Config{ID: j.Node, Workers: j.Workers, Queues: j.Queues, PeriodicJobs: j.Periodic, FetchPollInterval: pollJobs,
		// workers set their own
		FetchCooldown: 20 * time.Millisecond, Logger: slog.New(quiet{slog.Default().Handler()}), JobTimeout: -1,
		RescueStuckJobsAfter: 10 * time.Minute, MaxAttempts: 25}
	if db.sqlite {
		if err := db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.FreeJobs(ctx, 0) }); err != nil {
			return fmt.Errorf("free the jobs of a process that is gone: %w", err)
		}
		client, err := river.NewClient(riversqlite.New(db.write.DB), config)
		if err != nil {
			return fmt.Errorf("work jobs: %w", err)
		}
		return runJobs(ctx, soft, client, j.Started)
	}
	pool, err := db.postgres.jobs(ctx) // LISTEN needs a connection that database/sql doesn't give
	if err != nil {
		return fmt.Errorf("work jobs: %w", err)
	}
	defer pool.Close()
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return fmt.Errorf("work jobs: %w", err)
	}
	return runJobs(ctx, soft, client, j.Started)
}

// FreeJobs makes jobs due that a process had begun which was killed: the queue would believe them to be running for
// RescueStuckJobsAfter. On SQLite, where one process works, those are all that had been begun; call it before Work. On PostgreSQL they
// are those of nodes that were silent for a time; those of a node of a former version, which River named, are left to the queue. One
// that was begun before waits 15 seconds by the square of its attempts, as it may be what ends the process. One that has used up its
// attempts is left to the queue, which discards it.
func (tx *Tx) FreeJobs(ctx context.Context, silent time.Duration) error {
	scheduled, later := "'scheduled'", "datetime('now', '+' || (15 * attempt * attempt) || ' seconds')"
	begun, args := "TRUE", []any(nil)
	if !tx.sqlite {
		scheduled, later = "'scheduled'::river_job_state", "now() + make_interval(secs => 15 * attempt * attempt)"
		begun, args = "attempted_by[cardinality(attempted_by)] IN (SELECT id FROM nodes WHERE seen_at < (SELECT ?) - ?)",
			[]any{tx.clock(), silent.Microseconds()}
	}
	_, err := tx.q.NewRaw(`UPDATE river_job SET state = CASE WHEN attempt > 1 THEN `+scheduled+` ELSE 'available' END,
		scheduled_at = CASE WHEN attempt > 1 THEN `+later+` ELSE scheduled_at END
		WHERE state = 'running' AND attempt < max_attempts AND `+begun, args...).Exec(ctx)
	return err
}

func runJobs[T any](ctx, soft context.Context, client *river.Client[T], started func()) error {
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("work jobs: %w", err)
	}
	if started != nil {
		started()
	}
	<-ctx.Done()
	if err := client.Stop(soft); err == nil {
		return nil
	}
	cut, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.StopAndCancel(cut); err != nil {
		return fmt.Errorf("stop working jobs: %w", err)
	}
	return nil
}

// migrateJobs brings the job tables up to date.
func (db *DB) migrateJobs(ctx context.Context, pool *sql.DB) error {
	var err error
	if db.sqlite {
		err = up(ctx, func() (*rivermigrate.Migrator[*sql.Tx], error) {
			return rivermigrate.New(riversqlite.New(pool), nil)
		})
	} else {
		err = up(ctx, func() (*rivermigrate.Migrator[*sql.Tx], error) {
			return rivermigrate.New(riverdatabasesql.New(pool), nil)
		})
	}
	if err != nil {
		return fmt.Errorf("migrate the job tables: %w", err)
	}
	return nil
}

func up[T any](ctx context.Context, open func() (*rivermigrate.Migrator[T], error)) error {
	m, err := open()
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// quiet is a log handler that passes warnings and errors only, as the queue tells much that nobody asks, and no error that is nothing
// but the end of what its context was for: parts of the queue that a stop meets before they have begun tell it as one.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if errors.Is(ctx.Err(), context.Canceled) && tellsStop(r) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// tellsStop reports whether a line's error is a context that was cancelled, or the connection that pgx closes when that happens to a
// query. The queue writes its errors as texts.
func tellsStop(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		text := a.Value.String()
		found = strings.HasPrefix(a.Key, "err") &&
			(strings.HasSuffix(text, context.Canceled.Error()) || strings.HasSuffix(text, "conn closed"))
		return !found
	})
	return found
}
