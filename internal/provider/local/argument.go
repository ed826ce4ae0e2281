package local

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	emailPattern  = regexp.MustCompile(`[\p{L}\d._%+-]+@[\p{L}\d-]+(?:\.[\p{L}\d-]+)+`)
	phonePattern  = regexp.MustCompile(`\+?\d[\d ()/-]{5,18}\d`)
	datePattern   = regexp.MustCompile(`(?i)\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}\.? (?:january|february|march|april|may|june|july|august|september|october|november|december)(?: \d{4})?|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?|today|tomorrow|tonight|(?:next |this )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday))\b`)
	clockPattern  = regexp.MustCompile(`(?i)\b(?:\d{1,2}:\d{2}(?: ?[ap]m)?|\d{1,2} ?[ap]m|noon|midnight)\b`)
	quotePattern  = regexp.MustCompile(`"([^"]+)"|“([^”]+)”|«([^»]+)»|„([^“”]+)[“”]`)
	placePattern  = regexp.MustCompile(`\b(?:in|at|for|to|from|near|of) (\p{Lu}[\p{L}'-]*(?: \p{Lu}[\p{L}'-]*)*)`)
	codePattern   = regexp.MustCompile(`\b[A-Za-z]{0,6}-?\d[A-Za-z0-9-]*\b`)
	numberPattern = regexp.MustCompile(`[-+]?\d[\d,]*(?:\.\d+)?`)
	thousands     = regexp.MustCompile(`^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$`)
	numberWords   = map[string]float64{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
		"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "dozen": 12}
	noWords  = regexp.MustCompile(`(?i)\b(?:no|not|never|without|don't|doesn't|won't|can't|cannot|isn't|wasn't|false|off)\b`)
	yesWords = regexp.MustCompile(`(?i)\b(?:yes|yeah|yep|sure|true|on|with|of course|absolutely|definitely|please)\b`)
	clause   = regexp.MustCompile(`[,;.!?](?:\s|$)|\n| (?:and|but|with|to|for|at|on|in|then|please|because)\s`)
)

// finder finds the arguments of one call. What was taken for one parameter is not taken for the next.
type finder struct {
	talk *talk
	said string
	used map[string]bool
}

// argument finds a parameter's value: as JSON in the message, after the parameter's name, or by its look; then in
// what the customer said earlier. An optional one must be named, or look like nothing else.
func (f *finder) argument(name string, p property, required bool, earlier []string) (any, bool) {
	if v, ok := given(f.said, name); ok {
		return convert(v, p)
	}
	if v, ok := f.named(f.said, name, p); ok {
		return v, true
	}
	if v, ok := f.typed(f.said, name, p, required); ok {
		return v, true
	}
	for _, text := range earlier {
		if v, ok := f.named(text, name, p); ok {
			return v, true
		}
	}
	if fact, ok := f.talk.facts[key(spoken(name))]; ok {
		return convert(fact, p)
	}
	for _, text := range earlier {
		if required && look(name, p) != nil {
			if v, ok := f.typed(text, name, p, false); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// convert gives a value the parameter's type.
func convert(v any, p property) (any, bool) {
	s, text := v.(string)
	switch {
	case p.is("boolean"):
		b, ok := v.(bool)
		return b, ok
	case p.is("number"), p.is("integer"):
		if text {
			return firstNumber(s, nil)
		}
		n, ok := v.(float64)
		return n, ok
	case text:
		return s, true
	}
	if n, ok := v.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64), true
	}
	return nil, false
}

// named finds what stands after a parameter's name: "order number is 12", "size: large".
func (f *finder) named(text, name string, p property) (any, bool) {
	words := strings.Fields(spoken(name))
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	if len(words) == 0 || p.is("boolean") {
		return nil, false
	}
	at := regexp.MustCompile(`(?i)\b` + strings.Join(words, `[ _-]?`) +
		`\b(?:\s*(?:is|are|was|of|to|=|:|#|no\.?|number)\b?)*[\s:=#]*`).FindStringIndex(text)
	if at == nil {
		return nil, false
	}
	rest := text[at[1]:]
	if p.is("number") || p.is("integer") {
		return firstNumber(cutClause(rest), f.used)
	}
	if m := quotePattern.FindStringSubmatch(rest); m != nil && strings.HasPrefix(rest, m[0]) {
		return f.take(strings.Join(m[1:], ""))
	}
	if re := look(name, p); re != nil {
		if m := re.FindStringIndex(rest); m != nil && m[0] < 4 {
			return f.take(rest[m[0]:m[1]])
		}
		return nil, false
	}
	value := strings.Trim(cutClause(rest), ` "'`)
	if value == "" || len(strings.Fields(value)) > 5 || stop[strings.ToLower(strings.Fields(value)[0])] {
		return nil, false
	}
	return f.take(value)
}

func cutClause(s string) string {
	if at := clause.FindStringIndex(s); at != nil {
		return s[:at[0]]
	}
	return s
}

func (f *finder) take(s string) (any, bool) {
	if s = strings.TrimSpace(s); s == "" || f.used[s] {
		return nil, false
	}
	f.used[s] = true
	return s, true
}

// look is how a value of this name looks, nil when the name doesn't tell.
func look(name string, p property) *regexp.Regexp {
	words := stemSet(spoken(name) + " " + p.Description)
	has := func(list ...string) bool {
		for _, w := range list {
			if words[w] {
				return true
			}
		}
		return false
	}
	switch n := stemSet(spoken(name)); {
	case p.is("number"), p.is("integer"), p.is("boolean"):
		return nil
	case n["email"], has("email"):
		return emailPattern
	case n["phone"], n["mobil"], has("phone"):
		return phonePattern
	case n["date"], n["day"], n["dat"], has("date", "dat"):
		return datePattern
	case n["tim"], n["time"]:
		return clockPattern
	case n["number"], n["code"], n["cod"], n["id"], n["digit"], n["referenc"], n["zip"]:
		return codePattern
	}
	return nil
}

// typed finds a value by its look.
func (f *finder) typed(text, name string, p property, required bool) (any, bool) {
	switch {
	case p.is("boolean"):
		if !required && !mentions(text, spoken(name)) {
			return nil, false
		}
		if noWords.MatchString(text) {
			return false, true
		}
		return true, yesWords.MatchString(text) || mentions(text, spoken(name))
	case p.is("number"), p.is("integer"):
		if !required {
			return nil, false
		}
		return firstNumber(text, f.used)
	}
	for _, e := range p.Enum {
		if word, ok := e.(string); ok && (mentions(" "+text+" ", word) || strings.EqualFold(text, word)) {
			return word, true
		}
	}
	if re := look(name, p); re != nil {
		for _, m := range re.FindAllString(text, -1) {
			if v, ok := f.take(m); ok {
				return v, true
			}
		}
		if re != codePattern || !f.talk.asked {
			return nil, false
		}
	}
	if !required {
		return nil, false
	}
	for _, m := range quotePattern.FindAllStringSubmatch(text, -1) {
		if v, ok := f.take(strings.Join(m[1:], "")); ok {
			return v, true
		}
	}
	words := stemSet(spoken(name) + " " + p.Description)
	if words["city"] || words["place"] || words["plac"] || words["address"] || words["town"] || words["country"] {
		if m := placePattern.FindStringSubmatch(text); m != nil {
			return f.take(m[1])
		}
		if !f.talk.asked {
			return nil, false
		}
	}
	for _, w := range []string{"question", "query", "messag", "message", "text", "note", "reason", "request",
		"comment"} {
		if stemSet(spoken(name))[stem(w)] {
			return strings.TrimSpace(text), true
		}
	}
	if f.talk.asked && text == f.said {
		return f.take(strings.Trim(f.talk.said, " .!")) // what it was asked for
	}
	return nil, false
}

// firstNumber is the first number in a text that wasn't taken: in digits, or as a word up to twelve.
func firstNumber(text string, used map[string]bool) (any, bool) {
	for _, s := range numberPattern.FindAllString(text, -1) {
		s = strings.TrimRight(s, ",")
		if used[s] {
			continue
		}
		plain := s
		if thousands.MatchString(s) {
			plain = strings.ReplaceAll(s, ",", "")
		} else {
			plain = strings.Replace(s, ",", ".", 1)
		}
		if n, err := strconv.ParseFloat(plain, 64); err == nil {
			if used != nil {
				used[s] = true
			}
			return n, true
		}
	}
	for _, w := range tokens(text) {
		if n, ok := numberWords[w]; ok && !used[w] {
			if used != nil {
				used[w] = true
			}
			return n, true
		}
	}
	return nil, false
}
