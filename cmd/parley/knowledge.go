package main

import (
	"cmp"
	"path/filepath"

	"parley/internal/blob"
	"parley/internal/knowledge"
	"parley/internal/provider"
	"parley/internal/store"
)

// readers is how many documents are processed at a time.
const readers = 2

// knowledge opens what documents are kept in, read with and found by.
func (s *Settings) knowledge(db *store.DB, providers *provider.Set) (*knowledge.Desk, error) {
	blobs, err := blob.Open(cmp.Or(s.Blob, filepath.Join(s.Data, "blobs")))
	if err != nil {
		return nil, err
	}
	d := &knowledge.Desk{DB: db, Blobs: blobs}
	if s.OpenAIEmbeddingModel != "" {
		if d.Embedder, err = providers.Embedder(s.OpenAIEmbeddingModel); err != nil {
			return nil, err
		}
	}
	return d, nil
}
