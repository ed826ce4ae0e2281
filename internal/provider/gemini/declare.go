package gemini

import (
	"slices"
	"time"

	"parley"
	"parley/internal/ai"
)

// Code is the code of this vendor.
const Code = "gemini"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey  string        `name:"gemini-api-key" help:"API key of Google's Gemini API."`
	BaseURL string        `name:"gemini-base-url" help:"Base URL of the Gemini API (https://generativelanguage.googleapis.com)."`
	Model   []string      `name:"gemini-model" help:"Chat models, comma-separated (gemini-3.5-flash-lite,gemini-3.8-flash)."`
	Live    []string      `name:"gemini-live-model" help:"Models that hear and speak, comma-separated, for assistants in multimodal and dualplex mode (gemini-3.8-live)."`
	Stall   time.Duration `name:"gemini-stall" default:"30s" help:"How long the API may send nothing before a request counts as failed."`
}

// Declare declares Gemini, or the compatible server that the settings name.
func Declare(s *Settings) *ai.Vendor {
	return &ai.Vendor{Code: Code, Name: "Google Gemini", KeyPage: "https://aistudio.google.com/apikey", Settings: s,
		Models: s.list, With: ai.Rekeyed(s, Declare), Open: s.open, Check: s.check,
		Realtime: &ai.Realtime{Voices: voices, Configured: s.configured}}
}

// languages are those that Google names for all models of the Live API, of ours. Newer models speak more.
const languages = "en es fr de it pt nl pl ro tr ru uk ar hi ta ja ko th vi id"

// voices are some of those inside the models of the Live API: the ones whose gender Google tells. Numbers from 601.
var voices = []ai.Voice{
	{Number: 601, Languages: languages, Code: "Zephyr", Name: "Zephyr (Gemini)", Gender: "female"},
	{Number: 602, Languages: languages, Code: "Puck", Name: "Puck (Gemini)", Gender: "male"},
	{Number: 603, Languages: languages, Code: "Charon", Name: "Charon (Gemini)", Gender: "male"},
	{Number: 604, Languages: languages, Code: "Kore", Name: "Kore (Gemini)", Gender: "female"},
	{Number: 605, Languages: languages, Code: "Fenrir", Name: "Fenrir (Gemini)", Gender: "male"},
	{Number: 606, Languages: languages, Code: "Leda", Name: "Leda (Gemini)", Gender: "female"},
	{Number: 607, Languages: languages, Code: "Orus", Name: "Orus (Gemini)", Gender: "male"},
	{Number: 608, Languages: languages, Code: "Aoede", Name: "Aoede (Gemini)", Gender: "female"},
}

// configured says whether there is a server to ask.
func (s *Settings) configured() bool { return s.APIKey != "" || s.BaseURL != "" }

// models are those that the server is asked for; without a setting the quickest first, since people wait.
func (s *Settings) models() []string {
	switch {
	case !s.configured():
		return nil
	case len(s.Model) == 0:
		return []string{"gemini-3.5-flash-lite", "gemini-3.8-flash"}
	}
	return s.Model
}

// live are the models of the Live API.
func (s *Settings) live() []string {
	switch {
	case !s.configured():
		return nil
	case len(s.Live) == 0:
		return []string{"gemini-3.8-live"}
	}
	return s.Live
}

func (s *Settings) list() (list []parley.Model) {
	add := func(kind parley.ModelKind, codes []string) {
		for _, code := range codes {
			list = append(list, parley.Model{Kind: kind, Code: code, Name: code})
		}
	}
	add(parley.LLM, s.models())
	add(parley.Multimodal, s.live())
	add(parley.Dualplex, s.live())
	return list
}

func (s *Settings) open() (*ai.Opened, error) {
	if !s.configured() {
		return &ai.Opened{Close: func() {}}, nil
	}
	c, err := Open(Config{BaseURL: s.BaseURL, APIKey: s.APIKey, Stall: s.Stall})
	if err != nil {
		return nil, err
	}
	return &ai.Opened{Close: c.Close, Model: func(code string) ai.Model {
		if code == "" {
			return nil
		}
		return c.Model(code)
	}, Realtime: func(code string) (ai.RealtimeModel, error) {
		if !slices.Contains(s.live(), code) {
			return nil, ai.NotConfigured("realtime model", code, "set PARLEY_GEMINI_LIVE_MODEL")
		}
		return c.LiveModel(code), nil
	}}, nil
}
