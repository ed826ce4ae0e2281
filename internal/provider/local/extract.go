package local

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	speaker  = regexp.MustCompile(`(?i)^(ai|assistant|customer|user)\s*:\s*(.*)$`)
	goodWord = regexp.MustCompile(`(?i)\b(?:yes|yeah|sure|great|perfect|thanks|thank you|wonderful|` +
		`excellent|agreed|confirmed|booked|sounds good|that works|helped|happy)\b`)
	badWord  = regexp.MustCompile(`(?i)\b(?:no thanks?|not interested|no longer|cancel|never mind|forget it|don't want|do not want|didn't help|useless|wrong number|stop calling|complain\w*|call back later)\b`)
	goalName = set("status goal success reached achieved completed outcome resolved satisfied")
)

// transcript is what was said in a finished conversation, sentence by sentence.
type transcript struct{ customer, all []string }

func readTranscript(text string) transcript {
	var t transcript
	customer := true // a text without speakers is the customer's
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := speaker.FindStringSubmatch(line); m != nil {
			customer = strings.EqualFold(m[1], "customer") || strings.EqualFold(m[1], "user")
			line = m[2]
		}
		for _, s := range sentences(line) {
			t.all = append(t.all, s)
			if customer {
				t.customer = append(t.customer, s)
			}
		}
	}
	return t
}

// extract fills in a JSON Schema from a transcript by simple rules. What they don't find is null.
func extract(raw json.RawMessage, text string) string {
	t := readTranscript(text)
	out := map[string]any{}
	for name, p := range readSchema(raw).Properties {
		out[name] = t.value(name, p)
	}
	result, _ := json.Marshal(out) // plain values can't fail
	return string(result)
}

func (t transcript) value(name string, p property) any {
	about := stemSet(spoken(name) + " " + p.Description)
	switch {
	case p.is("array"), p.is("object"):
		return nil
	case p.is("boolean"):
		return t.evaluate(name, about)
	case p.is("number"), p.is("integer"):
		for _, list := range [][]string{t.customer, t.all} {
			for _, s := range related(list, about) {
				if v, ok := firstNumber(s, nil); ok {
					return v
				}
			}
		}
		return nil
	case stemSet(spoken(name))[stem("summary")]:
		return t.summary()
	}
	return t.text(name, p, about)
}

// summary is what the customer began with and ended with.
func (t transcript) summary() any {
	switch n := len(t.customer); {
	case n == 0:
		return nil
	case n == 1 || t.customer[0] == t.customer[n-1]:
		return ended(t.customer[0])
	default:
		return ended(t.customer[0]) + " " + ended(t.customer[n-1])
	}
}

// evaluate says whether something is so: the goal by how the customer ended, anything else by the last thing they
// said about it.
func (t transcript) evaluate(name string, about map[string]bool) any {
	for w := range strings.FieldsSeq(spoken(name)) {
		if !goalName[w] {
			continue
		}
		for i := len(t.customer) - 1; i >= 0; i-- {
			switch s := t.customer[i]; {
			case badWord.MatchString(s):
				return false
			case goodWord.MatchString(s):
				return true
			}
		}
		return nil
	}
	list := related(t.customer, about)
	if len(list) == 0 {
		return nil
	}
	return !noWords.MatchString(list[0]) && !badWord.MatchString(list[0])
}

// text finds a text by how it looks or by what the customer said of themselves; otherwise it is the sentence that is
// about it.
func (t transcript) text(name string, p property, about map[string]bool) any {
	if re := look(name, p); re != nil {
		for _, s := range t.customer {
			if m := re.FindString(s); m != "" {
				return m
			}
		}
		return nil
	}
	k := &talk{facts: map[string]string{}}
	for _, s := range t.customer {
		k.remember(s)
	}
	for w := range k.facts {
		if w == key(spoken(name)) || w == "nam" && strings.HasSuffix(spoken(name), "name") {
			return k.facts[w]
		}
	}
	if list := related(t.customer, about); len(list) > 0 {
		return list[0]
	}
	return nil
}

// related are the sentences that share words with what is asked for: those that share most first, and of these the
// latest.
func related(list []string, about map[string]bool) []string {
	most, out := 0, []string(nil)
	for i := len(list) - 1; i >= 0; i-- {
		n := 0
		for _, w := range stems(list[i]) {
			if about[w] {
				n++
			}
		}
		switch {
		case n > most:
			most, out = n, []string{list[i]}
		case n == most && n > 0:
			out = append(out, list[i])
		}
	}
	return out
}
