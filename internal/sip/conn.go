package sip

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// quiet discards the library's log: it logs every malformed message of every scanner.
var quiet = slog.New(slog.DiscardHandler)

// datagrams is the UDP socket as the library reads it: the library sees only what the firewall lets in.
type datagrams struct {
	*net.UDPConn
	server *Server
	first  sync.Once
	tidied []byte // the last message; the library reads one at a time
}

func (d *datagrams) ReadFrom(b []byte) (int, net.Addr, error) {
	d.first.Do(func() { close(d.server.ready) }) // the library knows the socket now
	for {
		n, from, err := d.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return 0, nil, err
		}
		if err != nil { // of one packet: the socket is well
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if out := d.server.admit(d.tidied[:0], b[:n], from, nil); out != nil && len(out) <= len(b) {
			d.tidied = out
			d.server.ladders.take(callIDOf(out), b[:n], from, overUDP)
			return copy(b, out), net.UDPAddrFromAddrPort(from), nil
		}
	}
}

// WriteTo is how the library sends.
func (d *datagrams) WriteTo(b []byte, to net.Addr) (int, error) {
	d.server.ladders.send(b, addrPort(to.String()), overUDP)
	return d.UDPConn.WriteTo(b, to)
}

const (
	maxMessage   = 64 << 10
	firstMessage = 10 * time.Second // a stranger's connection must bring something that is let in
	writeTime    = 5 * time.Second
	maxStrangers = 64 // connections of those who have brought nothing yet
	maxFrom      = 32 // connections from one place
)

// connection is a TCP connection as the library reads it. It splits the stream into messages, and shows each to the
// firewall.
type connection struct {
	net.Conn
	server *Server
	way    way
	remote netip.AddrPort
	ready  chan struct{} // closed when the library knows it
	came   bool          // it was not opened by us

	in       []byte // what has come and is no whole message yet
	out      []byte // what was let in and is not yet read
	admitted bool
	over     sync.Once
}

func newConnection(s *Server, c net.Conn, w way) *connection {
	return &connection{Conn: c, server: s, way: w, remote: addrPort(c.RemoteAddr().String()), ready: make(chan struct{})}
}

func (c *connection) Read(b []byte) (int, error) {
	for len(c.out) == 0 {
		if err := c.fill(); err != nil {
			c.finish()
			return 0, err
		}
	}
	n := copy(b, c.out)
	c.out = c.out[n:]
	return n, nil
}

// fill reads on until a message is let in, or the input is used up.
func (c *connection) fill() error {
	var buf [4096]byte
	n, err := c.Conn.Read(buf[:])
	if c.admitted && c.came && (err == nil || isTimeout(err) && c.server.carries(c.remote)) {
		_ = c.SetReadDeadline(time.Now().Add(c.server.idling))
		if err != nil {
			return nil
		}
	}
	if err != nil {
		return err
	}
	c.in = append(c.in, buf[:n]...)
	for {
		trimmed := bytes.TrimLeft(c.in, "\r\n")
		if pings := len(c.in) - len(trimmed); pings >= 4 && c.admitted { // RFC 5626, section 3.5.1
			if _, err := c.Conn.Write([]byte("\r\n")); err != nil {
				return err
			}
		}
		c.in = trimmed
		size, err := messageSize(c.in)
		if err != nil || size == 0 {
			return err
		}
		if out := c.server.admit(nil, c.in[:size], c.remote, c); out != nil {
			c.server.ladders.take(callIDOf(out), c.in[:size], c.remote, c.way)
			c.out = append(c.out, out...)
			c.accept()
		}
		c.in = c.in[size:]
	}
}

// accept notes that the connection has carried something that was let in.
func (c *connection) accept() {
	if !c.admitted {
		c.admitted = true
		c.server.strangers.Add(-1)
		_ = c.SetReadDeadline(time.Now().Add(c.server.idling))
	}
}

// finish is called when nothing more can be read.
func (c *connection) finish() {
	c.over.Do(func() {
		if !c.admitted {
			c.server.strangers.Add(-1)
		}
		c.Conn.Close()
		if c.came {
			c.server.leaves(c.remote.Addr())
		}
		c.server.forget(c)
		c.server.lostConnection(c.remote)
		c.server.readers.Done()
	})
}

func (c *connection) Write(b []byte) (int, error) {
	c.server.ladders.send(b, c.remote, c.way)
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	return c.Conn.Write(b)
}

var errFraming = errors.New("not a SIP message")

// messageSize is the length of the message that data begins with, 0 while it is incomplete. A SIP message that gives no
// length ends with its headers if these name no kind of body; otherwise nobody knows where the next message begins (RFC
// 3261, section 18.3).
func messageSize(data []byte) (int, error) {
	head, body := headEnd(data)
	if head < 0 {
		if len(data) > maxMessage {
			return 0, errFraming
		}
		return 0, nil
	}
	size := -1
	lines := lineReader{rest: data[:head], bare: bareLines(data)}
	first, _ := lines.physical()
	empty := isVersion(first) || isVersion(lastWord(first))
	for {
		line, more := lines.next()
		if !more {
			break
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if name = trim(name); !ok {
			continue
		}
		if bytes.EqualFold(name, []byte("Content-Type")) || bytes.EqualFold(name, []byte("c")) {
			empty = false
		}
		if value = trim(value); isLength(name) && len(value) > 0 {
			n, err := strconv.ParseUint(string(value), 10, 16)
			if err != nil || size >= 0 && size != int(n) {
				return 0, errFraming
			}
			size = int(n)
		}
	}
	if size < 0 && !empty {
		return 0, errFraming
	}
	size = max(size, 0) + body
	if size > maxMessage {
		return 0, errFraming
	}
	if len(data) < size {
		return 0, nil
	}
	return size, nil
}

// streams hands our connections to the library, incoming and outgoing.
type streams struct {
	conns chan *connection
	done  chan struct{}
	addr  net.Addr
	last  *connection
}

// Accept is called only by the library, when it has registered the previous connection.
func (l *streams) Accept() (net.Conn, error) {
	if l.last != nil {
		close(l.last.ready)
		l.last = nil
	}
	select {
	case c := <-l.conns:
		l.last = c
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *streams) Addr() net.Addr { return l.addr }
func (l *streams) Close() error   { return nil }

// listenTCP accepts connections until the listener is closed. On TLS the first read does the handshake, within the time
// that a stranger has.
func (s *Server) listenTCP(l net.Listener, w way) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, mostly
			time.Sleep(10 * time.Millisecond)
			continue
		}
		from := addrPort(c.RemoteAddr().String())
		if !s.comes(from.Addr()) {
			s.firewall.turnAway(from)
			c.Close()
			continue
		}
		if w == overTLS {
			c = tls.Server(c, s.config.TLS)
		}
		conn := newConnection(s, c, w)
		conn.came = true
		_ = conn.SetReadDeadline(time.Now().Add(firstMessage))
		s.give(conn)
	}
}

// comes counts another connection from an address and reports whether it is accepted. Strangers can't keep out those we
// know.
func (s *Server) comes(a netip.Addr) bool {
	x := s.index.Load()
	known := s.local(a) || x.known(a)
	if !known && (!x.open(a) || s.strangers.Load() >= maxStrangers) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from[place(a)] >= maxFrom {
		return false
	}
	s.from[place(a)]++
	return true
}

// leaves counts an incoming connection as gone.
func (s *Server) leaves(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from[place(a)]--; s.from[place(a)] <= 0 {
		delete(s.from, place(a))
	}
}

// carries reports whether the connection with an address carries the messages of a live call.
func (s *Server) carries(a netip.AddrPort) bool {
	s.mu.Lock()
	legs := slices.Collect(maps.Values(s.legs))
	s.mu.Unlock()
	return slices.ContainsFunc(legs, func(l *leg) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.hop.addr == a && l.hop.way.stream()
	})
}

// give hands a connection to the library. It is false when the server is stopping.
func (s *Server) give(c *connection) bool {
	if !c.admitted {
		s.strangers.Add(1)
	}
	s.readers.Add(1)
	select {
	case s.streams[c.way].conns <- c:
	case <-s.streams[c.way].done:
		c.finish()
		return false
	}
	return true
}

// connect makes sure that there is a connection to a place. Callers that want the same one wait for it together.
func (s *Server) connect(ctx context.Context, h hop) error {
	to := h.addr
	for {
		s.mu.Lock()
		under := s.dials[to]
		if under == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	done := make(chan struct{})
	s.dials[to] = done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.dials, to)
		close(done)
	}()
	if s.connected(to, h.way) {
		return s.proven(h)
	}
	return s.open(ctx, h)
}

func (s *Server) open(ctx context.Context, h hop) error {
	to := h.addr
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	var d net.Dialer
	if a := s.Addr().Addr(); !a.IsUnspecified() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
	}
	raw, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return fmt.Errorf("connect to %s over TCP: %w", to, err)
	}
	if h.way == overTLS {
		if raw, err = s.handshake(ctx, raw, h); err != nil {
			return err
		}
	}
	c := newConnection(s, raw, h.way)
	c.admitted = true
	s.mu.Lock()
	s.opened[to] = c
	s.mu.Unlock()
	if !s.give(c) {
		return io.ErrClosedPipe
	}
	select {
	case <-c.ready:
		return nil
	case <-s.streams[h.way].done:
		return io.ErrClosedPipe
	}
}

// forget forgets a connection, for the library too: it would offer it until its own reader has ended, and who registers
// again at once would be given it.
func (s *Server) forget(c *connection) {
	s.transport.Pool(string(c.way)).Delete(c.remote.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened[c.remote] == c {
		delete(s.opened, c.remote)
	}
}

// ping keeps a connection that we opened alive (RFC 5626, section 3.5.1). It also detects dead connections.
func (s *Server) ping(to netip.AddrPort) {
	s.mu.Lock()
	c := s.opened[to]
	s.mu.Unlock()
	if c != nil {
		_, _ = c.Write([]byte("\r\n\r\n"))
	}
}

const connectTime = 10 * time.Second

// noDial is the dialer that the library gets: a connection that it opened by itself would bypass the firewall.
func noDial(net.Addr) net.Dialer {
	return net.Dialer{ControlContext: func(context.Context, string, string, syscall.RawConn) error {
		return errors.New("the connection was lost")
	}}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
