package anthropic

import (
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
)

// Code is the code of this vendor.
const Code = "anthropic"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey  string        `name:"anthropic-api-key" help:"API key of Anthropic."`
	BaseURL string        `name:"anthropic-base-url" help:"Base URL of the Messages API (https://api.anthropic.com)."`
	Model   []string      `name:"anthropic-model" help:"Chat models, comma-separated (claude-haiku-5-5,claude-sonnet-5-5)."`
	Stall   time.Duration `name:"anthropic-stall" default:"30s" help:"How long the API may send nothing before a request counts as failed."`
}

// Declare declares Anthropic, or the compatible server that the settings name.
func Declare(s *Settings) *ai.Vendor {
	return &ai.Vendor{Code: Code, Name: "Anthropic", KeyPage: "https://console.anthropic.com/settings/keys", Settings: s,
		Models: s.list, Retired: s.retired, With: ai.Rekeyed(s, Declare), Open: s.open, Check: s.check}
}

// retired lists what Anthropic has announced at https://platform.claude.com/docs/en/about-claude/model-deprecations, as of
// November 2026. Other servers with its API have days of their own.
func (s *Settings) retired() ai.Retirements {
	if s.APIKey == "" || s.BaseURL != "" {
		return nil
	}
	return ai.Retirements{
		{Model: "claude-3-7-sonnet", Day: "2026-02-19", Instead: "claude-sonnet-5-5"},
		{Model: "claude-sonnet-4", Day: "2026-06-15", Instead: "claude-sonnet-5-5"},
		{Model: "claude-opus-4", Day: "2026-06-15", Instead: "claude-opus-5-5"},
		{Model: "claude-opus-4-1", Day: "2026-08-05", Instead: "claude-opus-5-5"},
		{Model: "claude-sonnet-4-5", Day: "2026-11-30", Instead: "claude-sonnet-5-5"},
	}
}

// configured reports whether a server is configured.
func (s *Settings) configured() bool { return s.APIKey != "" || s.BaseURL != "" }

// models lists the models that are offered. Without a setting the fastest comes first, because people wait for it.
func (s *Settings) models() []string {
	switch {
	case !s.configured():
		return nil
	case len(s.Model) == 0:
		return []string{"claude-haiku-5-5", "claude-sonnet-5-5"}
	}
	return s.Model
}

func (s *Settings) list() (list []parley.Model) {
	for _, code := range s.models() {
		list = append(list, parley.Model{Kind: parley.LLM, Code: code, Name: code})
	}
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
	}}, nil
}
