package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits of what one person has to read to understand a file.
const (
	maxCircle = 8  // files of a package each of which uses the others, straight or by way of others
	maxSpread = 10 // files with methods of one type
)

// circles are the packages whose largest circle of files is over maxCircle. Nothing is added to this list: move what two files use of each
// other into a third one that uses neither, and lower the number.
var circles = map[string]over{
	"cmd/parley":         {31, "every file has methods of the settings or of the server, and these have a field for every file"},
	"internal/api":       {46, "the API has a field for what every family needs, and its routes name every family's handlers"},
	"internal/auth":      {10, "each way to prove who is asking is a method of the one authority"},
	"internal/call":      {26, "a call's life: the center and the call itself are used by, and use, every stage"},
	"internal/console":   {63, "the console has a field for what every page needs, and its routes name every page's handlers"},
	"internal/lang":      {12, "a language's data have a field for each use of them, and each use asks the data"},
	"internal/rehearsal": {17, "a case, its performance and its judgement name one another"},
	"internal/sip":       {41, "the server has the dialogs, and each of them sends, answers and ends by way of the server"},
	"internal/store":     {35, "questions and changes are methods of three types, which each file uses"},
	"internal/turn":      {15, "the machine is one type whose moments decide on one another"},
	"internal/voice":     {27, "a session's run has its parts as fields, and each of them tells the run what happened"},
}

// spreads are the types with methods in more than maxSpread files. Nothing is added to this list. The store's are left out: there is one
// store, and it has a file for each thing.
var spreads = map[string]over{
	"bench bench":               {11, "one group of measurements in each file"},
	"cmd/parley Settings":       {15, "opens one part of the server in each file"},
	"internal/api API":          {41, "the handlers of one family of routes in each file"},
	"internal/assistant Studio": {13, "one thing that is done with an assistant in each file"},
	"internal/auth Authority":   {11, "one way to prove who is asking in each file"},
	"internal/call Center":      {19, "one stage of all calls in each file"},
	"internal/call live":        {13, "one stage of one call in each file"},
	"internal/console Console":  {61, "the handlers of one group of pages in each file"},
	"internal/sip Server":       {17, "one thing that a server does with messages in each file"},
	"internal/sip leg":          {15, "one thing that happens in a dialog in each file"},
	"internal/turn Machine":     {13, "one rule of turn-taking in each file"},
	"internal/voice run":        {13, "one side of a session in each file"},
}

// TestHouseCircles checks that a package's largest circle of files has at most 8, and that no type has methods in more than 10 files, but
// for those that are listed above.
func TestHouseCircles(t *testing.T) {
	packages, spread := map[string][]*ast.File{}, map[string]int{}
	for _, s := range sources(t) {
		packages[s.dir] = append(packages[s.dir], s.tree)
	}
	circle, members := map[string]int{}, map[string]string{}
	for dir, files := range packages {
		largest := largestCircle(uses(positions, files))
		circle[dir], members[dir] = len(largest), strings.Join(largest, " ")
		if dir == "internal/store" {
			continue
		}
		for name, n := range spreadOf(positions, files) {
			spread[dir+" "+name] = n
		}
	}
	tooLarge(func(format string, a ...any) {
		said := fmt.Sprintf(format, a...)
		dir, _, _ := strings.Cut(said, " ")
		t.Errorf("%s: %s", said, members[dir])
	}, circle, maxCircle, circles, "files in its largest circle, each of which uses the others: "+
		"move what two of them share into a file that uses neither", "circle_test.go")
	tooLarge(t.Errorf, spread, maxSpread, spreads,
		"files with its methods: give a part of it a type and a name of its own", "circle_test.go")
}

// nothing imports every package as an empty one: how files use each other within a package can be told without the others.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// uses says which files of a package use something that another one declares: a function, type, variable, method or field. What is known
// only by the types of other packages is left out.
func uses(set *token.FileSet, files []*ast.File) map[string]map[string]bool {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := &types.Config{Importer: nothing{}, Error: func(error) {}, DisableUnusedImportCheck: true}
	own, _ := config.Check("x", set, files, info) // other packages' names are errors
	name := func(p token.Pos) string { return filepath.Base(set.File(p).Name()) }
	found := map[string]map[string]bool{}
	for id, of := range info.Uses {
		if of.Pkg() != own || !of.Pos().IsValid() {
			continue
		}
		if user, used := name(id.Pos()), name(of.Pos()); user != used {
			if found[user] == nil {
				found[user] = map[string]bool{}
			}
			found[user][used] = true
		}
	}
	return found
}

// largestCircle is the largest set of files each of which leads to all others, sorted (Tarjan's strongly connected components).
func largestCircle(uses map[string]map[string]bool) (largest []string) {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(file string)
	visit = func(file string) {
		index[file] = len(index) + 1
		low[file] = index[file]
		stack, on[file] = append(stack, file), true
		for used := range uses[file] {
			if index[used] == 0 {
				visit(used)
				low[file] = min(low[file], low[used])
			} else if on[used] {
				low[file] = min(low[file], index[used])
			}
		}
		if low[file] < index[file] {
			return
		}
		first := slices.Index(stack, file)
		circle := slices.Sorted(slices.Values(stack[first:]))
		stack = stack[:first]
		for _, member := range circle {
			on[member] = false
		}
		if len(circle) > len(largest) {
			largest = circle
		}
	}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if index[file] == 0 {
			visit(file)
		}
	}
	return largest
}

// spreadOf counts the files with methods of each type.
func spreadOf(set *token.FileSet, files []*ast.File) map[string]int {
	in := map[string]map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
				name := receiver(d.Recv.List[0].Type)
				if in[name] == nil {
					in[name] = map[string]bool{}
				}
				in[name][set.File(f.Pos()).Name()] = true
			}
		}
	}
	found := map[string]int{}
	for name, files := range in {
		found[name] = len(files)
	}
	return found
}

// TestHouseCirclesFinds shows which uses are seen, and what is a circle.
func TestHouseCirclesFinds(t *testing.T) {
	set := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{
		"a.go": "package x\nimport \"other\"\ntype a struct { of *b }\nfunc (a) m() { other.F() }\nfunc (v *a) n() { v.of.field = 1 }",
		"b.go": "package x\ntype b struct { field int }\nfunc (b) m() { var is a; is.m() }",
		"c.go": "package x\nfunc c() { helper() }\nfunc (*a) k() {}",
		"d.go": "package x\nfunc helper() {}",
	} {
		f, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	found := uses(set, files)
	if !found["a.go"]["b.go"] || !found["b.go"]["a.go"] || !found["c.go"]["d.go"] || !found["c.go"]["a.go"] || len(found["d.go"]) != 0 {
		t.Errorf("found %v", found)
	}
	if got := largestCircle(found); !slices.Equal(got, []string{"a.go", "b.go"}) {
		t.Errorf("the circle is %v", got)
	}
	ring := map[string]map[string]bool{"1": {"2": true}, "2": {"3": true}, "3": {"1": true, "4": true}, "4": {"5": true}, "5": {"4": true}}
	if got := largestCircle(ring); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("the ring is %v", got)
	}
	if got := spreadOf(set, files); got["a"] != 2 || got["b"] != 1 {
		t.Errorf("methods are in %v files", got)
	}
}
