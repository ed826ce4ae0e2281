// Package provider is the one list of vendors with which this server can think, speak and listen: those that the
// operator configures, the built-in responder, which is always available, and the installed speech programs. Each
// vendor describes itself in its own package, in its Declare.
package provider

import (
	"fmt"
	"slices"

	"parley/internal/ai"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/gemini"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
)

// All declares every vendor, with empty settings. Their models are offered in this order. A vendor passed in instead
// replaces the one with its code.
func All(instead ...*ai.Vendor) []*ai.Vendor {
	list := []*ai.Vendor{
		openai.Declare(&openai.Settings{}),
		anthropic.Declare(&anthropic.Settings{}),
		gemini.Declare(&gemini.Settings{}),
		elevenlabs.Declare(&elevenlabs.Settings{}),
		deepgram.Declare(&deepgram.Settings{}),
		cartesia.Declare(&cartesia.Settings{}),
		assemblyai.Declare(&assemblyai.Settings{}),
		local.Declare(local.Programs{}),
	}
	for _, v := range instead {
		i := slices.IndexFunc(list, func(o *ai.Vendor) bool { return o.Code == v.Code })
		if i < 0 {
			panic("there is no vendor " + v.Code)
		}
		list[i] = v
	}
	return list
}

// Set is a server's opened vendors. It is safe for concurrent use.
type Set struct {
	opened  map[string]*ai.Opened // by the vendor's code
	order   []*ai.Opened
	speaks  map[string]*ai.Opened // by the speaker's code
	listens map[string]*ai.Opened
	models  map[string]func() string // of the speakers that have one
}

// Open opens vendors without contacting any. Close the set.
func Open(vendors []*ai.Vendor) (*Set, error) {
	s := &Set{opened: map[string]*ai.Opened{}, speaks: map[string]*ai.Opened{}, listens: map[string]*ai.Opened{},
		models: map[string]func() string{}}
	for _, v := range vendors {
		if v.Open == nil {
			continue
		}
		o, err := v.Open()
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("open vendor %s: %w", v.Code, err)
		}
		s.opened[v.Code], s.order = o, append(s.order, o)
		for _, sp := range v.Speakers {
			s.speaks[sp.Code], s.models[sp.Code] = o, sp.Model
		}
		for _, l := range v.Listeners {
			s.listens[l.Code] = o
		}
	}
	return s, nil
}

// Model is a vendor's model, by the codes of both. If the vendor is not configured, the error is an *ai.Error of kind
// Config: an assistant may name a model that is no longer there.
func (s *Set) Model(vendorCode, modelCode string) (ai.Model, error) {
	if o := s.opened[vendorCode]; o != nil && o.Model != nil {
		if m := o.Model(modelCode); m != nil {
			return countedModel{m, vendorCode, modelCode}, nil
		}
	}
	return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("model %q of provider %q is not configured", modelCode,
		vendorCode),
		Mend: fmt.Sprintf("The model %q (%s) is not configured on this server. Choose another, or ask its operator.", modelCode, vendorCode)}
}

// Embedder is the first embedding model that the settings name, nil if they name none.
func (s *Set) Embedder() (ai.Embedder, error) {
	for _, o := range s.order {
		if o.Embedder == nil {
			continue
		}
		if e, err := o.Embedder(); e != nil || err != nil {
			return e, err
		}
	}
	return nil, nil
}

// Synthesizer returns a synthesizer by its code. If it is not configured, or its program is not installed, the error is
// an *ai.Error of kind Config that says what to do.
func (s *Set) Synthesizer(code string) (ai.Synthesizer, error) {
	if o := s.speaks[code]; o != nil {
		v, err := o.Synthesizer(code)
		if err != nil {
			return nil, err
		}
		counted := countedVoice{Synthesizer: v, vendor: code}
		if model := s.models[code]; model != nil {
			counted.model = model()
		}
		return counted, nil
	}
	return nil, ai.NotConfigured("synthesizer", code, "choose a voice of another provider")
}

// Recognizer returns a recognizer by its code, with the same errors as Synthesizer.
func (s *Set) Recognizer(code string) (ai.Recognizer, error) {
	if o := s.listens[code]; o != nil {
		r, err := o.Recognizer(code)
		if err != nil {
			return nil, err
		}
		return countedEar{r, code}, nil
	}
	return nil, ai.NotConfigured("transcriber", code, "choose another")
}

// Realtime is a vendor's model that hears and speaks, by the codes of both, with the same errors as Model.
func (s *Set) Realtime(vendorCode, modelCode string) (ai.RealtimeModel, error) {
	if o := s.opened[vendorCode]; o != nil && o.Realtime != nil {
		return o.Realtime(modelCode)
	}
	return nil, ai.NotConfigured("realtime model", modelCode, "choose another, or the mode pipeline")
}

// Close drops idle connections and ends the programs that wait for work.
func (s *Set) Close() {
	for _, o := range s.order {
		if o.Close != nil {
			o.Close()
		}
	}
}
