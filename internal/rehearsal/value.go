package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Words is what must be said: words in their order, whatever their case and the punctuation, or a regular expression
// between slashes.
type Words struct {
	Text string
	re   *regexp.Regexp
}

func parseWords(s string) (Words, error) {
	if len(s) > 1 && s[0] == '/' && strings.LastIndexByte(s, '/') > 0 {
		end := strings.LastIndexByte(s, '/')
		if flags := s[end+1:]; flags != "" && flags != "i" {
			return Words{}, fmt.Errorf("%q ends with %q: after the slash only i is allowed", s, flags)
		}
		re, err := regexp.Compile("(?i)" + s[1:end])
		if err != nil {
			return Words{}, fmt.Errorf("%q is no regular expression: %w", s, errors.Unwrap(err))
		}
		return Words{s, re}, nil
	}
	if plain(s) == "" {
		return Words{}, fmt.Errorf("%q has no words", s)
	}
	return Words{Text: s}, nil
}

// In says whether a text has the words.
func (w Words) In(text string) bool {
	if w.re != nil {
		return w.re.MatchString(text)
	}
	return strings.Contains(" "+plain(text)+" ", " "+plain(w.Text)+" ")
}

// plain is a text as it is compared: its words in lower case.
func plain(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	}), " ")
}

// ToolPattern is a call of a tool as a case names it: book, or book{party: 2}, where the arguments that are named must
// be so and others may be there. "book x0" or none of it is said by NoTools.
type ToolPattern struct {
	Text string
	Name string
	Args map[string]any
}

// Matches says whether a call is meant.
func (p ToolPattern) Matches(name string, arguments json.RawMessage) bool {
	if p.Name != name {
		return false
	}
	var got map[string]any
	if len(p.Args) > 0 && json.Unmarshal(arguments, &got) != nil {
		return false
	}
	for k, want := range p.Args {
		if !same(got[k], want) {
			return false
		}
	}
	return true
}

// reply is what a tool's answer is told as: a text as it is, anything else as JSON.
func reply(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Value, nil
	}
	v, err := written(n)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(v)
	return string(raw), err
}

// parseTool reads book{party: 2}.
func parseTool(s string) (p ToolPattern, err error) {
	name, rest, with := strings.Cut(s, "{")
	p = ToolPattern{Text: s, Name: strings.TrimSpace(name)}
	no := fmt.Errorf("%q is not a call of a tool such as book{party: 2}", s)
	if p.Name == "" || strings.ContainsAny(p.Name, " :,}") {
		return p, no
	}
	if with {
		var args yaml.Node
		if err := yaml.Unmarshal([]byte("{"+rest), &args); err != nil || len(args.Content) == 0 {
			return p, no
		}
		m := measure{Bounds: Bounds{Bytes: 4 * len(s)}} // no room for aliases
		if err := m.add(&args); err != nil {
			return p, fmt.Errorf("%q has arguments that can't be read: %s", s, err.(*Mistake).Text)
		}
		if p.Args, err = writtenValues(args.Content[0]); err != nil {
			return p, no
		}
	}
	return p, nil
}

// written is a value of a file as it was written: a date, a number with zeros before it and a number that is not written as
// JSON has it are text.
func written(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return written(n.Alias)
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, one := range n.Content {
			var err error
			if out[i], err = written(one); err != nil {
				return nil, err
			}
		}
		return out, nil
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := written(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			out[n.Content[i].Value] = v
		}
		return out, nil
	}
	switch n.ShortTag() {
	case "!!timestamp":
		return n.Value, nil
	case "!!int", "!!float":
		if !jsonNumber.MatchString(n.Value) {
			return n.Value, nil
		}
	}
	var v any
	err := n.Decode(&v)
	return v, err
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// writtenValues reads a mapping of such values.
func writtenValues(n *yaml.Node) (map[string]any, error) {
	if n.Kind != yaml.MappingNode {
		return nil, errors.New("values must be written as name: value")
	}
	v, err := written(n)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// readWebhook reads true, false, or the fields of an event.
func (e *End) readWebhook(n *yaml.Node) (err error) {
	e.Webhook = &Webhook{}
	if n.Kind == yaml.ScalarNode {
		var sent bool
		if err = n.Decode(&sent); err == nil {
			e.Webhook.None = !sent
			return nil
		}
	}
	if e.Webhook.Fields, err = writtenValues(n); err != nil || len(e.Webhook.Fields) == 0 {
		return errors.New("webhook must be true, false, or fields of the event that is sent, such as {ended_reason: customer_hangup}")
	}
	return nil
}

// same compares a value of a case's file with one that was recorded. Numbers are the same as text too, and words as
// they are compared elsewhere; a text between slashes is a regular expression.
func same(got, want any) bool {
	if w, ok := want.(string); ok && len(w) > 1 && w[0] == '/' {
		if p, err := parseWords(w); err == nil && p.re != nil {
			return p.In(fmt.Sprint(got))
		}
	}
	if want == nil || got == nil {
		return want == nil && got == nil
	}
	switch w := want.(type) {
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !same(g[i], w[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		for k := range w {
			if !ok || !same(g[k], w[k]) {
				return false
			}
		}
		return ok
	case bool:
		return got == w
	}
	a, errA := strconv.ParseFloat(fmt.Sprint(got), 64)
	b, errB := strconv.ParseFloat(fmt.Sprint(want), 64)
	if text := fmt.Sprint(want); errA == nil && errB == nil && (len(text) < 2 || text[0] != '0' || text[1] == '.') {
		return a == b // but zeros before a number are part of it
	}
	return plain(fmt.Sprint(got)) == plain(fmt.Sprint(want)) && fmt.Sprint(got) != ""
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
	if err != nil || d < 0 || d > time.Hour {
		return 0, fmt.Errorf("%q is no time such as 400ms or 1.5s", s)
	}
	return d, nil
}

// parseRange reads 120..200.
func parseRange(s string) (r Range, err error) {
	from, to, ok := strings.Cut(s, "..")
	var a, b error
	r.From, a = strconv.Atoi(strings.TrimSpace(from))
	r.To, b = strconv.Atoi(strings.TrimSpace(to))
	if !ok || a != nil || b != nil || r.From < 0 || r.To < r.From {
		return r, fmt.Errorf("%q is no range such as 120..200", s)
	}
	return r, nil
}

func parsePercent(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !strings.HasSuffix(s, "%") || f < 0 || f > 100 {
		return 0, fmt.Errorf("%q is no share such as 2%%", s)
	}
	return f / 100, nil
}

func parseDecibels(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "dB"), 64)
	if err != nil || !strings.HasSuffix(s, "dB") || f < -100 || f > 100 {
		return 0, fmt.Errorf("%q is no level such as -18dB", s)
	}
	return f, nil
}

// places are the noises, by what they are called in files and in package audio.
var places = map[string]string{"street": "city", "city": "city", "cafe": "cafe", "office": "office",
	"crowd": "crowded_room", "crowded_room": "crowded_room", "forest": "forest", "nature": "nature", talk: talk}

// talk is other people's voices behind the caller.
const talk = "talk"

func parseNoise(s string) (Noise, error) {
	if s == "none" {
		return Noise{}, nil
	}
	place, level, ok := strings.Cut(s, "@")
	if !ok || places[place] == "" {
		return Noise{}, fmt.Errorf("%q is no noise such as street@12dB: there are none, street, cafe, office, crowd, forest, nature, talk", s)
	}
	snr, err := parseDecibels(level)
	return Noise{place, snr}, err
}

var codecs = map[string]int{"pcmu": 0, "pcma": 8, "g722": 9}

// parseNow reads 2026-06-12T09:00 Europe/Berlin, with or without seconds; without a zone it is UTC.
func parseNow(s string) (time.Time, error) {
	text, name, _ := strings.Cut(s, " ")
	zone, err := time.LoadLocation(strings.TrimSpace(name))
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no time zone such as Europe/Berlin", name)
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil && name == "" {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is no time such as 2026-06-12T09:00 Europe/Berlin", s)
}

var pausing = regexp.MustCompile(`<\s*pause\s+([^<>]*?)\s*>`)

// parseSpeech takes "I need... <pause 900ms> a table" apart.
func parseSpeech(s string) ([]Part, error) {
	var parts []Part
	rest, pause := s, time.Duration(0)
	for {
		at := pausing.FindStringSubmatchIndex(rest)
		words := rest
		if at != nil {
			words = rest[:at[0]]
		}
		if words = strings.TrimSpace(words); words != "" {
			if strings.ContainsAny(words, "<>") {
				return nil, fmt.Errorf("%q: between < and > only a pause is known, such as <pause 900ms>", s)
			}
			parts = append(parts, Part{pause, words})
			pause = 0
		}
		if at == nil {
			break
		}
		d, err := parseDuration(rest[at[2]:at[3]])
		if err != nil {
			return nil, err
		}
		pause += d
		rest = rest[at[1]:]
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%q has no words", s)
	}
	return parts, nil
}

// parseAt reads reply+600ms.
func parseAt(s string) (time.Duration, error) {
	s = strings.ReplaceAll(s, " ", "")
	rest, ok := strings.CutPrefix(s, "reply")
	if ok && rest == "" {
		return 0, nil
	}
	if rest, ok = strings.CutPrefix(rest, "+"); !ok || !strings.HasPrefix(s, "reply") {
		return 0, fmt.Errorf("%q is no moment such as reply+600ms", s)
	}
	return parseDuration(rest)
}

// unquoted takes the quotes from a text that is wholly within them.
func unquoted(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
