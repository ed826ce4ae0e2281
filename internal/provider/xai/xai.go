package xai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/provider/realtime"
	"parley/internal/provider/rest"
)

const (
	recognition = "grok-transcribe" // writes down what is heard; with it named, the text comes while it grows
	maxKeyterms = 100
	maxKeyterm  = 50            // characters
	lasts       = 2 * time.Hour // a session, by the models' page; the server doesn't say when it ends
)

func sign(key string) func(http.Header) {
	return func(h http.Header) { h.Set("Authorization", "Bearer "+key) }
}

func model(base, key, code string) ai.RealtimeModel {
	return realtime.Model{Base: base, Sign: sign(key), Code: code, Dialect: realtime.Dialect{
		Vendor: Code, RecognizerModel: recognition, Text: "text", Terms: terms, Aloud: aloud, Lasts: lasts, Eager: true}}
}

// terms is the configuration of a session. That no turns are found is written as a type of null.
func terms(setup ai.RealtimeSetup, tools []any) map[string]any {
	format := realtime.Format(setup.Rate)
	if setup.Rate == audio.Narrow {
		format["rate"] = int(audio.Narrow)
	}
	input, output := map[string]any{"format": format}, map[string]any{"format": format}
	if !setup.Reads { // it hears nothing
		input["transcription"] = transcription(setup)
	}
	if setup.Speed > 0 {
		output["speed"] = min(max(setup.Speed, 0.7), 1.5)
	}
	t := map[string]any{"instructions": setup.System, "turn_detection": map[string]any{"type": nil}, "tools": tools,
		"audio": map[string]any{"input": input, "output": output}}
	if setup.Voice != "" && !setup.Writes { // else it is a synthesizer's
		t["voice"] = setup.Voice
	}
	return t
}

func transcription(setup ai.RealtimeSetup) map[string]any {
	hears := map[string]any{"model": recognition}
	if setup.Language != "" && len(setup.Others) == 0 { // of several it finds by itself which one is spoken
		hears["language_hint"] = setup.Language
	}
	var words []string
	for _, k := range setup.Keywords {
		if k = strings.TrimSpace(k); k != "" && len([]rune(k)) <= maxKeyterm && len(words) < maxKeyterms {
			words = append(words, k)
		}
	}
	if words != nil {
		hears["keyterms"] = words
	}
	return hears
}

// aloud is an item of xAI's own, whose text is said as it is.
func aloud(_ int, text string) map[string]any {
	return map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "force_message",
		"role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": text}}}}
}

// check asks for the list of voices, which costs nothing. xAI has no list in which its realtime models are.
func (s *Settings) check(ctx context.Context) []parley.Finding {
	found := func(state, format string, a ...any) []parley.Finding {
		return []parley.Finding{{State: state, What: Code, Text: fmt.Sprintf(format, a...)}}
	}
	if !s.configured() {
		return found("note", "not configured: set PARLEY_XAI_API_KEY for assistants that hear and speak with Grok")
	}
	base, err := rest.Base(cmp.Or(s.BaseURL, defaultBase), defaultBase)
	if err != nil {
		return found("FAIL", "PARLEY_XAI_BASE_URL: %v", err)
	}
	status := 0
	c := &rest.Client{Base: base, Stall: rest.DefaultStall, Sign: sign(s.APIKey),
		Refused: func(code int, h http.Header, body []byte) error { status = code; return refused(code, h, body) },
		HTTP:    &http.Client{Transport: rest.Transport(), CheckRedirect: ai.Redirect}}
	defer c.HTTP.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodGet, base+"/tts/voices", nil)
	if err != nil {
		return found("FAIL", "PARLEY_XAI_BASE_URL: %v", err)
	}
	var list struct {
		Voices []struct{} `json:"voices"`
	}
	err = c.Ask(ctx, req, 0, func(res *http.Response) error { return json.NewDecoder(res.Body).Decode(&list) },
		func() bool { return false })
	switch {
	case status == http.StatusBadRequest, status == http.StatusUnauthorized, status == http.StatusForbidden:
		return found("FAIL", "%s refuses the key in PARLEY_XAI_API_KEY: %v", base, errors.Unwrap(err))
	case err != nil:
		return found("FAIL", "%s: %v; check PARLEY_XAI_BASE_URL and the network", base, err)
	case len(list.Voices) == 0:
		return found("FAIL", "%s lists no voices: check PARLEY_XAI_BASE_URL", base)
	}
	return found("ok", "%s answers; %s hear and speak", base, strings.Join(s.models(), ", "))
}

// refused says what an HTTP error response means.
func refused(status int, _ http.Header, body []byte) error {
	e := &ai.Error{Kind: ai.Config, Err: fmt.Errorf("status %d: %.300q", status, body)}
	switch {
	case status == http.StatusTooManyRequests:
		e.Kind = ai.RateLimited
	case status >= 500:
		e.Kind = ai.Overloaded
	}
	return e
}
