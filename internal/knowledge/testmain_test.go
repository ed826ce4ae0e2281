package knowledge

import (
	"os"
	"testing"
)

// TestMain lets the tests' own program be the child that reads documents.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(Child(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}
