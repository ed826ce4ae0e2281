package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/riverqueue/river"

	"parley/internal/store"
)

// Jobs works the jobs of a room until the test ends: those of the default queue, and of its own ones.
func Jobs(t testing.TB, db *store.DB, add func(*river.Workers), own ...string) {
	t.Helper()
	workers := river.NewWorkers()
	add(workers)
	queues := map[string]river.QueueConfig{}
	for _, name := range append(own, river.QueueDefault) {
		queues[name] = river.QueueConfig{MaxWorkers: 4}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.Work(ctx, ctx, store.Jobs{Workers: workers, Queues: queues}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}
