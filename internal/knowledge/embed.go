package knowledge

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

// vectorsAgain is when the vectors of a document are asked for again that its embedder did not give.
const vectorsAgain = 5 * time.Minute

// catchUp gives vectors to the documents that were read without the embedder that there is now, one after another. Once
// all have them, it waits for another embedder.
func (d *Library) catchUp(ctx context.Context) error {
	embedder := d.Present()
	if embedder == nil || embedder.Name() == d.caughtUp || time.Now().Before(d.catchUpAt) {
		return nil
	}
	for ctx.Err() == nil {
		var doc *parley.Document
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			doc, err = tx.LeaseVectors(ctx, embedder.Name(), vectorsAgain)
			return err
		})
		if err != nil {
			return err
		}
		if doc == nil {
			return d.caught(ctx, embedder.Name())
		}
		if err := d.vectors(ctx, embedder, doc); err != nil {
			d.catchUpAt = time.Now().Add(vectorsAgain)
			return fmt.Errorf("document %d gets no vectors: %w", doc.ID, err)
		}
	}
	return nil
}

// caught notes that nothing is left to do for an embedder, unless it has only been put off.
func (d *Library) caught(ctx context.Context, embedder string) error {
	lacking, err := d.DB.LackVectors(ctx, embedder)
	if err == nil && !lacking {
		d.caughtUp = embedder
	}
	return err
}

// vectors gives a document its vectors. Its lease is kept while that takes.
func (d *Library) vectors(ctx context.Context, embedder ai.Embedder, doc *parley.Document) error {
	for beyond := -1; ; {
		list, err := search.Passages(ctx, d.DB.Query, doc, beyond, embedBatch)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		beyond = list[len(list)-1].Position
		if err := embed(ctx, embedder, list); err != nil {
			return err
		}
		kept := false
		err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			if kept, err = tx.KeepVectors(ctx, doc, vectorsAgain); err != nil || !kept {
				return err
			}
			return search.Replace(ctx, tx, doc.KnowledgebaseID, list)
		})
		if err != nil || !kept { // deleted, or read again
			return err
		}
	}
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.FinishVectors(ctx, doc, embedder.Name())
	})
	if err == nil {
		slog.Info("a document got its vectors", "document", doc.ID, "embedder", embedder.Name())
	}
	return err
}
