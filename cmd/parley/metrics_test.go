package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/riverqueue/river"
	"go.yaml.in/yaml/v3"

	"parley/internal/api"
	"parley/internal/store"
	"parley/internal/store/storetest"
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
			root := c.settings.root(true, nil, api.New(api.Config{}), http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(),
				http.NotFoundHandler(), http.NotFoundHandler(), scrapable(t), new(atomic.Bool))
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
			r.RemoteAddr = c.from
			for i := 0; i < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
			root.ServeHTTP(w, r)
			if told := strings.Contains(w.Body.String(), "go_goroutines"); w.Code != c.want || told != (c.want == 200) {
				t.Errorf("%d, metrics told: %v, want %d", w.Code, told, c.want)
			}
			w, r.URL.Path = httptest.NewRecorder(), "/debug/pprof/goroutine"
			want := c.want
			if want == 200 && c.settings.MetricsToken == "" { // a profile needs a token, also on this machine
				want = 403
			}
			if root.ServeHTTP(w, r); w.Code != want {
				t.Errorf("a profile is answered %d, want %d", w.Code, want)
			}
		})
	}
}

// scrapable are metrics without a telephone.
func scrapable(t *testing.T) *meters {
	m := newMetrics(nil, nil, nil)
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

// The alerts and the dashboard in deploy/ ask for metrics that exist, and the dashboard shows all of ours.
func TestDashboardsKnowTheirMetrics(t *testing.T) {
	m := newMetrics(nil, nil, nil)
	described := make(chan *prometheus.Desc, 1000)
	m.Describe(described)
	databaseMetrics{}.Describe(described)
	collectors.NewDBStatsCollector(nil, "read").Describe(described)
	close(described)
	exist := map[string]bool{}
	for d := range described {
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]
		exist[name] = true
	}
	asked := regexp.MustCompile(`\b(parley|go|process)_[a-z_]+`)
	shown := map[string]bool{}
	for _, file := range []string{"prometheus-alerts.yaml", "grafana-dashboard.json"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, expr := range expressions(t, file, text) {
			for _, name := range asked.FindAllString(expr, -1) {
				if !exist[name] {
					for _, end := range []string{"_bucket", "_count", "_sum"} {
						name = strings.TrimSuffix(name, end)
					}
				}
				if shown[name] = true; !exist[name] {
					t.Errorf("%s asks for %s, which there is not", file, name)
				}
			}
		}
	}
	for name := range exist {
		if strings.HasPrefix(name, "parley_") && !shown[name] {
			t.Errorf("no panel and no alert shows %s", name)
		}
	}
}

// expressions are the queries of an alerts file or a dashboard.
func expressions(t *testing.T, file string, text []byte) (list []string) {
	t.Helper()
	var alerts struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	err := json.Unmarshal(text, &board)
	if strings.HasSuffix(file, ".yaml") {
		err = yaml.Unmarshal(text, &alerts)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			list = append(list, r.Expr)
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s asks for nothing", file)
	}
	return list
}

type dueArgs struct{ N int }

func (dueArgs) Kind() string { return "due" }

// The program's figures are read from a real database.
func TestDatabaseMetrics(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		m := newMetrics(nil, nil, nil)
		if !m.Unregister(callMetrics{}) {
			t.Fatal("no metrics of calls")
		}
		m.watchDatabase(db)
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			later := &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)}
			return errors.Join(tx.Enqueue(ctx, dueArgs{1}, nil), tx.Enqueue(ctx, dueArgs{2}, nil), tx.Enqueue(ctx, dueArgs{3}, later))
		}); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range []string{"parley_database_up 1", "parley_webhooks_waiting 0", `parley_jobs_waiting{kind="due"} 2`,
			"parley_database_writes_waiting 0", "parley_build_info{", "go_sql_open_connections{"} {
			if !strings.Contains(w.Body.String(), line) {
				t.Errorf("%q is not in the metrics", line)
			}
		}
		w = httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/debug/pprof/goroutine?debug=1", nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), "goroutine profile") {
			t.Errorf("the profile of goroutines is answered %d", w.Code)
		}
	})
}
