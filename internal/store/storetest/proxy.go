package storetest

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"parley/internal/store"
)

// Proxy stands between a program and PostgreSQL, and does what networks and machines do to connections.
type Proxy struct {
	Options store.Options // by way of the proxy

	lose   atomic.Bool
	mu     sync.Mutex
	thawed chan struct{} // closed unless frozen
}

// NewProxy makes a proxy before the database of options.
func NewProxy(t testing.TB, o store.Options) *Proxy {
	t.Helper()
	u, err := url.Parse(o.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.Addr().String()
	o.Postgres = u.String()
	p := &Proxy{Options: o, thawed: make(chan struct{})}
	close(p.thawed)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.carry(ctx, c, server) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		cancel()
		wg.Wait()
	})
	return p
}

// Freeze has the other end say nothing more, on connections that stay open. The function that it returns ends that.
func (p *Proxy) Freeze() (thaw func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := make(chan struct{})
	p.thawed = ch
	return sync.OnceFunc(func() { close(ch) })
}

// LoseCommit has the next COMMIT done, and its answer lost with the connection.
func (p *Proxy) LoseCommit() { p.lose.Store(true) }

func (p *Proxy) pass(ctx context.Context) bool {
	p.mu.Lock()
	ch := p.thawed
	p.mu.Unlock()
	select {
	case <-ch:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *Proxy) carry(ctx context.Context, c net.Conn, server string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := net.Dial("tcp", server)
	if err != nil {
		c.Close()
		return
	}
	context.AfterFunc(ctx, func() { c.Close(); s.Close() })
	var lost atomic.Bool
	var wg sync.WaitGroup
	copying := func(from, to net.Conn, drop func([]byte) bool) {
		defer cancel()
		b := make([]byte, 64<<10)
		for {
			n, err := from.Read(b)
			if n > 0 && (!p.pass(ctx) || drop(b[:n])) {
				return
			}
			if n > 0 {
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		copying(c, s, func(b []byte) bool {
			if b[0] == 'Q' && bytes.Contains(bytes.ToLower(b), []byte("commit\x00")) &&
				p.lose.CompareAndSwap(true, false) {
				lost.Store(true)
			}
			return false
		})
	})
	wg.Go(func() { copying(s, c, func([]byte) bool { return lost.Load() }) })
	wg.Wait()
}
