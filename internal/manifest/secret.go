package manifest

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// Files hold no secrets: ${NAME} stands for one. Its value is that of the environment variable; where there is none, what
// the server has at this place is kept. $${ is ${ itself.

// reference is one in a text.
var reference = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// escaped is a text without references.
func escaped(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// eachSecret passes each text of a body that may hold secrets, with the name of its place, and puts what f returns in its
// place. The others of a body are no secrets, and what looks like a reference in them is none.
func (k *Kind) eachSecret(body map[string]any, f func(place, text string) string) {
	fields := map[string][]string{accountDir: {"webhook_url"}, toolDir: {"endpoint"}, trunkDir: {trunkPassword}}[k.Dir]
	if k.isAssistant() {
		fields = []string{"webhook_url", "inbound_webhook_url", "conversation_ended_webhook_url"}
	}
	for _, name := range fields {
		if text, ok := body[name].(string); ok {
			body[name] = f(name, text)
		}
	}
	if oauth, ok := body["oauth"].(map[string]any); ok && k.Dir == toolDir {
		if text, ok := oauth["client_secret"].(string); ok {
			oauth["client_secret"] = f("oauth.client_secret", text)
		}
	}
	seen := map[string]int{}
	for _, h := range places(body, "headers") {
		name, _ := h["name"].(string)
		place := "headers." + strings.ToLower(name)
		if seen[place]++; seen[place] > 1 {
			place += "." + strconv.Itoa(seen[place])
		}
		if text, ok := h["value"].(string); ok && k.Dir == toolDir {
			h["value"] = f(place, text)
		}
	}
	for name, of := range map[string]bool{"variables": k.isAssistant(), "sip_headers": k.Dir == trunkDir} {
		texts, ok := body[name].(map[string]any)
		if !ok || !of {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			if text, ok := texts[key].(string); ok {
				texts[key] = f(name+"."+key, text)
			}
		}
	}
}

// harmless are headers that hold no secrets.
var harmless = map[string]bool{"accept": true, "accept-language": true, "accept-encoding": true, "content-type": true,
	"user-agent": true, "cache-control": true, "x-requested-with": true, "prefer": true, "idempotency-key": true}

// telling are words in the names of variables and parameters that hold secrets.
var telling = regexp.MustCompile(
	`(?i)(secret|token|passw|pwd|credential|bearer|api_?-?key|access_?-?key|private_?-?key|(^|[_-])(key|auth|sig|signature|pin)($|[_-]))`)

var (
	variable = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	scheme   = regexp.MustCompile(`(?i)^(bearer|basic|token|apikey|api-key)?\s*$`)
)

// open says whether a header's value holds nothing but variables, behind the word for a kind of credential.
func open(value string) bool {
	return scheme.MatchString(strings.TrimSpace(variable.ReplaceAllString(value, "")))
}

// conceal puts references in place of the secrets of the server's things.
func (a *Account) conceal() {
	taken := map[string]bool{}
	for _, t := range a.Things {
		if t.Body != nil {
			t.conceal(a.usedInHeaders(t), taken)
		}
	}
}

// conceal finds the secrets of a thing. used are variables that hold some; taken are the names of references.
func (t *Thing) conceal(used, taken map[string]bool) {
	t.secret = map[string]string{}
	live, written := t.live()
	name := func(place string) string {
		stem := strings.TrimSuffix(fileOf(t), fileExtension)
		if t.Kind.Dir != accountDir {
			stem = t.Kind.Word + "_" + stem
		}
		for _, list := range []string{"headers.", "variables.", "sip_headers."} {
			place = strings.TrimPrefix(place, list)
		}
		one := envName(stem + "_" + place)
		for n, base := 2, one; taken[one]; n++ {
			one = base + "_" + strconv.Itoa(n)
		}
		taken[one] = true
		return "${" + one + "}"
	}
	t.Kind.eachSecret(t.Body, func(place, text string) string {
		hidden := escaped(text)
		switch kind, key, _ := strings.Cut(place, "."); {
		case text == "":
		case live[place] == text:
			hidden = written[place]
		case kind == trunkPassword, kind == "oauth":
			hidden = name(place)
		case kind == "sip_headers":
			if !open(text) {
				hidden = name(place)
			}
		case kind == "headers":
			if key, _, _ := strings.Cut(key, "."); !harmless[key] && !open(text) {
				hidden = name(place)
			}
		case kind == "variables":
			if (used[key] || telling.MatchString(key)) && !open(text) {
				hidden = name(place)
			}
		default:
			hidden = concealURL(text, func(param string) string { return name(place + "_" + param) })
		}
		t.secret[place] = hidden
		return text
	})
}

// usedInHeaders are the variables that the headers of an assistant's tools use: keys and passwords stand there.
func (a *Account) usedInHeaders(t *Thing) map[string]bool {
	used := map[string]bool{}
	list, _ := t.around(t.Body)["mid_call_tools"].([]any)
	for _, text := range list {
		name, _ := text.(string)
		tool := find(name, a.of(toolDir))
		if tool == nil {
			continue
		}
		for _, h := range places(tool.Body, "headers") {
			value, _ := h["value"].(string)
			useIn(used, value)
		}
	}
	return used
}

// useIn adds the variables of a header's value.
func useIn(used map[string]bool, value string) {
	for _, v := range parley.VariableNames(value) {
		used[v] = true
	}
}

// concealURL puts references in place of the parameters of an address that are secrets by their names.
func concealURL(text string, name func(param string) string) string {
	before, query, ok := strings.Cut(text, "?")
	if !ok {
		return escaped(text)
	}
	query, fragment, _ := strings.Cut(query, "#")
	params := strings.Split(query, "&")
	for i, p := range params {
		key, value, _ := strings.Cut(p, "=")
		plain, err := url.QueryUnescape(key)
		if err == nil && value != "" && telling.MatchString(plain) && !open(value) {
			params[i] = escaped(key) + "=" + name(plain)
		} else {
			params[i] = escaped(p)
		}
	}
	out := escaped(before) + "?" + strings.Join(params, "&")
	if len(fragment) > 0 || strings.Contains(text, "#") {
		out += "#" + escaped(fragment)
	}
	return out
}

// envName is a text as environment variables are called.
func envName(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, s)
	return strings.Trim(regexp.MustCompile(`_+`).ReplaceAllString(s, "_"), "_")
}

// written is the body of one of the server's things as its file has it. Where the file of before has a reference of its own
// for a secret, it stays.
func (t *Thing) written(before *Thing) map[string]any {
	body := copied(t.Body).(map[string]any)
	old := map[string]string{}
	if before != nil && before.Body != nil {
		before.Kind.eachSecret(before.Body, func(place, text string) string {
			old[place] = text
			return text
		})
	}
	t.Kind.eachSecret(body, func(place, text string) string {
		if was, ok := old[place]; ok && len(references(was)) > 0 && matches(was, text) {
			return was
		}
		return t.secret[place]
	})
	return body
}

// references are the names in a text.
func references(text string) (names []string) {
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			names = append(names, m[1])
		}
	}
	return names
}

// matches says whether a text with references may stand for a value.
func matches(text, value string) bool {
	pattern, last := "(?s)^", 0
	for _, m := range reference.FindAllStringSubmatchIndex(text, -1) {
		pattern += regexp.QuoteMeta(text[last:m[0]])
		if last = m[1]; m[2] < 0 {
			pattern += regexp.QuoteMeta("${")
		} else {
			pattern += ".*"
		}
	}
	re, err := regexp.Compile(pattern + regexp.QuoteMeta(text[last:]) + "$")
	return err == nil && re.MatchString(value)
}

// revealed is the body of a file with the secrets in place of the references: those of the environment, and else what the
// server has there, in the last of now, which may be nil.
func (t *Thing) revealed(env func(string) (string, bool), now ...*Thing) (map[string]any, []*Mistake) {
	var wrong []*Mistake
	kept := map[string]string{}
	for _, now := range now {
		if now == nil {
			continue
		}
		now.Kind.eachSecret(now.Body, func(place, text string) string {
			kept[place] = text
			return text
		})
	}
	body := copied(t.Body).(map[string]any)
	t.Kind.eachSecret(body, func(place, text string) string {
		var missing []string
		value := reference.ReplaceAllStringFunc(text, func(m string) string {
			if m == "$${" {
				return "${"
			}
			name := m[2 : len(m)-1]
			v, ok := env(name)
			if !ok {
				missing = append(missing, name)
			}
			return v
		})
		if len(missing) == 0 {
			return value
		}
		if was, ok := kept[place]; ok && matches(text, was) {
			return was
		}
		line := t.line(place)
		for _, name := range missing {
			wrong = append(wrong, &Mistake{t.Path, line, fmt.Sprintf("set the environment variable %s: the server has no value for it", name)})
		}
		return text
	})
	return body, wrong
}

// line is where a field of the file stands.
func (t *Thing) line(name string) int {
	r := reader{lines: t.lines}
	return r.line(name)
}
