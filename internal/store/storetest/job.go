package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/riverqueue/river"

	"parley/internal/store"
)

// Jobs works the jobs of a room until the test ends.
func Jobs(t testing.TB, db *store.DB, add func(*river.Workers)) {
	t.Helper()
	workers := river.NewWorkers()
	add(workers)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.Work(ctx, ctx,
			store.Jobs{Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}}}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}
