package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/api"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// fill stores n assistants of the harness's user without going through the API.
func (h *harness) fill(n int) {
	h.Helper()
	voice, model := h.voice("pipeline", 1), h.model("llm")
	h.write(func(ctx context.Context, tx *store.Tx) error {
		for i := range n {
			a := &parley.Assistant{}
			form.Defaults(a)
			a.Name, a.Type, a.Mode, a.Timezone, a.SystemPrompt = fmt.Sprintf("A%03d", i), "outbound", "pipeline",
				"UTC", "Be kind."
			a.VoiceID, a.LanguageID, a.LLMModelID = voice, 1, &model
			if err := tx.CreateAssistant(ctx, h.user.ID, a); err != nil {
				return err
			}
		}
		return nil
	})
}

type page struct {
	CurrentPage  int              `json:"current_page"`
	Data         []map[string]any `json:"data"`
	FirstPageURL string           `json:"first_page_url"`
	From         *int             `json:"from"`
	LastPage     int              `json:"last_page"`
	LastPageURL  string           `json:"last_page_url"`
	Links        []struct {
		URL    *string `json:"url"`
		Label  string  `json:"label"`
		Active bool    `json:"active"`
	} `json:"links"`
	NextPageURL *string `json:"next_page_url"`
	Path        string  `json:"path"`
	PerPage     int     `json:"per_page"`
	PrevPageURL *string `json:"prev_page_url"`
	To          *int    `json:"to"`
	Total       int     `json:"total"`
}

func (p page) labels() (s string) {
	for _, l := range p.Links[1 : len(p.Links)-1] {
		s += " " + l.Label
		if l.Active {
			s += "*"
		}
		if (l.URL == nil) != (l.Label == "...") {
			s += "!"
		}
	}
	return strings.TrimSpace(s)
}

func TestEnvelope(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		list := h.url + "/api/user/assistants/get"
		h.get("/user/assistants/get", status(200)).is(`{"current_page":1,"data":[],"first_page_url":"` + list +
			`?page=1","from":null,"last_page":1,"last_page_url":"` +
			list + `?page=1","links":[{"url":null,"label":"&laquo; Previous","active":false},{"url":"` + list +
			`?page=1","label":"1","active":true},` +
			`{"url":null,"label":"Next &raquo;","active":false}],"next_page_url":null,"path":"` + list +
			`","per_page":10,"prev_page_url":null,"to":null,"total":0}`)
		h.fill(23)
		for _, c := range []struct {
			query              string
			current, size      int
			rows, from, to     int // 0: null
			last               int
			prev, next, labels string // queries
		}{
			{"", 1, 10, 10, 1, 10, 3, "", "page=2", "1* 2 3"},
			{"?page=&per_page=", 1, 10, 10, 1, 10, 3, "", "per_page=&page=2", "1* 2 3"},
			{"?page=2", 2, 10, 10, 11, 20, 3, "page=1", "page=3", "1 2* 3"},
			{"?page=3", 3, 10, 3, 21, 23, 3, "page=2", "", "1 2 3*"},
			{"?page=4", 4, 10, 0, 0, 0, 3, "page=3", "", "1 2 3"},
			{"?page=2147483648", 2147483648, 10, 0, 0, 0, 3, "page=3", "", "1 2 3"},
			{"?per_page=23", 1, 23, 23, 1, 23, 1, "", "", "1*"},
			{"?per_page=22", 1, 22, 22, 1, 22, 2, "", "per_page=22&page=2", "1* 2"},
			{"?per_page=24", 1, 24, 23, 1, 23, 1, "", "", "1*"},
			{"?per_page=100", 1, 100, 23, 1, 23, 1, "", "", "1*"},
			{"?per_page=3", 1, 3, 3, 1, 3, 8, "", "per_page=3&page=2", "1* 2 3 4 5 6 7 8"},
			{"?per_page=1", 1, 1, 1, 1, 1, 23, "", "per_page=1&page=2", "1* 2 3 4 ... 22 23"},
			{"?per_page=1&page=12", 12, 1, 1, 12, 12, 23, "per_page=1&page=11", "per_page=1&page=13",
				"1 2 ... 9 10 11 12* 13 14 15 ... 22 23"},
			{"?per_page=1&page=23", 23, 1, 1, 23, 23, 23, "per_page=1&page=22", "", "1 2 ... 20 21 22 23*"},
			{"?per_page=2&page=2", 2, 2, 2, 3, 4, 12, "per_page=2&page=1", "per_page=2&page=3", "1 2* 3 4 5 ... 11 12"},
			{"?per_page=5&x=a%26b&page=2&x=c&empty=", 2, 5, 5, 6, 10, 5, "empty=&per_page=5&x=a%26b&x=c&page=1",
				"empty=&per_page=5&x=a%26b&x=c&page=3", "1 2* 3 4 5"},
		} {
			var p page
			h.get("/user/assistants/get"+c.query, status(200)).decode(&p)
			val := func(n *int) int {
				if n == nil {
					return 0
				}
				return *n
			}
			url := func(s *string) string {
				if s == nil {
					return ""
				}
				return strings.TrimPrefix(*s, list+"?")
			}
			if p.CurrentPage != c.current || p.PerPage != c.size || len(p.Data) != c.rows ||
				val(p.From) != c.from || val(p.To) != c.to || p.LastPage != c.last ||
				p.Total != 23 || url(p.PrevPageURL) != c.prev || url(p.NextPageURL) != c.next ||
				p.labels() != c.labels || p.Path != list || p.Data == nil {
				t.Errorf("%s: %+v, labels %q", c.query, p, p.labels())
			}
			first, end := p.Links[0], p.Links[len(p.Links)-1]
			if first.Label != "&laquo; Previous" || end.Label != "Next &raquo;" || first.Active || end.Active ||
				url(first.URL) != c.prev || url(end.URL) != c.next {
				t.Errorf("%s: previous %+v, next %+v", c.query, first, end)
			}
			if !strings.HasSuffix(p.FirstPageURL, "page=1") ||
				!strings.HasSuffix(p.LastPageURL, fmt.Sprintf("page=%d", c.last)) {
				t.Errorf("%s: first %s, last %s", c.query, p.FirstPageURL, p.LastPageURL)
			}
			if c.rows > 0 && p.Data[0]["name"] != fmt.Sprintf("A%03d", c.from-1) {
				t.Errorf("%s begins with %v", c.query, p.Data[0]["name"])
			}
			for _, link := range []*string{p.NextPageURL, p.PrevPageURL, &p.LastPageURL} { // no link is a dead end
				if link != nil {
					h.get(strings.TrimPrefix(*link, h.url+"/api"), status(200))
				}
			}
		}
		// Walking through the pages finds every row once.
		var seen []json.Number
		for next := "/user/assistants/get?per_page=7"; next != ""; {
			var p page
			a := h.get(next, status(200))
			a.decode(&p)
			var q struct{ Data []struct{ ID json.Number } }
			a.decode(&q)
			for _, row := range q.Data {
				seen = append(seen, row.ID)
			}
			next = ""
			if p.NextPageURL != nil {
				next = strings.TrimPrefix(*p.NextPageURL, h.url+"/api")
			}
		}
		if len(seen) != 23 || len(slices.Compact(slices.Sorted(slices.Values(seen)))) != 23 {
			t.Errorf("met %v", seen)
		}
	})
}

func TestEnvelopeParameters(t *testing.T) {
	h := lite(t, nil)
	for _, c := range []struct{ query, field, text string }{
		{"per_page=0", "per_page", "must be at least 1."},
		{"per_page=-1", "per_page", "must be at least 1."},
		{"per_page=101", "per_page", "must not be greater than 100."},
		{"per_page=abc", "per_page", "must be an integer."},
		{"per_page=1.5", "per_page", "must be an integer."},
		{"per_page=1e1", "per_page", "must be an integer."},
		{"per_page=0x10", "per_page", "must be an integer."},
		{"per_page=0x1p3", "per_page", "must be an integer."},
		{"per_page=Inf", "per_page", "must be an integer."},
		{"per_page=1_0", "per_page", "must be an integer."},
		{"per_page=%D9%A1", "per_page", "must be an integer."},
		{"per_page=%00", "per_page", "must be an integer."},
		{"per_page=99999999999999999999", "per_page", "must be an integer."},
		{"page=0", "page", "must be at least 1."},
		{"page=-1", "page", "must be at least 1."},
		{"page=abc", "page", "must be an integer."},
		{"page=2147483649", "page", "must not be greater than 2147483648."},
		{"page=9223372036854775807", "page", "must not be greater than 2147483648."},
		{"page=18446744073709551617", "page", "must be an integer."},
	} {
		h.get("/user/assistants/get?"+c.query, status(422)).says(c.field, "The "+c.field+" field "+c.text)
	}
	h.get("/user/assistants/get?page=0&per_page=x&foo=1", status(422)).fails("page", "per_page")
	h.get("/user/assistants/get?per_page=100&page=2147483648", status(200))
	h.get("/user/assistants/get?%zz&foo[]=1&page[]=x", status(200))
}

func TestLinksStartWithThePublicAddress(t *testing.T) {
	h := lite(t, func(c *api.Config) { c.Front.PublicURL = "https://voice.example.com" })
	if p := h.get("/user/assistants/get").json(); p["path"] != "https://voice.example.com/api/user/assistants/get" {
		t.Errorf("path %v", p["path"])
	}
	other := lite(t, nil) // a client that is no trusted proxy can't claim that it came by https
	if p := other.get("/user/assistants/get", header("X-Forwarded-Proto",
		"https")).json(); !strings.HasPrefix(p["path"].(string), other.url) {
		t.Errorf("path %v", p["path"])
	}
}
