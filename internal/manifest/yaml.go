package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mistake is what is wrong with a file.
type Mistake struct {
	File string
	Line int // 0: the whole file
	Text string
}

func (m *Mistake) Error() string {
	if m.Line == 0 {
		return m.File + ": " + m.Text
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
}

// write is the text of a thing's file. A field that has its default is left out.
func (k *Kind) write(body map[string]any) []byte {
	n := k.object(body, k.typ, "", defaults(k.typ))
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(n), enc.Close()); err != nil {
		panic(fmt.Sprintf("manifest: a %s is not written: %v", k.Word, err)) // nodes of our own
	}
	return b.Bytes()
}

// object is a struct's tree with its fields in their order, without those that are like in usual.
func (k *Kind) object(tree map[string]any, t reflect.Type, in string, usual map[string]any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range k.named(t, in) {
		v, there := tree[f.name]
		if !there || !k.whole && !(k.part && in == "") && (empty(v) && empty(usual[f.name]) || !f.required && same(v, usual[f.name])) {
			continue
		}
		n.Content = append(n.Content, scalar(f.name), k.node(v, f.typ, f.name, usual[f.name]))
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// empty says whether a value says nothing.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func (k *Kind) node(v any, t reflect.Type, in string, usual any) *yaml.Node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case map[string]any:
		if t.Kind() == reflect.Struct {
			u, ok := usual.(map[string]any)
			if !ok {
				u = defaults(t)
			}
			return k.object(v, t, in, u)
		}
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, scalar(name), k.node(v[name], reflect.TypeFor[any](), "", nil))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		item := reflect.TypeFor[any]()
		if t.Kind() == reflect.Slice {
			item = t.Elem()
		}
		short := 0
		for _, e := range v {
			one := k.node(e, item, in, nil)
			short += len(one.Value) + 2
			if one.Kind != yaml.ScalarNode || one.Style == yaml.LiteralStyle {
				short = 1000
			}
			n.Content = append(n.Content, one)
		}
		if short < 100 {
			n.Style = yaml.FlowStyle
		}
		return n
	case string:
		return scalar(v)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(v)}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	}
	panic(fmt.Sprintf("manifest: a tree holds a %T", v))
}

// bare is a text that every reader of YAML takes for a text without quotes.
var bare = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

// words that some readers of YAML take for something else.
var taken = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true,
	"null": true}

// scalar is a text: as a block where it has lines, and in quotes where it would be read as something else.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case bare.MatchString(s) && !taken[strings.ToLower(s)]:
		n.Tag = ""
	case strings.Contains(s, "\n") && blockReads(s):
		n.Style = yaml.LiteralStyle
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// blockReads says whether a text of several lines is the same when it is read from a block. The library writes one that
// begins with a tab as it can't read it.
func blockReads(s string) bool {
	raw, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "a"},
		{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: s}}})
	var read map[string]string
	return err == nil && yaml.Unmarshal(raw, &read) == nil && read["a"] == s
}

// The most that a file may hold.
const (
	maxBytes = 4 << 20
	maxNodes = 200_000  // each as often as an alias repeats it
	maxPaths = 16 << 20 // bytes of the places of all of them: a file may be nested without end, or within itself
)

// read reads the file of a thing. The mistakes name the lines.
func (k *Kind) read(path string, text []byte) (*Thing, []*Mistake) {
	wrong := func(line int, format string, args ...any) []*Mistake {
		return []*Mistake{{path, line, fmt.Sprintf(format, args...)}}
	}
	if len(text) > maxBytes {
		return nil, wrong(0, "the file is larger than %d MiB", maxBytes>>20)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&doc); err != nil {
		return nil, []*Mistake{yamlMistake(path, err)}
	}
	if dec.Decode(new(yaml.Node)) == nil {
		return nil, wrong(0, "it holds two documents: make a file of each")
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, wrong(1, "it must be written as field: value")
	}
	t := &Thing{Kind: k, Path: path, lines: map[string]int{}}
	r := reader{path: path, lines: t.lines}
	tree, _ := r.value(doc.Content[0], "").(map[string]any)
	if len(r.wrong) > 0 {
		return nil, r.wrong
	}
	t.Body, r.wrong = k.body(tree, &r)
	return t, r.wrong
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func yamlMistake(path string, err error) *Mistake {
	m := &Mistake{path, 0, err.Error()}
	if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
		m.Line, _ = strconv.Atoi(found[1])
		m.Text = "this is no YAML: " + found[2]
	}
	return m
}

// reader makes a tree of nodes and remembers the lines.
type reader struct {
	path  string
	nodes int
	paths int            // bytes of the places of the nodes
	lines map[string]int // by the fields' names with dots, as the API's errors have them
	wrong []*Mistake
}

func (r *reader) fail(line int, format string, args ...any) {
	r.wrong = append(r.wrong, &Mistake{r.path, line, fmt.Sprintf(format, args...)})
}

// full reports whether what was read is as much as a file may hold.
func (r *reader) full() bool { return r.nodes > maxNodes || r.paths > maxPaths }

func (r *reader) value(n *yaml.Node, at string) any {
	if r.full() {
		return nil
	}
	r.nodes++
	if r.paths += len(at); r.full() {
		r.fail(n.Line, "it holds too much from here on, with what its aliases repeat")
		return nil
	}
	if _, known := r.lines[at]; !known {
		r.lines[at] = n.Line
	}
	join := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, at)
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content) && !r.full(); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				r.fail(key.Line, "a field's name must be a text")
				continue
			}
			if _, twice := out[key.Value]; twice {
				r.fail(key.Line, "%s is there twice", key.Value)
			}
			place := join(key.Value)
			r.lines[place] = key.Line
			out[key.Value] = r.value(n.Content[i+1], place)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, e := range n.Content {
			if r.full() {
				break
			}
			out[i] = r.value(e, join(strconv.Itoa(i)))
		}
		return out
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
	}
	return n.Value
}

// line is where a field stands, or the nearest thing around it that is written.
func (r *reader) line(name string) int {
	for {
		if line, ok := r.lines[name]; ok {
			return line
		}
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return r.lines[""]
		}
		name = name[:i]
	}
}

// body is the whole body of a thing that a file describes.
func (k *Kind) body(tree map[string]any, r *reader) (map[string]any, []*Mistake) {
	k.known(tree, k.typ, "", "", r)
	given := maps.Clone(tree)
	kept := k.takeRefs(tree, r)
	if k.Dir == numberDir {
		if route, ok := tree["route"].(map[string]any); ok {
			whole := defaults(routeType)
			for name, v := range route {
				whole[name] = v
			}
			tree["route"] = whole
		}
	}
	body, wrong := bound(tree, k.typ, !k.part)
	for _, w := range wrong {
		name := k.ownName(w.Name)
		r.fail(r.line(name), "%s", strings.ReplaceAll(strings.Join(w.Messages, " "), w.Name, name))
	}
	if len(r.wrong) > 0 {
		return nil, r.wrong
	}
	k.putRefs(body, kept)
	if k.part {
		maps.DeleteFunc(body, func(name string, _ any) bool { _, there := given[name]; return !there })
	}
	return body, nil
}

// known finds fields that nobody knows.
func (k *Kind) known(v any, t reflect.Type, in, at string, r *reader) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		fields := k.named(t, in)
		for name, value := range v {
			i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
			full := strings.TrimPrefix(at+"."+name, ".")
			if i < 0 {
				r.fail(r.line(full), "there is no field %s%s", full, like(name, fields))
				continue
			}
			k.known(value, fields[i].typ, name, full, r)
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, e := range v {
			k.known(e, t.Elem(), in, at+"."+strconv.Itoa(i), r)
		}
	}
}

// like names the field that a wrong one may mean.
func like(name string, fields []field) string {
	for _, f := range fields {
		if strings.TrimSuffix(name, "_id") == f.name || strings.TrimSuffix(name, "_ids")+"s" == f.name {
			return ": is it " + f.name + "?"
		}
	}
	for _, f := range fields {
		if n := distance(name, f.name); n <= 1+len(name)/5 {
			return ": is it " + f.name + "?"
		}
	}
	return ""
}

// distance is how many letters must be changed to make one word of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			up := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(up+1, row[j]+1, last+cost)
			last = up
		}
	}
	return row[len(b)]
}

// ownName is a field of the API as files call it.
func (k *Kind) ownName(name string) string {
	parts := strings.Split(name, ".")
	for _, r := range k.refs {
		if r.in == "" && parts[0] == r.id {
			parts[0] = r.name
		}
		if last := len(parts) - 1; r.in == parts[0] && last > 0 && parts[last] == r.id {
			parts[last] = r.name
		}
	}
	return strings.Join(parts, ".")
}

// taking is what references say, by the objects that hold them.
type taking struct {
	ref   ref
	place int
	value any
}

// takeRefs takes the references out of a tree, and leaves numbers in their place that the rules of the fields take.
func (k *Kind) takeRefs(tree map[string]any, r *reader) (kept []taking) {
	for _, f := range k.refs {
		for i, at := range places(tree, f.in) {
			v := at[f.name]
			delete(at, f.name)
			name := f.name
			if f.in != "" {
				name = f.in + "." + strconv.Itoa(i) + "." + f.name
			}
			if v == nil || v == "" {
				if f.needs && !k.part {
					r.fail(r.line(name), "%s is required", name)
				}
				continue
			}
			kept = append(kept, taking{f, i, v})
			if f.many {
				list, ok := v.([]any)
				dummies := make([]any, len(list))
				for j, e := range list {
					dummies[j] = number(int64(j + 1))
					ok = ok && isRef(e)
				}
				if !ok {
					r.fail(r.line(name), "%s must be a list of names", name)
				}
				at[f.id] = dummies
				continue
			}
			if !isRef(v) {
				r.fail(r.line(name), "%s must be a name", name)
			}
			at[f.id] = number(1)
		}
	}
	for _, f := range k.refs { // what must be there, for the rules
		if f.needs && !k.part && f.in == "" && tree[f.id] == nil {
			tree[f.id] = number(1)
		}
	}
	return kept
}

// isRef says whether a value names something: by a name, or by an id of the server's.
func isRef(v any) bool {
	switch v := v.(type) {
	case string:
		return true
	case json.Number:
		_, err := v.Int64()
		return err == nil
	}
	return false
}

// putRefs puts references back in place of ids.
func (k *Kind) putRefs(body map[string]any, kept []taking) {
	for _, f := range k.refs {
		for _, at := range places(body, f.in) {
			delete(at, f.id)
		}
		if f.in == "" {
			body[f.name] = nil
			if f.many {
				body[f.name] = []any{}
			}
		}
	}
	for _, t := range kept {
		if all := places(body, t.ref.in); t.place < len(all) {
			all[t.place][t.ref.name] = t.value
		}
	}
}
