package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The job library, and the rooms that may name its types.
const jobLibrary = "github.com/riverqueue/river"

// ofJobs are the packages above the store that name types and functions of the job library, and how often. Nothing is added to this list:
// give the store what such a package needs of jobs, and lower the number.
var ofJobs = map[string]over{
	"bench":                     {2, "works the program's jobs itself, to measure them"},
	"cmd/parley":                {5, "gathers the workers and queues of all rooms, and hands them to the store"},
	"internal/call":             {4, "declares the worker that stores recordings"},
	"internal/campaign":         {15, "declares the worker of imports, and the job that finds leads to look at again"},
	"internal/channel":          {14, "makes workers and hourly jobs for the channels, number and payment"},
	"internal/channel/sms":      {8, "declares the workers of its messages"},
	"internal/channel/whatsapp": {11, "declares the workers of its messages, which wait for one another"},
	"internal/knowledge":        {20, "declares the workers that read, embed and remove documents"},
	"internal/mail":             {9, "declares the worker that hands e-mail over, and which failures are final"},
	"internal/number":           {6, "declares the workers of rent and of what carriers report"},
	"internal/payment":          {4, "declares the search for payments that nobody reported"},
}

// TestHouseJobs checks that the job library's types stay in the store, but for what is listed above: whoever causes work asks the store.
func TestHouseJobs(t *testing.T) {
	found := map[string]int{}
	for _, s := range sources(t) {
		if !within(s.dir, "internal/store") {
			if n := namesOf(s.tree, jobLibrary); n > 0 {
				found[s.dir] += n
			}
		}
	}
	tooLarge(t.Errorf, found, 0, ofJobs, "names of the job library: have internal/store/job.go offer what is needed, in its own words",
		"layer_test.go")
}

// within says whether a package is another one, or below it.
func within(dir, of string) bool { return dir == of || strings.HasPrefix(dir, of+"/") }

// namesOf counts what a file names of a module's packages.
func namesOf(f *ast.File, module string) (n int) {
	var local []string
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !within(imported, module) {
			continue
		}
		name := imported[strings.LastIndexByte(imported, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		local = append(local, name)
	}
	if len(local) == 0 {
		return 0
	}
	ast.Inspect(f, func(node ast.Node) bool {
		if s, ok := node.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(local, x.Name) {
				n++
			}
		}
		return true
	})
	return n
}

// TestHouseTables checks that nothing above the store names a table or an index of the database. internal/search has its own tables, and
// internal/parley names each type's table in its tag.
func TestHouseTables(t *testing.T) {
	tables, indices := schema(t)
	for _, s := range sources(t) {
		if !within(s.dir, "internal") && s.dir != "cmd/parley" || within(s.dir, "internal/store") || s.dir == "internal/search" ||
			s.dir == words {
			continue
		}
		for _, wrong := range schemaNames(positions, s.tree, tables, indices) {
			t.Errorf("%s: give the question a method of internal/store, or the failure a name, as internal/store/second.go does", wrong)
		}
	}
}

// schema returns the names of the database's tables and indices, from the migrations.
func schema(t *testing.T) (tables, indices map[string]bool) {
	files, err := filepath.Glob("internal/store/migrations/*/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	created := regexp.MustCompile(`(?i)create (?:unique |virtual )?(table|index) (?:concurrently )?(?:if not exists )?([a-z_0-9]+)`)
	tables, indices = map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range created.FindAllStringSubmatch(string(text), -1) {
			if strings.EqualFold(m[1], "table") {
				tables[m[2]] = true
			} else {
				indices[m[2]] = true
			}
		}
	}
	if len(tables) < 50 || len(indices) < 100 {
		t.Fatalf("the migrations make %d tables and %d indices", len(tables), len(indices))
	}
	return tables, indices
}

var (
	// ofTable is where SQL names a table.
	ofTable = regexp.MustCompile(`\b(?:FROM|INTO|UPDATE|JOIN|TABLE) +([a-z_0-9]+)\b`)
	// ofColumns is how SQLite names an index: by its columns.
	ofColumns = regexp.MustCompile(`^([a-z_0-9]+)\.[a-z_0-9]+(?:, ([a-z_0-9]+)\.[a-z_0-9]+)+$`)
	aWord     = regexp.MustCompile(`[a-z_0-9]+`)
)

// schemaNames finds the texts of a file, tags apart, that name a table as SQL does, or an index.
func schemaNames(set *token.FileSet, f *ast.File, tables, indices map[string]bool) (found []string) {
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			tags[n.Tag] = true
		case *ast.BasicLit:
			if n.Kind != token.STRING || tags[n] {
				return true
			}
			text, _ := strconv.Unquote(n.Value)
			for _, m := range append(ofTable.FindAllStringSubmatch(text, -1), ofColumns.FindAllStringSubmatch(text, -1)...) {
				if tables[m[1]] {
					found = append(found, fmt.Sprintf("%s names the table %s", set.Position(n.Pos()), m[1]))
				}
			}
			if !strings.Contains(text, "_") { // so have all names of indices
				return true
			}
			for _, word := range aWord.FindAllString(text, -1) {
				if indices[word] && !tables[word] && strings.Contains(word, "_") {
					found = append(found, fmt.Sprintf("%s names the index %s", set.Position(n.Pos()), word))
				}
			}
		}
		return true
	})
	return found
}

// TestHouseParts checks that a part of the server is complete when it is made: cmd/parley puts the parts together, and gives each all that
// it needs where it makes it. Nothing is assigned to a field of a part afterwards, when others may already use it.
func TestHouseParts(t *testing.T) {
	files := 0
	for _, s := range sources(t) {
		if s.dir != "cmd/parley" {
			continue
		}
		files++
		for _, wrong := range lateFields(positions, s.tree) {
			t.Errorf("%s: give it to the part where the part is made; if it is made later, as a function that looks for it then", wrong)
		}
	}
	if files < 20 {
		t.Fatalf("found %d files", files)
	}
}

// lateFields finds the assignments in a file to a field of a part. A part is what the server has in a field of its own, or what a function
// has just made: by &package.Type{…}, or by New or Open of a package of ours.
func lateFields(set *token.FileSet, f *ast.File) (found []string) {
	ours := map[string]bool{}
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if strings.HasPrefix(imported, "parley/") {
			ours[imported[strings.LastIndexByte(imported, '/')+1:]] = true
		}
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		owner := ""
		if fn.Recv != nil && receiver(fn.Recv.List[0].Type) == "server" && len(fn.Recv.List[0].Names) == 1 {
			owner = fn.Recv.List[0].Names[0].Name
		}
		parts := map[string]bool{}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for _, to := range a.Lhs {
				field, ok := to.(*ast.SelectorExpr)
				if !ok || !field.Sel.IsExported() {
					continue
				}
				of, part := field.X, false
				for x, ok := of.(*ast.SelectorExpr); ok; x, ok = of.(*ast.SelectorExpr) {
					of = x.X
					id, ok := of.(*ast.Ident)
					part = ok && id.Name == owner && !x.Sel.IsExported()
				}
				if id, ok := of.(*ast.Ident); part || ok && parts[id.Name] {
					found = append(found, fmt.Sprintf("%s is assigned %s", set.Position(to.Pos()), field.Sel.Name))
				}
			}
			if id, ok := a.Lhs[0].(*ast.Ident); ok && a.Tok == token.DEFINE && makesPart(a.Rhs[0], ours) {
				parts[id.Name] = true
			}
			return true
		})
	}
	return found
}

// makesPart says whether an expression makes a part of a package of ours.
func makesPart(e ast.Expr, ours map[string]bool) bool {
	var of ast.Expr
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if c, ok := e.X.(*ast.CompositeLit); ok && e.Op == token.AND {
			of = c.Type
		}
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok && (strings.HasPrefix(s.Sel.Name, "New") || strings.HasPrefix(s.Sel.Name, "Open")) {
			of = s
		}
	}
	s, ok := of.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && ours[x.Name] && x.Name != "parley"
}

// TestHouseLayersFind shows what the three tests above see.
func TestHouseLayersFind(t *testing.T) {
	set := token.NewFileSet()
	read := func(text string) *ast.File {
		f, err := parser.ParseFile(set, "x.go", "package x\n"+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	jobs := read("import (\n\"github.com/riverqueue/river\"\nt \"github.com/riverqueue/river/rivertype\"\n\"parley/internal/store\"\n)\n" +
		"var a river.JobArgs\nvar b *t.JobRow\nvar c store.Tx\n")
	if n := namesOf(jobs, jobLibrary); n != 2 {
		t.Errorf("the job library is named %d times", n)
	}
	tables, indices := map[string]bool{"calls": true, "sms": true}, map[string]bool{"calls_attempt": true, "sms_sid": true}
	for text, want := range map[string]int{
		`"SELECT id FROM calls WHERE id = ?"`: 1, "`UPDATE calls SET a = 1`": 1, `"calls.lead_id, calls.attempt"`: 1, `"calls_attempt"`: 1,
		`"the calls of today"`: 0, `"update from others"`: 0, `"/calls.csv"`: 0, `"calls.csv"`: 0, `"recalls_attempts"`: 0,
		"struct { a int `json:\"sms_sid\"` }{}": 0,
	} {
		if got := schemaNames(set, read("var a = "+text), tables, indices); len(got) != want {
			t.Errorf("%s: found %q", text, got)
		}
	}
	parts := read(`import ("parley/internal/exam"; "parley/internal/parley"; "net/http")
func (h *server) open() {
	h.exams = exam.New(exam.Config{})
	h.exams.Ask = h.api.As
	h.pool.line.Max, h.count = 3, 4
	d := &exam.Desk{}
	d.Ask, d.private = nil, nil
	c := exam.Config{}
	c.Ask = nil
	u := &parley.User{}
	u.Name = ""
	o, err := exam.OpenDesk(c)
	func() { o.Ask = nil }()
	r := &http.Request{}
	r.Host = ""
}
func other(h *desk) { h.exams.Ask = nil }`)
	got := lateFields(set, parts)
	for i, want := range []string{":5:2 is assigned Ask", ":6:2 is assigned Max", ":8:2 is assigned Ask", ":14:11 is assigned Ask"} {
		if len(got) != 4 || !strings.HasSuffix(got[i], want) {
			t.Errorf("found %q, want %q in place %d of 4", got, want, i)
		}
	}
}
