package store

import (
	"context"
	"database/sql"

	"parley/internal/parley"
)

// Backlog is the work that waits in the database for some process to do it.
type Backlog struct {
	Jobs     map[string]int // that are due, by kind
	Webhooks int            // deliveries that are due
}

// Backlog counts what waits now. It reads what waits, not what is done.
func (q Query) Backlog(ctx context.Context) (*Backlog, error) {
	b := &Backlog{Jobs: map[string]int{}}
	var jobs []struct {
		Kind string
		N    int
	}
	due := "CURRENT_TIMESTAMP"
	if q.sqlite {
		due = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
	}
	err := q.q.NewRaw("SELECT kind, count(*) AS n FROM river_job WHERE state IN ('available', 'retryable', 'scheduled') AND scheduled_at <= "+
		due+" GROUP BY kind").Scan(ctx, &jobs)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		b.Jobs[j.Kind] = j.N
	}
	err = q.q.NewRaw("SELECT count(*) FROM webhook_deliveries WHERE next_attempt_at > 0 AND next_attempt_at <= ?", parley.Now()).
		Scan(ctx, &b.Webhooks)
	return b, err
}

// Pools are the pools of connections, by what they are for.
func (db *DB) Pools() map[string]*sql.DB {
	if !db.sqlite {
		return map[string]*sql.DB{"postgres": db.write.DB}
	}
	return map[string]*sql.DB{"read": db.read.DB, "write": db.write.DB}
}

// WaitingWrites returns how many writes wait for SQLite's writer; PostgreSQL has no such queue.
func (db *DB) WaitingWrites() (n int) {
	if db.queue == nil {
		return 0
	}
	db.queue.mu.Lock()
	defer db.queue.mu.Unlock()
	for _, list := range db.queue.waiting {
		n += len(list)
	}
	return n
}
