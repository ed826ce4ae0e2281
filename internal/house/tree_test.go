package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A source is a Go file of the program: no test, and written by hand.
type source struct {
	file string // from the root of the repository
	dir  string
	tree *ast.File
}

// positions are where the nodes of sources are.
var positions = token.NewFileSet()

// readSources reads each file once for all tests.
var readSources = sync.OnceValues(func() (list []source, err error) {
	err = goFiles(func(file string) error {
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(positions, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(f) {
			list = append(list, source{file, path.Dir(file), f})
		}
		return err
	})
	return list, err
})

// sources are the files of the program.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 500 {
		t.Fatalf("found %d files", len(list))
	}
	return list
}

// goFiles calls each with every Go file of the repository, tests and generated files among them.
func goFiles(each func(file string) error) error {
	return filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._")) {
			return filepath.SkipDir
		}
		if d.IsDir() || path.Ext(file) != ".go" {
			return nil
		}
		return each(filepath.ToSlash(file))
	})
}
