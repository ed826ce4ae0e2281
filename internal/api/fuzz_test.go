package api_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/internal/api"
	"parley/internal/form"
	"parley/internal/parley"
)

// The body reader never panics, reads the same as a strict reader, and what it returns can be bound to anything.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":"a\ud800b"}`, `{"a":"\ud83d\ude00"}`, `{"\udc00":1}`,
		`{"a":"\\ud800"}`, `{"a":"\u12`, "\ufeff{}", `[]`, `{"a":1}{}`, "{\"a\":\"\xff\"}",
		`{"a":"\uD800\u0041","b":"\ud800\ud800\udc00"}`, strings.Repeat(`[`, 10_001), `{"a":1e999999999}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		given := string(text)
		body, err := api.ParseObject(text)
		if string(text) != given {
			t.Errorf("%q was changed to %q", given, text)
		}
		var plain any
		if err != nil {
			var e *parley.Error
			if !errors.As(err, &e) || e.Kind != parley.Invalid || body != nil {
				t.Errorf("%q: %v", text, err)
			}
			if _, object := plain.(map[string]any); json.Unmarshal(text, &plain) == nil && object && utf8.Valid(text) {
				t.Errorf("%q is an object: %v", text, err)
			}
			return
		}
		if !json.Valid(text) || !utf8.Valid(text) {
			t.Errorf("%q is not JSON", text)
		}
		for _, into := range []any{&parley.Assistant{}, &parley.Tool{}} {
			form.Defaults(into)
			form.Bind(body, into, true)
		}
		// Half of a surrogate pair does not become a character that nobody sent.
		if out, _ := json.Marshal(body); strings.ContainsRune(string(out), '\ufffd') &&
			!strings.ContainsRune(given, '\ufffd') && !strings.Contains(strings.ToLower(given), `\ufffd`) {
			t.Errorf("%q was read as %s", given, out)
		}
	})
}
