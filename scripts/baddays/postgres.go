package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/internal/store/storetest"
)

// road leads from the program to PostgreSQL, and can be closed or slow.
type road struct {
	server, at string
	wait       atomic.Int64 // nanoseconds before each piece from the server

	mu     sync.Mutex
	listen net.Listener
	open   map[net.Conn]bool
}

// database starts PostgreSQL, with a road to it, and has the program keep its data there.
func (w *world) database() error {
	base, err := storetest.Cluster()
	if err != nil {
		return err
	}
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("baddays_%d", time.Now().UnixNano())
	if err := execute(base+"/postgres", "CREATE DATABASE "+name); err != nil {
		return err
	}
	w.road = &road{server: u.Host, at: "127.0.0.1:0", open: map[net.Conn]bool{}}
	if err := w.road.unlock(); err != nil {
		return err
	}
	w.undo = append(w.undo, w.road.close)
	w.postgres = base + "/" + name
	u.Host, u.Path = w.road.at, "/"+name
	w.env = append(w.env, "PARLEY_DATABASE="+u.String())
	return nil
}

func execute(address, query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, query)
	return err
}

// unlock lets connections through.
func (r *road) unlock() error {
	l, err := net.Listen("tcp", r.at)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listen, r.at = l, l.Addr().String()
	go r.accept(l)
	return nil
}

// close ends all connections, and refuses new ones.
func (r *road) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listen.Close()
	for c := range r.open {
		c.Close()
	}
}

// cut ends all connections.
func (r *road) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
}

func (r *road) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", r.server)
		if err != nil {
			c.Close()
			continue
		}
		r.mu.Lock()
		r.open[c], r.open[s] = true, true
		r.mu.Unlock()
		go r.carry(s, c, false)
		go r.carry(c, s, true)
	}
}

// carry moves what one end says to the other one, until either ends.
func (r *road) carry(to, from net.Conn, slowly bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if slowly && n > 0 {
			time.Sleep(time.Duration(r.wait.Load()))
		}
		if n > 0 {
			if _, bad := to.Write(buf[:n]); bad != nil {
				err = bad
			}
		}
		if err != nil {
			if err != io.EOF {
				from.Close()
			}
			to.Close()
			r.mu.Lock()
			delete(r.open, from)
			r.mu.Unlock()
			return
		}
	}
}

// noPostgres has PostgreSQL crash, be away, have no connection to give, be slow, and only read.
func noPostgres(d *doing) error {
	server := strings.TrimSuffix(d.postgres, d.postgres[strings.LastIndex(d.postgres, "/"):]) + "/postgres"
	if err := d.during("a PostgreSQL that can't be reached", true, func() error { d.road.close(); return nil }, d.road.unlock); err != nil {
		return err
	}
	if err := d.during("a PostgreSQL whose connections break", false, func() error {
		for range 5 {
			d.road.cut()
			time.Sleep(d.lasts / 10)
		}
		return execute(server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
	}, func() error { return nil }); err != nil {
		return err
	}
	var taken []*pgx.Conn
	if err := d.during("a PostgreSQL without free connections", true, func() error {
		d.road.close()
		for {
			c, err := pgx.Connect(context.Background(), server)
			if err != nil && len(taken) > 100 {
				return d.road.unlock()
			}
			if err == nil {
				taken = append(taken, c)
			}
		}
	}, func() error {
		for _, c := range taken {
			c.Close(context.Background())
		}
		return nil
	}); err != nil {
		return err
	}
	slow := func() error { d.road.wait.Store(int64(200 * time.Millisecond)); return nil }
	if err := d.during("a PostgreSQL that takes 200 ms for each answer", false, slow,
		func() error { d.road.wait.Store(0); return nil }); err != nil {
		return err
	}
	return d.during("a PostgreSQL that only reads", true, func() error { return d.readsOnly(server, "on") },
		func() error { return d.readsOnly(server, "off") })
}

// readsOnly has PostgreSQL only read, as a standby does, or write again.
func (d *doing) readsOnly(server, is string) error {
	for _, query := range []string{"ALTER SYSTEM SET default_transaction_read_only = " + is, "SELECT pg_reload_conf()"} {
		if err := execute(server, query); err != nil {
			return err
		}
	}
	return nil
}
