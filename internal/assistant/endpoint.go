package assistant

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/endpoint"
	"parley/internal/parley"
)

// endpoint is the endpoint of the account's own that an assistant names in a field; nil where it names none, or may not use it
// any more.
func (d *Studio) endpoint(a *parley.Assistant, field string) *endpoint.Vendors {
	e := a.Endpoint(field)
	if e == nil || a.Mode != "pipeline" || !d.Endpoints.May() {
		return nil
	}
	v, err := d.Endpoints.Open(e)
	if err != nil {
		slog.Warn("an endpoint can't be used", "endpoint", e.ID, "user", e.UserID, "error", err)
		return nil
	}
	return v
}

// beneath puts what takes over from an assistant's endpoints where it has nothing that could: the server's first model, and a
// voice of its language.
func (d *Studio) beneath(userID int64, a *parley.Assistant, own []parley.Endpoint) {
	c := d.Catalog.For(userID)
	if a.LLMEndpointID != nil && a.LLMModelID == nil {
		first := c.ModelsOf(parley.LLM)[0].ID // there is always the built-in one
		a.LLMModelID = &first
	}
	if a.VoiceEndpointID == nil {
		return
	}
	v := c.Voice(a.VoiceID)
	if v != nil && v.LanguageID == a.LanguageID && v.SynthesizerProviderID != nil {
		return
	}
	like := parley.Voice{}
	if v != nil {
		like = *v
	}
	for _, e := range own {
		if spoken := e.Voice(a.VoiceEndpointPlace, catalog.ISO(a.LanguageID)); e.ID == *a.VoiceEndpointID && spoken != nil {
			like.Gender = spoken.Gender
		}
	}
	a.VoiceID = 0
	if v = c.In(a.LanguageID, &like); v != nil {
		a.VoiceID = v.ID
	}
}

// Choice is what an account can choose from: the catalog's, and after it endpoints of its own.
type Choice struct {
	*catalog.Catalog
	Own []parley.Endpoint
}

// Choice is what an account can choose from now.
func (d *Studio) Choice(ctx context.Context, userID int64) (c *Choice, err error) {
	c = &Choice{Catalog: d.Catalog.For(userID)}
	if d.Endpoints.May() {
		c.Own, err = d.DB.Endpoints(ctx, userID)
	}
	return c, err
}

// ModelsOf lists the models of a kind ("": every kind).
func (c *Choice) ModelsOf(kind parley.ModelKind) []parley.Model {
	list := c.Catalog.ModelsOf(kind)
	if kind != "" && kind != parley.LLM {
		return list
	}
	list = slices.Clip(list)
	for _, e := range c.Own {
		if e.Kind == parley.EndpointLLM || e.Kind == parley.EndpointAgent {
			list = append(list, parley.Model{ID: e.ListedID(), Name: e.Name, Code: endpointCode(&e), Kind: parley.LLM, Provider: endpoint.Code})
		}
	}
	return list
}

// Model finds a model by its id, nil if there is none.
func (c *Choice) Model(id int64) *parley.Model {
	return found(id, c.ModelsOf(parley.LLM), func(m *parley.Model) int64 { return m.ID }, c.Catalog.Model)
}

// providers are the account's endpoints of a kind as providers.
func (c *Choice) providers(list []parley.Provider, kind parley.EndpointKind) []parley.Provider {
	list = slices.Clip(list)
	for _, e := range c.Own {
		if e.Kind == kind {
			list = append(list, parley.Provider{ID: e.ListedID(), Name: e.Name, Code: endpointCode(&e)})
		}
	}
	return list
}

// Transcribers lists the providers that understand a language (0: any). Of endpoints nobody knows: they are there for all.
func (c *Choice) Transcribers(languageID int64) []parley.Provider {
	return c.providers(c.Catalog.Transcribers(languageID), parley.EndpointSTT)
}

// Transcriber finds a listening provider by its id, nil if there is none.
func (c *Choice) Transcriber(id int64) *parley.Provider {
	return found(id, c.Transcribers(0), providerID, c.Catalog.Transcriber)
}

// Synthesizers lists the providers that speak a language (0: any).
func (c *Choice) Synthesizers(languageID int64) []parley.Provider {
	list := c.Catalog.Synthesizers(languageID)
	voices := c.voices(languageID)
	for _, p := range c.providers(nil, parley.EndpointTTS) {
		if slices.ContainsFunc(voices, func(v parley.Voice) bool { return *v.SynthesizerProviderID == p.ID }) {
			list = append(slices.Clip(list), p)
		}
	}
	return list
}

// Synthesizer finds a speaking provider by its id, nil if there is none.
func (c *Choice) Synthesizer(id int64) *parley.Provider {
	return found(id, c.providers(nil, parley.EndpointTTS), providerID, c.Catalog.Synthesizer)
}

// Voices lists the voices that suit a mode ("" for any) and a language (0 for any).
func (c *Choice) Voices(mode string, languageID int64) []parley.Voice {
	list := c.Catalog.Voices(mode, languageID)
	if mode != "" && mode != "pipeline" {
		return list
	}
	return append(slices.Clip(list), c.voices(languageID)...)
}

// voices are those of the account's endpoints in a language (0: in each).
func (c *Choice) voices(languageID int64) (list []parley.Voice) {
	for _, e := range c.Own {
		id := e.ListedID()
		for i := range e.Voices {
			v := &e.Voices[i]
			for _, l := range c.Languages() {
				if e.Kind == parley.EndpointTTS && (languageID == 0 || languageID == l.ID) && (v.Language == "" || v.Language == l.ISO2) {
					list = append(list, parley.Voice{ID: e.VoiceID(v, l.ID), Name: v.Name, LanguageID: l.ID, Gender: v.Gender,
						SynthesizerProviderID: &id, Code: v.Code, Modes: []string{"pipeline"}})
				}
			}
		}
	}
	return list
}

// Voice finds a voice by its id, nil if there is none.
func (c *Choice) Voice(id int64) *parley.Voice {
	return found(id, c.voices(0), func(v *parley.Voice) int64 { return v.ID }, c.Catalog.Voice)
}

func providerID(p *parley.Provider) int64 { return p.ID }

// found is what has an id in a list, or else in the catalog.
func found[T any](id int64, list []T, idOf func(*T) int64, otherwise func(int64) *T) *T {
	for i := range list {
		if idOf(&list[i]) == id {
			return &list[i]
		}
	}
	return otherwise(id)
}

// endpointCode is what an endpoint is called in files and records.
func endpointCode(e *parley.Endpoint) string { return endpoint.Code + "/" + e.Name }

// endpointName is what an endpoint is called in records.
func endpointName(v *endpoint.Vendors) string { return endpointCode(v.Endpoint) }

// endpointCircuit names what fails together: an endpoint, as it was saved last.
func endpointCircuit(v *endpoint.Vendors) string {
	return endpoint.Code + " " + strconv.FormatInt(v.Endpoint.ID, 10) + " " + strconv.FormatInt(int64(v.Endpoint.UpdatedAt), 10)
}

// waits is how long an endpoint may take before another is asked too.
func waits(v *endpoint.Vendors, otherwise time.Duration) time.Duration {
	return cmp.Or(time.Duration(v.Endpoint.WaitMS)*time.Millisecond, otherwise)
}

// ask has the assistant's own endpoint, if it has one, answer the turns, before its model.
func (r *Ready) ask(a *parley.Assistant, o Occasion) error {
	own := r.studio.endpoint(a, "llm_model_id")
	if own == nil {
		return nil
	}
	first, err := r.studio.own(a)
	if err != nil {
		return err
	}
	m, err := r.studio.mind(a, first, own)
	if err != nil {
		return err
	}
	p := Party(a, o)
	p.Variables = r.Variables
	r.model, r.reader = partyModel{m, p}, partyModel{r.reader, p}
	r.warm = func() {
		r.studio.Endpoints.Background(func(ctx context.Context) { own.Warm(ai.ForParty(ctx, p)) })
	}
	return nil
}

// Over says that a call or conversation is over, by its Occasion.Of.
func (d *Studio) Over(of string) { d.Endpoints.Over(of) }

// Party is whom vendors are asked for on an occasion.
func Party(a *parley.Assistant, o Occasion) ai.Party {
	return ai.Party{Of: o.Of, Assistant: a.ID, Customer: o.CustomerPhone, Name: a.Name, Language: catalog.ISO(a.LanguageID)}
}

// partyModel is a model that is asked for a party.
type partyModel struct {
	ai.Model
	party ai.Party
}

// Generate implements ai.Model.
func (m partyModel) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	return m.Model.Generate(ai.ForParty(ctx, m.party), req, yield)
}
