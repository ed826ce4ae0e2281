package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"parley/internal/api"
	"parley/internal/mcpserver"
	"parley/internal/oauth"
	"parley/internal/payment"
	"parley/internal/store"
	"parley/internal/web"
	"parley/internal/widget"
)

// root is the whole server: the API, the console, and what watches over them. Of a node that does not serve them there is only
// what watches.
func (s *Settings) root(serves bool, db *store.DB, rest *api.API, models, apps, pages, carrierHooks, payments http.Handler, m *meters,
	working *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if err := db.Ping(ctx); err != nil {
			say(w, http.StatusServiceUnavailable, "the database does not answer")
			return
		}
		if err := db.Writable(ctx); err != nil {
			say(w, http.StatusServiceUnavailable, "the database can't be written")
			return
		}
		if !working.Load() {
			say(w, http.StatusServiceUnavailable, "job workers are not running")
			return
		}
		say(w, http.StatusOK, "ok")
	})
	own := s.metricsHere(m.handler())
	mux.Handle("GET "+metricsPath, own)
	mux.Handle("GET "+profilesPath, own)
	if !serves {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			say(w, http.StatusNotFound, "this node does not serve that (PARLEY_ROLES)")
		})
		return mux
	}
	mux.Handle("/api/", rest)
	mux.Handle(mcpserver.Path, models)
	for _, path := range oauth.Paths {
		mux.Handle(path, apps)
	}
	mux.Handle("/webhooks/twilio/", carrierHooks)
	mux.HandleFunc("/webhooks/whatsapp", rest.WhatsAppWebhook)
	mux.Handle(payment.WebhookPath, payments)
	shown := widget.Handler(s.front())
	for _, path := range widget.Paths {
		mux.Handle(path, shown)
	}
	mux.Handle("/", pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.overTLS() {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		began, rec := time.Now(), &recorder{ResponseWriter: w, status: http.StatusOK}
		if s.AccessLog == "on" && !watched[r.URL.Path] {
			defer func() { rec.log(r, s.front().Address(r), time.Since(began)) }()
		}
		// The API is not cleaned by the mux: a path below /user/ must be refused before it is redirected.
		if strings.HasPrefix(r.URL.Path, "/api/") {
			rest.ServeHTTP(rec, r)
		} else {
			mux.ServeHTTP(rec, r)
		}
		m.seconds.WithLabelValues(method(r.Method), strconv.Itoa(rec.status)).Observe(time.Since(began).Seconds())
	})
}

// listenAgain is for how long an address that is taken is tried again: a process that was killed a moment ago may still have it, or a
// child that it was just starting.
const listenAgain = 3 * time.Second

// listen opens a TCP address. An error says what to change.
func listen(address string) (l net.Listener, err error) {
	for end := time.Now().Add(listenAgain); ; time.Sleep(50 * time.Millisecond) {
		if l, err = net.Listen("tcp", address); err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return nil, fmt.Errorf("listen on %s (choose another with --listen or PARLEY_LISTEN): %w", address, err)
		}
	}
}

// notFound answers programs that ask for what is not there.
func notFound(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, `{"message":"Not found."}`+"\n")
}

// method keeps a client's inventions out of the metrics' labels.
func method(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return m
	}
	return "other"
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"status": text})
}

// watched are asked every few seconds by those who watch the server: their lines would hide the others.
var watched = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}

// recorder remembers the status of an answer, and how long it was.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// log writes a request's line. A query may hold what nobody else should read, and is left out.
func (r *recorder) log(req *http.Request, address string, took time.Duration) {
	slog.InfoContext(req.Context(), "request", "method", req.Method, "path", web.LoggedPath(req.URL.Path), "status",
		r.status, "bytes", r.bytes,
		"ms", math.Round(float64(took.Microseconds())/100)/10, "request_id", r.Header().Get("X-Request-Id"),
		"address", address)
}

func (r *recorder) Write(b []byte) (int, error) {
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection, for streams and deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// front is how the server is seen from outside.
func (s *Settings) front() web.Front {
	return web.Front{PublicURL: s.publicURL(), Proxies: s.TrustedProxies}
}

// overTLS says whether browsers reach this server by HTTPS: here, or at a proxy before it. Then they are told to come
// no other way for a year. (What is said over plain HTTP they ignore.)
func (s *Settings) overTLS() bool {
	return s.TLSCert != "" || strings.HasPrefix(web.Origin(s.PublicURL), "https://")
}

// publicURL is the setting without its last slash.
func (s *Settings) publicURL() string { return strings.TrimSuffix(s.PublicURL, "/") }

// prefixed says how to mend a public URL below the root of a host: pages and the widget are served from the root.
func (s *Settings) prefixed() error {
	u, err := url.Parse(s.publicURL())
	if err != nil || u.Path == "" && u.RawQuery == "" && u.Fragment == "" {
		return nil
	}
	return fmt.Errorf("PARLEY_PUBLIC_URL is %s: this server can't be served below a path. "+
		"Give it a host name of its own, and set PARLEY_PUBLIC_URL to %s://%s",
		s.PublicURL, u.Scheme, u.Host)
}

// urlOf is where a person finds this server.
func (s *Settings) urlOf(at net.Addr) string {
	if s.PublicURL != "" {
		return s.publicURL()
	}
	scheme := "http"
	if s.TLSCert != "" {
		scheme = "https"
	}
	host, port, _ := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(host, port))
}

// body is a request body as the API would have decoded it.
func body(v map[string]any) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		panic(err)
	}
	return out
}
