package lang

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// sentences splits a text that comes in pieces of n bytes (0: all at once).
func sentences(text, language string, n int) []string {
	s := Splitter{Language: language}
	var out []string
	for text != "" {
		k := len(text)
		if n > 0 {
			k = min(n, k)
			for k < len(text) && !utf8.RuneStart(text[k]) {
				k++
			}
		}
		out = append(out, s.Push(text[:k])...)
		text = text[k:]
	}
	if rest := s.Flush(); rest != "" {
		out = append(out, rest)
	}
	return out
}

func TestSentences(t *testing.T) {
	for _, c := range []struct{ language, text, want string }{
		{"en", "Hello. How are you? Fine!", "Hello. |How are you? |Fine!"},
		{"en", "Dr. Smith lives at 5 St. James St. in Boston. He is in.",
			"Dr. Smith lives at 5 St. James St. in Boston. |He is in."},
		{"en", "It costs 3.50 dollars, e.g. for two. OK?", "It costs 3.50 dollars, e.g. for two. |OK?"},
		{"en", "J. R. R. Tolkien wrote it. I did not.", "J. R. R. Tolkien wrote it. |I did not."},
		{"en", "Wait... what? \"Really.\" Yes.", "Wait... |what? |\"Really.\" |Yes."},
		{"en", "Go to example.com/a.b now. Then rest.", "Go to example.com/a.b now. |Then rest."},
		{"en", "We close at 5 p.m. on Monday. Bye.", "We close at 5 p.m. on Monday. |Bye."},
		{"en", "Here:\n1. One.\n2. Two.\nDone", "Here:\n|1. One.\n|2. Two.\n|Done"},
		{"en", "We have three kinds of bread today, which are rye, wheat and oats. Which one?",
			"We have three kinds of bread today, |which are rye, wheat and oats. |Which one?"},
		{"de", "Am 3. Mai um 15 Uhr. Passt das? Ja, z. B. am Dienstag.",
			"Am 3. Mai um 15 Uhr. |Passt das? |Ja, z. B. am Dienstag."},
		{"de", "Das kostet ca. 5,50 Euro bzw. mehr. Gut.", "Das kostet ca. 5,50 Euro bzw. mehr. |Gut."},
		{"ja", "こんにちは。お元気ですか？はい。", "こんにちは。|お元気ですか？|はい。"},
		{"zh", "您好！请问您需要什么？", "您好！|请问您需要什么？"},
		{"hi", "नमस्ते। आप कैसे हैं?", "नमस्ते। |आप कैसे हैं?"},
		{"ar", "مرحبا. كيف حالك؟ جيد.", "مرحبا. |كيف حالك؟ |جيد."},
		{"el", "Τι κάνετε; Καλά.", "Τι κάνετε; |Καλά."},
		{"en", "**Bold.** Then more.", "**Bold.** |Then more."},
		{"en", "It is 3.14 at 9 a.m. today, No. 5 costs $4.50. OK.", "It is 3.14 at 9 a.m. today, |No. 5 costs $4.50. |OK."},
		{"de", "Nr. 5 ist z. B. um 9.30 Uhr dran, Tel. 030. Gut.", "Nr. 5 ist z. B. um 9.30 Uhr dran, |Tel. 030. Gut."},
		{"es", "El núm. 5 cuesta aprox. 4.50 euros. Bien.", "El núm. 5 cuesta aprox. 4.50 euros. |Bien."},
		{"fr", "À env. 5 km, p. ex. demain. Bien.", "À env. 5 km, p. ex. demain. |Bien."},
		{"it", "La stanza n. 5 costa ca. 4.50 euro. Bene.", "La stanza n. 5 costa ca. 4.50 euro. |Bene."},
		{"nl", "Nr. 5 kost bijv. 4.50 euro, d.w.z. weinig. Goed.", "Nr. 5 kost bijv. 4.50 euro, |d.w.z. weinig. |Goed."},
		{"en", "Is it No. 5? No. I don't know.", "Is it No. 5? |No. |I don't know."},
		{"pl", "Tak, ok. Dobrze.", "Tak, ok. |Dobrze."},
		{"pl", "To ok. 5 km, np. jutro o godz. 9. Dobrze.", "To ok. 5 km, np. jutro o godz. 9. Dobrze."},
	} {
		want := strings.Split(c.want, "|")
		for _, n := range []int{0, 1, 3, 7} {
			if got := sentences(c.text, c.language, n); !slices.Equal(got, want) {
				t.Errorf("%s in pieces of %d:\n got %q\nwant %q", c.language, n, got, want)
			}
		}
	}
	// No piece gets longer than can be said in one breath, even without any punctuation.
	for _, text := range []string{strings.Repeat("word ", 400), strings.Repeat("x", 3000),
		strings.Repeat("字", 2000), strings.Repeat("word, ", 400)} {
		for _, s := range sentences(text, "en", 5) {
			if n := utf8.RuneCountInString(s); n > cutAt+10 {
				t.Errorf("%d characters in one piece: %.40q", n, s)
			}
		}
	}
}

// FuzzSentences: however the text comes, the pieces add up to it, and none is too long.
func FuzzSentences(f *testing.F) {
	f.Add("Hello. How are you? 3.5 e.g. this…\n- a\n- b", 3, "en")
	f.Add("Am 3. Mai。はい？\xff\xfe", 1, "de")
	f.Fuzz(func(t *testing.T, text string, n int, language string) {
		if n < 0 || n > 100 || len(text) > 5000 {
			return
		}
		got := sentences(text, language, n)
		if strings.Join(got, "") != text {
			t.Errorf("%q became %q", text, got)
		}
		for _, s := range got {
			if s == "" || utf8.RuneCountInString(s) > 2*cutAt && strings.TrimSpace(s) != "" &&
				len(strings.TrimSpace(s)) > 2*cutAt {
				t.Errorf("a piece of %d runes", utf8.RuneCountInString(s))
			}
			_ = Speakable(s, language, InWords, nil)
		}
	})
}

func TestSpeakable(t *testing.T) {
	p := NewPronouncer(map[string]string{"Nguyen": "Win", "SQL": "sequel", "New York": "Nu Jork", "York": "Jork",
		"東京": "とうきょう", "C++": "C plus plus"})
	for _, c := range []struct{ language, text, want string }{
		{"en", "**Bold** and *it* and `code` and ~~no~~", "Bold and it and code and"},
		{"en", "# Title\n- one\n* two\n> three", "Title. one. two. three"},
		{"en", "See [the menu](https://x.org/menu) or https://www.example.com/a-b?x=1.",
			"See the menu or example dot com slash a dash b."},
		{"de", "Mail an info@example.de!", "Mail an info ät example Punkt de!"},
		{"en", "Great 😀👍🏽! 🇩🇪", "Great !"},
		{"en", "😀 🎉", ""},
		{"en", "---", ""},
		{"en", "...", ""},
		{"en", "| a | b |\n|---|---|\n| 1 | 2 |", "a, b. 1, 2."},
		{"en", "20 °C at 5 % & more", "20 degrees Celsius at 5 percent and more"},
		{"en", "snake_case and _em_ here", "snake_case and em here"},
		{"en", "<b>Hi</b> 3 < 4", "Hi 3 is less than 4"},
		{"en", "2 * 3 = 6", "2 times 3 equals 6"},
		{"en", "Nguyen's sql, MySQL and New York, Yorkshire.", "Win's sequel, MySQL and Nu Jork, Yorkshire."},
		{"ja", "東京都です", "とうきょう都です"},
		{"en", "C++ is it", "C plus plus is it"},
		{"xx", "Call 030 1234567, AB-1234, 4,50 € at 14:30.", "Call 0 3 0, 1 2 3, 4 5 6 7, A B, 1 2 3 4, 4,50 € at 14:30."},
	} {
		if got := Speakable(c.text, c.language, InWords, p); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// A synthesizer that reads numbers is given them as they are written, without markup. What it would not take for what
// it is, is in words.
func TestAsWritten(t *testing.T) {
	for _, c := range []struct{ language, text, want string }{
		{"en", "**It** costs $4.50 at 2:30 pm [1], call +1 (555) 123-4567 &amp; ask.",
			"It costs $4.50 at 2:30 pm, call +1 (555) 123-4567 & ask."},
		{"en", "5*4 is 20, 1/2 cup, from 9:00-17:00", "5 times 4 is 20, one half cup, from 9:00 to 17:00"},
		{"de", "Am 3. Mai um 14:30 Uhr, ca. 5 km, AB-1234, a_b@c.de", "Am 3. Mai um 14:30 Uhr, ca. 5 km, AB-1234, a Unterstrich b ät c Punkt de"},
		{"pl", "- [ ] 4,50 zł ~~5 zł~~ {{x}} *uśmiecha się*", "4,50 zł."},
	} {
		if got := Speakable(c.text, c.language, AsWritten, nil); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestBackchannels(t *testing.T) {
	for _, c := range []struct {
		language, text string
		open, want     bool
	}{
		{"en", "mm-hm", false, true}, {"en", "Uh-huh, okay.", false, true}, {"en", "yeah yeah", false, true},
		{"en", "I see", false, true}, {"en", "Of course!", false, true},
		{"en", "yeah but", false, false}, {"en", "no", false, false}, {"en", "stop", false, false},
		{"en", "", false, false}, {"en", "I", false, false},
		{"en", "I", true, true}, {"en", "yeah of", true, true}, {"en", "I want", true, false},
		{"de", "ja genau", false, true}, {"de", "alles klar", false, true}, {"de", "nein", false, false},
		{"fr", "d'accord", false, true}, {"fr", "d’accord", false, true}, {"es", "sí, claro", false, true},
		{"pt", "tá bom", false, true},
		{"ja", "はい", false, true}, {"ja", "そうですね。", false, true}, {"ja", "違います", false, false},
		{"zh", "好的", false, true}, {"zh", "不好", false, false},
		{"sv", "mm", false, true}, {"sv", "nej", false, false},
	} {
		if got := IsBackchannel(c.text, c.language, c.open); got != c.want {
			t.Errorf("%s %q (open %v): %v", c.language, c.text, c.open, got)
		}
	}
	if !IsGreeting("Hello, who is this?", "en", false) || !IsGreeting("もしもし", "ja", false) ||
		IsGreeting("hello I want", "en", false) {
		t.Error("greetings")
	}
	if !IsFarewell("okay thank you bye", "en", false) || !IsFarewell("thank", "en", true) ||
		IsFarewell("thank you but", "en", true) {
		t.Error("farewells")
	}
	for text, want := range map[string]int{"one two": 2, "それは違います": 4, "don't, stop": 2, "": 0} {
		if got := Count(text); got != want {
			t.Errorf("%q has %d words", text, got)
		}
	}
}

func TestMoods(t *testing.T) {
	for _, c := range []struct {
		language, text string
		want           Mood
	}{
		{"en", "when do you open", Question}, {"en", "It is good, isn't it?", Question},
		{"en", "my order is broken", Negative}, {"en", "that is great", Positive},
		{"en", "a table for two", Neutral}, {"de", "das ist kaputt", Negative}, {"de", "wann öffnen Sie", Question},
		{"sv", "bra", Neutral},
	} {
		if got := MoodOf(c.text, c.language); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.language, c.text, got, c.want)
		}
	}
}

func TestCutWords(t *testing.T) {
	for _, c := range []struct {
		text  string
		share float64
		want  string
	}{
		{"one two three", 0, ""}, {"one two three", 1, "one two three"}, {"one two three", 0.3, "one"},
		{"one two three", 0.45, "one two"},
		{"one two three", 0.38, "one"}, {"one two three", 0.1, ""}, {"extraordinary", 0.4, ""},
		{"extraordinary", 0.6, "extraordinary"},
		{"こんにちは元気", 0.5, "こんにち"}, {"a b", 0.99, "a b"},
	} {
		if got := Cut(c.text, c.share); got != c.want {
			t.Errorf("%.2f of %q: %q, want %q", c.share, c.text, got, c.want)
		}
	}
}
