package knowledge

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"parley/internal/document"
)

// TestPageFails: when a child process can't read a page, its reason is among the warnings, without details of this
// machine.
func TestPageFails(t *testing.T) {
	for script, want := range map[string]string{"kill -KILL $$": "it takes too long to read",
		"echo 'out of memory' >&2; exit 3": "it needs more memory to read than a page may take",
		"echo secret >&2; exit 3":          "the page could not be read",
		"echo rubbish":                     "the page could not be read"} {
		w := newWebsite(t, map[string]http.HandlerFunc{"/robots.txt": http.NotFound, "/": say("<p>x")})
		_, err := w.read(t, Site{URL: w.URL}, func(r *crawl) {
			r.Reader = &document.Extractor{Program: []string{"/bin/sh", "-c", script}}
		})
		if failure := (*document.Failure)(nil); !errors.As(err, &failure) || !strings.Contains(failure.Reason, want) {
			t.Errorf("%q: %v", script, err)
		}
	}
}
