package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rehearse runs parley test, and returns what it printed and its exit status.
func rehearse(t *testing.T, dir string, args ...string) (printed string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"test"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// The example suite passes.
func TestRehearsalExamples(t *testing.T) {
	t.Parallel()
	need(t, "flite")
	if printed, status := rehearse(t, "../examples", "tests", "--parallel", "20"); status != 0 {
		t.Errorf("it ended with %d:\n%s", status, printed)
	} else {
		t.Logf("\n%s", printed)
	}
}

var fileOf = regexp.MustCompile("(?s)```yaml\n# file: (\\S+)\n(.*?)```")

// What docs/testing.md shows works as it says: the test passes, and a broken assistant fails it.
func TestRehearsalDocs(t *testing.T) {
	t.Parallel()
	need(t, "flite")
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), 0
	for _, m := range fileOf.FindAllStringSubmatch(string(page), -1) {
		files++
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files != 2 {
		t.Fatalf("the page has %d files", files)
	}
	if printed, status := rehearse(t, dir, "."); status != 0 {
		t.Errorf("it ended with %d:\n%s", status, printed)
	}
	file := filepath.Join(dir, "bakery.assistant.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "from 7 am", "from 8 am", 1)
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	printed, status := rehearse(t, dir, "saturday.yaml")
	if status != 1 || !strings.Contains(printed, `saturday.yaml:7: expected: says "7 am"; "We are open Monday to Saturday from 8 am`) ||
		!strings.Contains(printed, "again: parley test saturday.yaml --only 'says when it is open' --seed 1") {
		t.Errorf("with another hour it ended with %d:\n%s", status, printed)
	}
	if err := os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte("call: bakery\nsteps:\n  - sya: hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if printed, status := rehearse(t, dir, "wrong.yaml"); status != 2 || !strings.Contains(printed, `wrong.yaml:3: a step has no "sya"`) {
		t.Errorf("a mistake ended with %d:\n%s", status, printed)
	}
}
