package knowledge

import (
	"context"
	"fmt"
	"reflect"

	"parley/internal/blob"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// Create makes a knowledgebase of a user's from the fields of a request body.
func (d *Library) Create(ctx context.Context, userID int64, body map[string]any) (*parley.Knowledgebase, error) {
	k := &parley.Knowledgebase{}
	if err := form.Bind(body, k, true).Err(); err != nil {
		return nil, err
	}
	return k, d.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return tx.CreateKnowledgebase(ctx, userID, k)
	})
}

// Change changes the fields of a knowledgebase that body names. A body that changes nothing writes nothing.
func (d *Library) Change(ctx context.Context, userID, id int64, body map[string]any) (k *parley.Knowledgebase,
	err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if k, err = tx.Knowledgebase(ctx, userID, id); err != nil {
			return err
		}
		old := *k
		if err := form.Bind(body, k, false).Err(); err != nil || reflect.DeepEqual(old, *k) {
			return err
		}
		return tx.SaveKnowledgebase(ctx, userID, k)
	})
	return k, err
}

// DocumentName is what may be changed of a document.
type DocumentName struct {
	Name        string  `json:"name" required:"true" maxLength:"255"`
	Description *string `json:"description" maxLength:"255"`
}

// Rename changes the fields of a document that body names. A body that changes nothing writes nothing.
func (d *Library) Rename(ctx context.Context, userID, knowledgebaseID, id int64,
	body map[string]any) (doc *parley.Document, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if doc, err = tx.Document(ctx, userID, knowledgebaseID, id); err != nil {
			return err
		}
		named := DocumentName{doc.Name, doc.Description}
		old := named
		if err := form.Bind(body, &named, false).Err(); err != nil || reflect.DeepEqual(old, named) {
			return err
		}
		doc.Name, doc.Description = named.Name, named.Description
		return tx.SaveDocument(ctx, userID, doc)
	})
	return doc, err
}

// Try is Search by somebody's hand, as often as the account may.
func (d *Library) Try(ctx context.Context, userID, id int64, query string, limit int) ([]parley.Passage, error) {
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Meter(ctx, userID, parley.Now(), parley.LimitSearchRate)
	})
	if err != nil {
		return nil, err
	}
	return d.Search(ctx, userID, id, query, limit)
}

// File opens the file that a document of the user's was made of. A website has none.
func (d *Library) File(ctx context.Context, userID, knowledgebaseID, id int64) (*parley.Document, blob.Object, error) {
	doc, err := d.DB.Document(ctx, userID, knowledgebaseID, id)
	if err != nil {
		return nil, nil, err
	}
	if doc.Blob == "" {
		return nil, nil, parley.Errorf(parley.NotFound, "The document has no file.")
	}
	file, err := d.Blobs.Open(ctx, doc.Blob)
	if err != nil {
		return nil, nil, fmt.Errorf("open the file of document %d: %w", id, err)
	}
	return doc, file, nil
}
