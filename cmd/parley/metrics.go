package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/internal/call"
	"parley/internal/detector"
)

// metricsPath is where the metrics are read.
const metricsPath = "/metrics"

// proxied are the headers by which proxies say that a request came through them.
var proxied = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// meters are what /metrics tells.
type meters struct {
	*prometheus.Registry
	seconds *prometheus.HistogramVec // that requests took
}

func newMetrics(calls *call.Center, judge *detector.Detector) *meters {
	m := &meters{prometheus.NewRegistry(), prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_http_request_seconds",
		Help:    "Time to answer an HTTP request.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}}, []string{"method", "status"})}
	m.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.seconds, callMetrics{calls, judge})
	return m
}

func (m *meters) handler() http.Handler { return promhttp.HandlerFor(m, promhttp.HandlerOpts{}) }

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

// metricsHere is /metrics on the server's own port. With a listener of their own it is not there.
func (s *Settings) metricsHere(all http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.MetricsListen != "":
			notFound(w, r)
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

// metricsThere is what the listener of PARLEY_METRICS_LISTEN serves: the metrics alone, with the token if one is set.
func (s *Settings) metricsThere(all http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, r *http.Request) {
		if s.MetricsToken != "" && !s.mayReadMetrics(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send PARLEY_METRICS_TOKEN as a bearer token", http.StatusUnauthorized)
			return
		}
		all.ServeHTTP(w, r)
	})
	return mux
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
