package knowledge

import (
	"context"
	"sync"
	"testing"

	"parley/internal/document"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestSlowSitesOfOne: a user with slow websites delays nobody else, gets all the places in that user's share and no
// more, and loses no document.
func TestSlowSitesOfOne(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		var mu sync.Mutex
		reading, most := map[int64]bool{}, 0
		gate := make(chan struct{})
		l.ReadSite = func(ctx context.Context, d *parley.Document, _ func(done, total int)) (*document.Text, error) {
			mu.Lock()
			reading[d.ID] = true
			most = max(most, len(reading))
			mu.Unlock()
			defer func() { mu.Lock(); delete(reading, d.ID); mu.Unlock() }()
			select {
			case <-gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return &document.Text{Sections: []document.Section{{Text: "Slow " + d.Name}}}, nil
		}
		var slow []*parley.Document
		for range 3 * Readers {
			d := &parley.Document{Name: "Site", Type: parley.Website, URL: "http://slow.example", Links: []string{}}
			if err := l.Add(t.Context(), l.user.ID, l.base, d); err != nil {
				t.Fatal(err)
			}
			slow = append(slow, d)
		}
		l.work()
		l.until("all places are taken", func() bool { mu.Lock(); defer mu.Unlock(); return len(reading) == Places })
		other := *l
		other.user = storetest.User(t, l.DB, 0)
		other.base = other.knowledgebase(other.user.ID)
		for range 3 { // documents that come after a finished one, too
			if d := other.settled(other.add("Quick", handbook).ID); d.Status != parley.KnowledgeActive {
				t.Fatalf("%+v", d)
			}
		}
		mu.Lock()
		// its place is free from the moment it is deleted, a little before its reader ends
		delete(reading, slow[0].ID)
		mu.Unlock()
		if err := l.Delete(t.Context(), l.user.ID, l.base, slow[0].ID); err != nil {
			t.Fatal(err)
		}
		close(gate)
		for _, d := range slow[1:] {
			if d = l.settled(d.ID); d.Status != parley.KnowledgeActive {
				t.Fatalf("%+v", d)
			}
		}
		if most != Places {
			t.Errorf("%d documents of one user were read at a time", most)
		}
	})
}

// TestQueueOutlivesProcesses: documents are processed even if nobody is left to free the place that they wait for.
func TestQueueOutlivesProcesses(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		var list []*parley.Document
		for range 2 * Places {
			d := &parley.Document{Name: "Waiting", Type: parley.Website, URL: "http://example.com", Links: []string{}}
			l.write(func(ctx context.Context, tx *store.Tx) error { // as its job leaves it
				if err := tx.CreateDocument(ctx, l.user.ID, l.base, d); err != nil {
					return err
				}
				return tx.QueueDocument(ctx, d.ID, d.Run)
			})
			list = append(list, d)
		}
		l.work()
		for _, d := range list {
			l.settled(d.ID)
		}
	})
}
