package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// How long PostgreSQL may take. A host that is gone without a word (no reset, no closed connection) must hold nothing
// here for ever.
const (
	connectTime   = 10 * time.Second
	statementTime = 30 * time.Second // then the server gives a statement up, and a transaction that nobody goes on with
	answerTime    = 40 * time.Second // longer: then we give up a server that says nothing
	writeTime     = time.Minute      // a whole transaction, with the waiting for a connection
	// a migration that waits for a table keeps others waiting behind it: then it steps back, and tries again
	lockTime    = 3 * time.Second
	unheardTime = 20 * time.Second // then TCP gives a peer up that acknowledges nothing
)

// patience is how a PostgreSQL is reached, and for how long it is waited for.
type patience struct {
	config *pgx.ConnConfig
	answer time.Duration
}

func openPostgres(ctx context.Context, o Options) (*DB, error) {
	cfg, err := pgx.ParseConfig(o.Postgres)
	if err != nil {
		return nil, errors.New("the PostgreSQL address can't be read: write it as postgres://user:password@host:5432/database")
	}
	encrypt(cfg, o.Postgres)
	// bun writes the arguments into the text of a query: preparing each text would cost a round trip and fill the
	// server's cache.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, connectTime)
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend { return pgproto3.NewFrontend(ended{r}, w) }
	p := &patience{cfg, cmp.Or(o.Answer, answerTime)}
	pool := p.pool(p.answer)
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(16)
	db := bun.NewDB(pool, literal{pgdialect.New()}, bun.WithDiscardUnknownColumns())
	if err := await(ctx, cfg.Host, o.Wait, pool.PingContext); err != nil {
		pool.Close()
		return nil, err
	}
	if err := ownSessions(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return newDB(db, db, p, o)
}

// encrypt has nothing leave this machine that is not encrypted, unless the address says by sslmode how it is to be: all that
// nodes tell each other goes through the database.
func encrypt(cfg *pgx.ConnConfig, address string) {
	if strings.Contains(address, "sslmode=") || os.Getenv("PGSSLMODE") != "" {
		return
	}
	cfg.Fallbacks = slices.DeleteFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil && !local(f.Host) })
}

// local says whether a host is this machine: by its name, its address or a socket.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || ip != nil && ip.IsLoopback()
}

// Plain says whether a PostgreSQL on another machine may be talked to without encryption.
func Plain(address string) bool {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return false
	}
	encrypt(cfg, address)
	return cfg.TLSConfig == nil && !local(cfg.Host) ||
		slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil && !local(f.Host) })
}

// refusedTLS is how the driver says that a server knows no encryption.
const refusedTLS = "server refused TLS connection"

// await pings until the database answers, for as long as it may. A fault that waiting can't mend, such as a wrong
// password, ends it at once.
func await(ctx context.Context, host string, wait time.Duration, ping func(context.Context) error) error {
	begun := time.Now()
	var told time.Time
	for {
		try, cancel := context.WithTimeout(ctx, connectTime)
		err := ping(try)
		cancel()
		if err == nil {
			return nil
		}
		var pg *pgconn.PgError
		if errors.As(err, &pg) && !away(err) || ctx.Err() != nil || time.Since(begun) >= wait {
			if strings.Contains(err.Error(), refusedTLS) {
				err = fmt.Errorf("%w: on another machine it must encrypt (ssl = on in postgresql.conf), "+
					"unless the address ends in ?sslmode=disable because a tunnel of yours does", err)
			}
			return fmt.Errorf("connect to PostgreSQL at %s: %w", host, err)
		}
		if time.Since(told) >= 10*time.Second {
			told = time.Now()
			slog.WarnContext(ctx, "waiting for PostgreSQL to answer", "host", host, "for",
				(wait - time.Since(begun)).Round(time.Second), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// pool opens connections whose every answer must come within a time, unless that is 0: the server bounds their
// statements then.
func (p *patience) pool(answer time.Duration) *sql.DB {
	cfg := p.config.Copy()
	cfg.DialFunc = dial(answer)
	if answer == 0 { // migrations: as long as they take
		return stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", lockTime.Milliseconds()))
			return err
		}))
	}
	return stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		var set []string
		for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
			if _, own := cfg.RuntimeParams[name]; !own { // the address may name its own
				set = append(set, fmt.Sprintf("SET %s = %d", name, statementTime.Milliseconds()))
			}
		}
		_, err := c.Exec(ctx, strings.Join(set, "; ")) // no start parameters: poolers refuse those
		return err
	}))
}

// jobs are connections for the queue, one of which listens for as long as nothing happens.
func (p *patience) jobs(ctx context.Context) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(p.config.ConnString())
	if err != nil {
		return nil, err
	}
	encrypt(cfg.ConnConfig, cfg.ConnString())
	cfg.ConnConfig.DialFunc = dial(0)
	cfg.ConnConfig.ConnectTimeout = p.config.ConnectTimeout
	return pgxpool.NewWithConfig(ctx, cfg)
}

func dial(answer time.Duration) pgconn.DialFunc {
	d := &net.Dialer{Timeout: connectTime, Control: unheard,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, &awayError{err}
		}
		return &conn{Conn: c, answer: answer}, nil
	}
}

// conn is a connection to PostgreSQL on which no answer is waited for without end.
type conn struct {
	net.Conn
	answer time.Duration

	mu    sync.Mutex
	until time.Time // the driver's own deadline
}

func (c *conn) Read(b []byte) (int, error) {
	if c.answer > 0 {
		c.mu.Lock()
		if c.until.IsZero() {
			c.Conn.SetReadDeadline(time.Now().Add(c.answer))
		}
		c.mu.Unlock()
	}
	n, err := c.Conn.Read(b)
	return n, gone(err)
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, gone(err)
}

func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetReadDeadline(t)
}

// notReached begins what an error of a database says that did not answer.
const notReached = "the database does not answer"

// awayError says that the database did not answer.
type awayError struct{ error }

func (e *awayError) Error() string { return notReached + ": " + e.error.Error() }

func (e *awayError) Unwrap() error { return e.error }

// Timeout keeps a deadline what it was for the driver.
func (e *awayError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.error, &t) && t.Timeout()
}

func (e *awayError) Temporary() bool { return false }

func gone(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // TLS compares it
		return err
	}
	return &awayError{err}
}

// ended reads what PostgreSQL says, below TLS or without. A server that dies closes its connections without a word: the driver would
// report an end of file, as many other things do.
type ended struct{ io.Reader }

func (e ended) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	if err == io.EOF { //nolint:errorlint // as the driver compares it
		err = &awayError{io.ErrUnexpectedEOF}
	}
	return n, err
}

// away says whether err means that the database can't be asked now, whatever is asked.
func away(err error) bool {
	var a *awayError
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError // also of a name that is not known any more
	if errors.As(err, &pg) {
		switch pg.Code {
		case "57P01", "57P02", "57P03", "53300": // shut down, crashed, starting, too many connections
			return true
		}
		return strings.HasPrefix(pg.Code, "08")
	}
	return errors.As(err, &a) || errors.As(err, &connect) || errors.Is(err, driver.ErrBadConn) ||
		pgconn.SafeToRetry(err) && !errors.Is(err, context.Canceled) // a connection that was found closed
}
