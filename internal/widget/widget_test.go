package widget

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/web"
)

// Every visitor of a customer's website loads the script: it must stay small.
func TestScriptIsSmall(t *testing.T) {
	for path, most := range map[string]int{"/embed.js": 15 << 10, "/web-call.js": 4 << 10} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", "br, gzip;q=0.8")
		w := httptest.NewRecorder()
		Handler(web.Front{}).ServeHTTP(w, r)
		if n := w.Body.Len(); w.Header().Get("Content-Encoding") != "gzip" || n > most || n < 100 {
			t.Errorf("%s takes %d bytes, %v", path, n, w.Header())
		} else {
			t.Logf("%s: %d bytes", path, n)
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, read(path[1:])) {
			t.Errorf("%s is sent as something else: %v", path, err)
		}
	}
}

// Scripts for other people's pages must not write HTML, evaluate text or set inline styles.
func TestScriptsAreClean(t *testing.T) {
	bad := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\("(style|on)|debugger|console\.log`)
	for _, name := range []string{"embed.js", "web-call.js"} {
		if found := bad.FindAll(read(name), -1); found != nil {
			t.Errorf("%s uses %s", name, found)
		}
	}
}

func TestTexts(t *testing.T) {
	parse := func(raw json.RawMessage) (m map[string]string) {
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	hole := regexp.MustCompile(`\{\w+\}`)
	holes := func(s string) []string {
		found := hole.FindAllString(s, -1)
		slices.Sort(found)
		return found
	}
	english := parse(Texts("en"))
	if len(texts) < 12 {
		t.Errorf("%d languages", len(texts))
	}
	for iso := range texts {
		m := parse(Texts(iso))
		if got, want := slices.Sorted(maps.Keys(m)), slices.Sorted(maps.Keys(english)); !slices.Equal(got, want) {
			t.Errorf("%s has %v", iso, got)
		}
		for key, s := range m {
			if s == "" || !slices.Equal(holes(s), holes(english[key])) {
				t.Errorf("%s %s: %q is not %q", iso, key, s, english[key])
			}
		}
	}
	if !bytes.Equal(Texts("xx"), Texts("en")) || bytes.Equal(Texts("de"), Texts("en")) {
		t.Error("a language without texts is not English")
	}
	// Every text is used, and every text that is used exists.
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z]+)"`).FindAllStringSubmatch(string(read("embed.js")), -1) {
		used[m[1]] = true
	}
	for key := range english {
		if !used[key] && !strings.Contains(string(read("embed.js")), key+":") {
			t.Errorf("nothing says %s", key)
		}
	}
	for _, m := range regexp.MustCompile(`\btext\("([a-z]+)"`).FindAllStringSubmatch(string(read("embed.js")), -1) {
		if english[m[1]] == "" {
			t.Errorf("there is no text %s", m[1])
		}
	}
}

func TestHandler(t *testing.T) {
	get := func(method, target string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://voice.example.com"+target, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		Handler(web.Front{}).ServeHTTP(w, r)
		return w
	}
	for _, path := range Paths {
		if w := get("GET", path); w.Code != 200 || w.Header().Get("X-Content-Type-Options") != "nosniff" ||
			w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	w := get("GET", "/embed.js")
	if w.Header().Get("Access-Control-Allow-Origin") != "*" ||
		w.Header().Get("Cross-Origin-Resource-Policy") != "cross-origin" {
		t.Errorf("%v", w.Header())
	}
	if w := get("GET", "/embed.js", "If-None-Match", w.Header().Get("ETag")); w.Code != 304 || w.Body.Len() != 0 {
		t.Errorf("asked for again: %d", w.Code)
	}
	if w := get("POST", "/embed.js"); w.Code != 405 || w.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", w.Code)
	}
	if w := get("GET", "/nothing.js"); w.Code != 404 {
		t.Errorf("unknown: %d", w.Code)
	}
	demo := get("GET", `/widget-demo?assistant="><script>alert(1)</script>`)
	if csp := demo.Header().Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") ||
		!strings.Contains(csp, "default-src 'none'") {
		t.Errorf("policy %q", csp)
	}
	if body := demo.Body.String(); strings.Contains(body, "<script>alert") ||
		!strings.Contains(body, "http://voice.example.com/embed.js") {
		t.Errorf("demo: %s", body)
	}
	if body := get("GET", "/widget-demo").Body.String(); !strings.Contains(body, "Which assistant?") ||
		strings.Contains(body, "<script") {
		t.Errorf("demo without an assistant: %s", body)
	}
}
