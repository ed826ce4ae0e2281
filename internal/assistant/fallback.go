package assistant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/endpoint"
	"parley/internal/parley"
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

// circuit names what fails together: what has the same key. What a user's own key does to a vendor is nothing to others,
// and another key begins anew.
func (d *Studio) circuit(userID int64, part ai.Part, vendor, model, name string) string {
	if d.Providers == nil {
		return name
	}
	return fmt.Sprintf("%s #%d", name, d.Providers.For(userID).Key(part, vendor, model))
}

// mind is an assistant's model, after an endpoint of the account's own (nil: none) and followed by those that take over when it
// fails. The error is that of the first, if there is no other.
func (d *Studio) mind(a *parley.Assistant, first *parley.Model, own *endpoint.Vendors) (ai.Model, error) {
	f, providers := &d.Fallback, d.Providers.For(a.UserID)
	m, err := providers.Model(first.Provider, first.Code)
	list := &failover.Model{Budget: f.ModelAfter}
	if own != nil {
		do, failed := own.Model()
		if failed != nil {
			do = absent{failed}
		}
		list.Links = append(list.Links, link(f, ai.TheModel, endpointName(own), endpointCircuit(own), do))
		list.Links[0].Budget = waits(own, list.Budget)
	}
	add := func(of *parley.Model, m ai.Model) {
		name := nameOf(of)
		list.Links = append(list.Links, link(f, ai.TheModel, name,
			d.circuit(a.UserID, ai.TheModel, of.Provider, of.Code, name), m))
	}
	if add(first, m); err != nil {
		list.Links[len(list.Links)-1].Do = absent{err}
	}
	for _, next := range modelsAfter(d.Catalog.For(a.UserID), f, a.FallbackLLMModelIDs, first) {
		if m, failed := providers.Model(next.Provider, next.Code); failed == nil {
			add(&next, m)
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
	add := func(vendor, code, voice string, m ai.RealtimeModel) {
		name := vendor + "/" + code
		list.Links = append(list.Links, link(f, ai.TheModel, name, d.circuit(s.user, ai.TheModel, vendor, code, name),
			failover.Speaking{RealtimeModel: m, Voice: voice}))
	}
	if add(s.Provider, s.Model, s.Voice, m); err != nil {
		list.Links[0].Do.RealtimeModel = absent{err}
	}
	for _, next := range s.hearers {
		if other, failed := open(next.model.Provider, next.model.Code); failed == nil && ai.Decides(other) == ai.Decides(m) {
			add(next.model.Provider, next.model.Code, next.voice, other)
		}
	}
	if len(list.Links) == 1 {
		return m, err
	}
	return list, nil
}

// hearer is a realtime model that takes over, with the vendor's own name of the voice in which it speaks.
type hearer struct {
	model parley.Model
	voice string
}

// hearersAfter lists the realtime models that take over when an assistant's fails, except those that have no voice in
// its language.
func (d *Studio) hearersAfter(a *parley.Assistant, first *parley.Model, v *parley.Voice) (list []hearer) {
	c := d.Catalog.For(a.UserID)
	for _, m := range modelsAfter(c, &d.Fallback, a.FallbackMultimodalModelIDs, first) {
		voice := v
		if m.Kind == parley.Multimodal && m.Provider != first.Provider {
			voice = c.Inside(v, m.Provider)
			for _, id := range slices.Backward(a.FallbackVoiceIDs) {
				if own := c.Voice(id); own != nil && own.Inside == m.Provider {
					voice = own
				}
			}
		}
		if voice != nil {
			list = append(list, hearer{m, voice.Code})
		}
	}
	return list
}

// fallbackFacts is what the catalog knows about the ids in an assistant's lists. What old has may stay.
func fallbackFacts(c *catalog.Catalog, old, a *parley.Assistant) parley.FallbackFacts {
	f := parley.FallbackFacts{LLMs: map[int64]*parley.Model{}, Multimodals: map[int64]*parley.Model{},
		Voices: map[int64]*parley.Voice{}, Transcribers: map[int64]bool{}}
	for _, id := range a.FallbackLLMModelIDs {
		f.LLMs[id] = model(c, &id, among(id, old.FallbackLLMModelIDs), parley.LLM)
	}
	for _, id := range a.FallbackMultimodalModelIDs {
		f.Multimodals[id] = model(c, &id, among(id, old.FallbackMultimodalModelIDs), parley.Multimodal, parley.Dualplex)
	}
	for _, id := range a.FallbackVoiceIDs {
		if c.VoiceConfigured(id) || slices.Contains(old.FallbackVoiceIDs, id) {
			f.Voices[id] = c.Voice(id)
		}
	}
	for _, id := range a.FallbackTranscriberProviderIDs {
		f.Transcribers[id] = c.TranscriberConfigured(id, a.LanguageID) ||
			a.LanguageID == old.LanguageID && slices.Contains(old.FallbackTranscriberProviderIDs, id)
	}
	return f
}

// among is an id where it is in a list, else nil.
func among(id int64, list []int64) *int64 {
	if slices.Contains(list, id) {
		return &id
	}
	return nil
}

// modelsAfter lists those that take over when a model fails: of the same kind, the assistant's own, or else the
// server's.
func modelsAfter(c *catalog.Catalog, f *Fallback, own []int64, first *parley.Model) (list []parley.Model) {
	for _, id := range own {
		if m := c.Model(id); m != nil && m.ID != first.ID && m.Kind == first.Kind {
			list = append(list, *m)
		}
	}
	if len(own) > 0 {
		return list
	}
	for _, name := range f.Models {
		for _, m := range c.ModelsOf(first.Kind) {
			if nameOf(&m) == name && m.ID != first.ID {
				list = append(list, m)
			}
		}
	}
	return list
}

// Speaker is an assistant's voice, after an endpoint of the account's own and followed by those that take over when it
// fails; open opens a synthesizer by its code. The error is that of the first, if there is no other.
func (d *Studio) Speaker(s Speech, open func(code string) (ai.Synthesizer, error)) (ai.Synthesizer, error) {
	f := &d.Fallback
	first, err := open(s.Synthesizer)
	var list []failover.Link[failover.Speaker]
	add := func(code, voice, name string, do ai.Synthesizer) {
		list = append(list, link(f, ai.TheVoice, code+"/"+name, d.circuit(s.user, ai.TheVoice, code, "", code),
			failover.Speaker{Synthesizer: do, Voice: voice}))
	}
	budget := f.VoiceAfter
	if own := s.ownVoice; own != nil {
		do, failed := own.Synthesizer()
		if failed != nil {
			do = absent{failed}
		}
		list, budget = append(list, link(f, ai.TheVoice, endpointName(own), endpointCircuit(own), failover.Speaker{Synthesizer: do,
			Voice: s.ownCode})), waits(own, budget)
	}
	if add(s.Synthesizer, s.Voice, s.voice.Name, first); err != nil {
		list[len(list)-1].Do.Synthesizer = absent{err}
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
	return failover.NewSynthesizer(budget, list...), nil
}

// In is the speech of one of its tongues: the voices that take over are those of the same providers. An endpoint of the
// account's own speaks the first language alone.
func (d *Studio) In(s Speech, t Tongue) Speech {
	c := d.Catalog.For(s.user)
	var voices []*parley.Voice
	for _, v := range s.voices {
		if p := c.Synthesizer(*v.SynthesizerProviderID); p != nil {
			if alike := c.Alike(t.voice, p.Code); alike != nil {
				voices = append(voices, alike)
			}
		}
	}
	s.Voice, s.Language, s.Synthesizer, s.voice, s.voices, s.ownVoice = t.Voice, t.Language, t.Synthesizer, t.voice, voices, nil
	return s
}

// Listener is an assistant's recognizer, after an endpoint of the account's own and followed by those that take over when it
// fails; open opens a recognizer by its code. The error is that of the first, if there is no other.
func (d *Studio) Listener(s Speech, open func(code string) (ai.Recognizer, error)) (ai.Recognizer, error) {
	f := &d.Fallback
	first, err := open(s.Recognizer)
	list := &failover.Recognizer{Budget: f.TranscriberAfter}
	add := func(code string, r ai.Recognizer) {
		list.Links = append(list.Links, link(f, ai.TheRecognizer, code,
			d.circuit(s.user, ai.TheRecognizer, code, "", code), r))
	}
	if own := s.ownRecognition; own != nil {
		do, failed := own.Recognizer()
		if failed != nil {
			do = absent{failed}
		}
		list.Links, list.Budget = append(list.Links, link(f, ai.TheRecognizer, endpointName(own), endpointCircuit(own), do)),
			waits(own, list.Budget)
	}
	if add(s.Recognizer, first); err != nil {
		list.Links[len(list.Links)-1].Do = absent{err}
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

// standIns are the voices that take over when an assistant's fails: its own list, or else the server's.
func (d *Studio) standIns(a *parley.Assistant, v *parley.Voice) (voices []*parley.Voice) {
	c := d.Catalog.For(a.UserID)
	for _, id := range a.FallbackVoiceIDs {
		if next := c.Voice(id); next != nil && next.ID != v.ID && next.SynthesizerProviderID != nil && !c.Lost(id) {
			voices = append(voices, next)
		}
	}
	if len(a.FallbackVoiceIDs) > 0 && v.Inside == "" {
		return voices
	}
	for _, code := range d.Fallback.Voices {
		if next := c.Alike(v, code); next != nil && next.ID != v.ID {
			voices = append(voices, next)
		}
	}
	return voices
}

// listenersAfter are the codes of the recognizers that take over when an assistant's fails, likewise: those that
// understand the language.
func (d *Studio) listenersAfter(a *parley.Assistant, recognizer string) (codes []string) {
	list := d.Fallback.Transcribers
	if len(a.FallbackTranscriberProviderIDs) > 0 {
		list = nil
		for _, id := range a.FallbackTranscriberProviderIDs {
			if p := d.Catalog.Transcriber(id); p != nil {
				list = append(list, p.Code)
			}
		}
	}
	for _, code := range list {
		if code != recognizer && slices.ContainsFunc(d.Catalog.For(a.UserID).Transcribers(a.LanguageID),
			func(p parley.Provider) bool { return p.Code == code }) {
			codes = append(codes, code)
		}
	}
	return codes
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
func (a absent) Listen(context.Context, ai.Hearing) (ai.Recognition, error) { return nil, a.err }
