package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// badRequest is a 400 response with the server's own message.
type badRequest struct{ message string }

func (b *badRequest) Error() string { return b.message }

// names reports whether the message complains about one of these.
func (b *badRequest) names(fields ...string) bool {
	text := strings.ToLower(b.message)
	for _, f := range fields {
		if strings.Contains(text, f) {
			return true
		}
	}
	return false
}

// said is Anthropic's error object: {"type":"error","error":{"type":…,"message":…}}.
type said struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func parse(body []byte) said {
	var e struct {
		Error said `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == (said{}) {
		return said{Message: fmt.Sprintf("%.300q", body)}
	}
	return e.Error
}

// kind decides by the message and the HTTP status. A status of 0 means an error inside a stream.
func (s said) kind(status int) ai.Kind {
	switch s.Type {
	case "rate_limit_error":
		return ai.RateLimited
	case "overloaded_error", "api_error", "timeout_error":
		return ai.Overloaded
	case "request_too_large":
		return ai.TooLong
	case "authentication_error", "permission_error", "not_found_error", "billing_error":
		return ai.Config
	case "invalid_request_error":
		if _, long := rest.TooLong(status, s.Message); long {
			return ai.TooLong
		}
		return ai.Config
	}
	switch {
	case status == http.StatusTooManyRequests:
		return ai.RateLimited
	case status == http.StatusRequestEntityTooLarge:
		return ai.TooLong
	case status == 0 || status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500:
		return ai.Overloaded
	}
	return ai.Config
}

// refused turns an error response into an error.
func refused(status int, h http.Header, body []byte) error {
	s := parse(body)
	e := &ai.Error{Kind: s.kind(status), RetryAfter: rest.RetryAfter(h),
		Err: fmt.Errorf("status %d: %s", status, s.Message)}
	if e.Kind == ai.TooLong {
		long, _ := rest.TooLong(status, s.Message)
		e.Asked, e.Takes = long.Asked, long.Takes
	}
	if e.Kind == ai.Config && status == http.StatusBadRequest {
		e.Err = fmt.Errorf("status %d: %w", status, &badRequest{s.Message})
	}
	return e
}
