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
)

// pipes is a listener whose connections are in memory, so that their deadlines go by the bubble's clock.
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

// served runs a test against an API without a database, on a clock of its own.
func served(t *testing.T, test func(dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		a := api.New(api.Config{Auth: &auth.Desk{}})
		type text struct {
			Body struct {
				Text string `json:"text"`
			}
		}
		api.Handle(a, api.Op{Method: "POST", Path: "/slow", Name: "slow", Tag: "Probe", Access: api.Anybody},
			func(ctx context.Context, _ *api.Request, in *text) (map[string]string, error) {
				select {
				case <-time.After(10 * time.Minute): // a model that thinks for long
					return map[string]string{"text": in.Body.Text}, nil
				case <-ctx.Done():
					return nil, fmt.Errorf("cut off: %w", context.Cause(ctx))
				}
			})
		p := pipes{make(chan net.Conn), make(chan struct{})}
		srv, gone := &http.Server{Handler: a}, make(chan error, 1)
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

// A handler may take longer than a body may: the deadline of the one must not cut the other.
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

// A body that does not arrive is given up.
func TestBodyThatDoesNotArrive(t *testing.T) {
	served(t, func(dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		began := time.Now()
		fmt.Fprint(conn, "POST /api/slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"te")
		code, body := readAnswer(t, conn)
		if code != 400 || body != `{"message":"The request body did not arrive."}` || time.Since(began) != api.BodyTime {
			t.Errorf("answered %d %s after %v", code, body, time.Since(began))
		}
	})
}
