package provider

import (
	"fmt"

	"parley/internal/ai"
)

// Embedder is the embedding model of the OpenAI-compatible server, by its code.
func (s *Set) Embedder(modelCode string) (ai.Embedder, error) {
	if s.openai == nil || modelCode == "" {
		return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("embedding model %q is not configured", modelCode)}
	}
	return s.openai.Embedder(modelCode), nil
}
