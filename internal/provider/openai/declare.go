package openai

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/ai"
)

// Code is the code of this vendor.
const Code = "openai"

// Settings are what the operator sets of it.
type Settings struct {
	APIKey         string        `name:"openai-api-key" help:"API key of OpenAI, or of any server with a compatible API."`
	BaseURL        string        `name:"openai-base-url" help:"Base URL of the API, including /v1 (https://api.openai.com/v1)."`
	ChatModel      []string      `name:"openai-chat-model" help:"Chat models, comma-separated (gpt-4.1-mini)."`
	EmbeddingModel string        `name:"openai-embedding-model" help:"Embedding model: documents are found by meaning too; those read before it was set are after a retry (none)."`
	TTSModel       string        `name:"openai-tts-model" help:"Model that speaks (the local programs do)."`
	STTModel       string        `name:"openai-stt-model" help:"Model that listens (the local programs do)."`
	RealtimeModel  string        `name:"openai-realtime-model" help:"Model that hears and speaks: assistants can be given it, calls can't use it yet (none)."`
	Stall          time.Duration `name:"openai-stall" default:"30s" help:"How long the API may send nothing before a request counts as failed."`
}

// Declare declares OpenAI, or the server with a compatible API that the settings name.
func Declare(s *Settings) *ai.Vendor {
	provider := parley.Provider{ID: 4, Code: Code, Name: "OpenAI"}
	return &ai.Vendor{
		Code:     Code,
		Settings: s,
		Models:   s.models,
		Speakers: []ai.Speaker{{Provider: provider, Rank: 40, Voices: voices,
			Configured: func() bool { return s.configured() && s.TTSModel != "" },
			Model:      func() string { return s.TTSModel }}},
		Listeners: []ai.Listener{{Provider: provider, Rank: 30, Languages: languages,
			Configured: func() bool { return s.configured() && s.STTModel != "" }}},
		Realtime: &ai.Realtime{Voices: realtime, Alike: Code,
			Configured: func() bool { return s.configured() && s.RealtimeModel != "" }},
		Open:  s.open,
		Check: s.check,
	}
}

// languages are those of Whisper that we know: of speech and of transcription.
const languages = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he ar fa hi ur ta zh ja ko th vi id ms et lv lt ca is"

// voices are those of the speech models. OpenAI says no genders: these are how the voices are heard. Numbers from 201.
var voices = []ai.Voice{
	{Number: 201, Languages: languages, Code: "alloy", Name: "Alloy", Gender: "female"},
	{Number: 202, Languages: languages, Code: "ash", Name: "Ash", Gender: "male"},
	{Number: 203, Languages: languages, Code: "ballad", Name: "Ballad", Gender: "male"},
	{Number: 204, Languages: languages, Code: "coral", Name: "Coral", Gender: "female"},
	{Number: 205, Languages: languages, Code: "echo", Name: "Echo", Gender: "male"},
	{Number: 206, Languages: languages, Code: "fable", Name: "Fable", Gender: "male"},
	{Number: 207, Languages: languages, Code: "nova", Name: "Nova", Gender: "female"},
	{Number: 208, Languages: languages, Code: "onyx", Name: "Onyx", Gender: "male"},
	{Number: 209, Languages: languages, Code: "sage", Name: "Sage", Gender: "female"},
	{Number: 210, Languages: languages, Code: "shimmer", Name: "Shimmer", Gender: "female"},
	{Number: 211, Languages: languages, Code: "verse", Name: "Verse", Gender: "male"},
	{Number: 212, Languages: languages, Code: "marin", Name: "Marin", Gender: "female"},
	{Number: 213, Languages: languages, Code: "cedar", Name: "Cedar", Gender: "male"},
}

// realtime are the voices inside the realtime model. Numbers from 301.
var realtime = []ai.Voice{
	{Number: 301, Languages: languages, Code: "marin", Name: "Marin", Gender: "female"},
	{Number: 302, Languages: languages, Code: "cedar", Name: "Cedar", Gender: "male"},
	{Number: 303, Languages: languages, Code: "alloy", Name: "Alloy", Gender: "female"},
	{Number: 304, Languages: languages, Code: "ash", Name: "Ash", Gender: "male"},
	{Number: 305, Languages: languages, Code: "ballad", Name: "Ballad", Gender: "male"},
	{Number: 306, Languages: languages, Code: "coral", Name: "Coral", Gender: "female"},
	{Number: 307, Languages: languages, Code: "echo", Name: "Echo", Gender: "male"},
	{Number: 308, Languages: languages, Code: "sage", Name: "Sage", Gender: "female"},
	{Number: 309, Languages: languages, Code: "shimmer", Name: "Shimmer", Gender: "female"},
	{Number: 310, Languages: languages, Code: "verse", Name: "Verse", Gender: "male"},
}

// configured says whether there is a server to ask.
func (s *Settings) configured() bool { return s.APIKey != "" || s.BaseURL != "" }

// chatModels are the chat models that the server is asked for.
func (s *Settings) chatModels() []string {
	switch {
	case !s.configured():
		return nil
	case len(s.ChatModel) == 0:
		return []string{"gpt-4.1-mini"}
	}
	return s.ChatModel
}

func (s *Settings) models() (list []parley.Model) {
	for _, code := range s.chatModels() {
		list = append(list, parley.Model{Kind: parley.LLM, Code: code, Name: code})
	}
	if code := s.RealtimeModel; s.configured() && code != "" {
		list = append(list, parley.Model{Kind: parley.Multimodal, Code: code, Name: code},
			parley.Model{Kind: parley.Dualplex, Code: code, Name: code})
	}
	return list
}

// with says to the operator what a model that is set needs besides.
const with = ", with PARLEY_OPENAI_API_KEY or PARLEY_OPENAI_BASE_URL"

func (s *Settings) open() (*ai.Opened, error) {
	if !s.configured() {
		return &ai.Opened{
			Model: func(string) ai.Model { return nil },
			Embedder: func() (ai.Embedder, error) {
				if s.EmbeddingModel == "" {
					return nil, nil
				}
				return nil, &ai.Error{Kind: ai.Config,
					Err: fmt.Errorf("embedding model %q is not configured", s.EmbeddingModel)}
			},
			Synthesizer: noSynthesizer,
			Recognizer:  noRecognizer,
			Close:       func() {},
		}, nil
	}
	c, err := Open(Config{BaseURL: s.BaseURL, APIKey: s.APIKey, Stall: s.Stall})
	if err != nil {
		return nil, err
	}
	o := &ai.Opened{
		Model: func(code string) ai.Model {
			if code == "" {
				return nil
			}
			return c.Model(code)
		},
		Embedder: func() (ai.Embedder, error) {
			if s.EmbeddingModel == "" {
				return nil, nil
			}
			return c.Embedder(s.EmbeddingModel), nil
		},
		Synthesizer: noSynthesizer,
		Recognizer:  noRecognizer,
		Close:       c.Close,
	}
	if s.TTSModel != "" {
		o.Synthesizer = func(string) (ai.Synthesizer, error) { return c.Synthesizer(s.TTSModel), nil }
	}
	if s.STTModel != "" {
		o.Recognizer = func(string) (ai.Recognizer, error) { return c.Recognizer(s.STTModel), nil }
	}
	return o, nil
}

func noSynthesizer(code string) (ai.Synthesizer, error) {
	return nil, ai.NotConfigured("synthesizer", code, "set PARLEY_OPENAI_TTS_MODEL"+with)
}

func noRecognizer(code string) (ai.Recognizer, error) {
	return nil, ai.NotConfigured("transcriber", code, "set PARLEY_OPENAI_STT_MODEL"+with)
}
