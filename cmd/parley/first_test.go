package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The password of the first account is shown on a terminal, and kept out of systemd's journal.
func TestFirstSignInIsNotInTheJournal(t *testing.T) {
	const text = "Sign in admin@localhost password abc\n"
	for name, c := range map[string]struct {
		journal     bool
		shown, file string
	}{
		"a terminal": {false, text, ""},
		"systemd":    {true, "Parley is ready. How to sign in is in ", text},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var out strings.Builder
			if err := tell(&out, dir, text, c.journal); err != nil {
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

// A terminal of a desktop has the journal's variable too, and is not the journal.
func TestInJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s := info.Sys().(*syscall.Stat_t)
	for stream, want := range map[string]bool{"": false, "8:1234": false, fmt.Sprintf("%d:%d", s.Dev, s.Ino): true} {
		t.Setenv("JOURNAL_STREAM", stream)
		if got := inJournal(f); got != want {
			t.Errorf("%q: %v", stream, got)
		}
	}
}
