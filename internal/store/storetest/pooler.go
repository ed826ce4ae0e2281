package storetest

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"parley/internal/store"
)

// pooler stands before PostgreSQL and lends its sessions to clients, as PgBouncer does.
type pooler struct {
	server   string
	sessions bool // a client keeps its session until it leaves; otherwise only for a transaction
	mu       sync.Mutex
	idle     []*pgconn.HijackedConn // the one used last comes first
}

// Pooled are options by way of a pooler, in which each client has a session of its own, or one for each transaction.
func Pooled(t testing.TB, o store.Options, sessions bool) store.Options {
	t.Helper()
	u, err := url.Parse(o.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{server: o.Postgres, sessions: sessions}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := uint32(1); ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				p.carry(ctx, c, n)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		cancel()
		wg.Wait()
		for _, s := range p.idle {
			s.Conn.Close()
		}
	})
	u.Host = l.Addr().String()
	o.Postgres = u.String()
	return o
}

// carry serves one client, until it leaves.
func (p *pooler) carry(ctx context.Context, c net.Conn, n uint32) {
	client := pgproto3.NewBackend(c, c)
	for begun := false; !begun; {
		m, err := client.ReceiveStartupMessage()
		if err != nil {
			return
		}
		if _, begun = m.(*pgproto3.StartupMessage); !begun {
			if _, err := c.Write([]byte("N")); err != nil { // no TLS
				return
			}
		}
	}
	s := p.lend(ctx)
	if s == nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	for name, value := range s.ParameterStatuses {
		client.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	client.Send(&pgproto3.BackendKeyData{ProcessID: n, SecretKey: []byte{1, 2, 3, 4}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if !p.sessions {
		p.takeBack(s)
		s = nil
	}
	for client.Flush() == nil {
		m, err := client.Receive()
		if _, left := m.(*pgproto3.Terminate); err != nil || left {
			break
		}
		if s == nil {
			if s = p.lend(ctx); s == nil {
				return
			}
		}
		s.Frontend.Send(m)
		if s.Frontend.Flush() != nil {
			break
		}
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
		default:
			continue
		}
		status, ok := answer(client, s)
		if !ok {
			break
		}
		if status == 'I' && !p.sessions {
			p.takeBack(s)
			s = nil
		}
	}
	if s != nil {
		s.Conn.Close()
	}
}

// answer passes a session's answers on, until it waits for the next question.
func answer(client *pgproto3.Backend, s *pgconn.HijackedConn) (status byte, ok bool) {
	for {
		m, err := s.Frontend.Receive()
		if err != nil {
			return 0, false
		}
		client.Send(m)
		if ready, is := m.(*pgproto3.ReadyForQuery); is {
			return ready.TxStatus, true
		}
	}
}

func (p *pooler) lend(ctx context.Context) *pgconn.HijackedConn {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return s
	}
	p.mu.Unlock()
	conn, err := pgconn.Connect(ctx, p.server)
	if err != nil {
		return nil
	}
	s, err := conn.Hijack()
	if err != nil {
		return nil
	}
	return s
}

func (p *pooler) takeBack(s *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}
