package lang_test

import (
	"bufio"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"parley/internal/lang"
)

// pairOf is a line of testdata/said.txt.
type pairOf struct{ language, kind, written, said string }

// pairs reads testdata/said.txt: language, kind, written and said, with tabs between; "\n" in a text is a line's end.
func pairs(t testing.TB) (list []pairOf) {
	f, err := os.Open("testdata/said.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p := strings.Split(line, "\t")
		if len(p) != 4 || seen[p[0]+p[2]] {
			t.Fatalf("a line that is there twice, or not of four columns: %q", line)
		}
		seen[p[0]+p[2]] = true
		list = append(list, pairOf{p[0], p[1], strings.ReplaceAll(p[2], `\n`, "\n"), p[3]})
	}
	return list
}

// TestSaid: what is written is said as a native speaker says it.
func TestSaid(t *testing.T) {
	languages, kinds, wrong := map[string]int{}, map[string]int{}, map[string]int{}
	all := pairs(t)
	for _, p := range all {
		languages[p.language]++
		kinds[p.kind]++
		if got := lang.Speakable(p.written, p.language, lang.InWords, nil); got != p.said {
			wrong[p.kind]++
			t.Errorf("%s %s %q:\n got %q\nwant %q", p.language, p.kind, p.written, got, p.said)
		}
	}
	for _, counts := range []map[string]int{languages, kinds} {
		for _, k := range slices.Sorted(maps.Keys(counts)) {
			t.Logf("%-10s %4d pairs, %d wrong", k, counts[k], wrong[k])
		}
	}
	if len(all) < 2000 || len(languages) < 9 {
		t.Errorf("only %d pairs in %d languages", len(all), len(languages))
	}
}

// FuzzSpeakable: whatever a model writes, what is said has no markup that controls, and saying it again adds nothing.
func FuzzSpeakable(f *testing.F) {
	for _, p := range pairs(f) {
		if len(p.written)%7 == 0 {
			f.Add(p.written, p.language)
		}
	}
	f.Add("**5*4** is $4.50 [1] {{x}} ~~a~~ | b |\n- [ ] c\xff&#39;&lt;", "en")
	f.Fuzz(func(t *testing.T, text, language string) {
		if len(text) > 2000 {
			return
		}
		for _, style := range []lang.Style{lang.InWords, lang.AsWritten} {
			said := lang.Speakable(text, language, style, nil)
			if strings.ContainsFunc(said, unicode.IsControl) {
				t.Errorf("%q has control characters: %q", text, said)
			}
			// What appears only when something was taken away is said on the second time; it may not go on so.
			again := lang.Speakable(said, language, style, nil)
			third := lang.Speakable(lang.Speakable(again, language, style, nil), language, style, nil)
			if len(third) > 2*len(again)+16 {
				t.Errorf("%q grows: %q, %q, %q", text, said, again, third)
			}
		}
	})
}

func BenchmarkSpeakable(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"plain", "Of course, I can help you with that, what would you like to know?"},
		{"sentence", "Yes, we are open today. What can I do for you?"},
		{"numbers", "It costs $4.50 on March 3 at 2:30 pm, call +1 (555) 123-4567."},
		{"markup", "**Bold** and [a link](https://x.org/y) with `code` [1] and *stars*."},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lang.Speakable(c.text, "en", lang.InWords, nil)
			}
		})
	}
}
