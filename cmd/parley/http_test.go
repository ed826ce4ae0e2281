package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/api"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestAccessLog: each request logs a line of JSON, with the answer's status and without secrets. Health checks are not
// logged, and nothing is logged unless the setting is on.
func TestAccessLog(t *testing.T) {
	var log bytes.Buffer
	was := slog.Default()
	defer slog.SetDefault(was)
	s := &Settings{LogFormat: "json", AccessLog: "on",
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	slog.SetDefault(slog.New(s.logHandler(&log)))
	house := api.New(api.Config{})
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "abc")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short")
		io.WriteString(w, " and stout")
	})
	root := s.root(true, nil, house, pages, pages, pages, pages, pages, newMetrics(nil, nil, nil), new(atomic.Bool))
	ask := func(method, path string) {
		r := httptest.NewRequest(method, path, nil)
		r.RemoteAddr = "10.1.2.3:4567"
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		root.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask("POST", "/some/page?token=SECRET")
	ask("GET", "/healthz")
	ask("GET", "/api/recordings/7/1700000000/SECRET")
	ask("GET", "/join/invite-3-SECRET")
	ask("GET", "/reset/reset-3-SECRET")
	ask("GET", "/share/7%7CSECRET/more")
	var lines []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"msg":"request",`) { // the recording fails too, as there is no database, and logs that
			lines = append(lines, line)
		}
	}
	var one struct {
		Time, Level, Msg, Method, Path, Address string
		ID                                      string `json:"request_id"`
		Status, Bytes                           int
		MS                                      *float64
	}
	if len(lines) != 5 || strings.Contains(log.String(), "SECRET") {
		t.Fatalf("%s", log.String())
	}
	if err := json.Unmarshal([]byte(lines[0]), &one); err != nil || one.Msg != "request" || one.Method != "POST" ||
		one.Path != "/some/page" || one.Status != http.StatusTeapot || one.Bytes != len("short and stout") ||
		one.MS == nil || *one.MS < 0 || one.ID != "abc" || one.Address != "203.0.113.9" || one.Time == "" {
		t.Errorf("%v %s", err, lines[0])
	}
	if !strings.Contains(lines[1], `"path":"/api/recordings/7/1700000000/-"`) {
		t.Errorf("%s", lines[1])
	}
	log.Reset()
	s.AccessLog = "off"
	if ask("GET", "/some/page"); log.Len() > 0 {
		t.Errorf("%s", log.String())
	}
}

func TestReady(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "parley.db"),
		Secret: storetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var working atomic.Bool
	house := (&Settings{}).root(true, db, (*api.API)(nil), http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(),
		http.NotFoundHandler(), http.NotFoundHandler(), newMetrics(nil, nil, nil), &working)
	code := func() int {
		w := httptest.NewRecorder()
		house.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		return w.Code
	}
	if got := code(); got != 503 {
		t.Errorf("%d although no jobs are worked", got)
	}
	working.Store(true)
	if got := code(); got != 200 {
		t.Errorf("%d although all is there", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := code(); got != 503 {
		t.Errorf("%d without a database", got)
	}
}

// An address that a process which is gone has for a moment longer is waited for; one that stays taken is an error.
func TestListenAgain(t *testing.T) {
	was, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := was.Addr().String()
	if _, err := listen(address); err == nil || !strings.Contains(err.Error(), "PARLEY_LISTEN") {
		t.Errorf("an address that is taken: %v", err)
	}
	time.AfterFunc(200*time.Millisecond, func() { was.Close() })
	l, err := listen(address)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// Browsers are told to use HTTPS only if this server is reached by HTTPS, whatever they ask for.
func TestStrictTransport(t *testing.T) {
	for _, c := range []struct {
		settings Settings
		want     string
	}{
		{Settings{}, ""}, {Settings{PublicURL: "http://voice.example.com"}, ""},
		{Settings{PublicURL: "https://voice.example.com/"}, "max-age=31536000"},
		{Settings{PublicURL: "HTTPS://voice.example.com"}, "max-age=31536000"},
		{Settings{TLSCert: "cert.pem"}, "max-age=31536000"},
	} {
		house := c.settings.root(true, nil, api.New(api.Config{}), http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(),
			http.NotFoundHandler(), http.NotFoundHandler(), newMetrics(nil, nil, nil), new(atomic.Bool))
		for _, path := range []string{"/healthz", "/api/nothing", "/embed.js", "/"} {
			w := httptest.NewRecorder()
			house.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if got := w.Header().Get("Strict-Transport-Security"); got != c.want {
				t.Errorf("%+v: %s says %q", c.settings.PublicURL, path, got)
			}
		}
	}
}
