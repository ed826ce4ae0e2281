package lang

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"parley/internal/catalog"
	"parley/internal/provider"
)

// required lists the keys that a file must fill in for each part that it has: a language is complete for what it
// claims. Keys that are not named are optional.
var required = map[string][]string{
	"words": {"listening", "greetings", "farewells", "answers", "dangling", "numbers", "positive", "negative",
		"questions"},
	"phrases":   {"still_there", "moment", "still_on", "apology", "failure", "listening", "not_connected", "announced", "consent"},
	"consent":   {"yes", "no"},
	"signs":     {"dot", "at", "slash"},
	"answering": {"machine"},
	"dictation": {"numerals", "digits", "number", "email", "letters", "birth", "sorry"},
}

// without lists keys that a language does not need: where there is no space between words, or recognizers write
// digits.
var without = map[string][]string{"ja": {"dangling", "numbers"}, "zh": {"dangling", "numbers"}}

// borrowing lists the catalog's languages whose fixed sentences are English, as nobody has written theirs yet.
var borrowing = []string{"sr", "sl", "fa", "ur", "ta", "th", "et", "lv", "lt", "is"}

// Every language's file is parsed strictly, and is complete for what it claims; each language of the catalog has its
// own phrases, or is listed as borrowing them.
func TestComplete(t *testing.T) {
	files, err := fs.Sub(data, "data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load(files); err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(files, "*.json")
	if err != nil || len(names) < 30 {
		t.Fatal(len(names), err)
	}
	for _, name := range names {
		code := strings.TrimSuffix(name, ".json")
		if code == "common" {
			continue
		}
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(raw, &parts); err != nil {
			t.Fatal(err)
		}
		if len(parts) == 0 {
			t.Errorf("%s says nothing", name)
		}
		for part, keys := range required {
			if parts[part] == nil {
				continue
			}
			var has map[string]json.RawMessage
			if err := json.Unmarshal(parts[part], &has); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				empty := slices.Contains([]string{"", `""`, "[]", "{}", "null"}, strings.TrimSpace(string(has[key])))
				if spared := slices.Contains(without[code], key); empty && !spared {
					t.Errorf("%s: %s lacks %s", name, part, key)
				} else if !empty && spared {
					t.Errorf("%s: %s has %s after all", name, part, key)
				}
			}
		}
		if raw := parts["fillers"]; raw != nil && len(Of(code).Fillers) < 2 {
			t.Errorf("%s: one filler is said twice in a row", name)
		}
	}
	for _, l := range catalog.New("", provider.All()).Languages() {
		if got, want := Of(l.ISO2).English, l.ISO2 == "en" || slices.Contains(borrowing, l.ISO2); got != want {
			t.Errorf("%s (%s): its fixed sentences are English: %v, want %v", l.Name, l.ISO2, got, want)
		}
	}
}

// Every language of the catalog has words that interrupt, none of which is a word of listening.
func TestInterrupting(t *testing.T) {
	for _, l := range catalog.New("", provider.All()).Languages() {
		of := Of(l.ISO2)
		if len(of.Interrupting) < 5 {
			t.Errorf("%s (%s) has %d words that interrupt", l.Name, l.ISO2, len(of.Interrupting))
		}
		for w := range of.Interrupting {
			if of.Words.Listening[w] || !IsInterruption(w, l.ISO2) || !IsInterruption(w+", "+w+"!", l.ISO2) {
				t.Errorf("%s: %q doesn't interrupt", l.ISO2, w)
			}
		}
	}
	for text, want := range map[string]bool{"Wait!": true, "uh no": true, "no no no": true, "okay hold on": true,
		"okay": false, "": false, "no problem": false, "wait for": false, "don't stop": false} {
		if IsInterruption(text, "en") != want {
			t.Errorf("%q interrupts: %v", text, !want)
		}
	}
}

// A language that is unknown, or only partly supported, falls back.
func TestFallback(t *testing.T) {
	english, unknown, estonian, swedish := Of("en"), Of("xx"), Of("et"), Of("sv")
	if unknown.Phrases != english.Phrases || !unknown.English || !english.English ||
		estonian.Phrases != english.Phrases || !estonian.OrdinalDot {
		t.Error("phrases")
	}
	if swedish.English || swedish.Phrases == english.Phrases || swedish.Signs == english.Signs ||
		unknown.Signs != english.Signs || Of("hi").Signs != english.Signs {
		t.Error("phrases or signs of a language that has them")
	}
	if len(unknown.Words.Listening) != len(known().Sounds) || !swedish.Words.Listening["mm-hm"] ||
		len(swedish.Words.Answers) != 0 || !swedish.Words.Dangling["um"] {
		t.Error("words")
	}
	if !slices.Equal(swedish.Fillers, []string{"Hmm."}) || !slices.Equal(unknown.Fillers, swedish.Fillers) ||
		len(english.Fillers) < 2 {
		t.Error("fillers")
	}
}

// A mistake in a file is refused.
func TestStrict(t *testing.T) {
	for wrong, file := range map[string]string{
		`unknown field "word"`:      `{"word": {}}`,
		`unknown field "greeting"`:  `{"words": {"greeting": ["hi"]}}`,
		`"hi" is empty, there twic`: `{"words": {"greetings": ["hi", "hi"]}}`,
		`"Hi" is empty`:             `{"words": {"greetings": ["Hi"]}}`,
		`"" is empty`:               `{"words": {"greetings": [""]}}`,
		`something after`:           `{} {}`,
		`EOF`:                       `{"words": {`,
		`cannot unmarshal`:          `{"fillers": "Hmm."}`,
	} {
		files := fstest.MapFS{"common.json": {Data: []byte("{}")}, "en.json": {Data: []byte("{}")},
			"yy.json": {Data: []byte(file)}}
		if _, err := load(files); err == nil || !strings.Contains(err.Error(), wrong) ||
			!strings.Contains(err.Error(), "yy.json") {
			t.Errorf("%s: %v, want one that says %q", file, err, wrong)
		}
	}
	if _, err := load(fstest.MapFS{"common.json": {Data: []byte("{}")}}); err == nil {
		t.Error("without English")
	}
}
