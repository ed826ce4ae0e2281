package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bound matches names of bounds that are neither maxX nor minX.
var bound = regexp.MustCompile(`^(?i:most|least|longest|shortest)[A-Z]`)

// TestHouseBounds checks that bounds are called maxX and minX (docs/GLOSSARY.md).
func TestHouseBounds(t *testing.T) {
	files := 0
	err := goFiles(func(file string) error {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, name := range oddBounds(f) {
			t.Errorf("%s: call %s maxX or minX", set.Position(name.Pos()), name.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Fatalf("found %d files", files)
	}
}

// oddBounds returns the identifiers that name a bound by another word. A function that looks for the longest of something names none.
func oddBounds(f *ast.File) (found []*ast.Ident) {
	called := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			called[n.Name] = true
		case *ast.CallExpr:
			called[n.Fun] = true
		case *ast.Ident:
			if bound.MatchString(n.Name) && !called[n] {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

func TestHouseBoundsFinds(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
const mostRows = 3
type t struct { LeastWords, almost int }
func longestOf(shortestWord int) int { return longestOf(0) }
var maxRows, leastwise, most = mostRows, 0, 0`, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range oddBounds(f) {
		names = append(names, n.Name)
	}
	if got := len(names); got != 4 || names[0] != "mostRows" || names[1] != "LeastWords" || names[2] != "shortestWord" ||
		names[3] != "mostRows" {
		t.Errorf("found %q", names)
	}
}

// worn matches the parts of names for which the glossary has another word. wornIn are the files that may use them: ears is a field of the
// files that describe tests of an assistant, and a flag.
var (
	worn      = regexp.MustCompile(`^(?i:ears?|mouths?)$`)
	wornParts = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)
	wornIn    = regexp.MustCompile(`^(internal/(rehearsal|exam)/|cmd/parley/rehearse\.go$)`)
)

// TestHouseWords checks that words that were replaced do not come back (docs/GLOSSARY.md).
func TestHouseWords(t *testing.T) {
	err := goFiles(func(file string) error {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil || wornIn.MatchString(filepath.ToSlash(file)) {
			return err
		}
		for _, name := range wornNames(f) {
			t.Errorf("%s: %s: docs/GLOSSARY.md has another word", set.Position(name.Pos()), name.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wornNames returns the names in a file that have such a part.
func wornNames(f *ast.File) (found []*ast.Ident) {
	ast.Inspect(f, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && slices.ContainsFunc(wornParts.FindAllString(name.Name, -1), worn.MatchString) {
			found = append(found, name)
		}
		return true
	})
	return found
}

func TestHouseWordsFinds(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
type openEar struct { mouth, early, ears2, Heard int }
func EarOf(yEars int) { clear(yearly) }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range wornNames(f) {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "openEar mouth EarOf yEars" {
		t.Errorf("found %q", got)
	}
}
