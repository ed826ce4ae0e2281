package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/testenv"
)

// bench is one group's run: the program under test and what must be cleaned up.
type bench struct {
	binary string
	undo   []func()
}

func (b *bench) close() {
	for _, fn := range slices.Backward(b.undo) {
		fn()
	}
}

// secret is the setting PARLEY_SECRET_KEY of programs under test.
const (
	secret   = "a secret for benchmarks only"
	password = "measured walrus ladder"
)

// unlimited is a plan that no measurement reaches the end of.
const unlimited = `plans:
  default: {parallel_calls: 1000, assistants: 10000000, tools: 10000000, documents: 10000000, document_mb: 1000000, stored_mb: 1000000, requests_together: 100000, streams: 100000,
    document_readings: 10000000, conversations: 10000000, test_conversations: 10000000, test_messages: 10000000, test_calls: 10000000}
`

// program is a running parley.
type program struct {
	addr  string
	data  string
	token string
	env   []string
	pid   int
	end   func()
}

// serve seeds a database and starts the program on it.
func (b *bench) serve(seed func(ctx context.Context, db *store.DB, u *parley.User, data string) error, env ...string) (*program, error) {
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return nil, err
	}
	b.undo = append(b.undo, func() { os.RemoveAll(data) })
	p := &program{data: data}
	plans := filepath.Join(data, "prices.yaml")
	if err := os.WriteFile(plans, []byte(unlimited), 0o600); err != nil {
		return nil, err
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command(b.binary, args...)
		cmd.Env = append(os.Environ(), "PARLEY_DATA="+data, "PARLEY_SECRET_KEY="+secret)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	if _, err := run("user", "create", "--email", "bench@example.com", "--password", password, "--balance",
		"100000"); err != nil {
		return nil, fmt.Errorf("%s: %w (make build makes it)", b.binary, err)
	}
	if p.token, err = run("key", "create", "--user", "bench@example.com", "--name", "bench"); err != nil {
		return nil, err
	}
	if err := b.seed(data, seed); err != nil {
		return nil, err
	}
	port, release, err := testenv.Reserve(1)
	if err != nil {
		return nil, err
	}
	b.undo = append(b.undo, release)
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	p.env = append([]string{"PARLEY_SECRET_KEY=" + secret, "PARLEY_LISTEN=" + p.addr,
		"PARLEY_RATE_API=off", "PARLEY_PRICES=" + plans,
		"PARLEY_RATE_PUBLIC=off", "PARLEY_PUBLIC_DAILY_SPEND=0", "PARLEY_CONNECTIONS_PER_ADDRESS=0",
		"PARLEY_STREAMS_PER_ADDRESS=0", "PARLEY_SIP_LISTEN=off", "PARLEY_WEBRTC_LISTEN=off"}, env...)
	return p, p.start(b)
}

// start runs the program, and returns when it answers.
func (p *program) start(b *bench) error {
	cmd := exec.Command(b.binary, "serve")
	cmd.Env = append(append(os.Environ(), "PARLEY_DATA="+p.data), p.env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid, p.end = cmd.Process.Pid, sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	b.undo = append(b.undo, p.end)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get("http://" + p.addr + "/readyz")
		said := fmt.Sprint(err)
		if err == nil {
			res.Body.Close()
			if said = res.Status; res.StatusCode == http.StatusOK {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the program did not become ready: %s", said)
		}
	}
}

func (b *bench) seed(data string, seed func(ctx context.Context, db *store.DB, u *parley.User, data string) error) error {
	if seed == nil {
		return nil
	}
	ctx := context.Background()
	db, err := open(data)
	if err != nil {
		return err
	}
	defer db.Close()
	u, err := db.UserByEmail(ctx, "bench@example.com")
	if err != nil {
		return err
	}
	return seed(ctx, db, u, data)
}

// open opens the database of a program under test, beside it: an empty PostgreSQL if PARLEY_DATABASE names one, which
// the program is given with the rest of the environment, and otherwise SQLite.
func open(data string) (*store.DB, error) {
	key := sha256.Sum256([]byte(secret)) // as the setting is read
	return store.Open(context.Background(), store.Options{Path: filepath.Join(data, "parley.db"),
		Postgres: os.Getenv("PARLEY_DATABASE"), Secret: key[:]})
}

// openRaw opens the same database for SQL of the bench's own; pragmas are SQLite's alone, and postgres reports which it is.
func openRaw(data, pragmas string) (db *sql.DB, postgres bool, err error) {
	if address := os.Getenv("PARLEY_DATABASE"); address != "" {
		db, err = sql.Open("pgx", address)
		return db, true, err
	}
	db, err = sql.Open("sqlite", "file:"+filepath.Join(data, "parley.db")+"?_pragma=busy_timeout(60000)"+pragmas)
	return db, false, err
}

// load asks a server from conns connections for a while and reports how fast it answers. request writes the n-th
// request; every answer must have the status.
func load(addr string, conns int, d time.Duration, status int, request func(n int64) []byte) (result, error) {
	var n atomic.Int64
	var wg sync.WaitGroup
	times := make([][]time.Duration, conns)
	errs := make([]error, conns)
	began := time.Now()
	for i := range conns {
		wg.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			r := bufio.NewReaderSize(c, 64<<10)
			for time.Since(began) < d {
				sent := time.Now()
				if _, err := c.Write(request(n.Add(1))); err != nil {
					errs[i] = err
					return
				}
				res, err := http.ReadResponse(r, nil)
				if err == nil {
					var body []byte
					body, err = io.ReadAll(res.Body)
					if err == nil && res.StatusCode != status {
						err = fmt.Errorf("answered %s: %.300s", res.Status, body)
					}
				}
				if err != nil {
					errs[i] = err
					return
				}
				times[i] = append(times[i], time.Since(sent))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return result{}, err
		}
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	return result{perSecond: float64(len(all)) / time.Since(began).Seconds(), p50: quantile(all, .5),
		p99: quantile(all, .99)}, nil
}

type result struct {
	perSecond float64
	p50, p99  time.Duration
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// request is the bytes of an HTTP request.
func request(method, path, token, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench\r\n", method, path)
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// floor is a bare net/http server in this process that answers with size bytes: what the connections, the HTTP and
// the load itself cost.
func (b *bench) floor(size int) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	body := bytes.Repeat([]byte("x"), size)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(body)
	})}
	go srv.Serve(l)
	b.undo = append(b.undo, func() { srv.Close() })
	return l.Addr().String(), nil
}
