package e2e

import (
	"os/exec"
	"regexp"
	"testing"
)

// TestVersion: the built program prints its version, by a command and by a flag.
func TestVersion(t *testing.T) {
	share(t, call)
	for _, arg := range []string{"version", "--version"} {
		got, err := exec.Command(binary, arg).Output()
		if err != nil || !regexp.MustCompile(`^parley \S+, commit \w+( with changes)? of \S+, go1\S+ \w+/\w+\n$`).Match(got) {
			t.Errorf("%s: %v %q", arg, err, got)
		}
	}
}
