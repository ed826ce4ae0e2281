package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// Unraced is the path of the tests' own program without the race detector, for tests that run it as a child with
// limits: the detector would take most of the child's time, and so much address space that its limits mean nothing.
// Under the detector it is built anew, and done removes it. For TestMain, in the directory of the tests.
func Unraced() (path string, done func(), err error) {
	if info, ok := debug.ReadBuildInfo(); !ok || !slices.Contains(info.Settings,
		debug.BuildSetting{Key: "-race", Value: "true"}) {
		path, err = os.Executable()
		return path, func() {}, err
	}
	dir, err := os.MkdirTemp("", "parley-test-child-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "child")
	build := exec.Command("go", "test", "-c", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as everything is built but for the detector
	if out, err := build.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("build the children's program: %v\n%s", err, out)
	}
	return path, func() { os.RemoveAll(dir) }, nil
}
