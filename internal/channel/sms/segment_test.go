package sms_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"parley/internal/channel/sms"
)

// The alphabet as 3GPP TS 23.038 prints it, by columns: written independently of the code's table.
const (
	basic = "@Δ 0¡P¿p£_!1AQaq$Φ\"2BRbr¥Γ#3CScsèΛ¤4DTdtéΩ%5EUeuùΠ&6FVfvìΨ'7GWgwòΣ(8HXhxÇΘ)9IYiy\n" +
		"Ξ*:JZjzØ+;KÄkäøÆ,<LÖlö\ræ-=MÑmñÅß.>NÜnüåÉ/?O§oà"
	extended = "\f^{}\\[~]|€"
)

func TestSegmentsTable(t *testing.T) {
	if n := utf8.RuneCountInString(basic); n != 127 {
		t.Fatalf("the test's alphabet has %d characters", n)
	}
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"one letter": {"a", 1}, "160": {a(160), 1}, "161": {a(161), 2}, "306": {a(306), 2}, "307": {a(307), 3},
		"459": {a(459), 3}, "460": {a(460), 4},
		"80 euros": {strings.Repeat("€", 80), 1}, "81 euros": {strings.Repeat("€", 81), 2},
		"159 and a euro":               {a(159) + "€", 2},
		"158 and a euro":               {a(158) + "€", 1},
		"an escape at the edge":        {a(152) + "€" + a(10), 2},
		"two of 76 euros and one over": {strings.Repeat("€", 153), 3},
		"70 of UCS-2":                  {strings.Repeat("ж", 70), 1}, "71 of UCS-2": {strings.Repeat("ж", 71), 2},
		"134": {strings.Repeat("ж", 134), 2}, "135": {strings.Repeat("ж", 135), 3},
		"35 emoji": {strings.Repeat("😀", 35), 1}, "36 emoji": {strings.Repeat("😀", 36), 2},
		"66 emoji fill two parts but for a unit each": {strings.Repeat("😀", 66), 2},
		"67 emoji":           {strings.Repeat("😀", 67), 3},
		"one foreign letter": {a(69) + "ж", 1}, "one foreign letter more": {a(70) + "ж", 2},
		"the whole alphabet": {basic, 1}, "the whole extension": {strings.Repeat(extended, 8), 1},
		"a backtick is in no table": {a(70) + "`", 2},
		"ç is not Ç":                {a(70) + "ç", 2},
	} {
		if got := sms.Segments(c.text); len(got) != c.want {
			t.Errorf("%s: %d segments, not %d", name, len(got), c.want)
		}
	}
}

func FuzzSegments(f *testing.F) {
	for _, s := range []string{"hello", strings.Repeat("€", 200), strings.Repeat("a😀", 100),
		strings.Repeat("a", 152) + "€€", "\f\r\n", "\x00", "�"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		parts := sms.Segments(s)
		if strings.Join(parts, "") != s {
			t.Fatal("the parts are not the text")
		}
		gsm, size := true, 0
		for _, r := range s {
			gsm = gsm && strings.ContainsRune(basic+extended, r)
		}
		width := func(s string) (n int) {
			if !gsm {
				return len(utf16.Encode([]rune(s)))
			}
			for _, r := range s {
				n++
				if strings.ContainsRune(extended, r) {
					n++
				}
			}
			return n
		}
		size = width(s)
		one, part := 160, 153
		if !gsm {
			one, part = 70, 67
		}
		if (size <= one) != (len(parts) == 1) {
			t.Fatalf("%d wide in %d parts", size, len(parts))
		}
		for i, p := range parts {
			switch w := width(p); {
			case len(parts) > 1 && w > part, len(parts) > 1 && w == 0, !utf8.ValidString(p):
				t.Fatalf("part %d is %d wide", i, w)
			case i+1 < len(parts): // the next character would not have fitted: no space is wasted
				next, _ := utf8.DecodeRuneInString(parts[i+1])
				if w+width(string(next)) <= part {
					t.Fatalf("part %d ends early at %d", i, w)
				}
			}
		}
	})
}

func TestChunks(t *testing.T) {
	words := strings.Repeat("Grüße an alle. ", 300)
	parts := sms.Chunks(words)
	if got := strings.Fields(strings.Join(parts, " ")); !slices.Equal(got, strings.Fields(words)) {
		t.Error("words were lost or cut")
	}
	for _, p := range append(parts, sms.Chunks(strings.Repeat("ж", 4000))...) {
		if n := utf8.RuneCountInString(p); n == 0 || n > 1600 {
			t.Errorf("a message of %d characters", n)
		}
	}
	if got := strings.Join(sms.Chunks(strings.Repeat("ж", 4000)), ""); got != strings.Repeat("ж", 4000) {
		t.Error("letters were lost")
	}
}
