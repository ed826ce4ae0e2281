package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxWidth is how many characters a line of Go has at most; a tab counts as one.
const maxWidth = 140

// broad are the packages whose wide lines are not broken yet. Nothing is added to this list.
var broad = map[string]over{
	"internal/audio": {57, "its code was being rewritten when the others were wrapped"},
	"internal/voice": {2, "likewise its echo guard"},
}

// TestHouseWidth checks that no line of Go has more than 140 characters, but for generated files.
func TestHouseWidth(t *testing.T) {
	found, where, files := map[string]int{}, map[string][]string{}, 0
	err := goFiles(func(file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files++
		lines, err := wideLines(file, text)
		for _, l := range lines {
			dir := path.Dir(file)
			found[dir]++
			where[dir] = append(where[dir], fmt.Sprintf("%s:%d has %d characters", file, l.number, l.width))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Fatalf("found %d files", files)
	}
	tooWide(t.Errorf, found, where, broad)
}

// tooWide reports every wide line of a package that has more of them than are listed, and what is listed and needs it no more.
func tooWide(report func(string, ...any), found map[string]int, where map[string][]string, listed map[string]over) {
	for dir, lines := range where {
		if found[dir] > listed[dir].has {
			if has := listed[dir].has; has > 0 {
				report("%s has %d wide lines, of which %d were there before", dir, found[dir], has)
			}
			for _, line := range lines {
				report("%s (rule: at most %d): break it after a comma or an operator, a text after a sentence, "+
					"or give a part of it a name", line, maxWidth)
			}
		}
	}
	for dir := range listed {
		if found[dir] == 0 {
			report("%s has no wide lines any more: delete its row in internal/house/width_test.go", dir)
		}
	}
}

// A wideLine is a line that is too wide.
type wideLine struct{ number, width int }

// wideLines finds the lines of a file that are wider than maxWidth and could be broken. Two can't: a line that is too wide only for the
// tag of its field, and one that is too wide only for a text which alone would not fit and has no place to break: a text in backquotes,
// or one without spaces.
func wideLines(file string, text []byte) (found []wideLine, err error) {
	var set *token.FileSet
	var texts []*ast.BasicLit
	tags := map[*ast.BasicLit]bool{}
	begins, number := 0, 0
	for line := range strings.Lines(string(text)) {
		begins += len(line)
		number++
		from := begins - len(line)
		line = strings.TrimSuffix(line, "\n")
		if len(line) <= maxWidth || utf8.RuneCountInString(line) <= maxWidth {
			continue
		}
		if set == nil {
			set = token.NewFileSet()
			f, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			if ast.IsGenerated(f) {
				return nil, nil
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Field:
					tags[n.Tag] = true
				case *ast.BasicLit:
					if n.Kind == token.STRING {
						texts = append(texts, n)
					}
				}
				return true
			})
		}
		if !slices.ContainsFunc(texts, func(l *ast.BasicLit) bool {
			at := set.Position(l.Pos()).Offset
			return unbreakable(line, l.Value, at-from, tags[l])
		}) {
			found = append(found, wideLine{number, utf8.RuneCountInString(line)})
		}
	}
	return found, nil
}

// unbreakable says whether a line is only too wide for the text that begins at a place of it, or before it.
func unbreakable(line, text string, at int, tag bool) bool {
	from, to := max(at, 0), min(at+len(text), len(line))
	if from >= to {
		return false
	}
	width := utf8.RuneCountInString(line[from:to])
	if utf8.RuneCountInString(line)-width > maxWidth {
		return false
	}
	if tag || strings.Contains(text, "\n") { // nothing can be put into the lines of a text in backquotes
		return true
	}
	indent := len(line) - len(strings.TrimLeft(line, "\t"))
	return indent+width > maxWidth && (text[0] == '`' || !strings.Contains(text, " "))
}

// TestHouseWidthFinds shows which lines are found, and what is said of them.
func TestHouseWidthFinds(t *testing.T) {
	long := strings.Repeat("ab ", 50)
	for name, c := range map[string]struct {
		text string
		want []wideLine
	}{
		"as wide as may be":        {"var a = `" + strings.Repeat("x", maxWidth-10) + "`\n", nil},
		"one more":                 {"var a = f(" + strings.Repeat("x", maxWidth-10) + ")\n", []wideLine{{3, 141}}},
		"characters, not bytes":    {"var a = `" + strings.Repeat("é", maxWidth-10) + "`\n", nil},
		"a tab is one":             {"func f() {\n\t\t_ = " + strings.Repeat("x", maxWidth-6) + "\n}\n", nil},
		"a comment":                {"// " + long + "\n", []wideLine{{3, 153}}},
		"words in quotes":          {`var a = "` + long + "\"\n", []wideLine{{3, 160}}},
		"one word":                 {`var a = "` + strings.ReplaceAll(long, " ", "") + strings.ReplaceAll(long, " ", "") + "\"\n", nil},
		"backquotes":               {"var a = `" + long + "`\n", nil},
		"backquotes that fit":      {"var a = fffffffffffffffffffffffffffff(`" + long[:120] + "`)\n", []wideLine{{3, 161}}},
		"too wide without it, too": {"var a = `" + long + "` + " + strings.Repeat("x", maxWidth) + "\n", []wideLine{{3, 303}}},
		"lines in backquotes":      {"var a = `a\n" + long + "\nb`\n", nil},
		"behind the last line":     {"var a = `\n` + " + strings.Repeat("x", maxWidth) + "\n", []wideLine{{4, 144}}},
		"a tag":                    {"type a struct {\n\tb int `" + long + "`\n}\n", nil},
		"a field with a tag":       {"type a struct {\n\t" + strings.Repeat("b", maxWidth) + " int `x`\n}\n", []wideLine{{4, 149}}},
		"generated":                {"// Code generated by x. DO NOT EDIT.\n\n// " + long + "\n", nil},
	} {
		head := "package x\n\n"
		if name == "generated" {
			c.text, head = c.text+head, ""
		}
		if got, err := wideLines("x.go", []byte(head+c.text)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	var said []string
	tooWide(func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) },
		map[string]int{"new": 1, "kept": 2}, map[string][]string{"new": {"new/a.go:7 has 150 characters"}, "kept": {"a", "b"}},
		map[string]over{"kept": {2, ""}, "mended": {3, ""}})
	if len(said) != 2 || !strings.HasPrefix(said[0], "new/a.go:7 has 150 characters (rule: at most 140): break it") ||
		!strings.HasPrefix(said[1], "mended has no wide lines") {
		t.Errorf("said %q", said)
	}
}
