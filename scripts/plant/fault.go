package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// fault is a plausible mistake and the tests that must catch it.
type fault struct {
	name  string
	what  string   // what is wrong, a sentence
	tests []string // arguments of go test: packages, then flags
	edits []edit
}

// edit puts one text in the place of another one.
type edit struct {
	file     string // its path from the root of the repository
	function string // where old stands: "name" or "Type.method"; "" means anywhere in the file
	old, new string // whole lines
}

var (
	nameLine = regexp.MustCompile(`^== ([a-z0-9-]+)$`)
	testLine = regexp.MustCompile(`^test: (\.(?:/\S+)?(?: .+)?)$`)
	inLine   = regexp.MustCompile(`^in: ([^,\s]+)(?:, (\S+))?$`)
)

// readFaults returns the faults of all files DIR/*.txt, by file and as they stand there.
func readFaults(dir string) ([]fault, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no faults in %s: %w", dir, err)
	}
	var all []fault
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		faults, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		all = append(all, faults...)
	}
	known := map[string]bool{}
	for _, f := range all {
		if known[f.name] {
			return nil, fmt.Errorf("two faults are named %s", f.name)
		}
		known[f.name] = true
	}
	return all, nil
}

// parse reads the faults of one file. An error begins with the number of its line.
func parse(text string) ([]fault, error) {
	var faults []fault
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		fail := func(want string) ([]fault, error) {
			got := "the end of the file"
			if i < len(lines) {
				got = fmt.Sprintf("%q", lines[i])
			}
			return nil, fmt.Errorf("%d: %s instead of %s", i+1, want, got)
		}
		if lines[i] == "" {
			i++
			continue
		}
		m := nameLine.FindStringSubmatch(lines[i])
		if m == nil {
			return fail(`want "== name"`)
		}
		f := fault{name: m[1]}
		if i++; i >= len(lines) || lines[i] == "" {
			return fail("want a sentence that says what is wrong")
		}
		f.what = lines[i]
		if i++; i >= len(lines) || !testLine.MatchString(lines[i]) {
			return fail(`want "test: ./package -run Test"`)
		}
		f.tests = strings.Fields(testLine.FindStringSubmatch(lines[i])[1])
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "in: "); {
			m := inLine.FindStringSubmatch(lines[i])
			if m == nil {
				return fail(`want "in: file" or "in: file, function"`)
			}
			e := edit{file: m[1], function: m[2]}
			take := func(sign string) (taken string) {
				for ; i < len(lines) && strings.HasPrefix(lines[i], sign); i++ {
					taken += lines[i][1:] + "\n"
				}
				return taken
			}
			i++
			e.old = take("-")
			if e.old == "" {
				return fail(`want "-" and the text that is there`)
			}
			if e.new = take("+"); e.new == "" {
				return fail(`want "+" and the text to put in its place`)
			}
			f.edits = append(f.edits, e)
		}
		if len(f.edits) == 0 {
			return fail(`want "in: file"`)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// check reports an edit that has no place in the tree at root, or several, or that can't be taken back.
func (f fault) check(root string) error {
	texts, err := f.edited(root, false, nil)
	if err == nil {
		_, err = f.edited(root, true, texts)
	}
	return err
}

// plant makes the edits of a fault in the tree at root, or, with undo, takes them back. It changes nothing if one of
// them has no place, or several.
func (f fault) plant(root string, undo bool) error {
	texts, err := f.edited(root, undo, nil)
	if err != nil {
		return err
	}
	for path, text := range texts {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// edited returns the files that a fault changes, by path, as they are with it or, with undo, without it. Files that are
// not in texts are read.
func (f fault) edited(root string, undo bool, texts map[string][]byte) (map[string][]byte, error) {
	if texts == nil {
		texts = map[string][]byte{}
	}
	for i, e := range f.edits {
		if undo {
			e = f.edits[len(f.edits)-1-i]
			e.old, e.new = e.new, e.old
		}
		path := filepath.Join(root, e.file)
		text, read := texts[path]
		if !read {
			var err error
			if text, err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		at, err := e.place(text)
		if err != nil {
			return nil, err
		}
		texts[path] = bytes.Join([][]byte{text[:at], []byte(e.new), text[at+len(e.old):]}, nil)
	}
	return texts, nil
}

// place returns where the old text begins: at the beginning of a line, and only there.
func (e edit) place(text []byte) (int, error) {
	from, to := 0, len(text)
	where := e.file
	if e.function != "" {
		where += ", " + e.function
		var err error
		if from, to, err = span(text, e.function); err != nil {
			return 0, fmt.Errorf("%s: %w", e.file, err)
		}
	}
	found := -1
	for at := from; at < to; {
		if bytes.HasPrefix(text[at:to], []byte(e.old)) {
			if found >= 0 {
				return 0, fmt.Errorf("%s: the text to replace is there more than once: name the function, or take a line more: %q", where, e.old)
			}
			found = at
		}
		next := bytes.IndexByte(text[at:to], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	if found < 0 {
		return 0, fmt.Errorf("%s: the text to replace is not there: write the fault again for the code as it is now, or delete it: %q", where,
			e.old)
	}
	return found, nil
}

// span returns where a function of a Go file begins, with its comment, and where it ends.
func span(text []byte, name string) (from, to int, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && nameOf(fn) == name {
			begin := fn.Pos()
			if fn.Doc != nil {
				begin = fn.Doc.Pos()
			}
			end := files.Position(fn.End()).Offset
			if newline := bytes.IndexByte(text[end:], '\n'); newline >= 0 {
				end += newline + 1
			}
			return files.Position(begin).Offset, end, nil
		}
	}
	return 0, 0, fmt.Errorf("there is no function %s", name)
}

// nameOf returns "name" or "Type.name".
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if ident, ok := of.(*ast.Ident); ok {
		return ident.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}
