package main

import (
	"parley/internal/blob"
	"parley/internal/catalog"
	"parley/internal/preview"
	"parley/internal/provider"
)

// previews lets voices be heard before they are chosen.
func (s *Settings) previews(cat *catalog.Catalog, providers *provider.Set, blobs blob.Store) *preview.Samples {
	return &preview.Samples{Catalog: cat, Blobs: blobs, Synthesizer: providers.Synthesizer}
}
