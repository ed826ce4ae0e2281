// Package catalog knows what assistants can be made of: languages, voices, the providers that speak and listen, and models.
//
// What exists in the world is data in this package, with ids that never change. What is configured on this server comes with Config:
// only that is listed, but everything is found by its id, so that an assistant survives a provider key being taken away. Models are
// named by settings; the database gives them their ids, see SetModels.
//
// A Catalog is immutable but for SetModels and safe for concurrent use. What its methods return is shared: it must not be changed.
package catalog

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"parley"
)

// Config says what is configured on this server. The zero Config leaves what is built in: Flite, eSpeak NG, PocketSphinx and the
// model that is none.
type Config struct {
	PublicURL string // what links start with, such as https://voice.example.com

	OpenAI     OpenAIModels
	Anthropic  []string // names of models for text; none: not configured
	Deepgram   bool
	ElevenLabs bool
	Cartesia   bool
}

// OpenAIModels names the models of OpenAI, or of a server that speaks its API. An empty name means that it has no such model.
type OpenAIModels struct {
	Chat     []string
	Realtime string
	TTS      string // speaks: its voices are listed
	STT      string // listens: OpenAI is listed as a transcriber
}

// speaks says whether the synthesizer with a code is at hand.
func (cfg Config) speaks(code string) bool {
	switch code {
	case Flite, ESpeak:
		return true // listed wherever we run: doctor says whether the program is installed
	case OpenAI:
		return cfg.OpenAI.TTS != ""
	case ElevenLabs:
		return cfg.ElevenLabs
	case Deepgram:
		return cfg.Deepgram
	case Cartesia:
		return cfg.Cartesia
	}
	return false
}

// hears says whether the transcriber with a code is at hand.
func (cfg Config) hears(code string) bool {
	switch code {
	case PocketSphinx:
		return true
	case OpenAI:
		return cfg.OpenAI.STT != ""
	}
	return cfg.speaks(code)
}

// Catalog answers what there is and what is configured.
type Catalog struct {
	languages     []parley.Language
	languageByISO map[string]*parley.Language
	languageByID  map[int64]*parley.Language

	voices   map[int64]*voice
	voicesOf map[scope][]parley.Voice

	synthesizers   map[int64]*provider
	synthesizersOf map[int64][]parley.Provider // by language, 0: every language
	transcribers   map[int64]*provider
	transcribersOf map[int64][]parley.Provider

	configuredModels []parley.Model // ids are 0
	models           atomic.Pointer[models]
}

// scope is a filter of the list of voices; the zero value of each field lets all through.
type scope struct {
	mode     string
	language int64
}

type voice struct {
	parley.Voice
	configured bool
}

type provider struct {
	parley.Provider
	configured bool
}

// New makes the catalogue of a server with this configuration.
func New(cfg Config) *Catalog {
	c := &Catalog{
		languages:      make([]parley.Language, len(languages)),
		languageByISO:  make(map[string]*parley.Language, len(languages)),
		languageByID:   make(map[int64]*parley.Language, len(languages)),
		voices:         map[int64]*voice{},
		voicesOf:       map[scope][]parley.Voice{},
		synthesizers:   map[int64]*provider{},
		synthesizersOf: map[int64][]parley.Provider{},
		transcribers:   map[int64]*provider{},
		transcribersOf: map[int64][]parley.Provider{},
	}
	for i, l := range languages {
		c.languages[i] = parley.Language{ID: l.id, ISO2: l.iso, Name: l.name}
		c.languageByISO[l.iso] = &c.languages[i]
		c.languageByID[l.id] = &c.languages[i]
	}
	c.addSynthesizers(cfg)
	c.addTranscribers(cfg)
	for i := range c.languages {
		l := &c.languages[i]
		if list := c.synthesizersOf[l.ID]; len(list) > 0 {
			l.Default.Synthesizer = list[0].Code
		}
		if list := c.transcribersOf[l.ID]; len(list) > 0 {
			l.Default.Transcriber = list[0].Code
		}
	}
	c.configuredModels = cfg.models()
	c.models.Store(newModels(c.configuredModels, nil))
	return c
}

// addSynthesizers fills in the voices, and who speaks which language: whoever has a voice in it.
func (c *Catalog) addSynthesizers(cfg Config) {
	base := strings.TrimSuffix(cfg.PublicURL, "/") + "/api/voices/"
	for i := range synthesizers {
		p := &provider{synthesizers[i], cfg.speaks(synthesizers[i].Code)}
		c.synthesizers[p.ID] = p
		if p.configured {
			c.synthesizersOf[0] = append(c.synthesizersOf[0], p.Provider)
		}
		for _, v := range voices[p.Code] {
			for _, iso := range strings.Fields(v.languages) {
				l := c.languageByISO[iso]
				c.addVoice(v, l, &p.ID, tunable[p.Code], []string{"pipeline", "dualplex"}, p.configured, base)
				list := c.synthesizersOf[l.ID]
				if p.configured && (len(list) == 0 || list[len(list)-1].ID != p.ID) {
					c.synthesizersOf[l.ID] = append(list, p.Provider)
				}
			}
		}
	}
	if cfg.OpenAI.TTS == "" {
		base = "" // the voices of the realtime model can be heard before a call where OpenAI's speech model has them too
	}
	for _, v := range realtimeVoices {
		for _, iso := range strings.Fields(v.languages) {
			c.addVoice(v, c.languageByISO[iso], nil, parley.Tunable{}, []string{"multimodal"}, cfg.OpenAI.Realtime != "", base)
		}
	}
}

func (c *Catalog) addVoice(d voiceData, l *parley.Language, provider *int64, tuned parley.Tunable, modes []string, configured bool, base string) {
	v := &voice{parley.Voice{
		ID:                    voiceID(d.number, l.ID),
		Name:                  d.name,
		LanguageID:            l.ID,
		Gender:                d.gender,
		Accent:                optional(d.accent),
		Age:                   optional(d.age),
		SynthesizerProviderID: provider,
		Tunable:               tuned,
		Code:                  d.codeIn(l.ISO2),
		Modes:                 modes,
	}, configured}
	c.voices[v.ID] = v
	if !configured {
		return
	}
	if base != "" {
		v.PreviewURL = base + strconv.FormatInt(v.ID, 10) + "/preview"
	}
	for _, mode := range append([]string{""}, modes...) {
		for _, language := range []int64{0, l.ID} {
			s := scope{mode, language}
			c.voicesOf[s] = append(c.voicesOf[s], v.Voice)
		}
	}
}

func (c *Catalog) addTranscribers(cfg Config) {
	for _, t := range transcribers {
		p := &provider{t.Provider, cfg.hears(t.Code)}
		c.transcribers[p.ID] = p
		if !p.configured {
			continue
		}
		c.transcribersOf[0] = append(c.transcribersOf[0], p.Provider)
		for _, iso := range strings.Fields(t.languages) {
			id := c.languageByISO[iso].ID
			c.transcribersOf[id] = append(c.transcribersOf[id], p.Provider)
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

// Languages lists every language. Their defaults are the best providers configured here, "" where nobody speaks or hears it.
func (c *Catalog) Languages() []parley.Language { return c.languages }

// Language finds a language by its id, nil if there is none.
func (c *Catalog) Language(id int64) *parley.Language { return c.languageByID[id] }

// Voices lists the voices of configured providers that serve a mode ("": any) in a language (0: any), those of the language's
// default synthesizer first.
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

// VoiceConfigured says whether the voice with an id can speak on this server.
func (c *Catalog) VoiceConfigured(id int64) bool {
	v := c.voices[id]
	return v != nil && v.configured
}

// Synthesizers lists the configured providers that speak a language (0: any), the best first.
func (c *Catalog) Synthesizers(languageID int64) []parley.Provider {
	return orEmpty(c.synthesizersOf[languageID])
}

// Synthesizer finds a provider that speaks by its id, configured here or not, nil if there is none.
func (c *Catalog) Synthesizer(id int64) *parley.Provider { return c.synthesizers[id].provider() }

// Tunable says which settings the voices of a provider have, by its code.
func (c *Catalog) Tunable(code string) parley.Tunable { return tunable[code] }

// Transcribers lists the configured providers that understand a language (0: any), the best first.
func (c *Catalog) Transcribers(languageID int64) []parley.Provider {
	return orEmpty(c.transcribersOf[languageID])
}

// Transcriber finds a provider that listens by its id, configured here or not, nil if there is none.
func (c *Catalog) Transcriber(id int64) *parley.Provider { return c.transcribers[id].provider() }

// TranscriberConfigured says whether the transcriber with an id listens on this server, and understands a language (0: any).
func (c *Catalog) TranscriberConfigured(id, languageID int64) bool {
	return slices.ContainsFunc(c.transcribersOf[languageID], func(p parley.Provider) bool { return p.ID == id })
}

func (p *provider) provider() *parley.Provider {
	if p == nil {
		return nil
	}
	return &p.Provider
}

// orEmpty makes an empty list of none: an answer holds [], not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
