// Package testenv tells tests whether the machine has the programs that they need besides Go. scripts/setup installs
// these.
package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// Met says whether err, of looking for something that a test needs, is nil. Where all tests must be run as a whole
// (CI=true, which make test sets) the test fails when it is not.
func Met(t testing.TB, err error) bool {
	t.Helper()
	switch {
	case err == nil:
		return true
	case os.Getenv("CI") == "true":
		t.Fatalf("%v: scripts/setup test installs what tests need", err)
	}
	t.Log(err)
	return false
}

// Nil skips a test that can't be run at all, unless err is nil.
func Nil(t testing.TB, err error) {
	t.Helper()
	if !Met(t, err) {
		t.SkipNow()
	}
}

// Program is the path of a program, without which a test can't be run.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	Nil(t, err)
	return path
}
