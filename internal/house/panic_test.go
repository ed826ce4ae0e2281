package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// plainGoroutines are the files that begin goroutines without internal/crash, and why a panic of these may end the process, or can't.
var plainGoroutines = map[string]string{
	"cmd/parley/main.go":                     "waits for signals",
	"cmd/parley/metrics.go":                  "the listener of metrics",
	"cmd/parley/rehearse.go":                 "the command parley test",
	"cmd/parley/run.go":                      "the listener of HTTP; a wait",
	"cmd/parley/trunk_check.go":              "the command parley trunk check",
	"scripts/release/starts.go":              "waits for a process",
	"examples/endpoint/main.go":              "an example, which stands alone",
	"internal/call/call.go":                  "loops that crash.Loop begins again; a wait",
	"internal/call/other.go":                 "o.run contains its panics",
	"internal/call/start.go":                 "l.run contains its panics",
	"internal/call/web.go":                   "l.run contains its panics",
	"internal/chat/attend.go":                "c.work contains its panics",
	"internal/chat/chat.go":                  "a wait",
	"internal/console/lives.go":              "a wait",
	"internal/knowledge/knowledge.go":        "each round contains its panics",
	"internal/provider/live/link.go":         "the reading contains its panics",
	"internal/provider/failover/realtime.go": "t.run contains its panics",
	"internal/provider/local/nursery.go":     "waits for a process",
	"internal/provider/local/sphinx.go":      "each utterance contains its panics",
	"internal/provider/openai/hearing.go":    "each utterance contains its panics",
	"internal/provider/wire/recognition.go":  "the following contains its panics",
	"internal/rtc/rtc.go":                    "l.attend contains its panics",
	"internal/rtp/ports.go":                  "throws packets away, unread",
	"internal/sip/server.go":                 "the readers' firewall contains its panics",
	"internal/store/db.go":                   "each write contains its panics",
	"internal/voice/owner.go":                "r.escaped contains its panics",
	"internal/voice/record.go":               "r.write contains its panics",
	"internal/voice/session.go":              "each event contains its panics",
}

// TestHouseGoroutines checks that a panic of a goroutine ends what it works for, not the process: goroutines are begun by crash.Go,
// or hold a crash.Contain or crash.Run, or their file is listed above with the reason.
func TestHouseGoroutines(t *testing.T) {
	if got := bareGoroutines(t, "x.go", "package x\nfunc f() { go func() { work() }(); wg.Go(work); crash.Go(&wg, work, then)\n"+
		"wg.Go(func() { defer crash.Contain(then); work() }); go func() { _ = crash.Run(work) }() }"); len(got) != 2 {
		t.Fatalf("of two bare goroutines these were found: %v", got)
	}
	used := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		file = filepath.ToSlash(file)
		if err != nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		dir := path.Dir(file)
		if strings.HasPrefix(dir, "bench") || strings.HasPrefix(dir, "e2e") || dir == "scripts/baddays" || strings.HasSuffix(dir, "test") ||
			strings.HasPrefix(dir, "internal/simulator") || dir == "internal/testenv" || dir == "internal/crash" {
			return nil
		}
		for _, where := range bareGoroutines(t, file, nil) {
			if plainGoroutines[file] == "" {
				t.Errorf("%s: a panic here ends the process: begin the goroutine by crash.Go", where)
			}
			used[file] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range plainGoroutines {
		if !used[file] {
			t.Errorf("%s begins no goroutine without internal/crash any more: take it off the list", file)
		}
	}
}

// bareGoroutines finds the goroutines of a file that say nothing about panics.
func bareGoroutines(t *testing.T, file string, text any) (found []string) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	guarded := func(n ast.Node) (is bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "crash" {
					is = true
				}
			}
			return !is
		})
		return is
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !guarded(n) {
				found = append(found, set.Position(n.Pos()).String())
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" && !guarded(n) {
				found = append(found, set.Position(n.Pos()).String())
			}
		}
		return true
	})
	return found
}
