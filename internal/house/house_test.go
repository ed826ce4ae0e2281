package house_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// room is a package as its files describe it. Build tags are ignored: a file for another system must follow the same
// rules.
type room struct {
	doc      bool
	imports  []string // of non-test files
	testOnly bool
	outside  []string // packages of other modules that any file imports, tests included
}

// TestHouseRooms checks the imports against the table of rooms in docs/ARCHITECTURE.md.
func TestHouseRooms(t *testing.T) {
	for _, wrong := range judgeRooms(table(t, "docs/ARCHITECTURE.md", "Rooms"), rooms(t)) {
		t.Error(wrong)
	}
}

// faces are the parts of the server that users and programs deal with. Each rule has one owner, and that is never a
// face.
var faces = []string{"internal/api", "internal/console", "internal/widget", "cmd/parley/http.go",
	"cmd/parley/operator.go"}

// TestHouseFaces checks that no face writes to the store: the code that makes or changes a thing is in the room that
// owns the thing's rules, so that the API, the console and the command line do it in the same way, and fail in the
// same way.
func TestHouseFaces(t *testing.T) {
	for _, face := range faces {
		files := []string{face}
		if filepath.Ext(face) != ".go" {
			var err error
			if files, err = filepath.Glob(face + "/*.go"); err != nil || len(files) == 0 {
				t.Fatalf("%s: %v", face, err)
			}
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range storeWrites(t, file, text) {
				t.Errorf("%s: a face may not write to the store: have the room do it that owns the rule", wrong)
			}
		}
	}
	for text, want := range map[string]int{
		"err := a.DB.Write(ctx, fn)": 1, "err := c.db.InSteps(ctx, fn)": 1,
		"fn := func(ctx context.Context, tx *store.Tx) error { return nil }": 1,
		"w.Write(b)": 0, "list, err := a.DB.Tools(ctx, id)": 0, "a.rec.DB().Write(ctx, fn)": 1,
	} {
		if got := storeWrites(t, "face.go", []byte("package face\nfunc f() {\n"+text+"\n}")); len(got) != want {
			t.Errorf("%s: found %q", text, got)
		}
	}
}

// storeWrites finds the places in a file that open a transaction or take one.
func storeWrites(t *testing.T, name string, text []byte) (found []string) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of := s.X
		if c, ok := of.(*ast.CallExpr); ok {
			of = c.Fun
		}
		owner := ""
		switch of := of.(type) {
		case *ast.Ident:
			owner = of.Name
		case *ast.SelectorExpr:
			owner = of.Sel.Name
		}
		if s.Sel.Name == "InSteps" || s.Sel.Name == "Tx" && owner == "store" || s.Sel.Name == "Write" &&
			strings.EqualFold(owner, "db") {
			found = append(found, set.Position(s.Pos()).String())
		}
		return true
	})
	return found
}

// TestHouseDependencies checks the table of dependencies against the imports and the direct requirements of go.mod.
func TestHouseDependencies(t *testing.T) {
	need := requirements(t)
	licences := []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}
	listed := map[string]bool{}
	for _, row := range table(t, "docs/ARCHITECTURE.md", "Dependencies") {
		name := strings.Trim(row[0], "`")
		listed[name] = true
		if !need[name] {
			t.Errorf("%s is in the table, but nothing imports it", name)
		}
		if len(row) != 3 || row[1] == "" {
			t.Errorf("%s needs a reason and a licence", name)
			continue
		}
		for _, licence := range strings.Split(row[2], " AND ") {
			if !slices.Contains(licences, licence) {
				t.Errorf("%s: licence %q is none of %v", name, licence, licences)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		if !listed[name] {
			t.Errorf("%s is a direct dependency without a row in docs/ARCHITECTURE.md", name)
		}
	}
}

// TestHouseSettings checks the table of settings in docs/operating.md against the program's settings.
func TestHouseSettings(t *testing.T) {
	there := map[string]bool{}
	vendors, err := filepath.Glob("internal/provider/*/declare*.go")
	channels, failed := filepath.Glob("internal/channel/*/declare.go")
	if err != nil || failed != nil || len(vendors) == 0 || len(channels) == 0 {
		t.Fatalf("no vendor or no channel declares itself: %v, %v", err, failed)
	}
	for _, file := range append(append(vendors, channels...), "cmd/parley/settings.go") {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && strings.HasSuffix(s.Name.Name, "Settings") {
				for _, field := range s.Type.(*ast.StructType).Fields.List {
					name := field.Names[0].Name
					if !ast.IsExported(name) || name == "Declared" { // these belong to vendors and channels
						continue
					}
					name = regexp.MustCompile("[A-Z]").ReplaceAllString(name, "_$0")
					if m := regexp.MustCompile(`\bname:"([^"]*)"`).FindStringSubmatch(field.Tag.Value); m != nil {
						name = "-" + m[1]
					}
					there["PARLEY"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = true
				}
			}
			return true
		})
	}
	if len(there) < 40 {
		t.Fatalf("found %v", there)
	}
	told := map[string]bool{}
	rows := append(table(t, "docs/operating.md", "Settings"),
		table(t, "docs/operating.md", "Settings of vendors and channels")...)
	for _, row := range rows {
		first := ""
		for _, name := range regexp.MustCompile("[A-Z_]+").FindAllString(row[0], -1) {
			if strings.HasPrefix(name, "_") { // a suffix that replaces the end of the row's first name
				end := name
				for name = first + end; !there[name] && len(name) > len(end); {
					head := strings.TrimSuffix(name, end)
					name = head[:max(0, strings.LastIndexByte(head, '_'))] + end
				}
			} else {
				first = name
			}
			if told[name] = true; !there[name] {
				t.Errorf("%s: there is no setting %s", row[0], name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !told[name] {
			t.Errorf("docs/operating.md does not tell of %s", name)
		}
	}
}

// TestHouseJudge shows that judgeRooms finds what it should find.
func TestHouseJudge(t *testing.T) {
	good := [][]string{{"`internal/parley`", "words", "-"}, {"`cmd/x`", "main", "anything"}, {"`internal/a`", "a", "b"},
		{"`internal/b`", "b", "-"}}
	built := func() map[string]*room {
		return map[string]*room{words: {doc: true}, "cmd/x": {doc: true, imports: []string{"internal/a", "internal/b"}},
			"internal/a": {doc: true, imports: []string{words, "internal/b"}}, "internal/b": {doc: true}}
	}
	if wrong := judgeRooms(good, built()); len(wrong) != 0 {
		t.Fatalf("a house in order: %v", wrong)
	}
	for name, c := range map[string]struct {
		want   string
		change func(rows *[][]string, rooms map[string]*room)
	}{
		"no row": {"internal/c has no row",
			func(_ *[][]string, r map[string]*room) { r["internal/c"] = &room{doc: true} }},
		"no package": {"internal/b is no package",
			func(_ *[][]string, r map[string]*room) { delete(r, "internal/b") }},
		"two rows": {"internal/b has two rows",
			func(rows *[][]string, _ map[string]*room) { *rows = append(*rows, (*rows)[3]) }},
		"forbidden": {"internal/b may not import internal/a",
			func(_ *[][]string, r map[string]*room) { r["internal/b"].imports = []string{"internal/a"} }},
		"words import": {"internal/parley may not import internal/b",
			func(_ *[][]string, r map[string]*room) { r[words].imports = []string{"internal/b"} }},
		"imports unknown": {"internal/a: there is no room \"d\"",
			func(rows *[][]string, _ map[string]*room) { (*rows)[2] = []string{"`internal/a`", "a", "b d"} }},
		"needless": {"internal/a may import b, and does not",
			func(_ *[][]string, r map[string]*room) { r["internal/a"].imports = []string{words} }},
		"no comment": {"internal/b has no package comment",
			func(_ *[][]string, r map[string]*room) { r["internal/b"].doc = false }},
	} {
		t.Run(name, func(t *testing.T) {
			rows, rooms := slices.Clone(good), built()
			c.change(&rows, rooms)
			if wrong := judgeRooms(rows, rooms); !slices.ContainsFunc(wrong,
				func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("got %q, want one that says %q", wrong, c.want)
			}
		})
	}
}

// words is the room with the product's words.
const words = "internal/parley"

// judgeRooms checks rooms against the rows `package` | holds | may import. Everybody may import internal/parley; the
// names in the last column stand for packages below internal/.
func judgeRooms(rows [][]string, rooms map[string]*room) (wrong []string) {
	bad := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	may := map[string][]string{}
	for _, row := range rows {
		name := strings.Trim(row[0], "`")
		if _, twice := may[name]; twice {
			bad("%s has two rows", name)
		}
		if rooms[name] == nil {
			bad("%s is no package, but has a row", name)
		}
		may[name] = strings.Fields(row[len(row)-1])
	}
	for _, name := range slices.Sorted(maps.Keys(may)) {
		for _, other := range may[name] {
			if _, known := may["internal/"+other]; !known && other != "-" && other != "anything" {
				bad("%s: there is no room %q", name, other)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		r := rooms[name]
		allowed, known := may[name]
		if !known {
			bad("%s has no row in docs/ARCHITECTURE.md", name)
			continue
		}
		if !r.doc && !r.testOnly {
			bad("%s has no package comment", name)
		}
		for _, other := range r.imports {
			if other != words && !slices.Contains(allowed, "anything") &&
				!slices.Contains(allowed, strings.TrimPrefix(other, "internal/")) {
				bad("%s may not import %s", name, other)
			}
		}
		for _, other := range allowed {
			if other != "-" && other != "anything" && !slices.Contains(r.imports, "internal/"+other) {
				bad("%s may import %s, and does not", name, other)
			}
		}
	}
	return wrong
}

// rooms reads every package of the module.
func rooms(t *testing.T) map[string]*room {
	found := map[string]*room{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._")) {
			return filepath.SkipDir
		}
		if d.IsDir() && file != "." {
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil { // a module of its own
				return filepath.SkipDir
			}
		}
		if d.IsDir() || filepath.Ext(file) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		name, test := path.Dir(filepath.ToSlash(file)), strings.HasSuffix(file, "_test.go")
		r := found[name]
		if r == nil {
			r = &room{testOnly: true}
			found[name] = r
		}
		r.testOnly = r.testOnly && test
		r.doc = r.doc || f.Doc != nil && !test
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			ours, inside := strings.CutPrefix(imported, "parley/")
			switch first, _, _ := strings.Cut(imported, "/"); {
			case strings.Contains(first, "."): // the standard library has no dot there
				r.outside = append(r.outside, imported)
			}
			if inside && !test {
				r.imports = append(r.imports, ours)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 || found["internal/store"] == nil {
		t.Fatalf("the test must run in the module's root; it found %v", slices.Sorted(maps.Keys(found)))
	}
	return found
}

// requirements returns the modules that our files import, the modules of the tools, and the direct requirements of
// go.mod.
func requirements(t *testing.T) map[string]bool {
	raw, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(raw, &mod); err != nil {
		t.Fatal(err)
	}
	need := map[string]bool{}
	add := func(pkg string) {
		owner := ""
		for _, m := range mod.Require {
			if (pkg == m.Path || strings.HasPrefix(pkg, m.Path+"/")) && len(m.Path) > len(owner) {
				owner = m.Path
			}
		}
		if owner == "" {
			t.Errorf("no module in go.mod holds %s", pkg)
			return
		}
		need[owner] = true
	}
	for _, m := range mod.Require {
		if !m.Indirect {
			need[m.Path] = true
		}
	}
	for _, tool := range mod.Tool {
		add(tool.Path)
	}
	for _, r := range rooms(t) {
		for _, pkg := range r.outside {
			add(pkg)
		}
	}
	return need
}

var cells = regexp.MustCompile(`^\|(.*)\|\s*$`)

// table reads the first table below a heading of a page, without its header.
func table(t *testing.T, page, heading string) (rows [][]string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, below, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	for line := range strings.Lines(below) {
		m := cells.FindStringSubmatch(line)
		if m == nil && len(rows) > 0 || strings.HasPrefix(line, "## ") {
			break
		}
		if m != nil {
			row := strings.Split(m[1], "|")
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			rows = append(rows, row)
		}
	}
	if len(rows) < 3 {
		t.Fatalf("%s has no table below %q", page, heading)
	}
	return rows[2:]
}

// TestHouseSQL checks that SQL is only in the store, and in search for search's own tables.
func TestHouseSQL(t *testing.T) {
	if got := askers(t, "package x\nfunc f(q store.Query) { q.SQL() }"); got != 1 {
		t.Fatalf("a question past the store is counted %d times", got)
	}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		if dir := filepath.ToSlash(filepath.Dir(file)); dir == "internal/store" || dir == "internal/search" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err == nil && askers(t, string(text)) > 0 {
			t.Errorf("%s asks the database past the store: give the question a method of internal/store", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// askers counts the calls of store.Query.SQL in a file.
func askers(t *testing.T, text string) (n int) {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && len(call.Args) == 0 {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "SQL" {
				n++
			}
		}
		return true
	})
	return n
}

// TestHouseWalks checks the three walks of docs/ARCHITECTURE.md against the code: each step's functions are in its
// files.
func TestHouseWalks(t *testing.T) {
	page, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, _ := strings.Cut(string(page), "## Three walks")
	walks, _, _ = strings.Cut(walks, "\n## ")
	steps := regexp.MustCompile("(?m)^\\| [^|`]+ \\| (`[^|]+`) \\| (`[^|]+`) \\|$").FindAllStringSubmatch(walks, -1)
	if len(steps) < 25 {
		t.Fatalf("%d steps", len(steps))
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, step := range steps {
		var code strings.Builder
		for _, file := range quoted.FindAllStringSubmatch(step[1], -1) {
			text, err := os.ReadFile(file[1])
			if err != nil {
				t.Errorf("a walk goes through a file that is not there: %v", err)
			}
			code.Write(text)
		}
		for _, name := range quoted.FindAllStringSubmatch(step[2], -1) {
			if !regexp.MustCompile(`(?m)^func (\([^)]+\) )?` + name[1] + `\(`).MatchString(code.String()) {
				t.Errorf("a walk goes through %s, which is not in %s", name[1], step[1])
			}
		}
	}
}

// TestHouseNotice checks that NOTICE names everybody whose licence asks for it of those from whose recordings and sentences
// the weights were made.
func TestHouseNotice(t *testing.T) {
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(string(notice)), " ")
	for file, c := range map[string]struct{ use, licence, maker int }{"internal/audio/testdata/real.tsv": {0, 3, 4},
		"internal/lang/testdata/turns.tsv": {1, 4, 5}} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if strings.HasPrefix(line, "#") || len(cells) <= c.maker || cells[c.use] == "held" {
				continue
			}
			rows++
			licence, maker := cells[c.licence], cells[c.maker]
			if licence != "CC0" && licence != "public domain" && !strings.Contains(said, maker) {
				t.Errorf("%s: NOTICE doesn't name %s (%s)", file, maker, licence)
			}
		}
		if rows < 100 {
			t.Errorf("%s has %d rows", file, rows)
		}
	}
}
