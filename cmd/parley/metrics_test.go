package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/api"
)

// The metrics are read with the token, where there is one. Without one, only this machine reads them, and only without a proxy
// between: a proxy on the same machine comes from loopback, too.
func TestMetrics(t *testing.T) {
	const here, there = "127.0.0.1:5000", "192.0.2.7:5000"
	for name, c := range map[string]struct {
		settings Settings
		from     string
		header   []string
		want     int
	}{
		"this machine":         {Settings{}, here, nil, 200},
		"this machine by IPv6": {Settings{}, "[::1]:5000", nil, 200},
		"mapped":               {Settings{}, "[::ffff:127.0.0.1]:5000", nil, 200},
		"another":              {Settings{}, there, nil, 403},
		"nobody knows who":     {Settings{}, "@", nil, 403},
		"a proxy":              {Settings{}, here, []string{"X-Forwarded-For", "192.0.2.7"}, 403},
		"another proxy":        {Settings{}, here, []string{"Forwarded", "for=192.0.2.7"}, 403},
		"nginx":                {Settings{}, here, []string{"X-Real-IP", "192.0.2.7"}, 403},
		"with the token":       {Settings{MetricsToken: "t0ken"}, there, []string{"Authorization", "Bearer t0ken"}, 200},
		"through a proxy":      {Settings{MetricsToken: "t0ken"}, here, []string{"Authorization", "Bearer t0ken", "Via", "1.1 a"}, 200},
		"another token":        {Settings{MetricsToken: "t0ken"}, here, []string{"Authorization", "Bearer other"}, 401},
		"no token":             {Settings{MetricsToken: "t0ken"}, here, nil, 401},
		"elsewhere":            {Settings{MetricsListen: "127.0.0.1:9100"}, here, nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			root := c.settings.root(nil, api.New(api.Config{}), http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(),
				scrapable(t), new(atomic.Bool))
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
			r.RemoteAddr = c.from
			for i := 0; i < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
			root.ServeHTTP(w, r)
			if told := strings.Contains(w.Body.String(), "go_goroutines"); w.Code != c.want || told != (c.want == 200) {
				t.Errorf("%d, metrics told: %v, want %d", w.Code, told, c.want)
			}
		})
	}
}

// scrapable are metrics without a telephone.
func scrapable(t *testing.T) *meters {
	m := newMetrics(nil, nil)
	if !m.Unregister(callMetrics{}) {
		t.Fatal("no metrics of calls")
	}
	return m
}

// A listener of its own serves the metrics to whoever reaches it, with the token if there is one, and nothing else.
func TestMetricsListener(t *testing.T) {
	for _, token := range []string{"", "t0ken"} {
		s := &Settings{MetricsListen: "127.0.0.1:0", MetricsToken: token}
		h := httptest.NewServer(s.metricsThere(scrapable(t).handler()))
		ask := func(path, token string) (int, string) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Forwarded-For", "192.0.2.7")
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			res, err := h.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, string(body)
		}
		if code, body := ask("/metrics", token); code != 200 || !strings.Contains(body, "go_goroutines") {
			t.Errorf("token %q: %d", token, code)
		}
		if code, _ := ask("/metrics", "other"); (code != 200) != (token != "") {
			t.Errorf("token %q, another is sent: %d", token, code)
		}
		if code, _ := ask("/", token); code != 404 {
			t.Errorf("something else: %d", code)
		}
		h.Close()
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := (&Settings{MetricsListen: taken.Addr().String()}).openMetrics(http.NotFoundHandler()); err == nil ||
		!strings.Contains(err.Error(), "PARLEY_METRICS_LISTEN") {
		t.Errorf("an address that is taken: %v", err)
	}
}
