// Package cartesia speaks and listens with Cartesia: speech by contexts on one WebSocket, with word times, and
// transcription that is told when somebody has finished.
package cartesia

import (
	"parley/internal/ai"
	"parley/internal/parley"
)

// Code is the code of this vendor.
const Code = "cartesia"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey   string `name:"cartesia-api-key" help:"API key of Cartesia, for text-to-speech and speech-to-text."`
	BaseURL  string `name:"cartesia-base-url" help:"Base URL of Cartesia (https://api.cartesia.ai)."`
	TTSModel string `name:"cartesia-tts-model" default:"sonic-3" help:"Text-to-speech model of Cartesia."`
	STTModel string `name:"cartesia-stt-model" default:"ink-whisper" help:"Speech-to-text model of Cartesia. ink-2 is for English, ink-preview for 22 languages, which it tells apart; what they don't know is left to ink-whisper."`
}

func (s *Settings) configured() bool { return s.APIKey != "" }

// Declare declares Cartesia.
func Declare(s *Settings) *ai.Vendor {
	provider := parley.Provider{ID: 7, Code: Code, Name: "Cartesia"}
	return &ai.Vendor{
		Code:     Code,
		Name:     provider.Name,
		KeyPage:  "https://play.cartesia.ai/keys",
		Settings: s,
		Speakers: []ai.Speaker{{Provider: provider, Rank: 20, Voices: voices, Configured: s.configured,
			Model: func() string { return s.TTSModel }}},
		Listeners: []ai.Listener{{Provider: provider, Rank: 40, Languages: languages, Mixed: func() string { return mixedBy(s.STTModel) },
			Configured: s.configured}},
		Retired: func() ai.Retirements { return retired },
		With:    ai.Rekeyed(s, Declare),
		Open:    s.open,
		Check:   s.check,
	}
}

// retired lists what Cartesia has announced at https://docs.cartesia.ai/build-with-cartesia/tts-models/api-changes, as of
// November 2026. Some snapshots of sonic-2 and sonic-turbo go on.
var retired = ai.Retirements{
	{Model: "sonic", Day: "2026-06-01", Instead: "sonic-3.5"},
	{Model: "sonic-english", Day: "2026-06-01", Instead: "sonic-3.5"},
	{Model: "sonic-multilingual", Day: "2026-06-01", Instead: "sonic-3.5"},
	{Model: "sonic-2-2025-03-07", Day: "2026-06-01", Instead: "sonic-3.5"},
	{Model: "sonic-turbo-2025-03-07", Day: "2026-06-01", Instead: "sonic-3.5"},
}

// need tells the operator what is missing.
const need = "set PARLEY_CARTESIA_API_KEY"

func (s *Settings) open() (*ai.Opened, error) {
	c, err := open(s)
	if err != nil {
		return nil, err
	}
	return &ai.Opened{
		Synthesizer: func(code string) (ai.Synthesizer, error) {
			if !s.configured() {
				return nil, ai.NotConfigured("synthesizer", code, need)
			}
			return c.voice, nil
		},
		Recognizer: func(code string) (ai.Recognizer, error) {
			if !s.configured() {
				return nil, ai.NotConfigured("transcriber", code, need)
			}
			return dialect{c}, nil
		},
		Close: c.close,
	}, nil
}

// languages lists the languages of ink-whisper that Parley knows.
const languages = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he ar fa hi ur ta zh ja ko th vi " +
	"id ms et lv lt ca is"

// turnsBy is what models that find turns by themselves understand.
var turnsBy = map[string]string{turnsModel: "en", mixedModel: mixed}

// mixed lists languages of ink-preview that Parley knows.
const mixed = "en es fr de pt nl pl sv da no fi cs sk ro bg el ru ar hi zh ja ms"

// mixedBy returns the languages that a model tells apart.
func mixedBy(model string) string {
	if model == mixedModel {
		return mixed
	}
	return ""
}

// voices lists voices in their own language only: they keep their accent in others. Their numbers begin at 701.
var voices = []ai.Voice{
	{Number: 701, Languages: "en", Code: "f786b574-daa5-4673-aa0c-cbe3e8534c02", Name: "Katie", Gender: "female",
		Accent: "American"},
	{Number: 702, Languages: "en", Code: "5ee9feff-1265-424a-9d7f-8e4d431a12c7", Name: "Ronald", Gender: "male",
		Accent: "American"},
	{Number: 703, Languages: "en", Code: "9626c31c-bec5-4cca-baa8-f8ba9e84c8bc", Name: "Jacqueline",
		Gender: "female", Accent: "American"},
	{Number: 704, Languages: "en", Code: "a167e0f3-df7e-4d52-a9c3-f949145efdab", Name: "Blake", Gender: "male",
		Accent: "American"},
	{Number: 705, Languages: "en", Code: "e07c00bc-4134-4eae-9ea4-1a55fb45746b", Name: "Brooke", Gender: "female",
		Accent: "American"},
	{Number: 706, Languages: "en", Code: "f9836c6e-a0bd-460e-9d3c-f7299fa60f94", Name: "Caroline", Gender: "female",
		Accent: "American"},
}
