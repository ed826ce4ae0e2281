package document

import (
	"fmt"
	"os"
	"testing"

	"parley/internal/testenv"
)

// TestMain lets the test binary be the child process that reads documents.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(Child(os.Args[2:], os.Stdin, os.Stdout))
	}
	child, done, err := testenv.Unraced()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	self = func() (string, error) { return child, nil }
	code := m.Run()
	done()
	os.Exit(code)
}
