package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

// serve answers every handshake with a function.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	address, err := wire.Address(s.URL+"/base/", "/v1/listen", url.Values{"key": {"s3cret"}})
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// accepts serves sockets, each with a function.
func accepts(t *testing.T, with func(ws *websocket.Conn)) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		with(ws)
	})
}

func TestAddress(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.example.com": "https://api.example.com/v1/x?a=b", "http://h:1/p/": "http://h:1/p/v1/x?a=b",
		"wss://h": "", "h": "", "": "", "https:///v1": "", "https://h:port": "",
	} {
		got, err := wire.Address(base, "/v1/x", url.Values{"a": {"b"}})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", base, got, err)
		}
	}
}

// The error of a failed handshake says what can be done about it, and doesn't contain the address.
func TestDialRefused(t *testing.T) {
	for _, c := range []struct {
		status int
		retry  string
		kind   ai.Kind
		after  time.Duration
	}{
		{400, "", ai.Config, 0}, {401, "", ai.Config, 0}, {402, "", ai.Config, 0}, {403, "", ai.Config, 0},
		{404, "", ai.Config, 0}, {408, "", ai.Overloaded, 0}, {429, "7", ai.RateLimited, 7 * time.Second},
		{429, "", ai.RateLimited, 0}, {500, "", ai.Overloaded, 0}, {503, "2.5", ai.Overloaded, 2500 * time.Millisecond},
		{200, "", ai.Config, 0},
	} {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if c.retry != "" {
				w.Header().Set("Retry-After", c.retry)
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte("no such plan"))
		})
		_, err := wire.Dial(t.Context(), address, wire.Options{})
		e, ok := errors.AsType[*ai.Error](err)
		if !ok || e.Kind != c.kind || e.RetryAfter != c.after || wire.StatusOf(err) != c.status ||
			!strings.Contains(err.Error(), "no such plan") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%d: %v", c.status, err)
		}
	}
}

func TestDialUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	address := s.URL + "/?key=s3cret"
	s.Close()
	_, err := wire.Dial(t.Context(), address, wire.Options{})
	if ai.KindOf(err) != ai.Unreachable || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("nobody there: %v", err)
	}
	cause := errors.New("the customer hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	reached, release := make(chan struct{}), make(chan struct{})
	address = serve(t, func(http.ResponseWriter, *http.Request) { close(reached); <-release })
	t.Cleanup(func() { close(release) })
	go func() { <-reached; cancel(cause) }()
	if _, err = wire.Dial(ctx, address, wire.Options{}); err != cause { //nolint:errorlint // the very error comes back
		t.Errorf("given up: %v", err)
	}
	if _, err = wire.Dial(ctx, address, wire.Options{}); err != cause { //nolint:errorlint // likewise
		t.Errorf("given up before: %v", err)
	}
}

// When the vendor closes a socket, or it breaks, the error has a kind. Before any message has come, the key may be at
// fault.
func TestReceiveFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		begun bool
		code  websocket.StatusCode // 0: it breaks
		kind  ai.Kind
	}{
		{"policy at once", false, 1008, ai.Config}, {"policy later", true, 1008, ai.Interrupted},
		{"error at once", false, 1011, ai.Overloaded}, {"error later", true, 1011, ai.Interrupted},
		{"busy", false, 1013, ai.Overloaded}, {"normal", true, 1000, ai.Interrupted},
		{"invalid at once", false, 1007, ai.Config}, {"invalid later", true, 1007, ai.Interrupted},
		{"breaks at once", false, 0, ai.Interrupted}, {"breaks", true, 0, ai.Interrupted},
	} {
		address := accepts(t, func(ws *websocket.Conn) {
			if c.begun {
				_ = ws.Write(context.Background(), websocket.MessageText, []byte("{}"))
			}
			if c.code != 0 {
				_ = ws.Close(c.code, "NET-0001")
			}
		})
		conn, err := wire.Dial(t.Context(), address, wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.begun {
			if data, text, err := conn.Receive(); string(data) != "{}" || !text || err != nil {
				t.Errorf("%s: %q, %v, %v", c.name, data, text, err)
			}
		}
		_, _, err = conn.Receive()
		code, reason := wire.CloseOf(err)
		if ai.KindOf(err) != c.kind || code != int(c.code) || (reason == "NET-0001") != (code != 0) {
			t.Errorf("%s: %v", c.name, err)
		}
		conn.Close()
		if err := conn.Send("x"); err == nil {
			t.Errorf("%s: sent after the end", c.name)
		}
	}
}

// Google says with 1011 that a quota is used up, at once or later.
func TestQuotaUsedUp(t *testing.T) {
	for _, reason := range []string{"You exceeded your current quota, please check your plan", "RESOURCE_EXHAUSTED", "Rate limit reached"} {
		for _, begun := range []bool{false, true} {
			conn, err := wire.Dial(t.Context(), accepts(t, func(ws *websocket.Conn) {
				if begun {
					_ = ws.Write(context.Background(), websocket.MessageText, []byte("{}"))
				}
				_ = ws.Close(websocket.StatusInternalError, reason)
			}), wire.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if begun {
				_, _, _ = conn.Receive()
			}
			if _, _, err = conn.Receive(); ai.KindOf(err) != ai.RateLimited {
				t.Errorf("%q, begun %t: %v", reason, begun, err)
			}
			conn.Close()
		}
	}
}

// A large message arrives whole. A socket that was closed on this side says so.
func TestReceive(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	address := accepts(t, func(ws *websocket.Conn) {
		ws.SetReadLimit(-1)
		for {
			kind, data, err := ws.Read(context.Background())
			if err != nil || ws.Write(context.Background(), kind, data) != nil {
				return
			}
		}
	})
	conn, err := wire.Dial(t.Context(), address, wire.Options{Ping: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := conn.SendBinary([]byte(large)); err != nil {
			t.Fatal(err)
		}
		if data, text, err := conn.Receive(); string(data) != large || text || err != nil {
			t.Fatalf("%d octets, %v, %v", len(data), text, err)
		}
	}
	go conn.Close()
	if _, _, err := conn.Receive(); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("closed here: %v", err)
	}
	conn.Close()
}

// A far end that is connected, but answers no pings, has stalled.
func TestPing(t *testing.T) {
	over := make(chan struct{})
	address := accepts(t, func(*websocket.Conn) { <-over }) // nobody reads
	t.Cleanup(func() { close(over) })
	conn, err := wire.Dial(t.Context(), address, wire.Options{Ping: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, _, err := conn.Receive(); ai.KindOf(err) != ai.Stalled {
		t.Errorf("nothing is answered: %v", err)
	}
}

// Leave says goodbye with 1000, and doesn't wait for long for a far end that never answers.
func TestLeave(t *testing.T) {
	left := make(chan websocket.StatusCode, 2)
	address := accepts(t, func(ws *websocket.Conn) {
		_, _, err := ws.Read(context.Background())
		left <- websocket.CloseStatus(err)
	})
	for _, receives := range []bool{false, true} {
		c, err := wire.Dial(t.Context(), address, wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if receives {
				_, _, _ = c.Receive()
			}
		}()
		c.Leave()
		<-done
		if code := <-left; code != websocket.StatusNormalClosure {
			t.Errorf("receiving %v: it left with %d", receives, code)
		}
	}
}

// only is a network without sockets, of one connection, so that its time can be a test's.
type only struct {
	near, far net.Conn
	conn      chan net.Conn
}

func (o *only) Accept() (net.Conn, error) {
	if c, ok := <-o.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (o *only) Close() error   { close(o.conn); return nil }
func (o *only) Addr() net.Addr { return &net.IPAddr{} }
func (o *only) dial(context.Context, string, string) (net.Conn, error) {
	o.conn <- o.far
	return o.near, nil
}

// A far end that takes the close frame and doesn't answer it has a second, while somebody receives.
func TestLeaveInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &only{conn: make(chan net.Conn)}
		network.near, network.far = net.Pipe()
		var taken int64
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := websocket.Accept(w, r, nil); err != nil {
				t.Error(err)
			}
			taken, _ = io.Copy(io.Discard, network.far)
		})}
		var all sync.WaitGroup
		all.Go(func() { _ = server.Serve(network) })
		c, err := wire.Dial(t.Context(), "http://vendor", wire.Options{Transport: &http.Transport{DialContext: network.dial}})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _, _, _ = c.Receive() })
		synctest.Wait()
		began := time.Now()
		c.Leave()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v to leave", took)
		}
		_ = server.Close()
		all.Wait()
		synctest.Wait()
		if taken == 0 {
			t.Error("no close frame came")
		}
	})
}
