package web

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"parley/internal/auth"
)

// Listen limits the connections that one client has at once to most (0: no limit); those beyond are closed as they
// come. Trusted proxies speak for many, and have no limit. An error that passes, such as that of too many open files, ends
// nothing: the next connection is awaited.
func (f Front) Listen(l net.Listener, most int) net.Listener {
	l = lasting{l}
	if most <= 0 {
		return l
	}
	return &listener{Listener: l, front: f, slots: auth.NewSlots(most)}
}

type listener struct {
	net.Listener
	front Front
	slots *auth.Slots
	told  time.Time // when somebody was last refused with a word in the log
}

// Accept waits for the next connection that is let in.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, err := netip.ParseAddrPort(c.RemoteAddr().String())
		if err != nil || l.front.Trusts(peer.Addr()) {
			return c, nil
		}
		from := auth.Network(peer.Addr().String())
		leave, ok := l.slots.Take(from)
		if ok {
			return &conn{Conn: c, leave: leave}, nil
		}
		c.Close()
		if now := time.Now(); now.Sub(l.told) > time.Minute {
			l.told = now
			slog.Warn("an address has too many connections: further ones are closed (PARLEY_CONNECTIONS_PER_ADDRESS)", "address", from)
		}
	}
}

// conn gives its slot back when it is closed, once.
type conn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// CloseWrite ends our side alone: net/http does so to let a client read its refusal.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// lasting is a listener that goes on after errors that pass.
type lasting struct{ net.Listener }

// pause is how long a listener rests after such an error.
const pause = 50 * time.Millisecond

// Accept waits for the next connection.
func (l lasting) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		var passing interface{ Temporary() bool }
		if err == nil || !errors.As(err, &passing) || !passing.Temporary() {
			return c, err
		}
		slog.Error("a connection can't be taken: is the limit of open files reached?", "address", l.Addr(), "error", err)
		time.Sleep(pause)
	}
}
