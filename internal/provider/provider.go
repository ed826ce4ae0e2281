// Package provider is the one list of vendors that this server can think with: what the operator configured, and the built-in responder,
// which is always there.
package provider

import (
	"fmt"

	"parley/internal/ai"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
)

// OpenAI is the code of the OpenAI-compatible provider, Local that of the built-in one.
const (
	OpenAI = "openai"
	Local  = local.Code
)

// Config is what the operator configured. A nil vendor is not there.
type Config struct {
	OpenAI *openai.Config
}

// Set is the vendors of a server. It is safe for concurrent use.
type Set struct {
	openai *openai.Client // nil when it is not configured
}

// Open prepares the configured vendors; it asks none of them anything. Close the set.
func Open(c Config) (*Set, error) {
	s := &Set{}
	if c.OpenAI != nil {
		client, err := openai.Open(*c.OpenAI)
		if err != nil {
			return nil, fmt.Errorf("open providers: %w", err)
		}
		s.openai = client
	}
	return s, nil
}

// Model is a vendor's model, by the codes of both. Of a vendor that is not configured the error is an *ai.Error of kind Config: an
// assistant may name a model that was there once.
func (s *Set) Model(providerCode, modelCode string) (ai.Model, error) {
	switch {
	case providerCode == Local && modelCode == local.Code:
		return local.Model{}, nil
	case providerCode == OpenAI && s.openai != nil && modelCode != "":
		return s.openai.Model(modelCode), nil
	}
	return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("model %q of provider %q is not configured", modelCode, providerCode)}
}

// Close drops idle connections.
func (s *Set) Close() {
	if s.openai != nil {
		s.openai.Close()
	}
}
