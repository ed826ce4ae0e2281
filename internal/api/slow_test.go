package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/web"
)

// pipes is a listener whose connections are in memory, so that their deadlines follow the bubble's clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// served runs a test against an API without a database, on its own fake clock.
func served(t *testing.T, test func(dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		a := api.New(api.Config{Auth: &auth.Authority{}})
		type text struct {
			Body struct {
				Text string `json:"text"`
			}
		}
		api.Handle(a, api.Op{Method: "POST", Path: "/slow", Name: "slow", Tag: "Probe", Access: api.Anybody},
			func(ctx context.Context, _ *api.Request, in *text) (map[string]string, error) {
				select {
				case <-time.After(10 * time.Minute): // a model that thinks for a long time
					return map[string]string{"text": in.Body.Text}, nil
				case <-ctx.Done():
					return nil, fmt.Errorf("cut off: %w", context.Cause(ctx))
				}
			})
		p := pipes{make(chan net.Conn), make(chan struct{})}
		srv, gone := &http.Server{Handler: &web.Guard{Handler: a}}, make(chan error, 1)
		go func() { gone <- srv.Serve(p) }()
		test(func() net.Conn {
			client, server := net.Pipe()
			p.conns <- server
			return client
		})
		close(p.done)
		<-gone
		srv.Close()
	})
}

func readAnswer(t *testing.T, conn net.Conn) (int, string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}

// A handler may take longer than a body may: the deadline for reading the body must not cut the handler off.
func TestSlowHandlerIsNotCutOff(t *testing.T) {
	served(t, func(dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		began := time.Now()
		fmt.Fprint(conn, "POST /api/slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"text\":\"kept\"}")
		if code, body := readAnswer(t, conn); code != 200 || body != `{"text":"kept"}` {
			t.Errorf("answered %d %s after %v", code, body, time.Since(began))
		}
	})
}

// The server stops waiting for a body that does not arrive.
func TestBodyThatDoesNotArrive(t *testing.T) {
	served(t, func(dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		began := time.Now()
		fmt.Fprint(conn, "POST /api/slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"te")
		code, body := readAnswer(t, conn)
		if code != 400 || body != `{"message":"The request body did not arrive."}` ||
			time.Since(began) != web.BodyTime {
			t.Errorf("answered %d %s after %v", code, body, time.Since(began))
		}
	})
}

// A client that sends its whole body before it reads sees why it was refused, however early that was decided.
func TestRefusalBeforeTheBodyEnds(t *testing.T) {
	const most = 20 << 20
	served(t, func(dial func() net.Conn) {
		for name, c := range map[string]struct {
			path, head string
			status     int
		}{
			"too large": {"/slow", fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n",
				most), 413},
			"no credential": {"/user/make_call",
				fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", most), 401},
			"too large an offer": {"/web-calls/x", fmt.Sprintf(
				"Content-Type: application/sdp\r\nContent-Length: %d\r\n", most), 404},
		} {
			conn := dial()
			fmt.Fprintf(conn, "POST /api%s HTTP/1.1\r\nHost: x\r\n%s\r\n", c.path, c.head)
			got := make(chan int, 1)
			go func() { // the kernel would keep the answer until the client reads; a pipe does not
				code, _ := readAnswer(t, conn)
				got <- code
			}()
			if n, err := io.CopyN(conn, zeros{}, most); err != nil {
				t.Errorf("%s: the connection broke after %d bytes: %v", name, n, err)
			}
			if code := <-got; code != c.status {
				t.Errorf("%s: answered %d", name, code)
			}
			conn.Close()
		}
		// The server does not go on reading for ever from a client that stalls or never ends.
		conn := dial()
		defer conn.Close()
		began := time.Now()
		fmt.Fprint(conn, "POST /api/user/make_call HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
		in := bufio.NewReader(conn)
		if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 401 || time.Since(began) != 0 {
			t.Errorf("answered %v, %v, after %v", res, err, time.Since(began))
		}
		if _, err := io.Copy(io.Discard, in); err != nil || time.Since(began) < web.BodyTime ||
			time.Since(began) > web.BodyTime+time.Second {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
		endless := dial()
		defer endless.Close()
		fmt.Fprint(endless, "POST /api/user/make_call HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n")
		go io.Copy(io.Discard, endless)
		if n, err := io.CopyN(endless, zeros{}, 1<<30); err == nil || n > 200<<20 {
			t.Errorf("%d bytes were taken from who has no credential: %v", n, err)
		}
	})
}
