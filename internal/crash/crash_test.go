package crash

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

func TestRun(t *testing.T) {
	plain := errors.New("plain")
	if err := Run(func() error { return plain }); !errors.Is(err, plain) || Is(err) {
		t.Errorf("an error came back as %v", err)
	}
	err := Run(func() error { panic("planted") })
	if !Is(err) || !strings.Contains(err.Error(), "planted") || !strings.Contains(err.Error(), "TestRun") {
		t.Errorf("a panic came back as %v", err)
	}
	if err := Run(func() error { var list []int; list[len(plain.Error())] = 1; return nil }); !Is(err) {
		t.Errorf("a runtime error came back as %v", err)
	}
}

func TestGo(t *testing.T) {
	var wg sync.WaitGroup
	var got error
	Go(&wg, func() { panic("planted") }, func(err error) { got = err })
	wg.Wait()
	if !Is(got) {
		t.Errorf("got %v", got)
	}
}

// TestContainAllocates shows that work without a panic may be guarded for each packet of a call.
func TestContainAllocates(t *testing.T) {
	guarded := func(n *int) {
		defer Contain(func(error) { *n = -1 })
		*n++
	}
	n := 0
	if got := testing.AllocsPerRun(100, func() { guarded(&n) }); got != 0 || n <= 0 {
		t.Errorf("%v allocations, n = %d", got, n)
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	func() {
		defer Contain(Log("a planted job", "job", 7))
		panic("planted")
	}()
	if s := out.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "a planted job panicked") || !strings.Contains(s, "job=7") ||
		!strings.Contains(s, "planted") {
		t.Errorf("logged %q", s)
	}
}
