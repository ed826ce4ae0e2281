package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dripping opens connections that send half a request, on every kind of route.
func dripping(t *testing.T, p *program) {
	t.Helper()
	for _, path := range []string{"/api/login", "/api/web-calls/" + p.AssistantUUID, "/webhooks/whatsapp",
		"/signin", "/api/user/documents/1", "/nothing"} {
		for _, head := range []string{"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\nhalf",
			"POST %s HTTP/1.1\r\nHost: x\r\nContent-"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			fmt.Fprintf(conn, head, path)
		}
	}
}

// A server that stops does not wait for clients that have sent half a request, however long its drain is.
func TestStopDoesNotWaitForHalfARequest(t *testing.T) {
	share(t, call)
	p := start(t, "PARLEY_DRAIN=1h")
	dripping(t, p)
	p.call(t, "GET", "/user/me", nil, nil) // what was sent before has arrived by now
	began := time.Now()
	p.stop(t)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the server took %s to stop", took)
	}
}

// An address may have so many connections; further ones are closed at once, and the existing ones go on.
func TestConnectionsPerAddress(t *testing.T) {
	share(t, call)
	p := start(t, "PARLEY_CONNECTIONS_PER_ADDRESS=20")
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
	ask := func(conn net.Conn) bool {
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return false
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil && res.StatusCode == http.StatusOK
	}
	http.DefaultClient.CloseIdleConnections()
	var open []net.Conn
	for range 60 {
		if conn := dial(); ask(conn) {
			open = append(open, conn)
		}
	}
	if len(open) < 15 || len(open) > 20 {
		t.Fatalf("%d connections stand", len(open))
	}
	for _, conn := range open {
		conn.Close()
	}
	for deadline := time.Now().Add(patience); !ask(dial()); {
		if time.Now().After(deadline) {
			t.Fatal("those that were closed make no room")
		}
	}
}
