package local

import (
	"strings"
	"unicode"
)

// stop are the words that say nothing of a message's subject.
var stop = set(`a an the and or but if of to in on at by for from with about into as is are was were be been being am do does did done have has
had having i me my mine you your yours he him his she her it its we us our they them their this that these those what which who whom whose
when why how can could will would shall should may might must not no yes please tell let there here so than then too very just also any
some all get got know want like need give say show dont im id ive youre whats its theres hello hi hey thanks thank ok okay up out`)

// same gives words of one meaning one form. Keys and values are stems.
var same = map[string]string{
	"price": "cost", "fee": "cost", "much": "cost", "charge": "cost", "pric": "cost", "charg": "cost", "rate": "cost",
	"hour": "open", "where": "address", "locat": "address", "located": "address", "mail": "email", "telephone": "phone",
	"cancell": "cancel", "purchas": "buy", "ship": "deliver", "shipp": "deliver", "delivery": "deliver",
	"deliveri": "deliver",
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// tokens are a text's words in lower case, without apostrophes; each sign of a script that doesn't part words is a
// word.
func tokens(text string) []string {
	var out []string
	var w strings.Builder
	end := func() {
		if w.Len() > 0 {
			out = append(out, w.String())
			w.Reset()
		}
	}
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end()
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			w.WriteRune(unicode.ToLower(r))
		case r == '\'' || r == '’':
		default:
			end()
		}
	}
	end()
	return out
}

// stem cuts the endings of English words, and no others.
func stem(w string) string {
	for _, e := range [...]string{"ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "e"} {
		if len(w) >= len(e)+3 && strings.HasSuffix(w, e) && !strings.HasSuffix(w, "ss") {
			w = strings.TrimSuffix(w, e)
			if n := len(w); e != "s" && e != "e" && n > 3 && w[n-1] == w[n-2] && w[n-1] != 'l' && w[n-1] != 's' {
				w = w[:n-1] // cancelled keeps its double l, shipped doesn't its p
			}
			if e == "ies" {
				w += "y"
			}
			break
		}
	}
	if s, ok := same[w]; ok {
		return s
	}
	return w
}

// stems are the words of a text that say something, cut to their stems, each once and in order.
func stems(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range tokens(text) {
		if stop[w] {
			continue
		}
		if s := stem(w); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func stemSet(text string) map[string]bool {
	m := map[string]bool{}
	for _, s := range stems(text) {
		m[s] = true
	}
	return m
}

// abbreviations end in a dot that ends no sentence.
var abbreviations = set("mr mrs ms dr st no nr vs etc eg ie approx inc ltd tel e g i")

// sentences splits a line at the ends of its sentences.
func sentences(line string) []string {
	var out []string
	start := 0
	runes := []rune(line)
	for i, r := range runes {
		switch r {
		case '.', '!', '?':
			if i+1 < len(runes) && !unicode.IsSpace(runes[i+1]) {
				continue
			}
			if r == '.' && abbreviations[strings.ToLower(lastWord(runes[start:i]))] {
				continue
			}
		case '。', '！', '？':
		default:
			continue
		}
		if s := strings.TrimSpace(string(runes[start : i+1])); s != "" {
			out = append(out, s)
		}
		start = i + 1
	}
	if s := strings.TrimSpace(string(runes[start:])); s != "" {
		out = append(out, s)
	}
	return out
}

func lastWord(runes []rune) string {
	i := len(runes)
	for i > 0 && unicode.IsLetter(runes[i-1]) && len(runes)-i < 8 {
		i--
	}
	return string(runes[i:])
}

// ended makes a text end as a sentence does.
func ended(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsRune(".!?。！？", []rune(s)[len([]rune(s))-1]) {
		return s
	}
	return strings.TrimRight(s, ",;:") + "."
}
