package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func tlsConfig(pool *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: pool} }

// raw is a server that reads a request's header and answers with its own bytes. talk may write as long as it likes.
func raw(t *testing.T, talk func(c net.Conn)) string {
	ln, err := net.Listen("tcp", friend+":0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				var head []byte
				b := make([]byte, 1)
				for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
					if _, err := c.Read(b); err != nil {
						return
					}
					head = append(head, b[0])
				}
				talk(c)
			})
		}
	})
	return "http://" + ln.Addr().String()
}

// forever writes a piece until the other side hangs up.
func forever(c net.Conn, piece string) {
	for {
		if _, err := io.WriteString(c, piece); err != nil {
			return
		}
	}
}

func inflating(n int) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for ; n > 0; n-- {
		if _, err := z.Write(zeros); err != nil {
			panic(err)
		}
	}
	z.Close()
	return b.String()
}

func TestRead(t *testing.T) {
	bomb := inflating(64)
	for _, c := range []struct {
		name string
		talk func(net.Conn)
		max  int64
		n    int // how many bytes are read
		cut  bool
		err  string // the text of Explain; "" for none
	}{
		{"exact", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") }, 5, 5,
			false, ""},
		{"one more", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") }, 4,
			4, true, ""},
		{"empty", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }, 4, 0,
			false, ""},
		{"nothing wanted", func(c net.Conn) {
			io.WriteString(c,
				"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}, 0, 0, true, ""},
		{"huge", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\n")
			forever(c, strings.Repeat("x", 4096))
		}, 1000, 1000, true, ""},
		{"endless", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			forever(c, "4\r\nwxyz\r\n")
		}, 1000, 1000, true, ""},
		{"gzip bomb", func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(bomb), bomb)
		}, 1000, 1000, true, ""},
		{"endless gzip of nothing", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n")
			for range 1000 {
				if _, err := io.WriteString(c, inflating(0)); err != nil {
					return
				}
			}
		}, 1000, 0, false, ""},
		{"too short", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello") },
			1000, 5, false, "the connection broke off"},
		{"broken chunk", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nwor")
		}, 1000, 8, false, "the connection broke off"},
		{"no chunk", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello world, this is no chunk\r\n")
		}, 1000, 0, false, "the server's answer could not be understood"},
		{"no gzip", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\nhello, world")
		}, 1000, 0, false, "the server's answer is badly compressed"},
		{"torn gzip", func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 40\r\n\r\n%s", bomb[:40])
		}, 1 << 30, -1, false, "the connection broke off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, err := get(t, lazy(t), guard(t).Client(0), raw(t, c.talk))
			if err != nil {
				t.Fatal(err)
			}
			b, cut, err := Read(resp.Body, c.max)
			if c.n >= 0 && len(b) != c.n || cut != c.cut || (err == nil) != (c.err == "") {
				t.Fatalf("read %d bytes, cut %t, %v", len(b), cut, err)
			}
			if err != nil && Explain(err) != c.err {
				t.Errorf("Explain(%v) = %q, want %q", err, Explain(err), c.err)
			}
			resp.Body.Close() // ends the servers that would never stop
		})
	}
}

func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		talk func(net.Conn)
		want string
	}{
		"header bomb": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			forever(c, "X-Bomb: "+strings.Repeat("x", 1000)+"\r\n")
		}, "the server's answer could not be understood"},
		"one endless header": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			forever(c,
				"xxxxxxxx")
		}, "the server's answer could not be understood"},
		"endless status line": {func(c net.Conn) { forever(c, "HTTP/1.1 200 ") },
			"the server's answer could not be understood"},
		"endless 100": {func(c net.Conn) { forever(c, "HTTP/1.1 100 Continue\r\n\r\n") },
			"the server's answer could not be understood"},
		"endless 103": {func(c net.Conn) { forever(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n") },
			"the server's answer could not be understood"},
		"no HTTP": {func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n") },
			"the server's answer could not be understood"},
		"two lengths": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
		}, "the server's answer could not be understood"},
		"negative length": {func(c net.Conn) {
			io.WriteString(c,
				"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello")
		}, "the server's answer could not be understood"},
		"hangs up": {func(net.Conn) {}, "the connection broke off"},
		"resets":   {func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }, "the connection broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(t, lazy(t), guard(t).Client(5), raw(t, c.talk))
			if err == nil || Explain(err) != c.want {
				t.Errorf("got %v: %s", err, Explain(err))
			}
		})
	}
}

// Whatever a server is slow at, the context ends it.
func TestSlow(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop) // before the test waits for the servers
	url := map[string]string{
		"header": raw(t, func(net.Conn) { <-stop }),
		"half a header": raw(t, func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Slow: ")
			<-stop
		}),
		"body": raw(t, func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
			<-stop
		}),
		"connect": full(t),
	}
	ln, err := net.Listen("tcp", friend+":0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	url["accept"] = "http://" + ln.Addr().String()
	url["TLS handshake"] = "https://" + ln.Addr().String()
	for name, url := range url {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			resp, err := get(t, ctx, guard(t).Client(5), url)
			if err == nil {
				_, _, err = Read(resp.Body, 1000)
			}
			if err == nil || Explain(err) != "the server took too long" {
				t.Errorf("got %v: %s", err, Explain(err))
			}
		})
	}
	// If the context allows more, the limits of each hop end it.
	for name, c := range map[string]struct {
		url string
		set func(*Guard)
	}{
		"header": {url["header"], func(g *Guard) { g.transport.ResponseHeaderTimeout = 20 * time.Millisecond }},
		"TLS handshake": {url["TLS handshake"], func(g *Guard) {
			g.transport.TLSHandshakeTimeout = 20 * time.Millisecond
		}},
		"connect": {url["connect"], func(g *Guard) { g.dialer.Timeout = 20 * time.Millisecond }},
	} {
		t.Run("bound of "+name, func(t *testing.T) {
			g := guard(t)
			c.set(g)
			ctx := lazy(t)
			_, err := get(t, ctx, g.Client(5), c.url)
			if err == nil || Explain(err) != "the server took too long" || ctx.Err() != nil {
				t.Errorf("got %v: %s", err, Explain(err))
			}
		})
	}
}

// full is the URL of a listener with a full backlog, so that connecting to it hangs.
func full(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 2}}),
		syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort(friend, strconv.Itoa(sa.(*syscall.SockaddrInet4).Port))
	for range 64 {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			return "http://" + addr
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the backlog never filled")
	return ""
}

func TestExplain(t *testing.T) {
	nobody, err := net.Listen("tcp", friend+":0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + nobody.Addr().String()
	nobody.Close()
	plainURL, _ := serve(t, friend, func(http.ResponseWriter, *http.Request) {})
	s, _ := server(t, friend, func(http.ResponseWriter, *http.Request) {})
	s.Config.ErrorLog = quiet
	s.StartTLS()
	old, _ := server(t, friend, func(http.ResponseWriter, *http.Request) {})
	old.Config.ErrorLog = quiet
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	named := func(g *Guard) { g.dialer.Resolver = resolver(t, func(string) []string { return []string{friend} }) }
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		url, want string
		ctx       context.Context
		set       func(*Guard)
	}{
		"closed port": {url: closed, want: "the server does not accept connections there"},
		"unknown authority": {url: byName(s.URL), want: "the server's certificate is from an unknown authority",
			set: named},
		"another name": {url: strings.Replace(s.URL, friend, "other.test", 1),
			want: "the server's certificate is for another name", set: func(g *Guard) {
				trust(g, s.Certificate())
				named(g)
			}},
		"expired": {url: byName(s.URL), want: "the server's certificate has expired or is not valid yet",
			set: func(g *Guard) {
				trust(g, s.Certificate())
				g.transport.TLSClientConfig.Time = func() time.Time {
					return time.Date(2200, 1, 1, 0, 0, 0, 0,
						time.UTC)
				}
				named(g)
			}},
		"old TLS": {url: old.URL, want: "no secure connection could be made with the server"},
		"no TLS": {url: strings.Replace(plainURL, "http:", "https:", 1),
			want: "the server does not speak https there"},
		"canceled": {url: plainURL, want: "the request was canceled", ctx: canceled},
		"NXDOMAIN": {url: "http://none.test/", want: "the server's name could not be found",
			set: func(g *Guard) { g.dialer.Resolver = resolver(t, func(string) []string { return nil }) }},
		"SERVFAIL": {url: "http://none.test/", want: "the server's name could not be looked up",
			set: func(g *Guard) {
				g.dialer.Resolver = resolver(t,
					func(string) []string { return []string{"SERVFAIL"} })
			}},
		"unreachable": {url: "http://" + friend, want: "the server could not be reached",
			set: func(g *Guard) { g.dialer.LocalAddr = &net.TCPAddr{IP: net.IPv6loopback} }},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t)
			if c.set != nil {
				c.set(g)
			}
			if c.ctx == nil {
				c.ctx = lazy(t)
			}
			_, err := get(t, c.ctx, g.Client(5), c.url)
			if err == nil || Explain(err) != c.want {
				t.Errorf("got %v: %s", err, Explain(err))
			}
		})
	}
}

// byName is a server's URL with the name from the certificate of httptest.
func byName(url string) string { return strings.Replace(url, friend, "example.com", 1) }

// quiet keeps the servers' complaints about failed handshakes out of the test's output.
var quiet = log.New(io.Discard, "", 0)
