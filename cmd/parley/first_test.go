package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The password of the first account is shown on a terminal, and kept out of systemd's journal.
func TestFirstSignInIsNotInTheJournal(t *testing.T) {
	const text = "Sign in admin@localhost password abc\n"
	for name, c := range map[string]struct {
		stream, shown, file string
	}{
		"a terminal": {"", text, ""},
		"systemd":    {"8:1234", "Parley is ready. How to sign in is in ", text},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("JOURNAL_STREAM", c.stream)
			dir := t.TempDir()
			var out strings.Builder
			if err := tell(&out, dir, text); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "first-sign-in.txt")
			kept, _ := os.ReadFile(file)
			if !strings.HasPrefix(out.String(), c.shown) || string(kept) != c.file || c.file != "" && strings.Contains(out.String(), "abc") {
				t.Errorf("shown %q, in the file %q", out.String(), kept)
			}
			if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("the file's mode is %v", info.Mode())
			}
		})
	}
}
