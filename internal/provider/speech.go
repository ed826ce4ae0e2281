package provider

import (
	"fmt"

	"parley/internal/ai"
	"parley/internal/provider/local"
)

// The codes of those that speak and listen without a vendor.
const (
	Flite        = local.FliteCode
	ESpeak       = local.ESpeakCode
	PocketSphinx = local.SphinxCode
)

// Synthesizer is a vendor that speaks, by its code. Of a vendor that is not configured, or a program that is not installed, the error is an
// *ai.Error of kind Config that says what to do.
func (s *Set) Synthesizer(providerCode string) (ai.Synthesizer, error) {
	switch providerCode {
	case Flite:
		if _, err := s.flite.Find(); err != nil {
			return nil, err
		}
		return s.flite, nil
	case ESpeak:
		if _, err := s.espeak.Find(); err != nil {
			return nil, err
		}
		return s.espeak, nil
	case OpenAI:
		if s.openai == nil || s.ttsModel == "" {
			return nil, missing("synthesizer", providerCode, "set PARLEY_OPENAI_TTS_MODEL, with PARLEY_OPENAI_API_KEY or PARLEY_OPENAI_BASE_URL")
		}
		return s.openai.Synthesizer(s.ttsModel), nil
	}
	return nil, missing("synthesizer", providerCode, "choose a voice of another provider")
}

// Recognizer is a vendor that listens, by its code, with errors as those of Synthesizer.
func (s *Set) Recognizer(providerCode string) (ai.Recognizer, error) {
	switch providerCode {
	case PocketSphinx:
		if err := s.sphinx.Find(); err != nil {
			return nil, err
		}
		return s.sphinx, nil
	case OpenAI:
		if s.openai == nil || s.sttModel == "" {
			return nil, missing("transcriber", providerCode, "set PARLEY_OPENAI_STT_MODEL, with PARLEY_OPENAI_API_KEY or PARLEY_OPENAI_BASE_URL")
		}
		return s.openai.Recognizer(s.sttModel), nil
	}
	return nil, missing("transcriber", providerCode, "choose another")
}

func missing(what, code, mend string) error {
	return &ai.Error{Kind: ai.Config, Err: fmt.Errorf("the %s %q is not configured: %s", what, code, mend),
		Mend: fmt.Sprintf("The %s %q is not configured on this server. Choose another, or ask its operator: %s.", what, code, mend)}
}
