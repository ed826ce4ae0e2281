package store_test

import (
	"strings"
	"testing"

	"parley/internal/store"
	"parley/internal/store/storetest"
)

// A pooler that shares sessions between transactions is refused with words that say how to mend it; one that does not
// is as good as PostgreSQL itself.
func TestPooler(t *testing.T) {
	for _, engine := range storetest.Engines() {
		if engine == "sqlite" {
			continue
		}
		o := storetest.Options(t, engine)
		db, err := store.Open(t.Context(), storetest.Pooled(t, o, false))
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "pool_mode=session") || !strings.Contains(err.Error(), "PARLEY_DATABASE") {
			t.Errorf("a session for each transaction: %v", err)
		}
		for name, o := range map[string]store.Options{"a session for each client": storetest.Pooled(t, o, true), "PostgreSQL": o} {
			db, err := store.Open(t.Context(), o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if _, err := db.Migrated(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			db.Close()
		}
	}
}
