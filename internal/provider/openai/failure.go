package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// badRequest is a 4xx response with the server's own message.
type badRequest struct{ param, message string }

func (b *badRequest) Error() string { return b.message }

// said is OpenAI's error object. Other servers leave out fields, send numbers as code, or send plain text as error.
type said struct{ Message, Type, Param, Code string }

func parse(body []byte) said {
	var outer struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	var inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   any    `json:"param"`
		Code    any    `json:"code"`
	}
	var text string
	switch {
	case json.Unmarshal(body, &outer) != nil:
		return said{Message: fmt.Sprintf("%.300q", body)}
	case outer.Error == nil: // an older vLLM has no object in the object; FastAPI calls it detail
		outer.Error = body
		if json.Unmarshal(outer.Detail, &text) == nil && text != "" {
			return said{Message: text}
		}
		if json.Unmarshal(body, &inner) == nil && inner.Message != "" {
			break
		}
		return said{Message: fmt.Sprintf("%.300q", body)}
	case json.Unmarshal(outer.Error, &text) == nil:
		return said{Message: text}
	case json.Unmarshal(outer.Error, &inner) != nil:
		return said{Message: fmt.Sprintf("%.300q", body)}
	}
	s := said{Message: inner.Message, Type: inner.Type}
	s.Param, _ = inner.Param.(string)
	s.Code, _ = inner.Code.(string)
	return s
}

// kind decides by the message and the HTTP status. A status of 0 means an error inside a stream.
func (s said) kind(status int) ai.Kind {
	switch {
	case s.Code == "insufficient_quota":
		return ai.Config
	case s.Code == "context_length_exceeded" || s.Type == "exceed_context_size_error" || s.tooLong(status):
		return ai.TooLong
	case status == http.StatusTooManyRequests || s.Code == "rate_limit_exceeded":
		return ai.RateLimited
	case s.Code == "content_filter" || s.Code == "content_policy_violation" || s.Code == "moderation_blocked":
		return ai.Refused
	case status == 0 || status == http.StatusRequestTimeout || status == http.StatusConflict ||
		status == http.StatusTooEarly || status >= 500:
		return ai.Overloaded
	}
	return ai.Config
}

func (s said) tooLong(status int) bool {
	_, is := rest.TooLong(status, s.Message)
	return is
}

// refused turns an error response into an error.
func refused(status int, header http.Header, body []byte) error {
	s := parse(body)
	e := &ai.Error{Kind: s.kind(status), RetryAfter: rest.RetryAfter(header),
		Err: fmt.Errorf("status %d: %s", status, s.Message)}
	if e.Kind == ai.TooLong {
		long, _ := rest.TooLong(status, s.Message)
		e.Asked, e.Takes = long.Asked, long.Takes
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotFound:
		e.Err = fmt.Errorf("status %d: %w", status, &badRequest{s.Param, s.Message})
		if e.Kind == ai.Config && s.Message != "" {
			e.Mend = fmt.Sprintf("The model's server refuses the request: %q Choose another model, or ask this server's operator.",
				discreet(s.Message))
		}
	case http.StatusInternalServerError, http.StatusNotImplemented: // llama.cpp, of what the model's template doesn't take
		e.Err = fmt.Errorf("status %d: %w", status, &badRequest{s.Param, s.Message})
	}
	return e
}

// What of a server's words is nobody's business but the operator's: keys, addresses, organizations.
var secrets = regexp.MustCompile(`(?i)\b(?:sk|org|proj|key|gsk|xai|bearer)[-_ ][\w-]{6,}|\b\w*[0-9a-f]{32,}\b|https?://\S+` +
	`|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b`)

// maxSaid is how much of a server's words is told, in characters.
const maxSaid = 300

// discreet is what a server said, in one line and without secrets.
func discreet(message string) string {
	text := []rune(strings.Join(strings.Fields(secrets.ReplaceAllString(message, "…")), " "))
	if len(text) > maxSaid {
		return string(text[:maxSaid]) + "…"
	}
	return string(text)
}
