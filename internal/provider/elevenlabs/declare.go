// Package elevenlabs speaks and listens with ElevenLabs: speech by several contexts on one WebSocket, with times per
// character, and realtime transcription.
package elevenlabs

import (
	"parley/internal/ai"
	"parley/internal/parley"
)

// Code is the code of this vendor.
const Code = "elevenlabs"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey   string `name:"elevenlabs-api-key" help:"API key of ElevenLabs, for text-to-speech and speech-to-text."`
	BaseURL  string `name:"elevenlabs-base-url" help:"Base URL of ElevenLabs, without /v1 (https://api.elevenlabs.io)."`
	TTSModel string `name:"elevenlabs-tts-model" default:"eleven_flash_v2_5" help:"Text-to-speech model of ElevenLabs."`
	STTModel string `name:"elevenlabs-stt-model" default:"scribe_v2_realtime" help:"Speech-to-text model of ElevenLabs."`
}

func (s *Settings) configured() bool { return s.APIKey != "" }

// Declare declares ElevenLabs.
func Declare(s *Settings) *ai.Vendor {
	provider := parley.Provider{ID: 5, Code: Code, Name: "ElevenLabs"}
	return &ai.Vendor{
		Code:     Code,
		Name:     provider.Name,
		KeyPage:  "https://elevenlabs.io/app/settings/api-keys",
		Settings: s,
		Speakers: []ai.Speaker{{Provider: provider, Rank: 10,
			Tunable: parley.Tunable{Stability: true, Similarity: true}, Voices: voices, Configured: s.configured,
			Model: func() string { return s.TTSModel }}},
		Listeners: []ai.Listener{{Provider: provider, Rank: 20, Languages: scribe, Mixed: func() string { return scribe },
			Configured: s.configured}},
		Retired: func() ai.Retirements { return retired },
		With:    ai.Rekeyed(s, Declare),
		Open:    s.open,
		Check:   s.check,
	}
}

// retired lists what ElevenLabs has announced in its changelog, as of November 2026.
var retired = ai.Retirements{
	{Model: "eleven_monolingual_v1", Day: "2026-07-09", Instead: "eleven_flash_v2_5"},
	{Model: "eleven_multilingual_v1", Day: "2026-07-09", Instead: "eleven_flash_v2_5"},
	{Model: "scribe_v1", Day: "2026-07-09", Instead: "scribe_v2_realtime"},
}

// need tells the operator what is missing.
const need = "set PARLEY_ELEVENLABS_API_KEY"

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
			return recognizer{c}, nil
		},
		Voices: c.voicesOf,
		Close:  c.close,
	}, nil
}

const (
	// flash lists the languages of eleven_flash_v2_5 that Parley knows, scribe those of Scribe.
	flash  = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr el tr ru uk ar hi ta zh ja ko vi id ms"
	scribe = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he ar fa hi ur ta zh ja ko th vi id ms et lv lt ca is"
)

// voices lists the premade voices, which every account has. Their numbers begin at 401.
var voices = []ai.Voice{
	{Number: 401, Languages: flash, Code: "EXAVITQu4vr4xnSDxMaL", Name: "Sarah", Gender: "female",
		Accent: "American", Age: "young"},
	{Number: 402, Languages: flash, Code: "JBFqnCBsd6RMkjVDRZzb", Name: "George", Gender: "male", Accent: "British",
		Age: "middle-aged"},
	{Number: 403, Languages: flash, Code: "FGY2WhTYpPnrIDTdsKH5", Name: "Laura", Gender: "female",
		Accent: "American", Age: "young"},
	{Number: 404, Languages: flash, Code: "IKne3meq5aSn9XLyUdCD", Name: "Charlie", Gender: "male",
		Accent: "Australian", Age: "young"},
	{Number: 405, Languages: flash, Code: "Xb7hH8MSUJpSbSDYk0k2", Name: "Alice", Gender: "female",
		Accent: "British", Age: "middle-aged"},
	{Number: 406, Languages: flash, Code: "CwhRBWXzGAHq8TQ4Fs17", Name: "Roger", Gender: "male", Accent: "American",
		Age: "middle-aged"},
	{Number: 407, Languages: flash, Code: "XrExE9yKIg1WjnnlVkGX", Name: "Matilda", Gender: "female",
		Accent: "American", Age: "middle-aged"},
	{Number: 408, Languages: flash, Code: "cjVigY5qzO86Huf0OWal", Name: "Eric", Gender: "male", Accent: "American",
		Age: "middle-aged"},
	{Number: 409, Languages: flash, Code: "cgSgspJ2msm6clMCkdW9", Name: "Jessica", Gender: "female",
		Accent: "American", Age: "young"},
	{Number: 410, Languages: flash, Code: "nPczCjzI2devNBz1zQrb", Name: "Brian", Gender: "male", Accent: "American",
		Age: "middle-aged"},
	{Number: 411, Languages: flash, Code: "pFZP5JQG7iQjIQuC4Bku", Name: "Lily", Gender: "female", Accent: "British",
		Age: "middle-aged"},
	{Number: 412, Languages: flash, Code: "onwK4e9ZLuTAKqWW03F9", Name: "Daniel", Gender: "male", Accent: "British",
		Age: "middle-aged"},
	{Number: 413, Languages: flash, Code: "iP95p4xoKVk53GoZ742B", Name: "Chris", Gender: "male", Accent: "American",
		Age: "middle-aged"},
	{Number: 414, Languages: flash, Code: "pqHfZKP75CvOlQylNhV4", Name: "Bill", Gender: "male", Accent: "American",
		Age: "old"},
}
