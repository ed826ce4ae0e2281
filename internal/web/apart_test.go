package web_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/internal/web"
)

// HTTP, of whichever version and agreed on in the handshake or not, and TURN come to the same port, each to its own.
func TestApart(t *testing.T) {
	lent := httptest.NewUnstartedServer(nil) // of which only the certificate is used
	lent.StartTLS()
	defer lent.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(lent.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	turn := make(chan []byte, 1)
	a := web.NewApart(l, &tls.Config{Certificates: lent.TLS.Certificates}, func(c net.Conn) {
		got := make([]byte, 4)
		io.ReadFull(c, got)
		turn <- got
		c.Close()
	})
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.TLS != nil, " ", web.Front{}.Secure(r))
	})}
	var work sync.WaitGroup
	work.Go(func() {
		if err := a.Serve(s); err != http.ErrServerClosed {
			t.Errorf("it ended by %v", err)
		}
	})
	dial := func(protocols ...string) *tls.Conn {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: trusted, NextProtos: protocols})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, protocols := range [][]string{nil, {"http/1.1"}} {
		c := dial(protocols...)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(res.Body); string(body) != "HTTP/1.1 true true" {
			t.Errorf("%v: %s", protocols, body)
		}
		c.Close()
	}
	modern := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	res, err := modern.Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "HTTP/2.0 true true" {
		t.Errorf("HTTP/2: %s", body)
	}
	res.Body.Close()
	modern.CloseIdleConnections()

	for _, protocols := range [][]string{nil, {"stun.turn"}} {
		c := dial(protocols...)
		c.Write([]byte{0, 3, 0, 8}) // how a request for a relay begins
		if got := <-turn; string(got) != "\x00\x03\x00\x08" {
			t.Errorf("%v: TURN got %v", protocols, got)
		}
		c.Close()
	}

	// Who says nothing, or does not shake hands, holds nobody up, and is sent away when the server stops.
	silent := dial()
	defer silent.Close()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	again := dial("http/1.1")
	fmt.Fprint(again, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(again), nil); err != nil {
		t.Error(err)
	}
	again.Close()
	s.Close()
	work.Wait()
	for _, c := range []net.Conn{silent, raw} {
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("it was told something")
		}
	}
}

// scarce is a listener that first has no file for a connection.
type scarce struct {
	net.Listener
	errors []error
}

func (s *scarce) Accept() (net.Conn, error) {
	if len(s.errors) > 0 {
		err := s.errors[0]
		s.errors = s.errors[1:]
		return nil, err
	}
	return s.Listener.Accept()
}

// A server that is out of files takes connections again when there are some, with and without a limit for each address.
func TestListenOutOfFiles(t *testing.T) {
	for _, most := range []int{0, 10} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		full := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		out := web.Front{}.Listen(&scarce{l, []error{full, full}}, most)
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := out.Accept()
		if err != nil {
			t.Fatalf("limit %d: %v", most, err)
		}
		got.Close()
		c.Close()
		l.Close()
		if _, err := out.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("limit %d: closed, it says %v", most, err)
		}
	}
}
