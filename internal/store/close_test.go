package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Writes while the database is being closed, or afterwards, return an error: a request that outlives a server that
// failed does not hang.
func TestWriteAfterClose(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Open(t, storetest.Options(t, engine))
			var writers sync.WaitGroup
			begun := make(chan struct{}, 16)
			for range 16 {
				writers.Go(func() {
					for i := 0; ; i++ {
						if i == 1 {
							begun <- struct{}{}
						}
						if err := db.Write(context.Background(),
							func(context.Context, *store.Tx) error { return nil }); err != nil {
							if engine == "sqlite" && !errors.Is(err, store.ErrClosed) {
								t.Error(err)
							}
							return
						}
					}
				})
			}
			for range 16 {
				<-begun
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			writers.Wait()
			if err := db.Close(); err != nil {
				t.Errorf("closed twice: %v", err)
			}
		})
	}
}
