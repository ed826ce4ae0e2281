package main

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"

	"parley/internal/ai"
	"parley/internal/blob"
	"parley/internal/document"
	"parley/internal/egress"
	"parley/internal/knowledge"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/search"
	"parley/internal/store"
)

// knowledge opens what documents are kept in, read with and found by.
func (s *Settings) knowledge(db *store.DB, providers *provider.Set, guard *egress.Guard) (*knowledge.Library, error) {
	blobs, err := blob.Open(cmp.Or(s.Blob, filepath.Join(s.Data, "blobs")))
	if err != nil {
		return nil, err
	}
	extractor := &document.Extractor{}
	readFile := func(ctx context.Context, kind parley.DocumentType, file blob.Object) (*document.Text, error) {
		return extractor.Extract(ctx, string(kind), file)
	}
	readSite := func(ctx context.Context, doc *parley.Document, progress func(done, total int)) (*document.Text, error) {
		c := &knowledge.Crawler{Guard: guard, Reader: extractor, Progress: progress}
		return c.Crawl(ctx, knowledge.Site{URL: doc.URL, Links: doc.Links, Limit: doc.RelativeLinksLimit})
	}
	if _, err := providers.For(0).Embedder(); err != nil {
		slog.Warn("documents are searched by words only until the embedding model has a key", "error", err)
	}
	embedder := func() ai.Embedder {
		e, err := providers.For(0).Embedder()
		if err != nil {
			return nil
		}
		return e
	}
	return &knowledge.Library{Index: search.Index{DB: db, Embedder: embedder}, Blobs: blobs,
		Cut: extractor.Cut, ReadFile: readFile, ReadSite: readSite}, nil
}
