package assistant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/provider/failover"
)

// Fallback lists what takes over on this server when an assistant's vendors fail. The zero value is empty.
type Fallback struct {
	Models       []string // vendor/model: those that think in text, and those that hear
	Voices       []string // codes of providers: one of their voices is chosen by language and gender
	Transcribers []string // codes of providers: those count that understand the language
	// How long each part may take before the next one is tried; for 0 see package failover.
	ModelAfter, VoiceAfter, TranscriberAfter time.Duration

	circuits failover.Circuits
}

// Check reports which entries of a server's lists don't exist.
func (f *Fallback) Check(c *catalog.Catalog) error {
	var models []string
	for _, m := range c.ModelsOf("") {
		if name := nameOf(&m); !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	for _, one := range []struct {
		setting, what string
		names, there  []string
	}{
		{"PARLEY_FALLBACK_MODELS", "model", f.Models, models},
		{"PARLEY_FALLBACK_VOICES", "provider", f.Voices, codes(c.Synthesizers(0))},
		{"PARLEY_FALLBACK_TRANSCRIBERS", "provider", f.Transcribers, codes(c.Transcribers(0))},
	} {
		for _, name := range one.names {
			if !slices.Contains(one.there, name) {
				return fmt.Errorf("%s: there is no %s %q; those configured are: %s", one.setting, one.what, name,
					strings.Join(one.there, ", "))
			}
		}
	}
	return nil
}

func codes(list []parley.Provider) (codes []string) {
	for _, p := range list {
		codes = append(codes, p.Code)
	}
	return codes
}

// nameOf is what a model is called in lists and records.
func nameOf(m *parley.Model) string { return m.Provider + "/" + m.Code }

// link is an entry of a list. Its circuit is shared with everything that fails together with it.
func link[T comparable](f *Fallback, part ai.Part, name, circuit string, do T) failover.Link[T] {
	return failover.Link[T]{Name: name, Circuit: f.circuits.Of(part, circuit), Do: do}
}

// mind is an assistant's model, followed by those that take over when it fails. The error is that of the first, if
// there is no other.
func (d *Studio) mind(first *parley.Model) (ai.Model, error) {
	f := &d.Fallback
	m, err := d.Providers.Model(first.Provider, first.Code)
	list := &failover.Model{Budget: f.ModelAfter}
	add := func(name string, m ai.Model) {
		list.Links = append(list.Links, link(f, ai.TheModel, name, name, m))
	}
	if add(nameOf(first), m); err != nil {
		list.Links[0].Do = absent{err}
	}
	for _, next := range d.modelsAfter(first) {
		if m, failed := d.Providers.Model(next.Provider, next.Code); failed == nil {
			add(nameOf(&next), m)
		}
	}
	if len(list.Links) == 1 {
		return m, err
	}
	return list, nil
}

// Hearer is the realtime model of an assistant, followed by those that take over when it fails; open opens one by its
// codes. The error is that of the first, if there is no other.
func (d *Studio) Hearer(s Speech, open func(vendor, code string) (ai.RealtimeModel, error)) (ai.RealtimeModel, error) {
	f := &d.Fallback
	m, err := open(s.Provider, s.Model)
	list := &failover.Realtime{Budget: f.ModelAfter}
	add := func(name, voice string, m ai.RealtimeModel) {
		list.Links = append(list.Links, link(f, ai.TheModel, name, name, failover.Speaking{RealtimeModel: m, Voice: voice}))
	}
	if add(s.Provider+"/"+s.Model, s.Voice, m); err != nil {
		list.Links[0].Do.RealtimeModel = absent{err}
	}
	for _, next := range s.hearers {
		voice := s.Voice
		if next.Kind == parley.Multimodal {
			inside := d.Catalog.Inside(s.voice, next.Provider)
			if inside == nil {
				continue // it has no voice in the language
			}
			voice = inside.Code
		}
		if m, failed := open(next.Provider, next.Code); failed == nil {
			add(nameOf(&next), voice, m)
		}
	}
	if len(list.Links) == 1 {
		return m, err
	}
	return list, nil
}

// modelsAfter lists those that take over when a model fails: of the same kind.
func (d *Studio) modelsAfter(first *parley.Model) (list []parley.Model) {
	for _, name := range d.Fallback.Models {
		for _, m := range d.Catalog.ModelsOf(first.Kind) {
			if nameOf(&m) == name && m.ID != first.ID {
				list = append(list, m)
			}
		}
	}
	return list
}

// Speaker is an assistant's voice, followed by those that take over when it fails; open opens a synthesizer by its
// code. The error is that of the first, if there is no other.
func (d *Studio) Speaker(s Speech, open func(code string) (ai.Synthesizer, error)) (ai.Synthesizer, error) {
	f := &d.Fallback
	first, err := open(s.Synthesizer)
	var list []failover.Link[failover.Speaker]
	add := func(code, voice, name string, s ai.Synthesizer) {
		list = append(list, link(f, ai.TheVoice, code+"/"+name, code, failover.Speaker{Synthesizer: s, Voice: voice}))
	}
	if add(s.Synthesizer, s.Voice, s.voice.Name, first); err != nil {
		list[0].Do.Synthesizer = absent{err}
	}
	for _, v := range s.voices {
		code := d.Catalog.Synthesizer(*v.SynthesizerProviderID).Code
		if next, failed := open(code); failed == nil {
			add(code, v.Code, v.Name, next)
		}
	}
	if len(list) == 1 {
		return first, err
	}
	return failover.NewSynthesizer(f.VoiceAfter, list...), nil
}

// Listener is an assistant's ear, followed by those that take over when it fails; open opens a recognizer by its code.
// The error is that of the first, if there is no other.
func (d *Studio) Listener(s Speech, open func(code string) (ai.Recognizer, error)) (ai.Recognizer, error) {
	f := &d.Fallback
	first, err := open(s.Recognizer)
	list := &failover.Recognizer{Budget: f.TranscriberAfter}
	add := func(code string, r ai.Recognizer) {
		list.Links = append(list.Links, link(f, ai.TheRecognizer, code, code, r))
	}
	if add(s.Recognizer, first); err != nil {
		list.Links[0].Do = absent{err}
	}
	for _, code := range s.recognizers {
		if next, failed := open(code); failed == nil {
			add(code, next)
		}
	}
	if len(list.Links) == 1 {
		return first, err
	}
	return list, nil
}

// standIns are the voices and recognizers that take over when an assistant's fail.
func (d *Studio) standIns(v *parley.Voice, recognizer string) (voices []*parley.Voice, recognizers []string) {
	for _, code := range d.Fallback.Voices {
		if next := d.Catalog.Alike(v, code); next != nil && next.ID != v.ID {
			voices = append(voices, next)
		}
	}
	for _, p := range d.Catalog.Transcribers(v.LanguageID) {
		if p.Code != recognizer && slices.Contains(d.Fallback.Transcribers, p.Code) {
			recognizers = append(recognizers, p.Code)
		}
	}
	slices.SortFunc(recognizers, func(a, b string) int {
		return slices.Index(d.Fallback.Transcribers, a) - slices.Index(d.Fallback.Transcribers, b)
	})
	return voices, recognizers
}

// absent stands for something that this server doesn't have: another takes over.
type absent struct{ err error }

// Generate implements ai.Model.
func (a absent) Generate(context.Context, ai.Request, func(ai.Delta) error) (ai.Reply, error) {
	return ai.Reply{}, a.err
}

// Speak implements ai.Synthesizer.
func (a absent) Speak(context.Context, ai.Speech, <-chan string, func(ai.Sound) error) error {
	return a.err
}

// Connect implements ai.RealtimeModel.
func (a absent) Connect(context.Context, ai.RealtimeSetup) (ai.RealtimeSession, error) {
	return nil, a.err
}

// Listen implements ai.Recognizer.
func (a absent) Listen(context.Context, ai.Hearing) (ai.Ear, error) { return nil, a.err }
