package document

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		size, overlap int
		in            []Section
		want          []Chunk
	}{
		"fits": {100, 20, []Section{{Heading: []string{"A", "B"}, Page: 2, URL: "u", Text: "One. Two."}},
			[]Chunk{{"A > B", 2, "u", "One. Two."}}},
		"paragraphs before sentences": {40, 0, []Section{
			{Text: "First one here. And more.\n\nSecond paragraph is here. It ends."}},
			[]Chunk{{Text: "First one here. And more."}, {Text: "Second paragraph is here. It ends."}}},
		"sentences with overlap": {30, 12, []Section{{Text: "Aaaa aaaa aaaa. Bbbb bbb. Cccc cccc cccc."}},
			[]Chunk{{Text: "Aaaa aaaa aaaa. Bbbb bbb."}, {Text: "Bbbb bbb. Cccc cccc cccc."}}},
		"headings part": {100, 20, []Section{{Heading: []string{"A"}, Text: "One."},
			{Heading: []string{"B"}, Text: "Two."}},
			[]Chunk{{Heading: "A", Text: "One."}, {Heading: "B", Text: "Two."}}},
		"pages go on": {100, 20, []Section{{Page: 1, Text: "It goes on"}, {Page: 2, Text: "and on. New."}},
			[]Chunk{{Page: 1, Text: "It goes on and on. New."}}},
		"page of the beginning": {20, 0, []Section{{Page: 1, Text: "A first sentence."},
			{Page: 2, Text: "A second sentence."}},
			[]Chunk{{Page: 1, Text: "A first sentence."}, {Page: 2, Text: "A second sentence."}}},
		"rows with the first": {30, 10, []Section{{Text: "Name | Price\nBread | 2.50 €\nMilk | 1.20 €\nSalt | 0.90 €"}},
			[]Chunk{{Text: "Name | Price\nBread | 2.50 €"}, {Text: "Name | Price\nMilk | 1.20 €"},
				{Text: "Name | Price\nSalt | 0.90 €"}}},
		"long sentence": {10, 0, []Section{{Text: "aaaa bbbb cccc dddd"}},
			[]Chunk{{Text: "aaaa bbbb"}, {Text: "cccc dddd"}}},
		"no spaces": {3, 0, []Section{{Text: "日本語文字"}}, []Chunk{{Text: "日本語"}, {Text: "文字"}}},
		"japanese":  {8, 0, []Section{{Text: "これは文です。次の文。"}}, []Chunk{{Text: "これは文です。"}, {Text: "次の文。"}}},
		"abbreviations": {24, 0, []Section{{Text: "Ask Dr. J. Smith at 3.5 pm. He is e.g. here."}},
			[]Chunk{{Text: "Ask Dr. J. Smith at 3.5"}, {Text: "pm. He is e.g. here."}}},
		"nothing": {10, 0, []Section{{Text: " \n\n "}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Split(c.in, c.size, c.overlap); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// FuzzSplit: nothing is lost, no passage is too long or cut inside a character, and the same input gives the same
// passages.
func FuzzSplit(f *testing.F) {
	f.Add("One sentence. Another one!\n\nA | b\nc | d\n\n- item\n- item", "And on page two. Ü", 20, 5)
	f.Add("日本語。文字！", "a | b | c\n1 | 2 | 3", 4, 2)
	f.Add(strings.Repeat("word ", 50), "\n\n\n", 1, 0)
	f.Add("e.g. Dr. J. Smith (3.14). \"Quoted.\" End", "", 9, 9)
	f.Fuzz(func(t *testing.T, a, b string, size, overlap int) {
		a, b = Clean(a), Clean(b)
		size, overlap = 1+abs(size%300), abs(overlap%300)
		in := []Section{{Page: 1, Text: a}, {Page: 2, Text: b}, {Heading: []string{"h"}, Page: 2, Text: a}}
		out := Split(in, size, overlap)
		if !reflect.DeepEqual(out, Split(in, size, overlap)) {
			t.Fatal("not the same twice")
		}
		have := map[rune]int{}
		for _, c := range out {
			if n := utf8.RuneCountInString(c.Text); n > size || n == 0 || !utf8.ValidString(c.Text) {
				t.Fatalf("%d characters for %d: %q", n, size, c.Text)
			}
			for _, r := range c.Text {
				have[r]++
			}
		}
		for _, r := range a + b + a {
			have[r]--
			if have[r] < 0 && !unicode.IsSpace(r) {
				t.Fatalf("%q is lost", r)
			}
		}
		if overlap == 0 && !strings.Contains(a+b, " | ") {
			left := func(s string) string {
				return strings.Map(func(r rune) rune {
					if unicode.IsSpace(r) {
						return -1
					}
					return r
				}, s)
			}
			all := ""
			for _, c := range out {
				all += c.Text
			}
			if left(all) != left(a+b+a) {
				t.Fatalf("%q became %q", a+b+a, all)
			}
		}
	})
}

func abs(n int) int { return max(n, -n) }

// BenchmarkSplit reports pages of 3,000 characters per second.
func BenchmarkSplit(b *testing.B) {
	var in []Section
	for p := range 100 {
		in = append(in, Section{Page: p + 1, Text: strings.Repeat(
			fmt.Sprintf("The harbour office opens at %d in the morning. Visitors report, e.g. by radio, before mooring.\n", p), 32)})
	}
	for b.Loop() {
		Split(in, ChunkSize, ChunkOverlap)
	}
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}
