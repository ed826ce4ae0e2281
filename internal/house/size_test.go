package house_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits of what one person can keep in mind.
const (
	maxComplexity = 30 // ways through a function: one, and one more for each if, for, case, && and ||
	maxMethods    = 6  // of an interface, with those that it embeds
)

// over is something that is over a limit, and may stay so: how much it has, and why.
type over struct {
	has int
	why string
}

// complex are the functions over maxComplexity. Nothing is added to this list: take a function apart, and delete its row.
var complex = map[string]over{
	"internal/audio SignalDetector.ended":                            {34, "one rule for each signal that a telephone network makes"},
	"internal/carrier/carriertest Conform":                           {31, "what every carrier must do, in the order in which it does it"},
	"internal/carrier/carriertest Server.answer":                     {34, "one case for each request to the imitated carriers"},
	"internal/document wordWriter.start":                             {55, "one case for each element of a Word document"},
	"internal/form bindValue":                                        {31, "one case for each kind of field"},
	"internal/lang Form.Told":                                        {32, "one case for each kind of answer that is dictated"},
	"internal/lang Splitter.end":                                     {35, "every exception to \"a full stop ends a sentence\""},
	"internal/lang sayer.code":                                       {32, "one case for each kind of code that is said aloud"},
	"internal/lang sayer.date":                                       {38, "one case for each way to write a date"},
	"internal/lang sayer.dialled":                                    {31, "one case for each way to write a telephone number"},
	"internal/lang sayer.sign":                                       {59, "one case for each sign that is said aloud"},
	"internal/lang sayer.time":                                       {45, "one case for each way to write a time"},
	"internal/parley Assistant.Check":                                {39, "one rule for each pair of fields that don't go together"},
	"internal/provider/anthropic/anthropictest request.conversation": {34, "refuses what the vendor refuses"},
	"internal/provider/local finder.typed":                           {32, "one case for each type of a tool's argument"},
	"internal/rehearsal Case.check":                                  {40, "one rule for each field of a case"},
	"internal/sip index.route":                                       {36, "which trunk an incoming call belongs to"},
	"internal/voice/voicetest play.check":                            {36, "one case for each thing that a play expects"},
}

// wide are the interfaces over maxMethods. Nothing is added to this list either.
var wide = map[string]over{
	"internal/ai RealtimeSession":     {10, "all that is done with a vendor's model that hears and speaks; every vendor implements it"},
	"internal/channel Box":            {10, "all that a channel needs of the store to send and receive"},
	"internal/provider/speech Tongue": {9, "what differs between vendors of speech"},
}

// TestHouseRealtimeVendors checks that a vendor of models that hear and speak is the protocol, in at most 250 lines: what it shares with
// others is in internal/provider/live and internal/provider/realtime.
func TestHouseRealtimeVendors(t *testing.T) {
	shared := []string{"internal/provider/live", "internal/provider/realtime", "internal/provider/openai"} // the last has all of OpenAI
	lines, vendors := map[string]int{}, map[string]bool{}
	files, err := filepath.Glob("internal/provider/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		dir := path.Dir(filepath.ToSlash(file))
		if strings.HasSuffix(file, "_test.go") || slices.Contains(shared, dir) {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[dir] += strings.Count(string(raw), "\n")
		for _, s := range shared[:2] {
			vendors[dir] = vendors[dir] || strings.Contains(string(raw), `"parley/`+s+`"`)
		}
	}
	count := 0
	for dir, n := range lines {
		if vendors[dir] {
			count++
			if n > 250 {
				t.Errorf("%s has %d lines", dir, n)
			}
		}
	}
	if count < 3 {
		t.Errorf("only %d vendors were found", count)
	}
}

// TestHouseSize checks that no function has more than 30 ways through it and no interface more than 6 methods, but for those
// that are listed above.
func TestHouseSize(t *testing.T) {
	functions, interfaces := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		measure(s.dir, s.tree, functions, interfaces)
	}
	if len(functions) < 1000 || len(interfaces) < 20 {
		t.Fatalf("found %d functions and %d interfaces", len(functions), len(interfaces))
	}
	tooLarge(t.Errorf, functions, maxComplexity, complex,
		"ways through it: give each decision a function of its own, as internal/turn/overlap.go does", "size_test.go")
	tooLarge(t.Errorf, interfaces, maxMethods, wide,
		"methods: make an interface for each use, as internal/voice/driver.go does", "size_test.go")
}

// tooLarge reports what is over a limit and not listed, or has grown; and what is listed and needs it no more.
func tooLarge(report func(string, ...any), found map[string]int, limit int, listed map[string]over, mend, file string) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if has, most := found[name], max(limit, listed[name].has); has > most {
			report("%s has %d %s (rule: at most %d; internal/house/%s)", name, has, mend, most, file)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if found[name] <= limit {
			report("%s is not over the limit of %d any more: delete its row in internal/house/%s", name, limit, file)
		}
	}
}

// measure counts the ways through the functions of a file, and the methods of its interfaces.
func measure(dir string, f *ast.File, functions, interfaces map[string]int) {
	local := map[string]*ast.InterfaceType{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			name = dir + " " + name
			functions[name] = max(functions[name], ways(d)) // files for several systems have it several times
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					if i, ok := s.Type.(*ast.InterfaceType); ok {
						local[s.Name.Name] = i
					}
				}
			}
		}
	}
	for name, i := range local {
		interfaces[dir+" "+name] = methods(i, local)
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// ways counts the ways through a function: its cyclomatic complexity.
func ways(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(len(node.List), 1)
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// methods counts an interface's methods, with those of the file's interfaces that it embeds; any other counts once.
func methods(i *ast.InterfaceType, local map[string]*ast.InterfaceType) (n int) {
	for _, m := range i.Methods.List {
		if id, ok := m.Type.(*ast.Ident); ok && local[id.Name] != nil {
			n += methods(local[id.Name], local)
			continue
		}
		n += cmp.Or(len(m.Names), 1)
	}
	return n
}

// TestHouseSizeFinds shows that the counting counts, and that every kind of fault is reported.
func TestHouseSizeFinds(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func (s *set[T]) f(c chan int) {
	for range 3 {
		if a && b || c {
		}
	}
	switch x {
	case 1, 2:
	default:
	}
	select {
	case <-c:
	default:
	}
	go func() { if a { f() } }()
}
type small interface { A(); B() }
type large interface { small; io.Reader; C(); D() }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	functions, interfaces := map[string]int{}, map[string]int{}
	measure("x", f, functions, interfaces)
	if functions["x set.f"] != 8 || interfaces["x large"] != 5 || interfaces["x small"] != 2 {
		t.Errorf("counted %v, %v", functions, interfaces)
	}
	var said []string
	tooLarge(func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) },
		map[string]int{"new": 31, "fair": 30, "kept": 40, "grown": 41, "mended": 30}, 30,
		map[string]over{"kept": {40, ""}, "grown": {40, ""}, "mended": {35, ""}, "gone": {35, ""}}, "ways", "x_test.go")
	for i, want := range []string{"grown has 41 ways (rule: at most 40", "new has 31 ways (rule: at most 30", "gone is not", "mended is not"} {
		if len(said) != 4 || !strings.HasPrefix(said[i], want) {
			t.Errorf("said %q, want %q in place %d of 4", said, want, i)
		}
	}
}
