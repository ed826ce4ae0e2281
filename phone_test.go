package parley_test

import (
	"regexp"
	"testing"

	"parley"
)

func TestNormalizePhone(t *testing.T) {
	for text, want := range map[string]string{
		"+14155552671": "+14155552671", " +1 (415) 555-2671 ": "+14155552671", "0014155552671": "+14155552671", "+49 30 901820": "+4930901820",
		"+44 20 7946 0958": "+442079460958", "+1.415.555.2671": "+14155552671",
	} {
		if got, ok := parley.NormalizePhone(text); !ok || got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "+", "00", "4155552671", "(415) 555-2671", "+1", "+123", "+999999999999", "+1415555267", "+141555526711111111", "abc", "+abc",
		"sip:a@b", "+1415555\x002671", "+14155552671; DROP TABLE", "+00000000000"} {
		if got, ok := parley.NormalizePhone(text); ok {
			t.Errorf("%q is %q", text, got)
		}
	}
	for kind, want := range map[parley.NumberType]string{parley.NumberNormal: "Normal", parley.NumberSIP: "SIP", parley.NumberCallerID: "Caller ID"} {
		if kind.Label() != want {
			t.Errorf("%s is labelled %s", kind, kind.Label())
		}
	}
}

func FuzzNormalizePhone(f *testing.F) {
	for _, s := range []string{"+14155552671", "00 49 30 901820", "+1-800-FLOWERS", "+\xff", "+١٤١٥٥٥٥٢٦٧١", "+1415 555 2671 ext. 5", "004920100000000000"} {
		f.Add(s)
	}
	e164 := regexp.MustCompile(`^\+[1-9]\d{4,14}$`)
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := parley.NormalizePhone(s)
		if ok != (n != "") || ok && !e164.MatchString(n) {
			t.Errorf("%q is %q %v", s, n, ok)
		}
		if again, still := parley.NormalizePhone(n); ok && (!still || again != n) {
			t.Errorf("%q is %q, and that %q %v", s, n, again, still)
		}
	})
}
