package web

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/internal/crash"
)

// Apart is a listener of TLS that tells two protocols apart once the handshake is done: on most connections HTTP is
// spoken, on some TURN, which begins with an octet that no HTTP request begins with (RFC 8489, section 5).
type Apart struct {
	net.Listener // of TCP
	config       *tls.Config
	turn         func(net.Conn)
	http         chan net.Conn
	done         chan struct{}
	err          error // why no more connections come; set before done is closed
	looks        sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool // of which it is not known yet what is spoken
}

// turnProtocol is what a client of TURN may call it in the handshake (RFC 7443).
const turnProtocol = "stun.turn"

// handshakeTime is how long a connection may take until it is known what is spoken on it.
const handshakeTime = 10 * time.Second

// NewApart makes one of a TCP listener; turn takes the connections on which TURN is spoken.
func NewApart(l net.Listener, c *tls.Config, turn func(net.Conn)) *Apart {
	c = c.Clone()
	c.NextProtos = []string{"h2", "http/1.1", turnProtocol}
	return &Apart{Listener: l, config: c, turn: turn, http: make(chan net.Conn), done: make(chan struct{}),
		open: map[net.Conn]bool{}}
}

// run takes connections until the listener closes.
func (a *Apart) run() {
	for {
		c, err := a.Listener.Accept()
		if err != nil {
			a.mu.Lock()
			a.err = err
			for c := range a.open {
				c.Close()
			}
			a.mu.Unlock()
			close(a.done)
			return
		}
		a.mu.Lock()
		a.open[c] = true
		a.mu.Unlock()
		crash.Go(&a.looks, func() { a.look(c) }, func(err error) {
			c.Close()
			slog.Error("a connection failed", "error", err)
		})
	}
}

// look finds out what is spoken on a connection.
func (a *Apart) look(raw net.Conn) {
	c := tls.Server(raw, a.config)
	to, err := recognize(c)
	a.mu.Lock()
	delete(a.open, raw)
	a.mu.Unlock()
	if err != nil {
		c.Close() // a peer's broken handshake
		return
	}
	if b, ok := to.(*begun); ok && b.first[0] < ' ' || c.ConnectionState().NegotiatedProtocol == turnProtocol {
		a.turn(to)
		return
	}
	select {
	case a.http <- to:
	case <-a.done:
		c.Close()
	}
}

// recognize ends the handshake, and returns the connection, a *begun where its first octet decides what is spoken: HTTP of
// today is agreed on in the handshake.
func recognize(c *tls.Conn) (net.Conn, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	to := net.Conn(c)
	if c.ConnectionState().NegotiatedProtocol == "" {
		first := make([]byte, 1)
		if _, err := c.Read(first); err != nil {
			return nil, err
		}
		to = &begun{Conn: c, first: first}
	}
	return to, c.SetDeadline(time.Time{})
}

// Accept waits for the next connection on which HTTP is spoken.
func (a *Apart) Accept() (net.Conn, error) {
	select {
	case c := <-a.http:
		return c, nil
	case <-a.done:
		return nil, a.err
	}
}

// begun is a connection of which the first octet has been read. net/http takes the TLS of its requests from ConnectionState.
type begun struct {
	*tls.Conn
	first []byte
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 && len(p) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// Serve serves HTTP until the listener closes.
func (a *Apart) Serve(s *http.Server) error {
	crash.Go(&a.looks, a.run, func(err error) { slog.Error("HTTPS stopped", "error", err) })
	err := s.Serve(a)
	a.Close()
	a.looks.Wait()
	return err
}
