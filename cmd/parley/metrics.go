package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/internal/call"
	"parley/internal/detector"
	"parley/internal/rtp"
	"parley/internal/store"
	"parley/internal/telemetry"
)

// metricsPath is where the metrics are read, and profilesPath where profiles are.
const (
	metricsPath  = "/metrics"
	profilesPath = "/debug/pprof/"
)

// proxied are the headers by which proxies say that a request came through them.
var proxied = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// meters are what /metrics tells.
type meters struct {
	*prometheus.Registry
	seconds *prometheus.HistogramVec // that requests took
}

// databaseMetrics tells of the database, and of what waits in it.
type databaseMetrics struct{ *store.DB }

var (
	jobsWaiting     = prometheus.NewDesc("parley_jobs_waiting", "Jobs that are due and not begun, by kind.", []string{"kind"}, nil)
	webhooksWaiting = prometheus.NewDesc("parley_webhooks_waiting", "Webhook deliveries that are due.", nil, nil)
	writesWaiting   = prometheus.NewDesc("parley_database_writes_waiting", "Writes that wait for SQLite's writer.", nil, nil)
	databaseUp      = prometheus.NewDesc("parley_database_up", "1 if the database answers.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m databaseMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsWaiting, webhooksWaiting, writesWaiting, databaseUp} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m databaseMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(writesWaiting, m.WaitingWrites())
	b, err := m.Backlog(ctx)
	if err != nil { // whoever uses the database logs why
		gauge(databaseUp, 0)
		return
	}
	gauge(databaseUp, 1)
	gauge(webhooksWaiting, b.Webhooks)
	for kind, n := range b.Jobs {
		gauge(jobsWaiting, n, kind)
	}
}

// buildMetric names the program: its value is always 1.
func buildMetric() prometheus.Collector {
	info, _ := debug.ReadBuildInfo()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_build_info", Help: "The program: always 1.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(release(version, info), "devel"),
			"commit": cmp.Or(commit[:min(12, len(commit))], "unknown"), "go": runtime.Version()}}, func() float64 { return 1 })
}

// watchDatabase adds the metrics of a database.
func (m *meters) watchDatabase(db *store.DB) {
	m.MustRegister(databaseMetrics{db})
	for name, pool := range db.Pools() {
		m.MustRegister(collectors.NewDBStatsCollector(pool, name))
	}
}

func newMetrics(calls *call.Center, pace *rtp.Pace, judge *detector.Detector) *meters {
	m := &meters{prometheus.NewRegistry(), prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_http_request_seconds",
		Help:    "Time to answer an HTTP request.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}}, []string{"method", "status"})}
	m.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.seconds, callMetrics{calls, pace, judge}, buildMetric())
	m.MustRegister(telemetry.Collectors()...)
	return m
}

// handler serves the metrics, and the profiles of Go's runtime.
func (m *meters) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(m, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET "+profilesPath, pprof.Index)
	mux.HandleFunc("GET "+profilesPath+"profile", pprof.Profile)
	mux.HandleFunc("GET "+profilesPath+"trace", pprof.Trace)
	mux.HandleFunc("GET "+profilesPath+"symbol", pprof.Symbol)
	return mux
}

// mayReadMetrics lets a request read the metrics: with the token, where one is set; otherwise, on the server's own port, only from
// this machine and not through a proxy.
func (s *Settings) mayReadMetrics(r *http.Request) bool {
	if s.MetricsToken != "" {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		want, got := sha256.Sum256([]byte(s.MetricsToken)), sha256.Sum256([]byte(strings.TrimSpace(given)))
		return ok && subtle.ConstantTimeCompare(want[:], got[:]) == 1
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() &&
		!slices.ContainsFunc(proxied, func(name string) bool { return r.Header.Get(name) != "" })
}

// metricsHere guards metrics and profiles on the server's own port. With a listener of their own they are not there.
func (s *Settings) metricsHere(all http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.MetricsListen != "":
			notFound(w, r)
		case s.MetricsToken == "" && r.URL.Path != metricsPath:
			http.Error(w, "profiles are read with a token: set PARLEY_METRICS_TOKEN or PARLEY_METRICS_LISTEN", http.StatusForbidden)
		case s.mayReadMetrics(r):
			all.ServeHTTP(w, r)
		case s.MetricsToken != "":
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send PARLEY_METRICS_TOKEN as a bearer token", http.StatusUnauthorized)
		default:
			http.Error(w, "metrics are read on this machine only, and not through a proxy: set PARLEY_METRICS_TOKEN or PARLEY_METRICS_LISTEN",
				http.StatusForbidden)
		}
	})
}

// metricsThere is what the listener of PARLEY_METRICS_LISTEN serves: metrics and profiles alone, with the token if one is set.
func (s *Settings) metricsThere(all http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.MetricsToken != "" && !s.mayReadMetrics(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send PARLEY_METRICS_TOKEN as a bearer token", http.StatusUnauthorized)
			return
		}
		all.ServeHTTP(w, r)
	})
}

// openMetrics opens the listener of PARLEY_METRICS_LISTEN. The caller closes it; it is nil where there is none.
func (s *Settings) openMetrics(all http.Handler) (io.Closer, error) {
	if s.MetricsListen == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	at, err := net.Listen("tcp", s.MetricsListen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (PARLEY_METRICS_LISTEN): %w", s.MetricsListen, err)
	}
	h := &http.Server{Handler: s.metricsThere(all), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug)}
	go func() {
		if err := h.Serve(at); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the metrics are not served any more", "error", err)
		}
	}()
	return h, nil
}
