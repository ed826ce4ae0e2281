package openai

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/provider/gptlive"
)

// Code is the code of this vendor.
const Code = "openai"

// Settings are the operator's settings for this vendor. Each ability may have its own server.
type Settings struct {
	APIKey           string        `name:"openai-api-key" help:"API key of OpenAI, or of any server with a compatible API."`
	BaseURL          string        `name:"openai-base-url" help:"Base URL of the API, including /v1 (https://api.openai.com/v1)."`
	ChatModel        []string      `name:"openai-chat-model" help:"Chat models, comma-separated (gpt-6-luna, and gpt-4.1-mini until OpenAI retires it)."`
	EmbeddingModel   string        `name:"openai-embedding-model" help:"Embedding model, to find documents by meaning too. Documents that are already processed get their vectors in the background (none)."`
	EmbeddingBaseURL string        `name:"openai-embedding-base-url" help:"Base URL of the server that has this model (PARLEY_OPENAI_BASE_URL)."`
	EmbeddingAPIKey  string        `name:"openai-embedding-api-key" help:"API key of that server (PARLEY_OPENAI_API_KEY, if it is the same server)."`
	TTSModel         string        `name:"openai-tts-model" help:"Text-to-speech model (none: the local programs speak)."`
	TTSBaseURL       string        `name:"openai-tts-base-url" help:"Base URL of the server that has this model (PARLEY_OPENAI_BASE_URL)."`
	TTSAPIKey        string        `name:"openai-tts-api-key" help:"API key of that server (PARLEY_OPENAI_API_KEY, if it is the same server)."`
	STTModel         string        `name:"openai-stt-model" help:"Speech-to-text model (none: the local programs listen)."`
	STTBaseURL       string        `name:"openai-stt-base-url" help:"Base URL of the server that has this model (PARLEY_OPENAI_BASE_URL)."`
	STTAPIKey        string        `name:"openai-stt-api-key" help:"API key of that server (PARLEY_OPENAI_API_KEY, if it is the same server)."`
	RealtimeModel    []string      `name:"openai-realtime-model" help:"Realtime models, comma-separated, for assistants in multimodal and dualplex mode (none)."`
	RealtimeBaseURL  string        `name:"openai-realtime-base-url" help:"Base URL of the server that has these models (PARLEY_OPENAI_BASE_URL)."`
	RealtimeAPIKey   string        `name:"openai-realtime-api-key" help:"API key of that server (PARLEY_OPENAI_API_KEY, if it is the same server)."`
	RealtimeSTT      string        `name:"openai-realtime-stt-model" default:"gpt-transcribe" help:"Model that transcribes what the realtime model hears, for transcripts and to tell interruptions from backchannel words."`
	LiveModel        []string      `name:"openai-live-model" help:"GPT-Live models, comma-separated, for assistants in multimodal mode, at the server of the realtime models (none)."`
	LiveThinker      string        `name:"openai-live-thinker" default:"gpt-6-luna" help:"Text model at that server to which GPT-Live models delegate thinking and tools."`
	Stall            time.Duration `name:"openai-stall" default:"30s" help:"How long the API may send nothing before a request counts as failed."`
}

// server is the address, key and model of one ability. The zero value means none.
type server struct{ base, key string }

// general is the server of the language model, and of every ability without a server of its own.
func (s *Settings) general() server {
	if s.APIKey == "" && s.BaseURL == "" {
		return server{}
	}
	return server{normal(cmp.Or(s.BaseURL, DefaultBaseURL)), s.APIKey}
}

// server returns the server of an ability with these settings. The general key is sent to the general server only:
// whoever sets another base URL also sets its key, if it needs one.
func (s *Settings) server(base, key string) server {
	g := s.general()
	if base = normal(base); base != "" && base != g.base {
		return server{base, key}
	}
	switch {
	case key != "":
		return server{cmp.Or(g.base, normal(cmp.Or(base, DefaultBaseURL))), key}
	case base != "" && g == server{}:
		return server{base, ""}
	}
	return g
}

func normal(base string) string { return strings.TrimRight(base, "/") }

func (s *Settings) embedding() server { return s.server(s.EmbeddingBaseURL, s.EmbeddingAPIKey) }
func (s *Settings) tts() server       { return s.server(s.TTSBaseURL, s.TTSAPIKey) }
func (s *Settings) stt() server       { return s.server(s.STTBaseURL, s.STTAPIKey) }
func (s *Settings) realtime() server  { return s.server(s.RealtimeBaseURL, s.RealtimeAPIKey) }

// there reports whether a server is configured.
func (s server) there() bool { return s != server{} }

// Declare declares OpenAI, or the server with a compatible API that the settings name.
func Declare(s *Settings) *ai.Vendor {
	provider := parley.Provider{ID: 4, Code: Code, Name: "OpenAI"}
	return &ai.Vendor{
		Code:     Code,
		Name:     provider.Name,
		KeyPage:  "https://platform.openai.com/api-keys",
		Settings: s,
		Models:   s.models,
		Retired:  s.retired,
		Speakers: []ai.Speaker{{Provider: provider, Rank: 40, Voices: voices,
			Configured: func() bool { return s.tts().there() && s.TTSModel != "" },
			Model:      func() string { return s.TTSModel }}},
		Listeners: []ai.Listener{{Provider: provider, Rank: 30, Languages: languages, Mixed: func() string { return mixedBy(s.STTModel) },
			Configured: func() bool { return s.stt().there() && s.STTModel != "" }}},
		Realtime: &ai.Realtime{Voices: realtimeVoices, Alike: Code,
			Configured: func() bool { return s.realtime().there() && len(s.realtimeModels())+len(s.liveModels()) > 0 }},
		With:  s.with,
		Open:  s.open,
		Check: s.check,
	}
}

// The models of OpenAI's own server for speech, transcription and realtime, if its key was entered in the product and
// no setting names a model. The first that lives speaks: the next one takes longer to begin.
const usualSTT = "gpt-transcribe"

var usualTTS = []string{"gpt-4o-mini-tts", "gpt-realtime-2.1-mini"}

// What is offered if no setting names models, the best first. The last one was the only one before: assistants that were
// given it keep it until its day.
var (
	usualChat     = []string{"gpt-6-luna", "gpt-4.1-mini"}
	usualRealtime = []string{"gpt-realtime-2.1", "gpt-realtime"}
)

// with declares the vendor with another key. If the server is OpenAI's, the key is used for all abilities. Another
// server has the models that the settings name.
func (s *Settings) with(k ai.Key) *ai.Vendor {
	o := *s
	if o.APIKey = k.Secret; k.BaseURL != "" {
		o.BaseURL = k.BaseURL
	}
	whole := o.general().base == DefaultBaseURL
	for _, a := range []struct {
		base, key *string
		drop      func()
		usual     func()
	}{
		{&o.TTSBaseURL, &o.TTSAPIKey, func() { o.TTSModel = "" }, func() {
			o.TTSModel = cmp.Or(o.TTSModel, retiredVoices.Living(usualTTS, time.Now())[0])
		}},
		{&o.STTBaseURL, &o.STTAPIKey, func() { o.STTModel = "" }, func() { o.STTModel = cmp.Or(o.STTModel, usualSTT) }},
		{&o.RealtimeBaseURL, &o.RealtimeAPIKey, func() { o.RealtimeModel = nil }, func() {
			if len(o.realtimeModels()) == 0 {
				o.RealtimeModel = retiredHearers.Living(usualRealtime, time.Now())
			}
		}},
	} {
		switch elsewhere := *a.base != "" || *a.key != ""; {
		case elsewhere && k.Own:
			*a.base, *a.key = "", ""
			a.drop()
		case !elsewhere && whole:
			a.usual()
		}
	}
	if k.Own { // documents are the server's to embed
		o.EmbeddingModel = ""
	}
	return Declare(&o)
}

// voices lists the voices of the speech models. OpenAI states no genders: these are as people hear them. Their numbers
// begin at 201.
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

// realtimeVoices lists the voices of the realtime models. Their numbers begin at 301.
var realtimeVoices = []ai.Voice{
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

// chatModels returns the chat models that are offered.
func (s *Settings) chatModels() []string {
	switch {
	case !s.general().there():
		return nil
	case len(s.ChatModel) == 0:
		return retiredThinkers.Living(usualChat, time.Now())
	}
	return s.ChatModel
}

func (s *Settings) models() (list []parley.Model) {
	for _, code := range s.chatModels() {
		list = append(list, parley.Model{Kind: parley.LLM, Code: code, Name: code})
	}
	if s.realtime().there() {
		for _, code := range s.realtimeModels() {
			list = append(list, parley.Model{Kind: parley.Multimodal, Code: code, Name: code},
				parley.Model{Kind: parley.Dualplex, Code: code, Name: code})
		}
		for _, code := range s.liveModels() {
			list = append(list, parley.Model{Kind: parley.Multimodal, Code: code, Name: code, Decides: true})
		}
	}
	return list
}

// realtimeModels returns the realtime models that are offered. An empty setting means none.
func (s *Settings) realtimeModels() []string {
	return slices.DeleteFunc(slices.Clone(s.RealtimeModel), func(code string) bool { return code == "" })
}

// liveModels returns the GPT-Live models that are offered.
func (s *Settings) liveModels() []string {
	return slices.DeleteFunc(slices.Clone(s.LiveModel), func(code string) bool { return code == "" })
}

// thinker is the text model to which GPT-Live models delegate.
func (s *Settings) thinker() string { return cmp.Or(s.LiveThinker, usualChat[0]) }

// live is a GPT-Live model at a server. What must be said word for word is read out by the first realtime model, which has the same
// voices.
func (s *Settings) live(c *Client, code string) ai.RealtimeModel {
	reader := append(s.realtimeModels(), retiredHearers.Living(usualRealtime, time.Now())...)[0]
	return gptlive.Model{Base: c.rest.Base, Sign: c.rest.Sign, Vendor: Code, Code: code, Thinker: s.thinker(),
		Reader: c.RealtimeModel(reader, s.RealtimeSTT)}
}

// with tells the operator what else a configured model needs.
const with = ", with PARLEY_OPENAI_API_KEY or PARLEY_OPENAI_BASE_URL, or a server of its own"

// servers holds the clients of the configured servers. Abilities on the same server share one.
type servers map[server]*Client

func (list servers) client(at server, s *Settings) (*Client, error) {
	if c := list[at]; c != nil {
		return c, nil
	}
	c, err := Open(Config{BaseURL: at.base, APIKey: at.key, Stall: s.Stall})
	if err == nil {
		list[at] = c
	}
	return c, err
}

func (s *Settings) open() (*ai.Opened, error) {
	list := servers{}
	o := &ai.Opened{
		Model:    func(string) ai.Model { return nil },
		Embedder: func() (ai.Embedder, error) { return nil, nil },
		Synthesizer: func(code string) (ai.Synthesizer, error) {
			return nil, ai.NotConfigured("synthesizer", code, "set PARLEY_OPENAI_TTS_MODEL"+with)
		},
		Recognizer: func(code string) (ai.Recognizer, error) {
			return nil, ai.NotConfigured("transcriber", code, "set PARLEY_OPENAI_STT_MODEL"+with)
		},
		Close: func() {
			for _, c := range list {
				c.Close()
			}
		},
	}
	for _, ability := range []struct {
		at    server
		wants bool
		give  func(c *Client)
	}{
		{s.general(), true, func(c *Client) {
			o.Model = func(code string) ai.Model {
				if code == "" {
					return nil
				}
				return c.Model(code)
			}
		}},
		{s.embedding(), s.EmbeddingModel != "", func(c *Client) {
			o.Embedder = func() (ai.Embedder, error) { return c.Embedder(s.EmbeddingModel), nil }
		}},
		{s.tts(), s.TTSModel != "", func(c *Client) {
			o.Synthesizer = func(string) (ai.Synthesizer, error) {
				if hearsToo(s.TTSModel) {
					return c.Aloud(s.TTSModel), nil
				}
				return c.Synthesizer(s.TTSModel), nil
			}
		}},
		{s.realtime(), len(s.realtimeModels())+len(s.liveModels()) > 0, func(c *Client) {
			o.Realtime = func(code string) (ai.RealtimeModel, error) {
				if slices.Contains(s.liveModels(), code) {
					return s.live(c, code), nil
				}
				if !slices.Contains(s.realtimeModels(), code) {
					return nil, ai.NotConfigured("realtime model", code, "set PARLEY_OPENAI_REALTIME_MODEL"+with)
				}
				return c.RealtimeModel(code, s.RealtimeSTT), nil
			}
		}},
		{s.stt(), s.STTModel != "", func(c *Client) {
			o.Recognizer = func(string) (ai.Recognizer, error) { return c.Recognizer(s.STTModel), nil }
		}},
	} {
		if !ability.wants || !ability.at.there() {
			continue
		}
		c, err := list.client(ability.at, s)
		if err != nil {
			o.Close()
			return nil, err
		}
		ability.give(c)
	}
	if s.EmbeddingModel != "" && !s.embedding().there() {
		o.Embedder = func() (ai.Embedder, error) {
			return nil, &ai.Error{Kind: ai.Config,
				Err: fmt.Errorf("embedding model %q is not configured", s.EmbeddingModel)}
		}
	}
	return o, nil
}
