package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Bad days in short: the program is killed, and its model fails; make baddays has the long ones. What is judged at the end is what
// the model, the webhook receiver, the carrier and the exchange saw.
func TestBadDays(t *testing.T) {
	t.Parallel()
	runner := filepath.Join(t.TempDir(), "baddays")
	if out, err := exec.Command("go", "build", "-o", runner, "parley/scripts/baddays").CombinedOutput(); err != nil {
		t.Fatalf("build the runner: %v\n%s", err, out)
	}
	for _, day := range []string{"kill", "model"} {
		t.Run(day, func(t *testing.T) {
			share(t, call)
			cmd := exec.CommandContext(t.Context(), runner, "-binary", binary, "-day", day, "-kills", "3", "-for", "1s")
			cmd.Dir = ".."
			out, err := cmd.CombinedOutput()
			if t.Logf("%s", out); err != nil {
				t.Errorf("the day %s: %v", day, err)
			}
		})
	}
}
