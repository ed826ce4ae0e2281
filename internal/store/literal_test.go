package store

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStorable(t *testing.T) {
	for in, want := range map[string]string{
		`"a\u0000b"`:                  `"ab"`,
		`"\u0000"`:                    `""`,
		`"\\u0000"`:                   `"\\u0000"`, // a text about the escape
		`"\\\u0000"`:                  `"\\"`,
		`"\\\\u0000"`:                 `"\\\\u0000"`,
		`"\"\u0000\""`:                `"\"\""`,
		`"\u0001\u00e4"`:              `"\u0001\u00e4"`,
		`"\ud83d\ude00"`:              `"\ud83d\ude00"`,
		`"\ud83d"`:                    `"\ufffd"`,
		`"\ud83dx"`:                   `"\ufffdx"`,
		`"\ude00\ud83d"`:              `"\ufffd\ufffd"`,
		`"\ud83d\ud83d\ude00"`:        `"\ufffd\ud83d\ude00"`,
		"\"a\x00\xffb\"":              `"a` + "\uFFFD" + `b"`,
		`{"a\u0000":["it's \u0000"]}`: `{"a":["it's "]}`,
		`"\`:                          `"\`,
		`"\u00`:                       `"\u00`,
	} {
		if got := string(storable([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzStorable(f *testing.F) {
	for _, s := range []string{"", "a\x00b", `\u0000`, `\\u0000`, "\xff", "🙂'", `\ud83d`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(storable(doc), &back); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", ""); utf8.ValidString(s) &&
			back != want {
			t.Errorf("%q came back as %q", s, back)
		}
	})
}
