// Package xai is xAI's Grok voice: models that hear and speak in OpenAI's realtime protocol, as xAI's documents have it
// (https://docs.x.ai/developers/model-capabilities/audio/speech-to-speech, https://docs.x.ai/voice-realtime.ws.json).
package xai

import (
	"cmp"
	"slices"

	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/provider/rest"
)

// Code is the code of this vendor.
const Code = "xai"

const defaultBase = "https://api.x.ai/v1"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey   string   `name:"xai-api-key" help:"API key of xAI, for Grok's realtime models."`
	BaseURL  string   `name:"xai-base-url" help:"Base URL of xAI's API, including /v1 (https://api.x.ai/v1)."`
	Realtime []string `name:"xai-realtime-model" help:"Realtime models of xAI, comma-separated, for assistants in multimodal and dualplex mode (grok-voice-latest)."`
}

// Declare declares xAI.
func Declare(s *Settings) *ai.Vendor {
	return &ai.Vendor{Code: Code, Name: "xAI", KeyPage: "https://console.x.ai", Settings: s, Models: s.list,
		With: ai.Rekeyed(s, Declare), Open: s.open, Check: s.check,
		Realtime: &ai.Realtime{Voices: voices, Configured: s.configured}}
}

func (s *Settings) configured() bool { return s.APIKey != "" }

// models are those that the server is asked for. The usual one is an alias of the newest.
func (s *Settings) models() []string {
	switch {
	case !s.configured():
		return nil
	case len(s.Realtime) == 0:
		return []string{"grok-voice-latest"}
	}
	return s.Realtime
}

func (s *Settings) list() (list []parley.Model) {
	for _, code := range s.models() {
		list = append(list, parley.Model{Kind: parley.Multimodal, Code: code, Name: code},
			parley.Model{Kind: parley.Dualplex, Code: code, Name: code})
	}
	return list
}

func (s *Settings) open() (*ai.Opened, error) {
	base, err := rest.Base(cmp.Or(s.BaseURL, defaultBase), defaultBase)
	if err != nil {
		return nil, err
	}
	return &ai.Opened{Realtime: func(code string) (ai.RealtimeModel, error) {
		if !slices.Contains(s.models(), code) {
			return nil, ai.NotConfigured("realtime model", code, "set PARLEY_XAI_API_KEY and PARLEY_XAI_REALTIME_MODEL")
		}
		return model(base, s.APIKey, code), nil
	}}, nil
}

// languages are those that xAI lists for its voices, of ours.
const languages = "en es fr de it pt tr ru ar hi zh ja ko vi id"

// voices are xAI's first five, which every model of theirs speaks with; Sal is neither, and is as people hear it. Numbers
// from 801.
var voices = []ai.Voice{
	{Number: 801, Languages: languages, Code: "eve", Name: "Eve (Grok)", Gender: "female"},
	{Number: 802, Languages: languages, Code: "ara", Name: "Ara (Grok)", Gender: "female"},
	{Number: 803, Languages: languages, Code: "leo", Name: "Leo (Grok)", Gender: "male"},
	{Number: 804, Languages: languages, Code: "rex", Name: "Rex (Grok)", Gender: "male"},
	{Number: 805, Languages: languages, Code: "sal", Name: "Sal (Grok)", Gender: "male"},
}
