// Package assemblyai is AssemblyAI's streaming transcription, by the third version of its protocol.
package assemblyai

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/provider/wire"
)

// Code is the code of this vendor.
const Code = "assemblyai"

// DefaultBaseURL is AssemblyAI's own, in the United States.
const DefaultBaseURL = "https://streaming.assemblyai.com"

// Settings are the operator's settings for this vendor.
type Settings struct {
	APIKey   string `name:"assemblyai-api-key" help:"API key of AssemblyAI, for speech-to-text."`
	BaseURL  string `name:"assemblyai-base-url" help:"Base URL of AssemblyAI's streaming API, such as that of Europe, https://streaming.eu.assemblyai.com (https://streaming.assemblyai.com)."`
	STTModel string `name:"assemblyai-stt-model" help:"Speech-to-text model of AssemblyAI (universal-streaming-english, and universal-streaming-multilingual for other languages)."`
}

// languages lists the languages of Universal-Streaming.
const languages = "en es fr de it pt"

// Declare declares AssemblyAI according to the settings.
func Declare(s *Settings) *ai.Vendor {
	return &ai.Vendor{
		Code:     Code,
		Name:     "AssemblyAI",
		KeyPage:  "https://www.assemblyai.com/dashboard/api-keys",
		Settings: s,
		Listeners: []ai.Listener{{Provider: parley.Provider{ID: 8, Code: Code, Name: "AssemblyAI"}, Rank: 25,
			Languages: languages, Mixed: func() string { return languages }, Configured: func() bool { return s.APIKey != "" }}},
		With:  ai.Rekeyed(s, Declare),
		Open:  s.open,
		Check: s.check,
	}
}

func (s *Settings) base() string { return strings.TrimRight(cmp.Or(s.BaseURL, DefaultBaseURL), "/") }

func (s *Settings) open() (*ai.Opened, error) {
	if _, err := wire.Address(s.base(), path, nil); err != nil {
		return nil, fmt.Errorf("PARLEY_ASSEMBLYAI_BASE_URL: %w", err)
	}
	r := &recognizer{base: s.base(), key: s.APIKey, model: s.STTModel}
	return &ai.Opened{Recognizer: func(code string) (ai.Recognizer, error) {
		if s.APIKey == "" {
			return nil, ai.NotConfigured("transcriber", code, "set PARLEY_ASSEMBLYAI_API_KEY")
		}
		return r, nil
	}}, nil
}

// check requests a temporary token, which costs nothing.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	found := func(state, format string, a ...any) []parley.Finding {
		return []parley.Finding{{State: state, What: Code, Text: fmt.Sprintf(format, a...)}}
	}
	if s.APIKey == "" {
		return found("note", "not configured: set PARLEY_ASSEMBLYAI_API_KEY for its transcription")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base()+"/v3/token?expires_in_seconds=60", nil)
	if err != nil || req.URL.Host == "" {
		return found("FAIL", "PARLEY_ASSEMBLYAI_BASE_URL is not an http or https URL")
	}
	req.Header.Set("Authorization", s.APIKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return found("FAIL", "%s can't be reached: check PARLEY_ASSEMBLYAI_BASE_URL and the network", s.base())
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // the token is not used
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return found("FAIL", "%s refuses the key in PARLEY_ASSEMBLYAI_API_KEY (status %d)", s.base(), code)
	case code != http.StatusOK:
		return found("FAIL", "%s answers with status %d; PARLEY_ASSEMBLYAI_BASE_URL has no path", s.base(), code)
	}
	return found("ok", "%s listens with %s", s.base(), modelFor(s.STTModel, ai.Hearing{Language: "en"}))
}
