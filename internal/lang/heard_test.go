package lang_test

import (
	"strings"
	"testing"

	"parley/internal/lang"
)

// How much of a text has been spoken is known to the word, in every script.
func TestHeard(t *testing.T) {
	for _, c := range []struct{ text, said, rest, want string }{
		{"Hello there, how are you?", "Hello there", ", how are you?", "Hello there,"},
		{"Hello there, how are you?", "Hello there,", " how are you?", "Hello there,"},
		{"Hello there, how are you?", "Hello the", "re, how are you?", "Hello"},
		{"Hello there, how are you?", "", "Hello there, how are you?", ""},
		{"Hello there. 🙂", "Hello there", ".", "Hello there. 🙂"},
		{"We have **three** rooms free.", "We have three", " rooms free.", "We have **three**"},
		{"See https://example.com/menu now.", "See example dot com slash", " menu now.", "See"},
		{"See https://example.com/menu now.", "See example dot com slash menu", " now.", "See https://example.com/menu"},
		{"Ask Nguyen about it.", "Ask win", " about it.", "Ask Nguyen"},
		{"Ask Nguyen about it.", "Ask Mister nu", " jen about it.", "Ask"},
		{"Dr. Zoë's café, 4 €", "Dr. Zoë's", " café, 4 €", "Dr. Zoë's"},
		{"One two one two one.", "One two one", " two one.", "One two one"},
		{"你好，世界。", "你好，世", "界。", "你好，世"},
		{"東京 tower です", "東京 tower", " です", "東京 tower"},
		{"a - b", "a", " b", "a"},
		{"\xff bad", "", "bad", ""},
	} {
		if got := lang.Heard(c.text, c.said+c.rest, len(c.said)); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.said, c.text, got, c.want)
		}
	}
	long := strings.Repeat("word and another ", 500)
	if got := lang.Heard("*"+long+"*", "Say "+long, len(long)/2); len(got) < len(long)/3 || len(got) > 2*len(long)/3 {
		t.Errorf("half of a long text are %d of %d octets", len(got), len(long))
	}
}

// The more is spoken, the more is heard, up to the whole text.
func FuzzHeard(f *testing.F) {
	f.Add("Hello there, see https://example.com/x 🙂 **now**.", "en")
	f.Add("你好，世界。 3 €", "zh")
	f.Fuzz(func(t *testing.T, text, language string) {
		spoken, before := lang.Speakable(text, language, lang.InWords, nil), ""
		for until := range len(spoken) + 1 {
			got := lang.Heard(text, spoken, until)
			if !strings.HasPrefix(text, got) || len(got) < len(before) {
				t.Fatalf("at %d of %q: %q after %q", until, spoken, got, before)
			}
			before = got
		}
		if spoken != "" && before != text {
			t.Fatalf("all of %q is %q", text, before)
		}
	})
}
