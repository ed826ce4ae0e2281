package local

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/internal/ai"
)

// talk is a conversation as far as it matters for the next reply.
type talk struct {
	said    string   // the customer's last message
	earlier []string // the customer's other messages, newest first
	asked   bool     // the assistant's last words asked for what a tool needs
	called  []ai.ToolCall
	results []string // of called, when the conversation ends with them
	facts   map[string]string
}

func newTalk(messages []ai.Message) *talk {
	t := &talk{facts: map[string]string{}}
	for i, m := range messages {
		switch m.Role {
		case ai.User:
			if t.said != "" {
				t.earlier = append(t.earlier, t.said)
			}
			t.said = m.Text
			t.asked = i > 0 && strings.HasPrefix(messages[i-1].Text, askPrefix)
			t.remember(m.Text)
		case ai.Assistant:
			t.called = m.Calls
		}
	}
	slices.Reverse(t.earlier)
	for _, m := range slices.Backward(messages) {
		if m.Role != ai.ToolRole {
			break
		}
		t.results = append(t.results, m.Text)
	}
	slices.Reverse(t.results)
	return t
}

var (
	factPattern = regexp.MustCompile(`(?i)\bmy ((?:[\p{L}\d'-]+ ){0,3}?[\p{L}\d'-]+) (?:is|are|was) (?:called |named )?([^?!;\n]+)`)
	namePattern = regexp.MustCompile(
		`\b(?i:i am called|i'm called|call me|my name's|name is) ([\p{Lu}][\p{L}'-]*(?: [\p{Lu}][\p{L}'-]*){0,2})`)
	homePattern = regexp.MustCompile(`(?i)\bi live in ([^.,?!;\n]+)`)
	agePattern  = regexp.MustCompile(`(?i)\bi(?:'m| am) (\d{1,3}) years old`)
	askPattern  = regexp.MustCompile(`(?i)\b(?:what(?:'s| is| was| are)|which is|who is|do you (?:know|remember|recall)|remind me (?:of|what)?|tell me) my ((?:[\p{L}\d'-]+ ){0,3}?[\p{L}\d'-]+)\s*(?:is\s*)?[?.!]*\s*$`)
	whoAmI      = regexp.MustCompile(`(?i)\b(?:who am i|do you (?:know|remember) me)\b`)
	whereILive  = regexp.MustCompile(`(?i)\bwhere do i live\b`)
	howOld      = regexp.MustCompile(`(?i)\bhow old am i\b`)
)

// remember notes what the customer says of themselves. What is said later counts.
func (t *talk) remember(text string) {
	for _, s := range lines(text) {
		if strings.HasSuffix(s, "?") {
			continue
		}
		for _, m := range factPattern.FindAllStringSubmatch(s, -1) {
			value := m[2]
			if i := strings.Index(strings.ToLower(value), " and my "); i >= 0 {
				t.remember(value[i+len(" and "):])
				value = value[:i]
			}
			t.fact(m[1], value)
		}
		for name, p := range map[string]*regexp.Regexp{"name": namePattern, "home": homePattern, "age": agePattern} {
			if m := p.FindStringSubmatch(s); m != nil && t.facts[name] == "" {
				t.fact(name, m[1])
			}
		}
	}
}

func (t *talk) fact(name, value string) {
	if value = strings.Trim(value, " .,!"); value != "" {
		t.facts[key(name)] = value
	}
}

// key is how a fact is found again: "full name" and "name" differ, "orders" and "order" don't.
func key(name string) string {
	var out []string
	for _, w := range tokens(name) {
		out = append(out, stem(w))
	}
	return strings.Join(out, " ")
}

func lines(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		out = append(out, sentences(l)...)
	}
	return out
}

// recall answers a question about the customer. What the prompt says of it counts where the customer said nothing.
func (t *talk) recall(found string, cover float64) string {
	name := ""
	switch m := askPattern.FindStringSubmatch(t.said); {
	case m != nil:
		name = m[1]
	case whoAmI.MatchString(t.said):
		name = "name"
	case whereILive.MatchString(t.said):
		if home := t.facts[key("home")]; home != "" {
			return "You told me that you live in " + home + "."
		}
		name = "home"
	case howOld.MatchString(t.said):
		name = "age"
	default:
		if !strings.Contains(t.said, "?") && found == "" {
			return t.noted()
		}
		return ""
	}
	if v := t.facts[key(name)]; v != "" {
		return "You told me that your " + strings.ToLower(name) + " is " + v + "."
	}
	if cover >= enough {
		return found
	}
	return "You have not told me your " + strings.ToLower(name) + " yet."
}

// noted answers a message that tells something of the customer and asks nothing.
func (t *talk) noted() string {
	if m := factPattern.FindStringSubmatch(t.said); m != nil {
		if key(m[1]) == "nam" || key(m[1]) == "name" {
			return "Nice to meet you, " + t.facts[key("name")] + ". How can I help you?"
		}
		return "Thank you, I will remember that your " + strings.ToLower(m[1]) + " is " + t.facts[key(m[1])] + "."
	}
	if m := namePattern.FindStringSubmatch(t.said); m != nil {
		return "Nice to meet you, " + strings.Trim(m[1], " .,!") + ". How can I help you?"
	}
	return ""
}

var (
	greetings = set("hello hi hey good morning afternoon evening day greetings there hallo hola bonjour ciao servus moin howdy dear")
	greeted   = set("hello hi hey morning afternoon evening greetings hallo hola bonjour ciao servus moin howdy")
	farewells = regexp.MustCompile(`(?i)^\W*(?:ok(?:ay)?\W+)?(?:(?:good)?bye|good night|see you|that(?:'s| is| was) all|nothing else)\b[^?]*$`)
	thanks    = regexp.MustCompile(`(?i)^\W*(?:ok(?:ay)?\W+|great\W+)?(?:many thanks|thanks|thank you|thx|cheers)[^?\d]{0,30}$`)
	whatAre   = regexp.MustCompile(`(?i)\b(?:(?:who|what) (?:exactly )?are you\b(?: exactly| really|, really)?\W*$|what kind of (?:bot|ai|assistant|model|program)|are you (?:really |just |actually )?(?:an? )?(?:\w+ )?(?:bot|robot|human|person|machine|computer|ai|real|language model|llm|chatgpt|gpt)\b|which (?:language )?model)`)
)

// courtesy answers greetings, thanks, farewells, and the question what it is.
func (t *talk) courtesy() string {
	if whatAre.MatchString(t.said) {
		return whatIAm
	}
	all, any := true, false
	for _, w := range tokens(t.said) {
		all = all && greetings[w]
		any = any || greeted[w]
	}
	switch {
	case all && any:
		if name := t.facts[key("name")]; name != "" {
			return "Hello, " + name + "! How can I help you?"
		}
		return "Hello! How can I help you?"
	case farewells.MatchString(t.said):
		return "Thank you, and goodbye!"
	case thanks.MatchString(t.said):
		return "You are welcome. Is there anything else?"
	}
	return ""
}

// maxTold is how many bytes of a tool's result are told when no sentence of it stands out.
const maxTold = 800

// tell answers from the results of the tools that were called: from what a search found the sentences that bear on
// the question, of anything else all of it.
func (t *talk) tell(tools []ai.Tool) string {
	var out []string
	for i, r := range t.results {
		plain := readable(r)
		switch {
		case strings.HasPrefix(r, "Error:"):
			out = append(out, "I am sorry, that did not work: "+
				ended(strings.TrimSpace(strings.TrimPrefix(r, "Error:"))))
		case i < len(t.called) && searches(toolNamed(tools, t.called[i].Name)):
			if found, _ := find(passages(plain), t.said); found != "" {
				out = append(out, found)
			} else {
				out = append(out, dontKnow)
			}
		case plain == "":
			out = append(out, "That is done.")
		default:
			out = append(out, "Here is what I found: "+
				ended(short(strings.Join(strings.Fields(strings.ReplaceAll(plain, "\n", "; ")), " "), maxTold)))
		}
	}
	return strings.Join(out, " ")
}

// short cuts a text at a space.
func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s[:n], ' '); i > 0 {
		n = i
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}

// readable turns JSON into lines of "key: value"; other text stays as it is.
func readable(result string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(result))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return strings.TrimSpace(result)
	}
	var out []string
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case nil:
		case map[string]any:
			for _, k := range sortedKeys(v) {
				walk(k, v[k])
			}
		case []any:
			for _, e := range v {
				walk(name, e)
			}
		case string:
			if v = strings.TrimSpace(v); len(sentences(v)) > 1 || name == "text" || name == "" {
				out = append(out, v)
			} else if v != "" {
				out = append(out, spoken(name)+": "+v)
			}
		default:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%s: %v", spoken(name), v), ": "))
		}
	}
	walk("", v)
	return strings.Join(out, "\n")
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
