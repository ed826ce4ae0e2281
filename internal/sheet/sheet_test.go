package sheet

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"testing"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Ana": "Ana", "a=b": "a=b", "1-2": "1-2", "me@example.com": "me@example.com", "a; b": "a; b",
		"C++": "C++", "x, =1": "x, =1", "'=1": "'=1",
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", " =1": " '=1", "\t=1": "'\t'=1",
		"\tx": "'\tx", "\u00a0\u3000=1": "\u00a0\u3000'=1", "\x00=1": "\x00'=1",
		";=1": ";'=1", "a;=1": "a;'=1", "a; =1;+2": "a; '=1;'+2", "a\t=1": "a\t'=1", "a|=1": "a|'=1",
		"a\n=1": "a\n'=1", "a\r\n-1": "a\r\n'-1", `a;"=1`: `a;"'=1`, `"=1`: `"'=1`,
		"＝1": "'＝1", "；x": "；x", "a;＋1": "a;'＋1", "====": "'====", ";=;=": ";'=;'=",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}

// Whatever a customer says, no program that reads the file with another separator finds a cell that is a formula.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"=1", ";=1", "a;\"=1", "a\n;=1", "\";=1;\"", "\t \t@x", "a|+1", "'\n=1", "\r=\n;-"} {
		f.Add(s)
	}
	dangerous := regexp.MustCompile(`^[\s\pZ\x00-\x1f"]*[=+\-@]`)
	f.Fuzz(func(t *testing.T, said string) {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Write([]string{"name", Plain(said), "end"})
		w.Flush()
		for _, separator := range []string{`[,]`, `[;]`, `[\t]`, `[|]`} {
			if separator == "[,]" { // the file's own: its quotes hold
				rows, err := csv.NewReader(&b).ReadAll()
				if err != nil {
					t.Skip() // a bare carriage return
				}
				if slices.ContainsFunc(rows[0], dangerous.MatchString) {
					t.Errorf("%q: %q", said, rows)
				}
				b.Reset()
				fmt.Fprintf(&b, "name,%s,end\n", Plain(said))
				continue
			}
			for _, line := range regexp.MustCompile(`[\r\n]`).Split(b.String(), -1) {
				for _, cell := range regexp.MustCompile(separator).Split(line, -1) {
					if dangerous.MatchString(cell) {
						t.Errorf("%q with %s has the cell %q", said, separator, cell)
					}
				}
			}
		}
	})
}

// Where decimals have a comma, Excel expects semicolons, a byte order mark and decimal commas; texts stay as they are.
func TestLocal(t *testing.T) {
	for language, want := range map[string]bool{"": false, "en": false, "en-GB": false, "de": true, "de-AT": true, "de-CH": false,
		"fr-FR": true, "fr-CA": true, "es": true, "es-MX": false, "es-AR": true, "pt-BR": true, "pl": true, "ja": false, "zh-CN": false,
		"DE": true, "xx": false, "e": false, "*": false} {
		if got := Local(language); got != want {
			t.Errorf("%q: %v", language, got)
		}
	}
	type row struct{ name, cost string }
	columns := []column[row]{{"name", func(r *row) string { return r.name }}, {"cost", func(r *row) string { return r.cost }}}
	written := func(local bool) string {
		var b bytes.Buffer
		err := write(File{func(string) io.Writer { return &b }, local}, "x.csv", columns, func(add func(*row) error) error {
			return errors.Join(add(&row{"Müller; Söhne", "-1234.50"}), add(&row{"v1.2", "7"}))
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got, want := written(true), "\ufeffname;cost\n\"Müller; Söhne\";-1234,50\nv1.2;7\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := written(false), "name,cost\nMüller; Söhne,-1234.50\nv1.2,7\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
