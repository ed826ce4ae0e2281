package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// badRequest is a 400 with what the server says of it.
type badRequest struct{ message string }

func (b *badRequest) Error() string { return b.message }

// names says whether it complains of something.
func (b *badRequest) names(what string) bool {
	return what != "" && strings.Contains(strings.ToLower(b.message), what)
}

// said is what an error says of itself: google.rpc.Status.
type said struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Type   string `json:"@type"`
		Reason string `json:"reason"`     // of ErrorInfo
		Delay  string `json:"retryDelay"` // of RetryInfo, as 17s
	} `json:"details"`
}

func parse(body []byte) said {
	var e struct {
		Error *said `json:"error"`
	}
	var list []json.RawMessage // without alt=sse an error stands in a list
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	if json.Unmarshal(body, &e) != nil || e.Error == nil {
		return said{Message: fmt.Sprintf("%.300q", body)}
	}
	return *e.Error
}

// kind judges by what is said and the HTTP status; 0 is an error inside a stream.
func (s said) kind(status int) ai.Kind {
	switch s.Status {
	case "RESOURCE_EXHAUSTED":
		return ai.RateLimited
	case "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "UNKNOWN", "ABORTED", "CANCELLED":
		return ai.Overloaded
	case "INVALID_ARGUMENT":
		if _, long := rest.TooLong(status, s.Message); long {
			return ai.TooLong
		}
		return ai.Config
	case "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "FAILED_PRECONDITION":
		return ai.Config
	}
	switch {
	case status == http.StatusTooManyRequests:
		return ai.RateLimited
	case status == http.StatusRequestEntityTooLarge:
		return ai.TooLong
	case status == 0 || status == http.StatusRequestTimeout || status >= 500:
		return ai.Overloaded
	}
	return ai.Config
}

// retryAfter is how long the server asks to wait: in a header, or in the details.
func (s said) retryAfter(h http.Header) time.Duration {
	for _, d := range s.Details {
		if t, err := time.ParseDuration(d.Delay); err == nil && t > 0 && strings.HasSuffix(d.Type, "RetryInfo") {
			return t
		}
	}
	return rest.RetryAfter(h)
}

// refused says what an answer that is an error means.
func refused(status int, h http.Header, body []byte) error {
	s := parse(body)
	e := &ai.Error{Kind: s.kind(status), RetryAfter: s.retryAfter(h),
		Err: fmt.Errorf("status %d: %s", status, cmp.Or(s.Message, s.Status))}
	if e.Kind == ai.TooLong {
		long, _ := rest.TooLong(status, s.Message)
		e.Asked, e.Takes = long.Asked, long.Takes
	}
	if e.Kind == ai.Config && status == http.StatusBadRequest {
		e.Err = fmt.Errorf("status %d: %w", status, &badRequest{s.Message})
	}
	return e
}
