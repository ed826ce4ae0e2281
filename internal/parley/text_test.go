package parley_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/internal/parley"
)

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"Grüße, 世界 👋\n":           "Grüße, 世界 👋\n",
		"a\x00b\x00\x00c":         "abc",
		"\x00":                    "",
		"caf\xe9":                 "caf\uFFFD",
		"\xff\xfe":                "\uFFFD",
		"\xe4\x00\xb8\x00\x96":    "世", // without the NULs, the separate bytes form one letter
		"\xed\xa0\x80":            "\uFFFD",
		`the escape \u0000 stays`: `the escape \u0000 stays`,
	} {
		if got := parley.CleanText(in); got != want {
			t.Errorf("CleanText(%q) is %q, want %q", in, got, want)
		}
	}
	clean := strings.Repeat("clean text ", 100)
	if n := testing.AllocsPerRun(100, func() { parley.CleanText(clean) }); n != 0 {
		t.Errorf("a clean text costs %v allocations", n)
	}
}

func FuzzCleanText(f *testing.F) {
	for _, s := range []string{"", "a\x00b", "caf\xe9", "\xe4\x00\xb8\x96"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := parley.CleanText(s)
		if strings.ContainsRune(got, 0) || !utf8.ValidString(got) || parley.CleanText(got) != got {
			t.Errorf("CleanText(%q) is %q", s, got)
		}
		if !strings.ContainsRune(s, 0) && utf8.ValidString(s) && got != s {
			t.Errorf("CleanText changed the clean text %q to %q", s, got)
		}
	})
}
