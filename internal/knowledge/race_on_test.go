//go:build race

package knowledge

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// prepare has the children of these tests run without the race detector. A child is one goroutine; the detector would take most of its time, and
// so much address space that its limits mean nothing.
func prepare() (done func(), err error) {
	dir, err := os.MkdirTemp("", "parley-test-child-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "child")
	if out, err := exec.Command("go", "test", "-c", "-o", path, ".").CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("build the children's program: %v\n%s", err, out)
	}
	self = func() (string, error) { return path, nil }
	return func() { os.RemoveAll(dir) }, nil
}
