// Package provider is the one list of vendors that this server can think, speak and listen with: what the operator configured, the built-in
// responder, which is always there, and the programs for speech that are installed.
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
	// TTSModel and STTModel are the OpenAI-compatible server's models that speak and listen; "" where it has none.
	TTSModel, STTModel string

	// The programs that speak and listen without a vendor. The zero values find what Debian's packages install.
	Flite  local.Flite
	ESpeak local.ESpeak
	Sphinx local.SphinxConfig
}

// Set is the vendors of a server. It is safe for concurrent use.
type Set struct {
	openai             *openai.Client // nil when it is not configured
	ttsModel, sttModel string
	flite              local.Flite
	espeak             local.ESpeak
	sphinx             *local.Sphinx
}

// Open prepares the configured vendors; it asks none of them anything. Close the set.
func Open(c Config) (*Set, error) {
	s := &Set{ttsModel: c.TTSModel, sttModel: c.STTModel, flite: c.Flite, espeak: c.ESpeak, sphinx: local.NewSphinx(c.Sphinx)}
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
	return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("model %q of provider %q is not configured", modelCode, providerCode),
		Mend: fmt.Sprintf("The model %q (%s) is not configured on this server. Choose another, or ask its operator.", modelCode, providerCode)}
}

// Close drops idle connections and ends the programs that wait for work.
func (s *Set) Close() {
	s.sphinx.Close()
	if s.openai != nil {
		s.openai.Close()
	}
}
