package parley_test

import (
	"strings"
	"testing"

	"parley/internal/parley"
)

// rebuild returns the two texts that a comparison was made from.
func rebuild(list []parley.DiffLine) (before, after string) {
	var a, b []string
	for _, l := range list {
		if l.Op != "+" {
			a = append(a, l.Text)
		}
		if l.Op != "-" {
			b = append(b, l.Text)
		}
	}
	return strings.Join(a, "\n"), strings.Join(b, "\n")
}

func picture(list []parley.DiffLine) (s string) {
	for _, l := range list {
		s += l.Op + l.Text + " "
	}
	return strings.TrimSpace(s)
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""}, {"a", "a", "=a"}, {"", "a", "+a"}, {"a", "", "-a"}, {"a\nb\nc", "a\nx\nc", "=a -b +x =c"},
		{"a\nb", "b\na", "-a =b +a"},
		{"a\na\na", "a\na", "=a =a -a"}, {"a\nb\nc\nd", "b\nd\ne", "-a =b -c =d +e"},
	} {
		if got := picture(parley.Diff(c.before, c.after)); got != c.want {
			t.Errorf("%q to %q: %s, want %s", c.before, c.after, got, c.want)
		}
	}
	if list := parley.Diff("", ""); list == nil {
		t.Error("nothing is null in JSON")
	}
	// A comparison too large for the table is still right.
	before, after := strings.Repeat("a\n", 3000)+"same", strings.Repeat("b\n", 3000)+"same"
	if a, b := rebuild(parley.Diff(before, after)); a != before || b != after {
		t.Error("a large comparison does not give its texts back")
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\nd")
	f.Add("", "\n")
	f.Add("\n\n", "\n")
	f.Add("x\r\ny", "x\ny")
	f.Fuzz(func(t *testing.T, before, after string) {
		list := parley.Diff(before, after)
		if a, b := rebuild(list); a != before || b != after {
			t.Errorf("%q to %q gives back %q and %q", before, after, a, b)
		}
		for _, l := range list {
			if l.Op != "=" && before == after {
				t.Errorf("%q differs from itself", before)
			}
		}
	})
}
