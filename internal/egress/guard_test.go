package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// friend is the only address that the guards in these tests allow; the other servers listen on foe, which is refused.
const friend, foe = "127.0.0.2", "127.0.0.1"

func guard(t *testing.T) *Guard {
	g := New(nil, netip.MustParsePrefix(friend+"/32"))
	t.Cleanup(g.Close)
	return g
}

// server listens on an address and counts the connections that it gets.
func server(t *testing.T, addr string, h http.HandlerFunc) (*httptest.Server, *atomic.Int32) {
	ln, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = ln
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	t.Cleanup(s.Close)
	return s, &conns
}

func serve(t *testing.T, addr string, h http.HandlerFunc) (string, *atomic.Int32) {
	s, conns := server(t, addr, h)
	s.Start()
	return s.URL, conns
}

// lazy is a context that only guards a test against hanging.
func lazy(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func get(t *testing.T, ctx context.Context, c *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

func mustRefuse(t *testing.T, err error, reason string) {
	t.Helper()
	var r *Refused
	if !errors.As(err, &r) || !strings.Contains(r.Reason, reason) {
		t.Fatalf("got %v, want refused: … %s", err, reason)
	}
	if got := Explain(err); got != r.Reason {
		t.Errorf("Explain = %q, want %q", got, r.Reason)
	}
}

func TestRefusedURLs(t *testing.T) {
	url, conns := serve(t, foe, func(http.ResponseWriter, *http.Request) {})
	port := url[strings.LastIndex(url, ":"):]
	g := guard(t)
	g.dialer.Resolver = resolver(t, func(string) []string { return []string{foe} })
	for url, reason := range map[string]string{
		url:                                "a loopback address",
		"http://localhost" + port:          "a loopback address",
		"http://name.test" + port:          "a loopback address",
		"http://name.test." + port:         "a loopback address",
		"http://7f000001.1" + port:         "a loopback address", // a name, as the resolver sees it
		"http://0x7f.1" + port:             "a loopback address",
		"http://[::ffff:127.0.0.1]" + port: "a loopback address",
		"http://[::1]" + port:              "a loopback address",
		"http://0.0.0.0" + port:            "unspecified",
		"http://[::]" + port:               "unspecified",
		"http://169.254.169.254/latest":    "link-local",
		"http://[fd00:ec2::254]/latest":    "private",
		"http://[fe80::1%25lo]" + port:     "link-local",
		"http://[64:ff9b::7f00:1]" + port:  "a loopback address",
		"http://user:password@" + friend:   "user name or password",
		"http://user@" + friend:            "user name or password",
		"http:///path":                     "names no host",
		"http://:80/path":                  "names no host",
		"file:///etc/passwd":               "only http and https",
		"ftp://" + friend + "/x":           "only http and https",
		"gopher://" + friend + "/x":        "only http and https",
		"unix:///var/run/docker.sock":      "only http and https",
		"data:text/plain,x":                "only http and https",
		"javascript:alert(1)":              "only http and https",
		"//" + friend + "/x":               "only http and https",
	} {
		t.Run(url, func(t *testing.T) {
			_, err := get(t, lazy(t), g.Client(5), url)
			mustRefuse(t, err, reason)
		})
	}
	if n := conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// The text of a refusal contains nothing that the resolver found out.
func TestRefusedText(t *testing.T) {
	g := guard(t)
	g.dialer.Resolver = resolver(t, func(string) []string { return []string{"10.11.12.13"} })
	_, err := get(t, lazy(t), g.Client(0), "http://internal.test/")
	mustRefuse(t, err, "private")
	if s := Explain(err); strings.Contains(s, "10.11") || strings.Contains(s, "internal.test") ||
		!strings.Contains(s, "PARLEY_EGRESS_ALLOW") {
		t.Errorf("text is %q", s)
	}
	var r *Refused
	if errors.As(err, &r); r.Addr != netip.MustParseAddr("10.11.12.13") {
		t.Errorf("Addr is %s", r.Addr)
	}
	if !strings.HasPrefix(r.Error(), "refused: the address is private") {
		t.Errorf("Error is %q", r.Error())
	}
}

// The name is harmless at the first lookup, and not at later ones.
func TestNameChangesItsMind(t *testing.T) {
	var now atomic.Value
	now.Store(friend)
	url, _ := serve(t, friend, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	port := url[strings.LastIndex(url, ":"):]
	ln, err := net.Listen("tcp", foe+port)
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 8)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })

	g := guard(t)
	g.dialer.Resolver = resolver(t, func(string) []string { return []string{now.Load().(string)} })
	resp, err := get(t, lazy(t), g.Client(5), "http://rebind.test"+port)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	now.Store(foe)
	g.Close() // a kept connection still goes to the address that was checked
	_, err = get(t, lazy(t), g.Client(5), "http://rebind.test"+port)
	mustRefuse(t, err, "loopback")

	// Of several addresses only the allowed one is tried.
	g.dialer.Resolver = resolver(t, func(string) []string {
		return []string{foe, "10.0.0.1", friend,
			"169.254.169.254"}
	})
	if _, err = get(t, lazy(t), g.Client(5), "http://many.test"+port); err != nil {
		t.Error(err)
	}
	if len(conns) != 0 {
		t.Errorf("%d connections were made to where none may be", len(conns))
	}
}

func TestDialer(t *testing.T) {
	url, conns := serve(t, foe, func(http.ResponseWriter, *http.Request) {})
	_, err := guard(t).dialer.DialContext(lazy(t), "tcp", strings.TrimPrefix(url, "http://"))
	mustRefuse(t, err, "loopback")
	_, err = guard(t).dialer.DialContext(lazy(t), "unix", t.TempDir()+"/socket")
	mustRefuse(t, err, "not an internet address")
	_, err = guard(t).dialer.DialContext(lazy(t), "udp", foe+":53")
	mustRefuse(t, err, "loopback")
	if conns.Load() != 0 {
		t.Error("a connection was made")
	}
	url, _ = serve(t, friend, func(http.ResponseWriter, *http.Request) {})
	c, err := guard(t).dialer.DialContext(lazy(t), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestBounds(t *testing.T) {
	tr := New(nil).transport.Transport
	if tr.Proxy != nil {
		t.Error("a proxy would be used")
	}
	if tr.TLSHandshakeTimeout <= 0 || tr.ResponseHeaderTimeout <= 0 || tr.IdleConnTimeout <= 0 ||
		tr.MaxResponseHeaderBytes <= 0 || tr.MaxIdleConns <= 0 || New(nil).dialer.Timeout <= 0 {
		t.Error("a bound is missing")
	}
	if !tr.Protocols.HTTP1() || tr.Protocols.HTTP2() || tr.Protocols.UnencryptedHTTP2() {
		t.Errorf("protocols are %s", tr.Protocols)
	}
}

// A request that may have reached the server is not sent again.
func TestNoRetry(t *testing.T) {
	var posts atomic.Int32
	url, _ := serve(t, friend, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}
	})
	c := guard(t).Client(5)
	resp, err := get(t, lazy(t), c, url) // leaves a connection to be reused
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	req, err := http.NewRequestWithContext(lazy(t), http.MethodPost, url, bytes.NewReader([]byte("{}")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Do(req); err == nil || Explain(err) != "the connection broke off" {
		t.Errorf("got %v", err)
	}
	if posts.Load() != 1 {
		t.Errorf("%d posts", posts.Load())
	}
}

// resolver answers A queries through its own DNS server; a name without addresses does not exist.
func resolver(t *testing.T, lookup func(name string) []string) *net.Resolver {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { pc.Close(); wg.Wait() })
	wg.Go(func() {
		b := make([]byte, 512)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			pc.WriteTo(answer(b[:n], lookup), from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// answer is the answer to a DNS query, RFC 1035 section 4.1.
func answer(query []byte, lookup func(string) []string) []byte {
	end := 12
	var labels []string
	for query[end] != 0 {
		labels = append(labels, string(query[end+1:end+1+int(query[end])]))
		end += 1 + int(query[end])
	}
	end += 5
	isA := query[end-3] == 1
	b := slices.Clone(query[:end])
	copy(b[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // a response, one question
	list := lookup(strings.Join(labels, "."))
	if len(list) == 0 {
		b[3] |= 3 // NXDOMAIN
	} else if list[0] == "SERVFAIL" {
		b[3] |= 2
	} else if isA {
		b[7] = byte(len(list))
		for _, s := range list {
			ip := netip.MustParseAddr(s).As4()
			b = append(b, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ip[0], ip[1], ip[2], ip[3])
		}
	}
	return b
}
