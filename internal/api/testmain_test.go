package api_test

import (
	"os"
	"testing"

	"parley/internal/document"
)

// TestMain lets the test binary be the child process that reads documents.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == document.ChildCommand {
		os.Exit(document.Child(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}
