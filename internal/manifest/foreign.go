package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Note is what became of one thing of another product's export.
type Note struct {
	What string // Taken, Changed or LeftOut
	From string // where it stands in the export
	Text string
}

// What becomes of things.
const (
	Taken   = "taken"
	Changed = "changed"
	LeftOut = "left out"
)

func (n Note) String() string {
	if n.From == "" {
		n.From = "the export"
	}
	return fmt.Sprintf("%-8s  %s: %s", n.What, n.From, n.Text)
}

// Vendors are the products whose exports Convert reads.
var Vendors = slices.Sorted(maps.Keys(converters))

var converters = map[string]func(*foreign){"bland": fromBland, "dograh": fromDograh, "vapi": fromVapi, "retell": fromRetell,
	"elevenlabs": fromElevenLabs}

// Convert makes the files of an account of another product's export, and tells of each of its fields what became of it.
func Convert(vendor string, export []byte) (*Account, []Note, error) {
	convert, ok := converters[vendor]
	if !ok {
		return nil, nil, fmt.Errorf("exports of %q are not read: only those of %s", vendor, strings.Join(Vendors, ", "))
	}
	dec := json.NewDecoder(strings.NewReader(string(export)))
	dec.UseNumber()
	f := &foreign{account: &Account{}, read: map[string]bool{}, tools: map[string]string{}, names: map[string]bool{}}
	if err := dec.Decode(&f.tree); err != nil {
		return nil, nil, fmt.Errorf("the export is no JSON: %w", err)
	}
	convert(f)
	if len(f.account.Things) == 0 {
		return nil, nil, errors.New("the export holds no assistant: see docs/config-as-code.md for what it should be")
	}
	f.rest(f.tree, "")
	f.account.nameFiles(nil)
	f.account.sort()
	for _, t := range f.account.Things {
		t.secret = map[string]string{}
		t.Kind.eachSecret(t.Body, func(place, text string) string {
			t.secret[place] = text // it has its references already
			return text
		})
	}
	return f.account, f.notes, nil
}

// foreign is an export that is being read.
type foreign struct {
	tree    any
	account *Account
	notes   []Note
	read    map[string]bool   // the paths that were read
	tools   map[string]string // names of tools that were made, by the export's ids
	names   map[string]bool
}

func (f *foreign) note(what, from, format string, args ...any) {
	f.notes = append(f.notes, Note{what, from, fmt.Sprintf(format, args...)})
}

// rest notes what nobody read.
func (f *foreign) rest(v any, at string) {
	if f.read[at] {
		return
	}
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			f.rest(v[k], strings.TrimPrefix(at+"."+k, "."))
		}
	case []any:
		for i, e := range v {
			f.rest(e, strings.TrimPrefix(at+"."+strconv.Itoa(i), "."))
		}
	case string:
		if v != "" {
			f.note(LeftOut, at, "Parley has nothing for it")
		}
	default:
		f.note(LeftOut, at, "Parley has nothing for it")
	}
}

// part is an object of an export.
type part struct {
	f    *foreign
	at   string
	tree map[string]any
}

// parts are the objects of a value: those of a list, or the one.
func (f *foreign) parts(v any, at string) (list []part) {
	switch v := v.(type) {
	case map[string]any:
		return []part{{f, at, v}}
	case []any:
		for i, e := range v {
			if m, ok := e.(map[string]any); ok {
				list = append(list, part{f, strings.TrimPrefix(at+"."+strconv.Itoa(i), "."), m})
			}
		}
	}
	return list
}

func (p part) path(key string) string { return strings.TrimPrefix(p.at+"."+key, ".") }

// in is an object within; it has nothing where there is none.
func (p part) in(key string) part {
	m, _ := p.tree[key].(map[string]any)
	return part{p.f, p.path(key), m}
}

// list are the objects of a list.
func (p part) list(key string) []part { return p.f.parts(p.tree[key], p.path(key)) }

func (p part) value(key string) any {
	if p.tree == nil {
		return nil
	}
	p.f.read[p.path(key)] = true
	return p.tree[key]
}

func (p part) text(key string) string {
	s, _ := p.value(key).(string)
	return strings.TrimSpace(s)
}

func (p part) number(key string) (float64, bool) {
	n, ok := p.value(key).(json.Number)
	if !ok {
		return 0, false
	}
	x, err := n.Float64()
	return x, err == nil
}

func (p part) texts(key string) (list []any) {
	all, _ := p.value(key).([]any)
	for _, v := range all {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

// drop notes that a field is left out, and why.
func (p part) drop(why string, keys ...string) {
	for _, key := range keys {
		if v := p.value(key); v != nil && v != "" && v != false {
			p.f.note(LeftOut, p.path(key), "%s", why)
		}
	}
}

// draft is an assistant that is being made.
type draft struct {
	f    *foreign
	body map[string]any
	from map[string]string // where its fields stand in the export
}

// draft begins an assistant; its name stands under a key.
func (f *foreign) draft(p part, key string) *draft {
	name, at := p.text(key), p.at
	if name == "" {
		name = "Imported assistant"
	}
	f.note(Taken, p.path(key), "the assistant %q", name)
	return &draft{f, map[string]any{"name": name, "type": "inbound", "status": "inactive", "mode": "pipeline", "timezone": "UTC",
		"tools": []any{}, "mid_call_tools": []any{}}, map[string]string{"": at}}
}

// set sets a field from one of the export.
func (d *draft) set(name string, v any, p part, key string) {
	d.body[name], d.from[name] = v, p.path(key)
}

// take sets a field to what stands in the export, where it does.
func (d *draft) take(name string, p part, key string) {
	if v := p.value(key); v != nil && v != "" {
		d.set(name, v, p, key)
		d.f.note(Taken, p.path(key), "%s", name)
	}
}

// takeNumber sets a field to a number of the export, times a factor and within bounds.
func (d *draft) takeNumber(name string, p part, key string, factor, low, high float64) {
	n, ok := p.number(key)
	if !ok {
		return
	}
	x := min(high, max(low, n*factor))
	d.set(name, json.Number(strconv.FormatFloat(x, 'f', -1, 64)), p, key)
	if x != n*factor {
		d.f.note(Changed, p.path(key), "%s is %v, not %v: that is as far as it goes", name, x, n*factor)
		return
	}
	d.f.note(Taken, p.path(key), "%s", name)
}

// seconds is takeNumber with whole seconds.
func (d *draft) seconds(name string, p part, key string, factor, low, high float64) {
	if d.takeNumber(name, p, key, factor, low, high); d.body[name] != nil {
		n, _ := d.body[name].(json.Number)
		x, _ := n.Float64()
		d.body[name] = number(int64(x))
	}
}

// liquid is a variable with a filter or a condition, which Parley doesn't know.
var liquid = regexp.MustCompile(`\{\{[^{}]*[|"'][^{}]*\}\}|\{%`)

// prompt notes what of a text won't be filled in.
func (d *draft) prompt(text string, p part, key string) {
	if m := liquid.FindString(text); m != "" {
		d.f.note(Changed, p.path(key), "%s… stays as it is, but only {{name}} is replaced: write it otherwise", m)
	}
}

// language sets the language of a code such as en-US.
func (d *draft) language(p part, key string) {
	code := p.text(key)
	short, _, _ := strings.Cut(strings.ToLower(code), "-")
	switch {
	case code == "":
		return
	case len(short) != 2:
		d.f.note(Changed, p.path(key), "language is en: several at once are secondary_languages here")
		short = "en"
	default:
		d.f.note(Taken, p.path(key), "language")
	}
	d.set("language", short, p, key)
}

// the voices that are there without a vendor, for those that Parley lacks.
const standIn = "flite/slt"

// voice sets a voice of a vendor.
func (d *draft) voice(vendor, id string, p part, key string) {
	known := map[string]string{"11labs": "elevenlabs", "elevenlabs": "elevenlabs", "openai": "openai", "deepgram": "deepgram",
		"cartesia": "cartesia"}
	code := known[vendor]
	if code == "openai" || code == "deepgram" {
		id = strings.ToLower(id)
	}
	if code == "" || id == "" || code == "elevenlabs" && len(id) < 16 {
		d.set("voice", standIn, p, key)
		d.f.note(Changed, p.path(key), "voice is %s: %s has no counterpart by that name. Choose one of GET /user/assistants/voices", standIn,
			strings.Trim(vendor+" "+id, " "))
		return
	}
	d.set("voice", code+"/"+id, p, key)
	d.f.note(Taken, p.path(key), "voice is %s/%s; the server needs a key of the provider", code, id)
}

// builtIn gives the assistant a built-in tool.
func (d *draft) builtIn(p part, tool map[string]any) {
	list, _ := d.body["tools"].([]any)
	if slices.ContainsFunc(list, func(v any) bool { return same(v, any(tool)) }) {
		return
	}
	d.body["tools"] = append(list, tool)
	d.f.note(Taken, p.at, "the built-in tool %s", tool["type"])
}

// use gives the assistant a tool of the account.
func (d *draft) use(name string) {
	if list, _ := d.body["mid_call_tools"].([]any); name != "" && !slices.Contains(list, any(name)) {
		d.body["mid_call_tools"] = append(list, name)
	}
}

var itemName = regexp.MustCompile(`[^a-z0-9_]+`)

// extract adds something to be found out from a conversation.
func (d *draft) extract(name, kind, what string, p part) {
	short := strings.Trim(itemName.ReplaceAllString(strings.ToLower(name), "_"), "_")
	short = strings.Trim(short[:min(16, len(short))], "_")
	for short != "" && len(short) < 3 {
		short += "_"
	}
	types := map[string]string{"string": "string", "enum": "string", "number": "number", "integer": "number", "boolean": "bool"}
	typ, ok := types[kind]
	if !ok || len(short) < 3 {
		d.f.note(LeftOut, p.at, "post_call_schema has texts, numbers and booleans")
		return
	}
	if len([]rune(what)) < 3 {
		what = "The value of " + name
	}
	list, _ := d.body["post_call_schema"].([]any)
	d.body["post_call_schema"] = append(list, map[string]any{"name": short, "type": typ, "description": cutTo(what, 255)})
	if short != name || kind == "enum" {
		d.f.note(Changed, p.at, "post_call_schema: %s as a %s", short, typ)
	} else {
		d.f.note(Taken, p.at, "post_call_schema: %s", short)
	}
}

// done makes the assistant. A field that the rules refuse is left out, and noted.
func (d *draft) done() {
	if d.body["language"] == nil {
		d.body["language"] = "en"
		d.f.note(Changed, d.from[""], "language is en, as none is said")
	}
	if d.body["voice"] == nil {
		d.body["voice"] = standIn
		d.f.note(Changed, d.from[""], "voice is %s, as none is said", standIn)
	}
	if d.body["llm_model"] == nil {
		d.body["llm_model"] = "local"
		d.f.note(Changed, d.from[""], "llm_model is local, the built-in responder: choose a model of GET /user/assistants/models")
	}
	if d.body["system_prompt"] == nil {
		d.body["system_prompt"] = "You are a friendly assistant."
		d.f.note(Changed, d.from[""], "system_prompt is a sentence of ours, as the export has none")
	}
	d.f.note(Changed, d.from[""], "type is inbound, status is inactive and timezone is UTC: set them as you need them")
	d.f.add(assistantDir, d.body, d.from)
}

// add makes a thing of a tree, without the fields that the rules refuse.
func (f *foreign) add(dir string, tree map[string]any, from map[string]string) {
	k := kindOf(dir)
	for {
		t := &Thing{Kind: k, lines: map[string]int{}}
		var wrong []*Mistake
		r := &reader{lines: map[string]int{}}
		own := copied(tree).(map[string]any)
		kept := k.takeRefs(own, r)
		body, fields := bound(own, k.typ, true)
		for _, w := range fields {
			wrong = append(wrong, &Mistake{File: k.ownName(w.Name), Text: strings.Join(w.Messages, " ")})
		}
		if len(wrong) == 0 {
			k.putRefs(body, kept)
			t.Body, t.Name = body, nameOf(k, body)
			f.account.Things = append(f.account.Things, t)
			return
		}
		left := len(tree)
		for _, m := range wrong {
			name, _, _ := strings.Cut(m.File, ".")
			where := from[name]
			if where == "" {
				where = from[""]
			}
			f.note(LeftOut, where, "%s", m.Text)
			delete(tree, name)
		}
		if len(tree) == left {
			return
		}
	}
}

// tool makes a tool of the account and returns its name.
func (f *foreign) tool(p part, name string, body map[string]any, params []any, headers part) string {
	own := strings.Trim(regexp.MustCompile(`[^a-z]+`).
		ReplaceAllString(strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2")), "_"), "_")
	if own == "" {
		own = "tool"
	}
	for f.names[own] {
		own += "_again"
	}
	f.names[own] = true
	body["name"] = own
	if what, _ := body["description"].(string); what == "" {
		body["description"] = "Use it for " + strings.ReplaceAll(own, "_", " ") + "."
	} else if short := cutTo(what, 255); short != what {
		body["description"] = short
		f.note(Changed, p.at, "the description of %s is cut to 255 characters: put the rest into the prompt", own)
	}
	body["schema"] = params
	body["headers"] = f.headers(own, headers)
	if own != name {
		f.note(Changed, p.at, "the tool %s is called %s here: change its name in the prompt", name, own)
	} else {
		f.note(Taken, p.at, "the tool %s", own)
	}
	f.add(toolDir, body, map[string]string{"": p.at})
	return own
}

// schema are the parameters of a JSON schema of an object.
func (f *foreign) schema(p part) []any {
	list := []any{}
	props := p.in("properties")
	required := p.texts("required")
	for _, name := range slices.Sorted(maps.Keys(props.tree)) {
		list = f.param(list, props.in(name), name, slices.Contains(required, any(name)))
	}
	p.value("type")
	return list
}

// param adds a parameter of a tool to a list.
func (f *foreign) param(list []any, one part, name string, required bool) []any {
	types := map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
	typ, ok := types[one.text("type")]
	if !ok {
		f.read[one.at] = true
		f.note(LeftOut, one.at, "parameters of tools are texts, numbers and booleans")
		return list
	}
	what := one.text("description")
	if values := one.texts("enum"); len(values) > 0 {
		what = strings.TrimSpace(fmt.Sprintf("%s One of: %s.", what, strings.Trim(fmt.Sprint(values), "[]")))
		f.note(Changed, one.at+".enum", "the values stand in the description")
	}
	if len([]rune(what)) < 3 {
		what = "The " + name + "."
	}
	return append(list, map[string]any{"name": name, "type": typ, "description": cutTo(what, 255), "required": required})
}

// headers are headers with references in place of their values.
func (f *foreign) headers(tool string, p part) []any {
	list := []any{}
	for _, name := range slices.Sorted(maps.Keys(p.tree)) {
		value := p.text(name)
		if value == "" {
			continue
		}
		if harmless[strings.ToLower(name)] || open(value) {
			list = append(list, map[string]any{"name": name, "value": escaped(value)})
			f.note(Taken, p.path(name), "a header")
			continue
		}
		env := envName("tool_" + tool + "_" + name)
		list = append(list, map[string]any{"name": name, "value": "${" + env + "}"})
		f.note(Changed, p.path(name), "the value is a secret, which no file holds: set %s when you push", env)
	}
	return list
}

// cutTo is a text of at most n characters.
func cutTo(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return strings.TrimSpace(string(r[:n-1])) + "…"
	}
	return s
}
