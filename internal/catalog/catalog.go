// Package catalog knows what assistants can be made of: languages, voices, the providers that speak and listen, and
// models.
//
// Languages are data in this package; the rest comes from the vendors' declarations, with ids that never change. Lists
// hold only what is configured on this server, but everything can be found by its id, so that an assistant survives the
// removal of a provider key. Models are named in the settings; the database assigns their ids, see SetModels.
//
// A Catalog is immutable except for SetModels, and safe for concurrent use. What its methods return is shared and must
// not be changed.
package catalog

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"parley/internal/ai"
	"parley/internal/parley"
)

// Catalog knows what exists and what is configured.
type Catalog struct {
	languages     []parley.Language
	languageByISO map[string]*parley.Language
	languageByID  map[int64]*parley.Language

	voices   map[int64]*voice
	voicesOf map[scope][]parley.Voice

	vendors        []*ai.Vendor
	speakers       []ai.Speaker // by rank
	listeners      []ai.Listener
	synthesizersOf map[int64][]parley.Provider // configured ones by language, 0: every language
	transcribersOf map[int64][]parley.Provider

	configuredModels []parley.Model // ids are 0
	models           atomic.Pointer[models]

	personal func(userID int64) *Catalog
}

// scope is a filter of the list of voices; the zero value of each field lets all through.
type scope struct {
	mode     string
	language int64
}

type voice struct {
	parley.Voice
	configured bool
	private    bool        // in a user's own account
	speaker    *ai.Speaker // by whom it is heard before a call; nil: it can't be
}

// New makes the catalogue of a server with these vendors. Links start with publicURL, such as
// https://voice.example.com.
func New(publicURL string, vendors []*ai.Vendor) *Catalog {
	c := &Catalog{
		vendors:        vendors,
		languages:      make([]parley.Language, len(languages)),
		languageByISO:  make(map[string]*parley.Language, len(languages)),
		languageByID:   make(map[int64]*parley.Language, len(languages)),
		voices:         map[int64]*voice{},
		voicesOf:       map[scope][]parley.Voice{},
		synthesizersOf: map[int64][]parley.Provider{},
		transcribersOf: map[int64][]parley.Provider{},
	}
	for i, l := range languages {
		c.languages[i] = parley.Language{ID: l.id, ISO2: l.iso, Name: l.name}
		c.languageByISO[l.iso] = &c.languages[i]
		c.languageByID[l.id] = &c.languages[i]
	}
	for _, v := range vendors {
		c.speakers, c.listeners = append(c.speakers, v.Speakers...), append(c.listeners, v.Listeners...)
	}
	slices.SortStableFunc(c.speakers, func(a, b ai.Speaker) int { return a.Rank - b.Rank })
	slices.SortStableFunc(c.listeners, func(a, b ai.Listener) int { return a.Rank - b.Rank })
	base := strings.TrimSuffix(publicURL, "/") + "/api/voices/"
	c.addSpeakers(base)
	for _, v := range vendors {
		if v.Realtime != nil {
			c.addRealtime(v.Code, v.Realtime, base)
		}
	}
	c.addListeners()
	for i := range c.languages {
		l := &c.languages[i]
		if list := c.synthesizersOf[l.ID]; len(list) > 0 {
			l.Default.Synthesizer = list[0].Code
		}
		if list := c.transcribersOf[l.ID]; len(list) > 0 {
			l.Default.Transcriber = list[0].Code
		}
	}
	c.configuredModels = modelsOf(vendors)
	c.models.Store(newModels(c.configuredModels, nil))
	return c
}

// Personal has For answer what fn does. It is called before the catalog is used.
func (c *Catalog) Personal(fn func(userID int64) *Catalog) { c.personal = fn }

// For is what a user can choose from: what the server is configured with now, and what the user has own keys for. 0
// stands for the server alone.
func (c *Catalog) For(userID int64) *Catalog {
	if c.personal == nil {
		return c
	}
	return c.personal(userID)
}

// addSpeakers fills in the voices, and who speaks which language: every provider that has a voice in it.
func (c *Catalog) addSpeakers(base string) {
	for i := range c.speakers {
		s := &c.speakers[i]
		configured := s.Configured()
		if configured {
			c.synthesizersOf[0] = append(c.synthesizersOf[0], s.Provider)
		}
		for _, v := range s.Voices {
			for iso := range strings.FieldsSeq(v.Languages) {
				l, code, at := c.languageByISO[iso], v.Code, base
				if s.Private || v.Private {
					at = ""
				}
				if s.Named != nil {
					code = s.Named(code, iso)
				}
				c.addVoice(&voice{parley.Voice{SynthesizerProviderID: &s.ID, Tunable: s.Tunable, Code: code,
					Modes: []string{"pipeline", "dualplex"}}, configured && !v.Gone, v.Private, s}, v, l, at)
				list := c.synthesizersOf[l.ID]
				if configured && (len(list) == 0 || list[len(list)-1].ID != s.ID) {
					c.synthesizersOf[l.ID] = append(list, s.Provider)
				}
			}
		}
	}
}

// addRealtime fills in the voices built into a model that hears and speaks. They can be previewed before a call if a
// speaker has them too.
func (c *Catalog) addRealtime(vendor string, r *ai.Realtime, base string) {
	configured, alike := r.Configured(), c.speaker(r.Alike)
	if alike == nil || !alike.Configured() || alike.Private {
		base = ""
	}
	for _, v := range r.Voices {
		for iso := range strings.FieldsSeq(v.Languages) {
			c.addVoice(&voice{parley.Voice{Code: v.Code, Inside: vendor, Modes: []string{"multimodal"}}, configured, false, alike}, v,
				c.languageByISO[iso], base)
		}
	}
}

func (c *Catalog) addVoice(v *voice, d ai.Voice, l *parley.Language, base string) {
	v.ID, v.Name, v.LanguageID, v.Gender, v.Accent, v.Age = voiceID(d.Number, l.ID), d.Name, l.ID, d.Gender,
		optional(d.Accent), optional(d.Age)
	c.voices[v.ID] = v
	if !v.configured {
		return
	}
	if base != "" {
		v.PreviewURL = base + strconv.FormatInt(v.ID, 10) + "/preview"
	}
	for _, mode := range append([]string{""}, v.Modes...) {
		for _, language := range []int64{0, l.ID} {
			s := scope{mode, language}
			c.voicesOf[s] = append(c.voicesOf[s], v.Voice)
		}
	}
}

func (c *Catalog) addListeners() {
	for _, l := range c.listeners {
		if !l.Configured() {
			continue
		}
		c.transcribersOf[0] = append(c.transcribersOf[0], l.Provider)
		for iso := range strings.FieldsSeq(l.Languages) {
			id := c.languageByISO[iso].ID
			c.transcribersOf[id] = append(c.transcribersOf[id], l.Provider)
		}
	}
}

// voiceID makes the stable id of a voice in a language. Language ids stay below 1000.
func voiceID(number, languageID int64) int64 { return number*1000 + languageID }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Languages lists every language. Their defaults are the best providers configured here, "" if none speaks or hears the
// language.
func (c *Catalog) Languages() []parley.Language { return c.languages }

// Language finds a language by its id, nil if there is none.
func (c *Catalog) Language(id int64) *parley.Language { return c.languageByID[id] }

// Voices lists the voices of configured providers that suit a mode ("" for any) and a language (0 for any), those of
// the language's default synthesizer first.
func (c *Catalog) Voices(mode string, languageID int64) []parley.Voice {
	return orEmpty(c.voicesOf[scope{mode, languageID}])
}

// Voice finds a voice by its id, configured here or not, nil if there is none.
func (c *Catalog) Voice(id int64) *parley.Voice {
	if v := c.voices[id]; v != nil {
		return &v.Voice
	}
	return nil
}

// VoiceConfigured reports whether the voice with this id can speak on this server.
func (c *Catalog) VoiceConfigured(id int64) bool {
	v := c.voices[id]
	return v != nil && v.configured
}

// Lost reports whether a voice was in a user's own account and can't be used: it is gone, or their key is.
func (c *Catalog) Lost(id int64) bool {
	v := c.voices[id]
	return v != nil && v.private && !v.configured
}

// Alike is another provider's voice that can stand in for a voice: of the same language, and of the same gender if
// possible; nil if the provider has none.
func (c *Catalog) Alike(v *parley.Voice, provider string) (alike *parley.Voice) {
	s := c.speaker(provider)
	if s == nil {
		return nil
	}
	list := c.voicesOf[scope{"pipeline", v.LanguageID}]
	for i := range list {
		one := &list[i]
		if one.SynthesizerProviderID == nil || *one.SynthesizerProviderID != s.ID {
			continue
		}
		if one.Gender == v.Gender {
			return one
		}
		if alike == nil {
			alike = one
		}
	}
	return alike
}

// In is the voice that speaks another language in place of a voice: the same one where it can, or else another of its
// provider, or of any; of the same gender if possible. It is nil if no voice on this server speaks the language.
func (c *Catalog) In(languageID int64, v *parley.Voice) (found *parley.Voice) {
	best := -1
	list := c.voicesOf[scope{"pipeline", languageID}]
	for i := range list {
		one, fits := &list[i], 0
		if one.SynthesizerProviderID != nil && v.SynthesizerProviderID != nil &&
			*one.SynthesizerProviderID == *v.SynthesizerProviderID {
			fits += 2
			if one.Code == v.Code {
				fits += 2
			}
		}
		if one.Gender == v.Gender {
			fits++
		}
		if fits > best {
			best, found = fits, one
		}
	}
	return found
}

// TellsLanguages reports whether the transcriber with this code tells in which of these languages (ISO 639-1) something
// was said.
func (c *Catalog) TellsLanguages(code string, languages []string) bool {
	i := slices.IndexFunc(c.listeners, func(l ai.Listener) bool { return l.Code == code })
	if i < 0 {
		return false
	}
	if c.listeners[i].Mixed == nil {
		return false
	}
	mixed := strings.Fields(c.listeners[i].Mixed())
	return !slices.ContainsFunc(languages, func(l string) bool { return !slices.Contains(mixed, l) })
}

// Inside is the voice inside a vendor's realtime models that can stand in for another, likewise: the same voice, if it
// is the vendor's own.
func (c *Catalog) Inside(v *parley.Voice, vendor string) (alike *parley.Voice) {
	if v.Inside == vendor {
		return v
	}
	list := c.voicesOf[scope{"multimodal", v.LanguageID}]
	for i := range list {
		one := &list[i]
		switch {
		case one.Inside != vendor:
		case one.Gender == v.Gender:
			return one
		case alike == nil:
			alike = one
		}
	}
	return alike
}

// Synthesizers lists the configured providers that speak a language (0: any), the best first.
func (c *Catalog) Synthesizers(languageID int64) []parley.Provider {
	return orEmpty(c.synthesizersOf[languageID])
}

// Synthesizer finds a speaking provider by its id, configured here or not, nil if there is none.
func (c *Catalog) Synthesizer(id int64) *parley.Provider {
	for i := range c.speakers {
		if c.speakers[i].ID == id {
			return &c.speakers[i].Provider
		}
	}
	return nil
}

// Tunable reports which settings a provider's voices have, by the provider's code.
func (c *Catalog) Tunable(code string) parley.Tunable {
	if s := c.speaker(code); s != nil {
		return s.Tunable
	}
	return parley.Tunable{}
}

func (c *Catalog) speaker(code string) *ai.Speaker {
	for i := range c.speakers {
		if c.speakers[i].Code == code {
			return &c.speakers[i]
		}
	}
	return nil
}

// Retires is what a vendor has announced about a model, by the codes of both, with the vendor's name; nil if it is
// nothing.
func (c *Catalog) Retires(vendor, model string) (r *ai.Retirement, name string) {
	for _, v := range c.vendors {
		if v.Code == vendor {
			return v.Retires(model), v.Name
		}
	}
	return nil, ""
}

// Speaks is the model that a provider speaks with, by the provider's code; "" if there is no choice.
func (c *Catalog) Speaks(code string) string {
	if s := c.speaker(code); s != nil && s.Model != nil {
		return s.Model()
	}
	return ""
}

// Heard is the speaker that says the preview of a voice, nil if there is none.
func (c *Catalog) Heard(voiceID int64) *ai.Speaker {
	if v := c.voices[voiceID]; v != nil {
		return v.speaker
	}
	return nil
}

// Transcribers lists the configured providers that understand a language (0: any), the best first.
func (c *Catalog) Transcribers(languageID int64) []parley.Provider {
	return orEmpty(c.transcribersOf[languageID])
}

// Transcriber finds a listening provider by its id, configured here or not, nil if there is none.
func (c *Catalog) Transcriber(id int64) *parley.Provider {
	for i := range c.listeners {
		if c.listeners[i].ID == id {
			return &c.listeners[i].Provider
		}
	}
	return nil
}

// Foreign is what to tell an assistant's owner when the transcriber with this code does not understand the assistant's
// language (ISO 639-1); "" if it does.
func (c *Catalog) Foreign(code, language string) string {
	for _, l := range c.listeners {
		if l.Code == code && !slices.Contains(strings.Fields(l.Languages), language) {
			return l.Foreign
		}
	}
	return ""
}

// TranscriberConfigured reports whether the transcriber with this id is available on this server and understands a
// language (0 for any).
func (c *Catalog) TranscriberConfigured(id, languageID int64) bool {
	return slices.ContainsFunc(c.transcribersOf[languageID], func(p parley.Provider) bool { return p.ID == id })
}

// orEmpty turns nil into an empty list: a response holds [], not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
