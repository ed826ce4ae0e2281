package ai_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/ai"
)

// A vendor's redirect is followed where it asks the same server for the same; a key goes nowhere else.
func TestRedirect(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, "elsewhere")
	}))
	defer other.Close()
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.Header.Get("X-Api-Key"))
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/v1/", http.StatusMovedPermanently)
		case "/kept":
			http.Redirect(w, r, "/v1/", http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		}
	}))
	defer home.Close()
	client := &http.Client{CheckRedirect: ai.Redirect}
	for _, c := range []struct {
		method, path string
		hops         int
		ok           bool
	}{
		{"POST", "/kept", 2, true}, {"GET", "/moved", 2, true}, {"POST", "/moved", 1, false},
		{"GET", "/away", 1, false}, {"POST", "/away", 1, false}, {"GET", "/loop", 6, false},
	} {
		got = nil
		req, err := http.NewRequest(c.method, home.URL+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "secret")
		res, err := client.Do(req)
		if err == nil {
			res.Body.Close()
		}
		e, _ := errors.AsType[*ai.Error](err)
		if (err == nil) != c.ok || !c.ok && (e == nil || e.Kind != ai.Config || !strings.Contains(e.Explain(), "base URL")) {
			t.Errorf("%s %s: %v", c.method, c.path, err)
		}
		if len(got) != c.hops || got[len(got)-1] != c.method+" secret" {
			t.Errorf("%s %s: %q", c.method, c.path, got)
		}
	}
}
