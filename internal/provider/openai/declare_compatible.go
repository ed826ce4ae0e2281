package openai

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
)

// CompatibleCode is the code of the vendor that stands for a server of the operator's own.
const CompatibleCode = "compatible"

// CompatibleSettings are the operator's settings for a server of their own that speaks OpenAI's API, beside OpenAI itself.
type CompatibleSettings struct {
	BaseURL string        `name:"compatible-base-url" help:"Base URL of a server that speaks OpenAI's API (Ollama, vLLM, llama.cpp, LM Studio, LocalAI, LiteLLM), including /v1. It thinks beside OpenAI's own models."`
	APIKey  string        `name:"compatible-api-key" help:"API key of that server, if it needs one."`
	Model   []string      `name:"compatible-model" help:"Chat models of that server, comma-separated."`
	Stall   time.Duration `name:"compatible-stall" default:"60s" help:"How long that server may send nothing before a request counts as failed. Loading a model counts."`
}

// DeclareCompatible declares a server of the operator's own that speaks OpenAI's API. It needs a base URL, and a key only
// if the server asks for one.
func DeclareCompatible(s *CompatibleSettings) *ai.Vendor {
	return &ai.Vendor{
		Code:     CompatibleCode,
		Name:     "OpenAI-compatible server",
		KeyPage:  "",
		Settings: s,
		ByURL:    true,
		Models:   s.models,
		Listed:   s.listed,
		With: func(k ai.Key) *ai.Vendor {
			o := *s
			if o.APIKey = k.Secret; k.BaseURL != "" {
				o.BaseURL = k.BaseURL
			}
			if len(k.Models) > 0 {
				o.Model = k.Models
			}
			return DeclareCompatible(&o)
		},
		Open:  s.open,
		Check: s.check,
	}
}

func (s *CompatibleSettings) server() server { return server{normal(s.BaseURL), s.APIKey} }

func (s *CompatibleSettings) models() (list []parley.Model) {
	if s.BaseURL == "" {
		return nil
	}
	for _, code := range s.Model {
		list = append(list, parley.Model{Kind: parley.LLM, Code: code, Name: code})
	}
	return list
}

func (s *CompatibleSettings) open() (*ai.Opened, error) {
	o := &ai.Opened{Model: func(string) ai.Model { return nil }}
	if s.BaseURL == "" {
		return o, nil
	}
	c, err := Open(Config{BaseURL: s.server().base, APIKey: s.APIKey, Stall: s.Stall})
	if err != nil {
		return nil, err
	}
	o.Close = c.Close
	o.Model = func(code string) ai.Model {
		if code == "" {
			return nil
		}
		return c.Model(code)
	}
	return o, nil
}

// check requests the server's list of models.
func (s *CompatibleSettings) check(ctx context.Context) []parley.Finding {
	found := func(state, format string, a ...any) []parley.Finding {
		return []parley.Finding{{State: state, What: "compatible server", Text: fmt.Sprintf(format, a...), Part: string(ai.TheModel)}}
	}
	if s.BaseURL == "" {
		return nil
	}
	at := s.server()
	a := list(ctx, at)
	switch {
	case a.key && at.key == "":
		return found(parley.DoctorFail, "%s asks for a key: set PARLEY_COMPATIBLE_API_KEY", at.base)
	case a.key:
		return found(parley.DoctorFail, "%s refuses the key in PARLEY_COMPATIBLE_API_KEY", at.base)
	case a.err != nil:
		return found(parley.DoctorFail, "%v: check the base URL (PARLEY_COMPATIBLE_BASE_URL) and that the server is running", a.err)
	case a.stack != nil && a.stack.mute != "":
		return found(parley.DoctorFail, "%s is %s: %s", at.base, a.stack.name, a.stack.mute)
	case len(a.models) == 0:
		if other := elsewhere(ctx, at); other != "" {
			return found(parley.DoctorFail, "%s has no list of models, but %s has: use that as the base URL (PARLEY_COMPATIBLE_BASE_URL)",
				at.base, other)
		}
		return found(parley.DoctorFail,
			"%s answers, but lists no models: load one there, or check the base URL (PARLEY_COMPATIBLE_BASE_URL)", at.base)
	}
	for _, m := range s.Model {
		if !a.has(m) {
			state, text := a.stack.missing(at.base, m, a.models, "PARLEY_COMPATIBLE_MODEL")
			return found(state, "%s", text)
		}
	}
	if a.stack != nil && len(s.Model) > 0 {
		state, text := a.stack.tried(ctx, at, ai.TheModel, s.Model, "PARLEY_COMPATIBLE_", "PARLEY_COMPATIBLE_MODEL")
		return found(state, "%s", text)
	}
	return found(parley.DoctorOK, "%s answers, with %s", at.base, short(a.models))
}

// elsewhere returns the base URL near this one that has a list of models; "" if none has.
func elsewhere(ctx context.Context, at server) string {
	for _, other := range nearby(at.base) {
		if len(list(ctx, server{other, at.key}).models) > 0 {
			return other
		}
	}
	return ""
}

// nearby returns the base URLs that a person who wrote this one may have meant.
func nearby(base string) []string {
	u, err := url.Parse(base)
	if err != nil {
		return nil
	}
	if strings.HasSuffix(u.Path, "/v1") {
		return nil
	}
	root := *u
	root.Path, root.RawPath = "", ""
	list := []string{base + "/v1"}
	if r := root.String() + "/v1"; r != list[0] {
		list = append(list, r)
	}
	return list
}

// maxListed is how many models of a server are offered.
const maxListed = 100

// notChat are parts of the names of models that can't hold a conversation.
var notChat = []string{"embed", "whisper", "transcri", "tts", "speech", "realtime", "kokoro", "rerank", "bge-",
	"stable-diffusion", "moderation"}

// listed returns the chat models that the server lists, in its order.
func (s *CompatibleSettings) listed(ctx context.Context) []string {
	all := list(ctx, s.server()).models
	all = slices.DeleteFunc(all, func(code string) bool {
		return code == "" || len(code) > 255 ||
			slices.ContainsFunc(notChat, func(part string) bool { return strings.Contains(strings.ToLower(code), part) })
	})
	return all[:min(len(all), maxListed)]
}
