package main

import (
	"parley/internal/ai"
	"parley/internal/blob"
	"parley/internal/catalog"
	"parley/internal/preview"
	"parley/internal/provider"
)

// previews lets voices be heard before they are chosen.
func (s *Settings) previews(cat *catalog.Catalog, providers *provider.Set, blobs blob.Store) *preview.Samples {
	return &preview.Samples{Catalog: cat, Blobs: blobs,
		Synthesizer: func(code string) (ai.Synthesizer, error) { return providers.For(0).Synthesizer(code) }}
}
