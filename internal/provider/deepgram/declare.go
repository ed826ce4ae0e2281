// Package deepgram is Deepgram: Nova and Flux, which listen, and Aura, which speaks, over WebSockets.
package deepgram

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/parley"
)

// Code is the code of this vendor.
const Code = "deepgram"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey   string `name:"deepgram-api-key" help:"API key of Deepgram, for speech-to-text and text-to-speech."`
	BaseURL  string `name:"deepgram-base-url" help:"Base URL of Deepgram's API, such as that of Europe, https://api.eu.deepgram.com (https://api.deepgram.com)."`
	STTModel string `name:"deepgram-stt-model" help:"Speech-to-text model of Deepgram: nova-3 or nova-2; or flux-general-en or flux-general-multi, which detect turns. Languages that it does not support use nova-3 (nova-3)."`
}

// Declare declares Deepgram according to the settings.
func Declare(s *Settings) *ai.Vendor {
	provider, configured := parley.Provider{ID: 6, Code: Code, Name: "Deepgram"}, func() bool { return s.APIKey != "" }
	return &ai.Vendor{
		Code:     Code,
		Name:     provider.Name,
		KeyPage:  "https://console.deepgram.com",
		Settings: s,
		Speakers: []ai.Speaker{{Provider: provider, Rank: 30, Voices: voices, Configured: configured}},
		Listeners: []ai.Listener{{Provider: provider, Rank: 10, Languages: languages, Mixed: func() string { return mixedBy(s.STTModel) },
			Configured: configured}},
		With:  ai.Rekeyed(s, Declare),
		Open:  s.open,
		Check: s.check,
	}
}

func (s *Settings) open() (*ai.Opened, error) {
	c, err := s.client()
	if err != nil {
		return nil, fmt.Errorf("PARLEY_DEEPGRAM_BASE_URL: %w", err)
	}
	lines := &pool{client: c}
	recognizer := &recognizer{client: c, model: s.STTModel, plain: map[string]bool{}}
	const mend = "set PARLEY_DEEPGRAM_API_KEY"
	return &ai.Opened{
		Synthesizer: func(code string) (ai.Synthesizer, error) {
			if s.APIKey == "" {
				return nil, ai.NotConfigured("synthesizer", code, mend)
			}
			return synthesizer{lines}, nil
		},
		Recognizer: func(code string) (ai.Recognizer, error) {
			if s.APIKey == "" {
				return nil, ai.NotConfigured("transcriber", code, mend)
			}
			return recognizer, nil
		},
		Close: lines.close,
	}, nil
}

// check lists the key's projects, which costs nothing.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	found := func(state, format string, a ...any) []parley.Finding {
		return []parley.Finding{{State: state, What: "deepgram", Text: fmt.Sprintf(format, a...)}}
	}
	if s.APIKey == "" {
		return found("note", "not configured: set PARLEY_DEEPGRAM_API_KEY for its speech and transcription")
	}
	c, err := s.client()
	if err != nil {
		return found("FAIL", "PARLEY_DEEPGRAM_BASE_URL is not an http or https URL")
	}
	switch status, err := c.ask(ctx, "/v1/projects"); {
	case err != nil:
		return found("FAIL", "%s can't be reached: %v", c.base, err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return found("FAIL", "%s refuses the key in PARLEY_DEEPGRAM_API_KEY (status %d)", c.base, status)
	case status != http.StatusOK:
		return found("FAIL", "%s answers with status %d; PARLEY_DEEPGRAM_BASE_URL has no path", c.base, status)
	}
	model := plainModel(s.STTModel, "en")
	known := func(family string) bool { return strings.HasPrefix(model, family) }
	if !slices.ContainsFunc([]string{nova3, nova2, fluxModel, fluxMulti}, known) {
		return found("note", "%s takes the key; PARLEY_DEEPGRAM_STT_MODEL is %s, which is none of nova-3, nova-2, "+
			"flux-general-en, flux-general-multi",
			c.base, model)
	}
	return found("ok", "%s listens with %s, and speaks", c.base, model)
}

// languages lists the languages of nova-3 that Parley knows, and Thai, which only nova-2 understands.
const languages = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he fa hi ur ta zh ja ko th vi id ms et lv lt ca"

// voices lists the Aura 2 voices. Their numbers begin at 501.
var voices = []ai.Voice{
	{Number: 501, Languages: "en", Code: "aura-2-thalia-en", Name: "Thalia", Gender: "female", Accent: "American"},
	{Number: 502, Languages: "en", Code: "aura-2-apollo-en", Name: "Apollo", Gender: "male", Accent: "American"},
	{Number: 503, Languages: "en", Code: "aura-2-andromeda-en", Name: "Andromeda", Gender: "female",
		Accent: "American"},
	{Number: 504, Languages: "en", Code: "aura-2-arcas-en", Name: "Arcas", Gender: "male", Accent: "American"},
	{Number: 505, Languages: "en", Code: "aura-2-helena-en", Name: "Helena", Gender: "female", Accent: "American"},
	{Number: 506, Languages: "en", Code: "aura-2-aries-en", Name: "Aries", Gender: "male", Accent: "American"},
	{Number: 507, Languages: "en", Code: "aura-2-asteria-en", Name: "Asteria", Gender: "female", Accent: "American"},
	{Number: 508, Languages: "en", Code: "aura-2-orion-en", Name: "Orion", Gender: "male", Accent: "American"},
	{Number: 509, Languages: "en", Code: "aura-2-pandora-en", Name: "Pandora", Gender: "female", Accent: "British"},
	{Number: 510, Languages: "en", Code: "aura-2-draco-en", Name: "Draco", Gender: "male", Accent: "British"},
	{Number: 511, Languages: "en", Code: "aura-2-theia-en", Name: "Theia", Gender: "female", Accent: "Australian"},
	{Number: 512, Languages: "en", Code: "aura-2-hyperion-en", Name: "Hyperion", Gender: "male", Accent: "Australian"},
	{Number: 521, Languages: "es", Code: "aura-2-celeste-es", Name: "Celeste", Gender: "female", Accent: "Colombian"},
	{Number: 522, Languages: "es", Code: "aura-2-nestor-es", Name: "Néstor", Gender: "male", Accent: "Peninsular"},
	{Number: 523, Languages: "es", Code: "aura-2-estrella-es", Name: "Estrella", Gender: "female", Accent: "Mexican"},
	{Number: 524, Languages: "es", Code: "aura-2-javier-es", Name: "Javier", Gender: "male", Accent: "Mexican"},
	{Number: 525, Languages: "es", Code: "aura-2-diana-es", Name: "Diana", Gender: "female", Accent: "Peninsular"},
	{Number: 526, Languages: "es", Code: "aura-2-alvaro-es", Name: "Álvaro", Gender: "male", Accent: "Peninsular"},
	{Number: 531, Languages: "de", Code: "aura-2-viktoria-de", Name: "Viktoria", Gender: "female"},
	{Number: 532, Languages: "de", Code: "aura-2-julius-de", Name: "Julius", Gender: "male"},
	{Number: 533, Languages: "de", Code: "aura-2-elara-de", Name: "Elara", Gender: "female"},
	{Number: 534, Languages: "de", Code: "aura-2-fabian-de", Name: "Fabian", Gender: "male"},
	{Number: 541, Languages: "fr", Code: "aura-2-agathe-fr", Name: "Agathe", Gender: "female"},
	{Number: 542, Languages: "fr", Code: "aura-2-hector-fr", Name: "Hector", Gender: "male"},
	{Number: 551, Languages: "nl", Code: "aura-2-rhea-nl", Name: "Rhea", Gender: "female"},
	{Number: 552, Languages: "nl", Code: "aura-2-sander-nl", Name: "Sander", Gender: "male"},
	{Number: 553, Languages: "nl", Code: "aura-2-beatrix-nl", Name: "Beatrix", Gender: "female"},
	{Number: 554, Languages: "nl", Code: "aura-2-lars-nl", Name: "Lars", Gender: "male"},
	{Number: 561, Languages: "it", Code: "aura-2-livia-it", Name: "Livia", Gender: "female"},
	{Number: 562, Languages: "it", Code: "aura-2-dionisio-it", Name: "Dionisio", Gender: "male"},
	{Number: 563, Languages: "it", Code: "aura-2-melia-it", Name: "Melia", Gender: "female"},
	{Number: 564, Languages: "it", Code: "aura-2-cesare-it", Name: "Cesare", Gender: "male"},
	{Number: 571, Languages: "ja", Code: "aura-2-izanami-ja", Name: "Izanami", Gender: "female"},
	{Number: 572, Languages: "ja", Code: "aura-2-fujin-ja", Name: "Fujin", Gender: "male"},
	{Number: 573, Languages: "ja", Code: "aura-2-uzume-ja", Name: "Uzume", Gender: "female"},
	{Number: 574, Languages: "ja", Code: "aura-2-ebisu-ja", Name: "Ebisu", Gender: "male"},
}
