package lang

import (
	"os"
	"strings"
	"testing"
)

func TestWhich(t *testing.T) {
	for text, want := range map[string]string{
		"Cerramos a las seis de la tarde.": "es",
		"We close at six in the evening.":  "en",
		"Wir schließen um sechs Uhr.":      "de",
		"Claro que sí, hasta mañana.":      "es",
		"Gern geschehen, bis morgen!":      "de",
		"You are welcome.":                 "en",
		"Thank you!":                       "en",
		"Мы закрываемся в шесть.":          "ru",
		"Okay.": "", // of all of them
		"Señor Müller lives at Hauptstraße 7, Berlin.": "",
		"":      "",
		"18:00": "",
	} {
		if got := Which(text, []string{"en", "es", "de", "ru"}); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for _, c := range []struct {
		text, of, want string
	}{
		{"六時に閉まります。", "zh ja", "ja"},
		{"我们六点关门，谢谢您的来电。", "zh ja", "zh"},
		{"여섯 시에 닫습니다.", "ko ja", "ko"},
		{"Ми зачиняємось о шостій, дякую вам.", "ru uk", "uk"},
		{"Мы закрываемся в шесть, как и всегда.", "uk ru", "ru"},
		{"Zatvaramo u šest.", "hr sr", ""}, // nobody can tell
		{"Zatvaramo u šest i to je sve što mogu da kažem.", "en sr", "sr"},
		{"Hello.", "ru uk", ""},
		{"Hello.", "xx", ""},
	} {
		if got := Which(c.text, strings.Fields(c.of)); got != c.want {
			t.Errorf("%q is %q of %s, want %q", c.text, got, c.of, c.want)
		}
	}
}

// Of each pair of languages, sentences of either are hardly ever taken for the other's, and mostly known.
func TestWhichOfPairs(t *testing.T) {
	raw, err := os.ReadFile("testdata/over.tsv")
	if err != nil {
		t.Fatal(err)
	}
	texts, codes := map[string][]string{}, []string{}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			if texts[f[0]] == nil {
				codes = append(codes, f[0])
			}
			texts[f[0]] = append(texts[f[0]], f[2])
		}
	}
	all, wrong, unclear := 0, 0, 0
	const maxWrong, maxUnclear = 5, 400
	for _, own := range codes {
		for _, other := range codes {
			if other == own {
				continue
			}
			for _, text := range texts[own] {
				all++
				switch Which(text, []string{own, other}) {
				case other:
					wrong++
					t.Logf("%q (%s) is taken for %s", text, own, other)
				case "":
					unclear++
				}
			}
		}
	}
	t.Logf("%d sentences: %d are taken for the other language, %d are unclear", all, wrong, unclear)
	if all < 10000 || wrong > maxWrong || unclear > maxUnclear {
		t.Error("these are too many")
	}
}

// The language of a text is guessed of all that we know, and not where that is not clear.
func TestGuess(t *testing.T) {
	for text, want := range map[string]string{
		"Hi, I need a table for two tonight.":      "en",
		"Ich möchte einen Tisch reservieren.":      "de",
		"Bonjour, avez-vous une table pour deux ?": "fr",
		"¿A qué hora cierran hoy?":                 "es",
		"ขอจองโต๊ะสำหรับสองคน":                     "th",
		"Hello": "", "ok": "", "4711": "", "": "",
		strings.Repeat("We would like to come with all of our friends. ", 1000): "en",
	} {
		if got := Guess(text); got != want {
			t.Errorf("%.40q is %q, want %q", text, got, want)
		}
	}
	for line := range strings.Lines(overTSV(t)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 && !strings.HasPrefix(line, "#") {
			if got := Guess(f[2]); got != "" && got != f[0] && f[0] != "lt" {
				t.Errorf("%q of %s is taken for %s", f[2], f[0], got)
			}
		}
	}
}

func overTSV(t *testing.T) string {
	raw, err := os.ReadFile("testdata/over.tsv")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
