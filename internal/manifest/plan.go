package manifest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"parley/internal/parley"
)

// Op is what is done with a thing.
type Op byte

// The operations.
const (
	Create Op = '+'
	Update Op = '~'
	Delete Op = '-'
	Keep   Op = '=' // it is on the server alone, and stays
)

// Change is what is to be done with a thing.
type Change struct {
	Op     Op
	Thing  *Thing // of the files; nil with Delete and Keep
	Now    *Thing // of the server; nil with Create
	Fields []FieldChange

	body map[string]any // of the thing, with its secrets; names stand for ids
	docs []docChange
}

// String is a change in a line.
func (c *Change) String() string {
	done := map[Op]string{Create: "created", Update: "changed", Delete: "deleted"}[c.Op]
	if c.Thing == nil {
		return fmt.Sprintf("%s: the %s %q", done, c.Now.Kind.Word, c.Now.Name)
	}
	return done + ": " + c.Thing.Path
}

// FieldChange is a field that becomes another. Secrets are not in it.
type FieldChange struct {
	Name     string
	Old, New any
	Secret   bool // only a secret changes
}

// docChange is what is to be done with a document of a knowledgebase.
type docChange struct {
	Op      Op
	doc     map[string]any // of the files
	id      int64
	name    string
	replace bool // Delete: another one of its name takes its place
}

// Plan is what makes the server's account like the files.
type Plan struct {
	Changes []*Change // in the order of their making
	files   *Account
	now     *Account
	matched map[*Thing]*Thing // of the files to the server's
	coming  map[string]bool   // the numbers that the files' trunks have
}

// Env reads an environment variable.
type Env func(name string) (string, bool)

// NewPlan compares files with an account. What is on the server alone is deleted with prune, and stays without. The error
// tells every mistake of the files.
func (s *Server) NewPlan(files, now *Account, prune bool, env Env) (*Plan, error) {
	p := &Plan{files: files, now: now, matched: map[*Thing]*Thing{}, coming: map[string]bool{}}
	trunks := p.files.of(trunkDir)
	for _, t := range trunks {
		for _, number := range numbersOf(t.Body) {
			p.coming[number] = true
		}
	}
	p.match(trunks)
	p.matchTrunks()
	p.match(slices.DeleteFunc(slices.Clone(files.Things), func(t *Thing) bool { return slices.Contains(trunks, t) }))
	var wrong []error
	for _, t := range files.Things {
		c, mistakes := p.compare(t, env)
		if len(mistakes) == 0 && c != nil {
			mistakes = s.resolvable(p, c)
		}
		for _, m := range mistakes {
			wrong = append(wrong, m)
		}
		if c != nil {
			p.Changes = append(p.Changes, c)
		}
	}
	p.rest(prune)
	return p, errors.Join(wrong...)
}

// match finds the server's thing of each of some files: by its name, and among things of one name by their order.
func (p *Plan) match(things []*Thing) {
	type key struct {
		dir, name string
		of        *Thing
	}
	keyOf := func(t *Thing, of *Thing) key {
		if t.Kind.Dir == numberDir {
			of = nil // it may have gone from trunk to trunk
		}
		return key{t.Kind.Dir, t.Name, of}
	}
	there := map[key][]*Thing{}
	for _, t := range p.now.Things {
		there[keyOf(t, t.Of)] = append(there[keyOf(t, t.Of)], t)
	}
	for _, t := range things { // assistants come before their tests
		var of *Thing
		if t.Of != nil && t.Kind.Dir != numberDir {
			if of = p.matched[t.Of]; of == nil {
				continue
			}
		}
		k := keyOf(t, of)
		list := there[k]
		if len(list) == 0 || !slices.ContainsFunc(list, func(o *Thing) bool { return p.ofTrunk(t, o) }) {
			continue
		}
		i := max(0, slices.IndexFunc(list, func(o *Thing) bool { return (t.Script == "" || o.Script == t.Script) && p.ofTrunk(t, o) }))
		p.matched[t], there[k] = list[i], slices.Delete(slices.Clone(list), i, i+1)
	}
}

// compare says what is to be done for a file; nil: nothing.
func (p *Plan) compare(t *Thing, env Env) (*Change, []*Mistake) {
	now := p.matched[t]
	c := &Change{Op: Update, Thing: t, Now: now}
	if now == nil {
		c.Op = Create
	}
	if t.Kind.Dir == numberDir {
		if m := p.checkNumber(t, now); m != nil {
			return nil, []*Mistake{m}
		}
	}
	if t.Kind.Dir == testDir {
		if now != nil && now.Script == t.Script {
			return nil, nil
		}
		if now != nil {
			c.Fields = []FieldChange{{Name: "script", Old: now.Script, New: t.Script}}
		}
		return c, nil
	}
	live := p.matched[t.Of]
	if t.Kind.Dir == numberDir {
		live = nil
	}
	body, wrong := t.revealed(env, live, now)
	wrong = append(wrong, p.translate(t, body)...)
	if len(wrong) > 0 {
		return nil, wrong
	}
	c.body = body
	if t.Kind.Dir == knowledgeDir {
		c.docs = p.compareDocuments(t, now)
	}
	if now == nil {
		return c, nil
	}
	file, shown := copied(t.Body).(map[string]any), now.written(t) // without secrets
	p.translate(t, file)
	for _, f := range t.Kind.named(t.Kind.typ, "") {
		if !t.Kind.differs(body, now.Body, f.name) || t.Kind.usually(f.name, body[f.name]) ||
			f.name == "documents" && t.Kind.Dir == knowledgeDir {
			continue
		}
		if f.name == "trunk" && t.Kind.Dir == numberDir { // the trunk's file says so
			continue
		}
		if f.name == "route" && sameRoute(body[f.name], now.Body[f.name]) {
			continue
		}
		c.Fields = append(c.Fields,
			FieldChange{f.name, t.Kind.shownOf(shown, f.name), t.Kind.shownOf(file, f.name), same(shown[f.name], file[f.name]) &&
				body[f.name] != nil})
	}
	for i, d := range c.docs {
		if d.Op != Keep && (d.Op != Create || i == 0 || !c.docs[i-1].replace) {
			c.Fields = append(c.Fields, docField(d))
		}
	}
	if len(c.Fields) == 0 {
		if slices.ContainsFunc(c.docs, func(d docChange) bool { return d.Op == Keep }) {
			c.Op = Keep
			return c, nil
		}
		return nil, nil
	}
	return c, nil
}

func docField(d docChange) FieldChange {
	what := "its description changes"
	switch {
	case d.Op == Delete && d.replace:
		what = "it is deleted, and added anew"
	case d.Op == Delete:
		what = "it is deleted"
	case d.Op == Create:
		what = "it is added"
	}
	return FieldChange{Name: "document " + d.name, New: what}
}

// usually says whether a field is left to the server.
func (k *Kind) usually(name string, v any) bool {
	return slices.Contains(k.usual, name) && (v == nil || v == "" || v == number(0))
}

// sameRoute says whether two routes are the same, where one may leave its time zone to the server.
func sameRoute(file, now any) bool {
	x, ok := file.(map[string]any)
	y, also := now.(map[string]any)
	if !ok || !also || x["timezone"] != "" {
		return false
	}
	x = maps.Clone(x)
	x["timezone"] = y["timezone"]
	return same(x, y)
}

// translate puts the names that the server's things have in place of those that files have.
func (p *Plan) translate(t *Thing, body map[string]any) (wrong []*Mistake) {
	for _, f := range t.Kind.refs {
		k := kindOf(f.of)
		if k == nil {
			continue
		}
		name := func(v any, at string) any {
			text, ok := v.(string)
			if !ok {
				return v
			}
			files, there := p.files.of(f.of), p.now.of(f.of)
			if other := find(text, files); other != nil {
				if now := p.matched[other]; now != nil {
					return refText(now, there)
				}
				return newRef + other.Path
			}
			if other := find(text, there); other != nil {
				return refText(other, there)
			}
			if f.of == numberDir && p.coming[text] {
				return newRef + numberPath(text)
			}
			why := "there is no file of a " + k.Word + " of that name, and the account has none"
			if several(text, files) || several(text, there) {
				why = "several have that name: name the file, such as " + slug(text) + "-2.yaml"
			}
			wrong = append(wrong, &Mistake{t.Path, t.line(at), fmt.Sprintf("%s %q: %s", at, text, why)})
			return v
		}
		for i, at := range places(body, f.in) {
			full := f.name
			if f.in != "" {
				full = fmt.Sprintf("%s.%d.%s", f.in, i, f.name)
			}
			switch v := at[f.name].(type) {
			case nil:
			case []any:
				for j := range v {
					v[j] = name(v[j], full)
				}
				if f.set {
					sortTexts(v)
				}
			default:
				at[f.name] = name(v, full)
			}
		}
	}
	return wrong
}

func several(text string, list []*Thing) bool {
	n := 0
	for _, t := range list {
		if t.Name == text {
			n++
		}
	}
	return n > 1
}

// newRef begins what stands for a thing that is yet to be made: its path follows.
const newRef = "\x00"

// compareDocuments says what is to be done with the documents of a knowledgebase.
func (p *Plan) compareDocuments(t, now *Thing) (list []docChange) {
	var there []map[string]any
	if now != nil {
		there = places(now.Body, "documents")
	}
	used := make([]bool, len(there))
	content := func(of *Thing, d map[string]any) string {
		name, _ := d["file"].(string)
		return string(of.Files[of.Kind.Dir+"/"+name])
	}
	like := func(d, o map[string]any) bool {
		for _, name := range []string{"type", "url", "links"} {
			if !same(d[name], o[name]) && !(empty(d[name]) && empty(o[name])) {
				return false
			}
		}
		site := d["type"] == string(parley.Website) && d["url"] != ""
		return (!site || same(d["relative_links_limit"], o["relative_links_limit"])) && content(t, d) == content(now, o)
	}
	wanted := places(t.Body, "documents")
	partner := make([]int, len(wanted))
	for _, exact := range []bool{true, false} { // those that are as they should be first
		for i, d := range wanted {
			if exact {
				partner[i] = -1
			}
			for j, o := range there {
				if partner[i] < 0 && !used[j] && d["name"] == o["name"] && (!exact || like(d, o)) {
					partner[i], used[j] = j, true
				}
			}
		}
	}
	for i, d := range wanted {
		name, _ := d["name"].(string)
		switch j := partner[i]; {
		case j < 0:
			list = append(list, docChange{Op: Create, doc: d, name: name})
		case !like(d, there[j]):
			list = append(list, docChange{Op: Delete, id: now.docs[j], name: name, replace: true},
				docChange{Op: Create, doc: d, name: name})
		case !same(d["description"], there[j]["description"]):
			list = append(list, docChange{Op: Update, doc: d, id: now.docs[j], name: name})
		}
	}
	for j, o := range there {
		if !used[j] {
			name, _ := o["name"].(string)
			list = append(list, docChange{Op: Keep, id: now.docs[j], name: name})
		}
	}
	return list
}

// rest adds what is on the server alone, the last made first.
func (p *Plan) rest(prune bool) {
	used := map[*Thing]bool{}
	for _, now := range p.matched {
		used[now] = true
	}
	for _, c := range p.Changes {
		if !prune {
			continue
		}
		for i, d := range c.docs {
			if d.Op == Keep {
				c.docs[i].Op = Delete
				c.Fields = append(c.Fields, docField(c.docs[i]))
				if c.Op == Keep {
					c.Op = Update
				}
			}
		}
	}
	for _, t := range slices.Backward(p.now.Things) {
		op := Keep
		if prune && p.prunes(t.Kind) {
			op = Delete
		}
		switch {
		case used[t] || t.Kind.Dir == accountDir:
			continue
		case t.Of != nil && !used[t.Of]: // it goes and stays with its assistant, or trunk
			continue
		case t.Kind.Dir == numberDir:
			if !hasSettings(t) {
				continue
			}
			op = Keep
		}
		p.Changes = append(p.Changes, &Change{Op: op, Now: t})
	}
}

// prunes says whether things of a kind are deleted that have no file. Files from before trunks and drafts had any hold none:
// they delete none.
func (p *Plan) prunes(k *Kind) bool {
	return k.Dir != trunkDir && k.Dir != draftDir || len(p.files.of(k.Dir)) > 0
}

// hasSettings says whether anything is set of a number.
func hasSettings(t *Thing) bool { return t.Body["nickname"] != nil || t.Body["route"] != nil }

// Count is how many things are to be made, changed and deleted.
func (p *Plan) Count() (made, changed, deleted int) {
	for _, c := range p.Changes {
		switch c.Op {
		case Create:
			made++
		case Update:
			changed++
		case Delete:
			deleted++
		}
	}
	return made, changed, deleted
}

// Empty says whether there is nothing to do.
func (p *Plan) Empty() bool {
	made, changed, deleted := p.Count()
	return made+changed+deleted == 0
}

// Write tells a plan to people.
func (p *Plan) Write(w io.Writer) error {
	var b strings.Builder
	kept := 0
	for _, c := range p.Changes {
		switch c.Op {
		case Create:
			fmt.Fprintf(&b, "+ %s\n", c.Thing.Path)
		case Update:
			fmt.Fprintf(&b, "~ %s\n", c.Thing.Path)
			for _, f := range c.Fields {
				f.write(&b)
			}
		case Delete:
			fmt.Fprintf(&b, "- %s %q\n", c.Now.Kind.Word, c.Now.Name)
		case Keep:
			kept++
		}
	}
	for _, c := range p.Changes {
		if c.Op == Keep && c.Thing == nil {
			fmt.Fprintf(&b, "  %s %q is only on the server: it stays\n", c.Now.Kind.Word, c.Now.Name)
		}
		for _, d := range c.docs {
			if d.Op == Keep {
				fmt.Fprintf(&b, "  document %q of %s is only on the server: it stays\n", d.name, c.Thing.Path)
			}
		}
	}
	made, changed, deleted := p.Count()
	if made+changed+deleted == 0 {
		b.WriteString("No changes: the server's account is as the files say.\n")
	} else {
		fmt.Fprintf(&b, "%d to create, %d to change, %d to delete.\n", made, changed, deleted)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// most of the lines that are shown around a change of a text
const around = 2

func (f FieldChange) write(b *strings.Builder) {
	switch old, oldText := f.Old.(string); {
	case f.Secret && f.Name == trunkPassword:
		fmt.Fprintf(b, "    %s: it is written again, as the server tells nobody the one that it has\n", f.Name)
	case f.Secret:
		fmt.Fprintf(b, "    %s: a secret changes\n", f.Name)
	case strings.HasPrefix(f.Name, "document "):
		fmt.Fprintf(b, "    %s: %s\n", f.Name, f.New)
	default:
		now, isText := f.New.(string)
		if oldText && isText && (strings.Contains(old, "\n") || strings.Contains(now, "\n")) {
			fmt.Fprintf(b, "    %s:\n", f.Name)
			writeLines(b, parley.Diff(old, now))
			return
		}
		fmt.Fprintf(b, "    %s: %s → %s\n", f.Name, shown(f.Old), shown(f.New))
	}
}

func writeLines(b *strings.Builder, lines []parley.DiffLine) {
	last := -1
	for i, l := range lines {
		near := false
		for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
			near = near || lines[j].Op != "="
		}
		if !near {
			continue
		}
		if i != last+1 {
			b.WriteString("      …\n")
		}
		last = i
		fmt.Fprintf(b, "      %s %s\n", strings.Replace(l.Op, "=", " ", 1), l.Text)
	}
}

// shown is a value in a line.
func shown(v any) string {
	s := strings.ReplaceAll(jsonText(v), `\u0000`, "new ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}
