package gemini

import (
	"slices"
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
)

// Code is the code of this vendor.
const Code = "gemini"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey  string        `name:"gemini-api-key" help:"API key of Google's Gemini API."`
	BaseURL string        `name:"gemini-base-url" help:"Base URL of the Gemini API (https://generativelanguage.googleapis.com)."`
	Model   []string      `name:"gemini-model" help:"Chat models, comma-separated (gemini-3.5-flash-lite,gemini-3.8-flash)."`
	Live    []string      `name:"gemini-live-model" help:"Realtime models, comma-separated, for assistants in multimodal and dualplex mode (gemini-3.8-live)."`
	Stall   time.Duration `name:"gemini-stall" default:"30s" help:"How long the API may send nothing before a request counts as failed."`
}

// Declare declares Gemini, or the compatible server that the settings name.
func Declare(s *Settings) *ai.Vendor {
	return &ai.Vendor{Code: Code, Name: "Google Gemini", KeyPage: "https://aistudio.google.com/apikey", Settings: s,
		Models: s.list, Retired: s.retired, With: ai.Rekeyed(s, Declare), Open: s.open, Check: s.check,
		Realtime: &ai.Realtime{Voices: voices, Configured: s.configured}}
}

// retired lists what Google has announced at https://ai.google.dev/gemini-api/docs/deprecations, as of November 2026.
func (s *Settings) retired() ai.Retirements {
	if s.APIKey == "" || s.BaseURL != "" {
		return nil
	}
	return ai.Retirements{
		{Model: "gemini-2.0-flash", Day: "2026-06-01", Instead: "gemini-3.5-flash-lite"},
		{Model: "gemini-2.0-flash-lite", Day: "2026-06-01", Instead: "gemini-3.5-flash-lite"},
		{Model: "gemini-2.5-flash", Day: "2026-12-01", Instead: "gemini-3.5-flash-lite"},
		{Model: "gemini-2.5-pro", Day: "2026-12-01", Instead: "gemini-3.8-flash"},
		{Model: "gemini-3.1-flash-lite", Day: "2027-05-07", Instead: "gemini-3.5-flash-lite"},
	}
}

// languages are those that Google names for all models of the Live API, of ours. Newer models speak more.
const languages = "en es fr de it pt nl pl ro tr ru uk ar hi ta ja ko th vi id"

// voices are those inside the models of the Live API. Their genders are told by Google's Text-to-Speech, which has the same
// voices. Numbers from 601.
var voices = []ai.Voice{
	{Number: 601, Languages: languages, Code: "Zephyr", Name: "Zephyr (Gemini)", Gender: "female"},
	{Number: 602, Languages: languages, Code: "Puck", Name: "Puck (Gemini)", Gender: "male"},
	{Number: 603, Languages: languages, Code: "Charon", Name: "Charon (Gemini)", Gender: "male"},
	{Number: 604, Languages: languages, Code: "Kore", Name: "Kore (Gemini)", Gender: "female"},
	{Number: 605, Languages: languages, Code: "Fenrir", Name: "Fenrir (Gemini)", Gender: "male"},
	{Number: 606, Languages: languages, Code: "Leda", Name: "Leda (Gemini)", Gender: "female"},
	{Number: 607, Languages: languages, Code: "Orus", Name: "Orus (Gemini)", Gender: "male"},
	{Number: 608, Languages: languages, Code: "Aoede", Name: "Aoede (Gemini)", Gender: "female"},
	{Number: 609, Languages: languages, Code: "Callirrhoe", Name: "Callirrhoe (Gemini)", Gender: "female"},
	{Number: 610, Languages: languages, Code: "Autonoe", Name: "Autonoe (Gemini)", Gender: "female"},
	{Number: 611, Languages: languages, Code: "Enceladus", Name: "Enceladus (Gemini)", Gender: "male"},
	{Number: 612, Languages: languages, Code: "Iapetus", Name: "Iapetus (Gemini)", Gender: "male"},
	{Number: 613, Languages: languages, Code: "Umbriel", Name: "Umbriel (Gemini)", Gender: "male"},
	{Number: 614, Languages: languages, Code: "Algieba", Name: "Algieba (Gemini)", Gender: "male"},
	{Number: 615, Languages: languages, Code: "Despina", Name: "Despina (Gemini)", Gender: "female"},
	{Number: 616, Languages: languages, Code: "Erinome", Name: "Erinome (Gemini)", Gender: "female"},
	{Number: 617, Languages: languages, Code: "Algenib", Name: "Algenib (Gemini)", Gender: "male"},
	{Number: 618, Languages: languages, Code: "Rasalgethi", Name: "Rasalgethi (Gemini)", Gender: "male"},
	{Number: 619, Languages: languages, Code: "Laomedeia", Name: "Laomedeia (Gemini)", Gender: "female"},
	{Number: 620, Languages: languages, Code: "Achernar", Name: "Achernar (Gemini)", Gender: "female"},
	{Number: 621, Languages: languages, Code: "Alnilam", Name: "Alnilam (Gemini)", Gender: "male"},
	{Number: 622, Languages: languages, Code: "Schedar", Name: "Schedar (Gemini)", Gender: "male"},
	{Number: 623, Languages: languages, Code: "Gacrux", Name: "Gacrux (Gemini)", Gender: "female"},
	{Number: 624, Languages: languages, Code: "Pulcherrima", Name: "Pulcherrima (Gemini)", Gender: "female"},
	{Number: 625, Languages: languages, Code: "Achird", Name: "Achird (Gemini)", Gender: "male"},
	{Number: 626, Languages: languages, Code: "Zubenelgenubi", Name: "Zubenelgenubi (Gemini)", Gender: "male"},
	{Number: 627, Languages: languages, Code: "Vindemiatrix", Name: "Vindemiatrix (Gemini)", Gender: "female"},
	{Number: 628, Languages: languages, Code: "Sadachbia", Name: "Sadachbia (Gemini)", Gender: "male"},
	{Number: 629, Languages: languages, Code: "Sadaltager", Name: "Sadaltager (Gemini)", Gender: "male"},
	{Number: 630, Languages: languages, Code: "Sulafat", Name: "Sulafat (Gemini)", Gender: "female"},
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
