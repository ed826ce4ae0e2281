package gemini

import (
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
	Stall   time.Duration `name:"gemini-stall" default:"30s" help:"How long the API may send nothing before a request counts as failed."`
}

// Declare declares Gemini, or the compatible server that the settings name.
func Declare(s *Settings) *ai.Vendor {
	return &ai.Vendor{Code: Code, Settings: s, Models: s.list, Open: s.open, Check: s.check}
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
