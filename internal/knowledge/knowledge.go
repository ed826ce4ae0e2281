package knowledge

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"parley/internal/blob"
	"parley/internal/crash"
	"parley/internal/document"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

// Queue is where the jobs of this package are worked; how many at a time is its MaxWorkers, which is to be Readers.
const Queue = "knowledge"

// How many documents are processed at a time. Most of the time a website is waited for, so there are more readers
// than processors, and no user has more places than a few of them: whose websites are slow waits for them alone.
const (
	Readers = 8 // of a process
	Places  = 2 // of a user, in all processes
	storing = 2 // documents of a process whose passages are being stored: on SQLite everybody's writes wait for that
)

// Library takes documents in, makes them answer, and forgets them. Its fields are set before its first use.
type Library struct {
	search.Index // finds the passages
	Blobs        blob.Store
	ReadFile     func(ctx context.Context, kind parley.DocumentType, file blob.Object) (*document.Text, error)
	ReadSite     func(ctx context.Context, doc *parley.Document, progress func(done, total int)) (*document.Text, error)
	Cut          func(ctx context.Context, sections []document.Section) ([]document.Chunk, error)
	// Lease is how long a document waits for another process when the one that processes it has died; 0 is 15 seconds.
	Lease time.Duration

	storing chan struct{} // see storing
	// catchUp's alone:
	caughtUp  string    // the embedder of which all documents have vectors
	catchUpAt time.Time // when it goes on after a failure
}

var errUnderWay = parley.Errorf(parley.Conflict, "The document is being processed. Try again when it is finished.")

// strayAfter is when a file that no document came to name is removed.
const strayAfter = 2 * time.Hour

// Upload stores a document's file and gives its name in blob storage, to be given to Add. The file of an upload that
// never becomes a document is removed later, also when this process dies.
func (d *Library) Upload(ctx context.Context, r io.Reader) (name string, size int64, err error) {
	name = "documents/" + uuid.NewString()
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Enqueue(ctx, strayArgs{name}, &river.InsertOpts{Queue: Queue,
			ScheduledAt: time.Now().Add(strayAfter)})
	})
	if err != nil {
		return "", 0, err
	}
	size, err = d.Blobs.Put(ctx, name, r)
	return name, size, err
}

// Discard removes a file that becomes no document after all.
func (d *Library) Discard(ctx context.Context, name string) {
	if err := d.Blobs.Delete(context.WithoutCancel(ctx), name); err != nil {
		slog.WarnContext(ctx, "an upload is removed later", "blob", name, "error", err)
	}
}

// Add stores a new document of one of the user's knowledgebases and has it processed.
func (d *Library) Add(ctx context.Context, userID, knowledgebaseID int64, doc *parley.Document) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateDocument(ctx, userID, knowledgebaseID, doc); err != nil {
			return err
		}
		return enqueue(ctx, tx, doc)
	})
}

// Again has a document processed once more: a failed one, or a website that has changed. What was found of it before
// stays until then.
func (d *Library) Again(ctx context.Context, userID, knowledgebaseID, id int64) (*parley.Document, error) {
	var doc *parley.Document
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if doc, err = tx.Document(ctx, userID, knowledgebaseID, id); err != nil {
			return err
		}
		ok, err := tx.AgainDocument(ctx, userID, doc)
		if err != nil {
			return err
		}
		if !ok {
			return errUnderWay
		}
		return enqueue(ctx, tx, doc)
	})
	return doc, err
}

// enqueue has a document's present run worked.
func enqueue(ctx context.Context, tx *store.Tx, doc *parley.Document) error {
	return tx.Enqueue(ctx, ingestArgs{doc.ID, doc.Run}, &river.InsertOpts{Queue: Queue, MaxAttempts: attempts})
}

// Delete removes a document: nobody sees it from now on, and a job removes its file and all that was derived from it.
func (d *Library) Delete(ctx context.Context, userID, knowledgebaseID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.HideDocument(ctx, userID, knowledgebaseID, id); err != nil {
			return err
		}
		return tx.Enqueue(ctx, tidyArgs{id}, &river.InsertOpts{Queue: Queue})
	})
}

// DeleteKnowledgebase removes a knowledgebase with its documents, and detaches its assistants.
func (d *Library) DeleteKnowledgebase(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.HideKnowledgebase(ctx, userID, id); err != nil {
			return err
		}
		return tx.Enqueue(ctx, forgetArgs{id}, &river.InsertOpts{Queue: Queue})
	})
}

// Register adds the workers of this package's jobs.
func (d *Library) Register(workers *river.Workers) {
	d.storing = make(chan struct{}, storing)
	river.AddWorker(workers, river.WorkFunc(d.ingest))
	river.AddWorker(workers, river.WorkFunc(d.tidy))
	river.AddWorker(workers, river.WorkFunc(d.forgetAll))
	river.AddWorker(workers, river.WorkFunc(d.stray))
}

// Run has documents processed whose process died, and gives vectors to those that lack them, until ctx ends.
func (d *Library) Run(ctx context.Context) error {
	var catching sync.WaitGroup
	catching.Go(func() { d.each(ctx, "give documents their vectors", d.catchUp) })
	defer catching.Wait()
	d.each(ctx, "resume the processing of documents", d.resume)
	return nil
}

// each does something again and again until ctx ends.
func (d *Library) each(ctx context.Context, what string, do func(context.Context) error) {
	tick := time.NewTicker(d.lease() / 3)
	defer tick.Stop()
	for {
		if err := crash.Run(func() error { return do(ctx) }); err != nil && ctx.Err() == nil {
			slog.Error(what, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (d *Library) lease() time.Duration {
	if d.Lease == 0 {
		return 15 * time.Second
	}
	return d.Lease
}

// resume enqueues anew what has lost its process, or waits for a place that a process left without a word. The former
// job, which its queue believes to be running, does nothing when it comes back: the lease is another's then, or the
// work done.
func (d *Library) resume(ctx context.Context) error {
	users, err := d.DB.WaitingOwners(ctx)
	if err != nil {
		return err
	}
	for _, id := range users {
		if err := d.next(ctx, id); err != nil {
			return err
		}
	}
	list, err := d.DB.LapsedDocuments(ctx, parley.Now(), 100)
	if err != nil || len(list) == 0 {
		return err
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		for i := range list {
			if err := tx.UnleaseDocument(ctx, &list[i]); err != nil {
				return err
			}
		}
		return enqueueAll(ctx, tx, list)
	})
}

func enqueueAll(ctx context.Context, tx *store.Tx, list []parley.Document) error {
	for i := range list {
		if err := enqueue(ctx, tx, &list[i]); err != nil {
			return fmt.Errorf("document %d: %w", list[i].ID, err)
		}
	}
	return nil
}
