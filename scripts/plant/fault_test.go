package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestFaults checks that each fault of scripts/faults has its place in the code, and can be taken back.
func TestFaults(t *testing.T) {
	faults, err := readFaults("../faults")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if err := f.check("../.."); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse("== one\nIt is wrong.\ntest: ./internal/a ./internal/b -run X\nin: a.go, T.f\n-old\n-\n+\n+new\nin: b.go\n-x\n+y\n\n" +
		"== two\nWrong, too.\ntest: .\nin: c.go\n-x\n+y\n")
	want := []fault{
		{"one", "It is wrong.", []string{"./internal/a", "./internal/b", "-run", "X"},
			[]edit{{"a.go", "T.f", "old\n\n", "\nnew\n"}, {"b.go", "", "x\n", "y\n"}}},
		{"two", "Wrong, too.", []string{"."}, []edit{{"c.go", "", "x\n", "y\n"}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v", err, got)
	}
	for text, want := range map[string]string{
		"fault one\n":                `1: want "== name"`,
		"== One\n":                   `1: want "== name"`,
		"== one\n":                   "2: want a sentence",
		"== one\nWrong.\nin: a.go\n": `3: want "test: `,
		"== one\nWrong.\ntest: a\n":  `3: want "test: `,
		"== one\nWrong.\ntest: .\n":  `4: want "in: file"`,
		"== one\nWrong.\ntest: .\nin: a.go f\n-x\n+y": `4: want "in: file" or`,
		"== one\nWrong.\ntest: .\nin: a.go\n+y\n":     `5: want "-"`,
		"== one\nWrong.\ntest: .\nin: a.go\n-y\n":     `6: want "+"`,
	} {
		if _, err := parse(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestPlant(t *testing.T) {
	const code = "package a\n\n// f counts.\nfunc f() {\n\tx++\n\ty++\n}\n\nfunc (t *T[int]) f() {\n\tx++\n}\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "a.go")
	for name, c := range map[string]struct {
		edits     []edit
		want, err string
	}{
		"in a function": {[]edit{{"a.go", "T.f", "\tx++\n", "\tx--\n"}}, strings.Replace(code, "{\n\tx++\n}", "{\n\tx--\n}", 1), ""},
		"its comment":   {[]edit{{"a.go", "f", "// f counts.\n", "// f does.\n"}}, strings.Replace(code, "counts", "does", 1), ""},
		"in a file":     {[]edit{{"a.go", "", "\tx++\n\ty++\n", "\ty++\n"}}, strings.Replace(code, "\tx++\n\ty", "\ty", 1), ""},
		"twice, one after the other": {[]edit{{"a.go", "", "\ty++\n", "\tz++\n"}, {"a.go", "", "\tz++\n", "\tw++\n"}},
			strings.Replace(code, "y++", "w++", 1), ""},
		"several places":    {[]edit{{"a.go", "", "\tx++\n", "\tx--\n"}}, code, "more than once"},
		"no place":          {[]edit{{"a.go", "f", "\tz++\n", "\tz--\n"}}, code, "is not there"},
		"part of a line":    {[]edit{{"a.go", "", "y++\n", "y--\n"}}, code, "is not there"},
		"no function":       {[]edit{{"a.go", "g", "\tx++\n", "\tx--\n"}}, code, "no function g"},
		"no file":           {[]edit{{"b.go", "", "\tx++\n", "\tx--\n"}}, code, "no such file"},
		"nothing by halves": {[]edit{{"a.go", "", "\ty++\n", "\ty--\n"}, {"a.go", "", "\tz++\n", "\n"}}, code, "is not there"},
	} {
		if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		read := func() string {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		f := fault{edits: c.edits}
		err := f.plant(dir, false)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || read() != c.want {
			t.Errorf("%s: %v\n%s", name, err, read())
		}
		if err == nil {
			if err = f.plant(dir, true); err != nil || read() != code {
				t.Errorf("%s, taken back: %v\n%s", name, err, read())
			}
		}
	}
}
