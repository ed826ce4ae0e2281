package knowledge

import (
	"fmt"
	"os"
	"testing"

	"parley/internal/document"
	"parley/internal/testenv"
)

// reader reads the pages of the websites in these tests.
var reader = &document.Extractor{}

// TestMain lets the test binary be the child process that reads documents.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == document.ChildCommand {
		os.Exit(document.Child(os.Args[2:], os.Stdin, os.Stdout))
	}
	child, done, err := testenv.Unraced()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	reader.Program = []string{child, document.ChildCommand}
	code := m.Run()
	done()
	os.Exit(code)
}
