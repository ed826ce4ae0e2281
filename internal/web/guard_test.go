package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/web"
)

// pipes is a listener whose connections are in memory, so that their deadlines follow the bubble's clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { p.close(); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// served runs a test against a guarded handler, on fake time.
func served(t *testing.T, h http.HandlerFunc, test func(g *web.Guard, srv *http.Server, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		p := pipes{make(chan net.Conn), done, sync.OnceFunc(func() { close(done) })}
		g := &web.Guard{Handler: h}
		srv, gone := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second}, make(chan error, 1)
		srv.RegisterOnShutdown(g.Stop)
		go func() { gone <- srv.Serve(p) }()
		test(g, srv, func() net.Conn {
			client, server := net.Pipe()
			p.conns <- server
			return client
		})
		p.Close()
		<-gone
		srv.Close()
	})
}

// takes reads the whole body and reports how that ended.
func takes(ended *chan error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if whole, err := time.ParseDuration(r.Header.Get("Patience")); err == nil && whole > 0 {
			web.Patience(r, whole)
		}
		_, err := io.Copy(io.Discard, r.Body)
		*ended <- err
	}
}

// A body that drips in is cut off when its time is over, and a body that stops is cut off after the allowed pause,
// whatever the handler does.
func TestDrippedBodies(t *testing.T) {
	for name, c := range map[string]struct {
		every, patience, want time.Duration
	}{
		"a drip a second":           {time.Second, 0, web.BodyTime},
		"nothing":                   {time.Hour, 0, web.BodyTime},
		"an upload in drips":        {20 * time.Second, web.UploadTime, web.UploadTime},
		"an upload that stops":      {time.Hour, web.UploadTime, web.Pause},
		"an upload that is patient": {web.Pause - time.Second, web.UploadTime, web.UploadTime},
	} {
		t.Run(name, func(t *testing.T) {
			var ended chan error
			served(t, takes(&ended), func(_ *web.Guard, _ *http.Server, dial func() net.Conn) {
				ended = make(chan error, 1) // made in the bubble
				conn := dial()
				defer conn.Close()
				began := time.Now()
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nPatience: %s\r\nContent-Length: 100000\r\n\r\n",
					c.patience)
				stop := make(chan struct{})
				var dripping sync.WaitGroup
				dripping.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(c.every):
							conn.SetWriteDeadline(time.Now().Add(time.Second))
							conn.Write([]byte("x"))
						}
					}
				})
				err := <-ended
				close(stop)
				var late net.Error
				if took := time.Since(began); !errors.As(err, &late) || !late.Timeout() || took != c.want {
					t.Errorf("ended after %s by %v, want %s", took, err, c.want)
				}
				go io.Copy(io.Discard, conn)
				dripping.Wait()
			})
		})
	}
}

// A route that never reads its body is not delayed by it for more than a moment.
func TestBodiesThatNobodyReads(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		func(_ *web.Guard, _ *http.Server, dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			began := time.Now()
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != 404 {
				t.Fatal(res, err)
			}
			if _, err := io.Copy(io.Discard, in); err != nil || time.Since(began) > web.Pause {
				t.Errorf("the connection was held for %s: %v", time.Since(began), err)
			}
		})
}

// A handler may take longer than a body or an answer may: no deadline of either remains.
func TestHandlersTakeTheirTime(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for range 5 { // a model that thinks for a long time between words
			select {
			case <-time.After(10 * time.Minute):
				io.WriteString(w, "word ")
				http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
		time.Sleep(time.Hour)
		io.WriteString(w, "end")
	}, func(g *web.Guard, _ *http.Server, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		in := bufio.NewReader(conn)
		for range 2 { // the second request uses the same connection
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(res.Body); err != nil || string(text) != "word word word word word end" {
				t.Errorf("answered %q, %v", text, err)
			}
		}
	})
}

// A thousand clients that send requests and never read are disconnected after a pause: plain answers, large ones, and
// streams.
func TestUnreadAnswers(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	served(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/small":
			io.WriteString(w, "ok")
		case "/big":
			io.WriteString(w, big)
		case "/stream":
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
					return
				}
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}
	}, func(_ *web.Guard, _ *http.Server, dial func() net.Conn) {
		var gone sync.WaitGroup
		began := time.Now()
		for i := range 1000 {
			conn := dial()
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", []string{"/small", "/big", "/stream"}[i%3])
			gone.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(time.Hour))
				for time.Since(began) < time.Hour { // a write fails once the server has closed
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
				t.Error("the connection stands after an hour")
			})
		}
		gone.Wait()
		if took := time.Since(began); took > web.Pause+10*time.Second {
			t.Errorf("the last was gone after %s", took)
		}
	})
}

// A client that reads slowly but steadily gets the whole answer.
func TestSlowReader(t *testing.T) {
	const size = 1 << 20
	served(t, func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, size)) },
		func(_ *web.Guard, _ *http.Server, dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			n, buf := 0, make([]byte, 16<<10)
			for {
				m, err := conn.Read(buf)
				n += m
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("after %d bytes: %v", n, err)
				}
				time.Sleep(5 * time.Second)
			}
			if n < size {
				t.Errorf("%d bytes came", n)
			}
		})
}

// A server that stops does not wait for clients whose requests are incomplete, but does wait for those whose requests
// are complete.
func TestStopDoesNotWaitForDrips(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) {
		web.Patience(r, web.UploadTime)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		time.Sleep(10 * time.Minute)
		if r.Context().Err() == nil {
			io.WriteString(w, "done")
		}
	}, func(g *web.Guard, srv *http.Server, dial func() net.Conn) {
		half, whole := dial(), dial()
		defer half.Close()
		defer whole.Close()
		fmt.Fprint(half, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
		fmt.Fprint(whole, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nfull")
		synctest.Wait()
		began := time.Now()
		stopped := make(chan error, 1)
		go func() { stopped <- srv.Shutdown(context.Background()) }()
		in := bufio.NewReader(half)
		if _, err := in.ReadByte(); err == nil {
			io.Copy(io.Discard, in)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("half a request was waited for for %s", took)
		}
		res, err := http.ReadResponse(bufio.NewReader(whole), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(res.Body); err != nil || string(text) != "done" {
			t.Errorf("who had asked got %q, %v", text, err)
		}
		if err := <-stopped; err != nil || time.Since(began) > 11*time.Minute {
			t.Errorf("stopped after %s: %v", time.Since(began), err)
		}
	})
}

// A body that begins while the server stops gets no extra time.
func TestBodiesThatBeginLate(t *testing.T) {
	var ended chan error
	served(t, takes(&ended), func(g *web.Guard, _ *http.Server, dial func() net.Conn) {
		ended = make(chan error, 1)
		g.Stop()
		conn := dial()
		defer conn.Close()
		began := time.Now()
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nPatience: 15m\r\nContent-Length: 100\r\n\r\nhalf")
		if err := <-ended; err == nil || time.Since(began) > 6*time.Second {
			t.Errorf("ended after %s: %v", time.Since(began), err)
		}
		go io.Copy(io.Discard, conn)
	})
}

// HTTP/2: a stream may stall in a connection that does not.
func TestUnreadStreamOfHTTP2(t *testing.T) {
	failed := make(chan error, 1)
	g := &web.Guard{Pause: 100 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		if r.URL.Path != "/big" {
			io.WriteString(w, r.Proto)
			return
		}
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				failed <- err
				return
			}
		}
	})}
	srv := httptest.NewUnstartedServer(g)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL + "/big")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // unread
	select {
	case <-failed:
	case <-time.After(20 * time.Second):
		t.Fatal("the stream stands for ever")
	}
	other, err := srv.Client().Get(srv.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Body.Close()
	if text, _ := io.ReadAll(other.Body); string(text) != "HTTP/2.0" {
		t.Errorf("the other stream got %q", text)
	}
}

// The connections of one address are limited, those of other addresses and of trusted proxies are not; a closed
// connection makes room.
func TestConnectionsPerAddress(t *testing.T) {
	listen := func(front web.Front) (net.Listener, chan net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l = front.Listen(l, 3)
		in := make(chan net.Conn, 100)
		var accepting sync.WaitGroup
		accepting.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				in <- c
			}
		})
		t.Cleanup(func() { l.Close(); accepting.Wait() })
		return l, in
	}
	dial := func(l net.Listener, from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	l, in := listen(web.Front{})
	var first net.Conn
	for i := range 3 {
		dial(l, "127.0.0.1")
		if c := <-in; i == 0 {
			first = c
		}
	}
	if _, err := dial(l, "127.0.0.1").Read(make([]byte, 1)); err == nil {
		t.Error("a fourth connection stands")
	} else if late, ok := err.(net.Error); ok && late.Timeout() {
		t.Error("a fourth connection is left waiting")
	}
	dial(l, "127.0.0.2")
	<-in
	first.Close()
	first.Close() // net/http closes twice
	dial(l, "127.0.0.1")
	<-in
	if _, err := dial(l, "127.0.0.1").Read(make([]byte, 1)); err == nil {
		t.Error("closing twice makes room for two")
	}
	l, in = listen(web.Front{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for range 20 {
		dial(l, "127.0.0.1")
		<-in
	}
}

// Our side of the connection can be closed separately.
func TestCloseWriteReachesTheConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = web.Front{}.Listen(l, 1)
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			c.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %v", err)
	}
}
