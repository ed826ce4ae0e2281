package endpoint_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/egress"
	"parley/internal/endpoint"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/store/storetest"
	needs "parley/internal/testenv"
)

// Where the reference servers are: those with a WebSocket, and those with requests.
const (
	examples = "../../examples/endpoint"
	requests = examples + "/http"
)

// built is a reference server in Go.
func built(t *testing.T, dir string) []string {
	bin := filepath.Join(t.TempDir(), "server")
	if out, err := exec.Command("go", "build", "-o", bin, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{bin}
}

// typed is one in TypeScript, with its types checked.
func typed(t *testing.T, from string) []string {
	node := needs.Program(t, "node")
	cache, err := filepath.Abs("../../.cache/endpoint/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	compiler := filepath.Join(cache, "typescript/bin/tsc")
	_, err = os.Stat(compiler) // scripts/setup installs it
	needs.Nil(t, err)
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(from, "server.ts"))
	for _, do := range []func() error{
		func() error { return err },
		func() error { return os.WriteFile(filepath.Join(dir, "server.ts"), text, 0o600) },
		func() error {
			return os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600)
		},
		func() error { return os.Symlink(cache, filepath.Join(dir, "node_modules")) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(node, compiler, "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "server.ts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{node, filepath.Join(dir, "server.js")}
}

// scripted is one in Python.
func scripted(t *testing.T, dir string) []string {
	for _, python := range []string{"python3", "/usr/bin/python3"} { // Debian's package is for its own
		if exec.Command(python, "-c", "import websockets").Run() == nil {
			return []string{python, filepath.Join(dir, "server.py")}
		}
	}
	needs.Nil(t, fmt.Errorf("Python has no package websockets (python3-websockets)"))
	return nil
}

// The reference servers have fewer than 80 lines, and lack nothing that a test of an endpoint looks for.
func TestReferenceServers(t *testing.T) {
	for name, c := range map[string]struct {
		scheme, dir, file string
		make              func(t *testing.T, dir string) []string
	}{
		"Go": {"ws://", examples, "main.go", built}, "Go by requests": {"http://", requests, "main.go", built},
		"TypeScript": {"ws://", examples, "server.ts", typed}, "TypeScript by requests": {"http://", requests, "server.ts", typed},
		"Python": {"ws://", examples, "server.py", scripted}, "Python by requests": {"http://", requests, "server.py", scripted},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(c.dir, c.file))
			if lines := strings.Count(string(text), "\n"); err != nil || lines >= 80 {
				t.Errorf("%s has %d lines (%v)", c.file, lines, err)
			}
			args := c.make(t, c.dir)
			at := fmt.Sprintf("127.0.0.1:%d", needs.Ports(t, 1))
			cmd := exec.Command(args[0], append(args[1:], at)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			for began := time.Now(); ; {
				conn, err := net.Dial("tcp", at)
				if err == nil {
					conn.Close()
					break
				}
				if time.Since(began) > 30*time.Second {
					t.Fatal(err)
				}
			}
			b, user := book(t)
			e, err := b.Create(t.Context(), user.ID, map[string]any{"name": name, "kind": "agent", "protocol": "parley", "url": c.scheme + at})
			if err != nil {
				t.Fatal(err)
			}
			r, err := b.Test(t.Context(), user.ID, e.ID)
			if err != nil || !r.OK || len(r.Findings) != 4 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// book is a book on a database of its own, with a user.
func book(t *testing.T) (*endpoint.Book, *parley.User) {
	t.Helper()
	db := storetest.SQLite(t)
	set, err := provider.Open(provider.All())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	b := endpoint.New(db, egress.New(nil, netip.MustParsePrefix("127.0.0.0/8")), set, endpoint.Public, func(int64, string) {})
	t.Cleanup(b.Close)
	return b, storetest.User(t, db, 0)
}
