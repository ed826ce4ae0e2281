// Package provider is the one list of vendors with which this server can think, speak and listen: those that the
// operator configures, the built-in responder, which is always available, and the installed speech programs. Each
// vendor describes itself in its own package, in its Declare.
package provider

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"parley/internal/parley"

	"parley/internal/ai"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/gemini"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
	"parley/internal/provider/xai"
)

// All declares every vendor, with empty settings. Their models are offered in this order. A vendor passed in instead
// replaces the one with its code.
func All(instead ...*ai.Vendor) []*ai.Vendor {
	list := []*ai.Vendor{
		openai.Declare(&openai.Settings{}),
		anthropic.Declare(&anthropic.Settings{}),
		gemini.Declare(&gemini.Settings{}),
		xai.Declare(&xai.Settings{}),
		openai.DeclareCompatible(&openai.CompatibleSettings{}),
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

// Set is opened vendors: the server's, or those that a user has own keys for, before the server's. It doesn't change,
// and is safe for concurrent use.
type Set struct {
	open    *register
	sources []*source
	speaks  map[string]*source // by the speaker's code
	listens map[string]*source
	models  map[string]func() string // of the speakers that have one
	under   *Set                     // what these vendors don't do is done by those; nil: nobody

	personal func(userID int64) *Set
}

// source is a vendor that was opened. Whatever is made of it keeps it, and it is closed when nothing is left that
// does: a call goes on with the key that it began with.
type source struct {
	*ai.Opened
	vendor *ai.Vendor
	own    bool // by a user's own key
	number int64
}

// Open opens vendors without contacting any. Close the set.
func Open(vendors []*ai.Vendor) (*Set, error) {
	s, err := build(&register{}, vendors, nil, nil)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Renew is a set of these vendors instead; those that were in it before stay open.
func (s *Set) Renew(vendors []*ai.Vendor) (*Set, error) { return build(s.open, vendors, s, nil) }

// Own is the set of a user with keys of their own for these vendors, before those of the server. Those that were in
// the user's former set, if there is one, stay open.
func (s *Set) Own(vendors []*ai.Vendor, former *Set) (*Set, error) {
	return build(s.open, vendors, former, s)
}

func build(open *register, vendors []*ai.Vendor, former, under *Set) (*Set, error) {
	s := &Set{open: open, under: under, speaks: map[string]*source{}, listens: map[string]*source{},
		models: map[string]func() string{}}
	for _, v := range vendors {
		if v.Open == nil {
			continue
		}
		o := former.source(v)
		if o == nil {
			opened, err := v.Open()
			if err != nil {
				if former == nil && under == nil {
					s.Close()
				}
				return nil, fmt.Errorf("open vendor %s: %w", v.Code, err)
			}
			o = open.keep(v, opened, under != nil)
		}
		s.sources = append(s.sources, o)
		for _, sp := range v.Speakers {
			if under == nil || sp.Configured() {
				s.speaks[sp.Code], s.models[sp.Code] = o, sp.Model
			}
		}
		for _, l := range v.Listeners {
			if under == nil || l.Configured() {
				s.listens[l.Code] = o
			}
		}
	}
	return s, nil
}

// source is where a vendor was opened, nil if it was not.
func (s *Set) source(v *ai.Vendor) *source {
	if s != nil {
		for _, o := range s.sources {
			if o.vendor == v {
				return o
			}
		}
	}
	return nil
}

// register knows what is open.
type register struct {
	mu     sync.Mutex
	all    map[*ai.Opened]bool
	number int64 // of the last
}

// keep notes that a vendor is open until nothing uses it any more.
func (r *register) keep(v *ai.Vendor, opened *ai.Opened, own bool) *source {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[*ai.Opened]bool{}
	}
	r.all[opened] = true
	r.number++
	o := &source{opened, v, own, r.number}
	runtime.AddCleanup(o, r.close, opened)
	return o
}

// close closes a vendor, once.
func (r *register) close(o *ai.Opened) {
	r.mu.Lock()
	there := r.all[o]
	delete(r.all, o)
	r.mu.Unlock()
	if there && o.Close != nil {
		o.Close()
	}
}

// Close drops idle connections and ends the programs that wait for work, of this set and of all that were made of it.
func (s *Set) Close() {
	s.open.mu.Lock()
	all := make([]*ai.Opened, 0, len(s.open.all))
	for o := range s.open.all {
		all = append(all, o)
	}
	s.open.mu.Unlock()
	for _, o := range all {
		s.open.close(o)
	}
}

// Personal has For answer what fn does. It is called before the set is used.
func (s *Set) Personal(fn func(userID int64) *Set) { s.personal = fn }

// For is the set that a user's assistants work with; 0 stands for the server itself.
func (s *Set) For(userID int64) *Set {
	if s.personal == nil {
		return s
	}
	return s.personal(userID)
}

// Key numbers what does a vendor's part, by the code of the vendor, and of its model for what thinks: what has the same
// number is asked with the same key. 0 stands for nothing.
func (s *Set) Key(part ai.Part, vendorCode, modelCode string) int64 {
	var o *source
	switch part {
	case ai.TheVoice:
		o = s.speaks[vendorCode]
	case ai.TheRecognizer:
		o = s.listens[vendorCode]
	default:
		o = s.thinker(vendorCode, modelCode)
	}
	switch {
	case o != nil:
		return o.number
	case s.under != nil:
		return s.under.Key(part, vendorCode, modelCode)
	}
	return 0
}

// thinker is the vendor of a model; of a user's own vendors it is one that lists it.
func (s *Set) thinker(vendorCode, modelCode string) *source {
	for _, o := range s.sources {
		if o.vendor.Code == vendorCode && (!o.own || o.lists(modelCode)) {
			return o
		}
	}
	return nil
}

// lists reports whether the vendor's settings name a model.
func (o *source) lists(code string) bool {
	return o.vendor.Models != nil &&
		slices.ContainsFunc(o.vendor.Models(), func(m parley.Model) bool { return m.Code == code })
}

// Model is a vendor's model, by the codes of both. If the vendor is not configured, the error is an *ai.Error of kind
// Config: an assistant may name a model that is no longer there.
func (s *Set) Model(vendorCode, modelCode string) (ai.Model, error) {
	if o := s.thinker(vendorCode, modelCode); o != nil && o.Model != nil {
		if m := o.Model(modelCode); m != nil {
			return countedModel{m, o, modelCode}, nil
		}
	}
	if s.under != nil {
		return s.under.Model(vendorCode, modelCode)
	}
	return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("model %q of provider %q is not configured", modelCode,
		vendorCode),
		Mend: fmt.Sprintf("The model %q (%s) is not configured on this server. Choose another, or ask its operator.", modelCode, vendorCode)}
}

// Embedder is the first embedding model that the settings name, nil if they name none.
func (s *Set) Embedder() (ai.Embedder, error) {
	for _, o := range s.sources {
		if o.Embedder == nil {
			continue
		}
		switch e, err := o.Embedder(); {
		case err != nil:
			return nil, err
		case e != nil:
			return heldEmbedder{e, o}, nil
		}
	}
	return nil, nil
}

// Synthesizer returns a synthesizer by its code. If it is not configured, or its program is not installed, the error is
// an *ai.Error of kind Config that says what to do.
func (s *Set) Synthesizer(code string) (ai.Synthesizer, error) {
	o := s.speaks[code]
	switch {
	case o != nil:
		v, err := o.Synthesizer(code)
		if err != nil {
			return nil, err
		}
		counted := countedVoice{Synthesizer: v, source: o, vendor: code}
		if model := s.models[code]; model != nil {
			counted.model = model()
		}
		return counted, nil
	case s.under != nil:
		return s.under.Synthesizer(code)
	}
	return nil, ai.NotConfigured("synthesizer", code, "choose a voice of another provider")
}

// Recognizer returns a recognizer by its code, with the same errors as Synthesizer.
func (s *Set) Recognizer(code string) (ai.Recognizer, error) {
	o := s.listens[code]
	switch {
	case o != nil:
		r, err := o.Recognizer(code)
		if err != nil {
			return nil, err
		}
		return countedRecognition{r, o, code}, nil
	case s.under != nil:
		return s.under.Recognizer(code)
	}
	return nil, ai.NotConfigured("transcriber", code, "choose another")
}

// Realtime is a vendor's model that hears and speaks, by the codes of both, with the same errors as Model.
func (s *Set) Realtime(vendorCode, modelCode string) (ai.RealtimeModel, error) {
	if o := s.thinker(vendorCode, modelCode); o != nil && o.Realtime != nil {
		m, err := o.Realtime(modelCode)
		if err != nil {
			return nil, err
		}
		return heldRealtime{m, o, modelCode}, nil
	}
	if s.under != nil {
		return s.under.Realtime(vendorCode, modelCode)
	}
	return nil, ai.NotConfigured("realtime model", modelCode, "choose another, or the mode pipeline")
}
