// Package sheet writes lists as CSV, row by row as they are read, for spreadsheets: UTF-8, times in the account's zone
// with their offset, and no text that a program would run as a formula.
package sheet

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// column is one column of a list.
type column[T any] struct {
	name string
	of   func(*T) string
}

// File is where a list is written to.
type File struct {
	Begin func(name string) io.Writer // begins the answer, under the name of a file
	// Local says that the reader's spreadsheet writes decimals with a comma, and so expects semicolons between cells and a
	// byte order mark, as Excel does in most of Europe and in Latin America.
	Local bool
}

// mark is the UTF-8 byte order mark.
const mark = "\ufeff"

var decimal = regexp.MustCompile(`^-?[0-9]+\.[0-9]+$`)

// Local reports whether a language (such as "de-AT") writes decimals with a comma.
func Local(language string) bool {
	base, region, _ := strings.Cut(strings.ToLower(language), "-")
	switch {
	case base == "es" && strings.Contains(" mx us gt hn ni sv pa do pr ", " "+region+" "), base == "de" && region == "ch",
		base == "it" && region == "ch":
		return false
	}
	return base != "" && strings.Contains(commaLanguages, " "+base+" ")
}

// commaLanguages are the languages whose locales have a decimal comma, by CLDR.
const commaLanguages = " az be bg bs ca cs da de el es et eu fi fr gl hr hu id is it ka kk lt lv mk nb nl nn no pl pt ro ru sk sl " +
	"sq sr sv tr uk uz vi "

// write writes a list that walk reads. Nothing is begun before the first row was read: an error until then is an
// answer of its own.
func write[T any](file File, name string, columns []column[T], walk func(row func(*T) error) error) error {
	var out *csv.Writer
	head := func() {
		w := file.Begin(name)
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.name
		}
		out = csv.NewWriter(w)
		if file.Local {
			out.Comma = ';'
			cells[0] = mark + cells[0]
		}
		out.Write(cells) // failures show at the end
	}
	cells := make([]string, len(columns))
	err := walk(func(row *T) error {
		if out == nil {
			head()
		}
		for i, c := range columns {
			if cells[i] = c.of(row); file.Local && decimal.MatchString(cells[i]) {
				cells[i] = strings.Replace(cells[i], ".", ",", 1)
			}
		}
		return out.Write(cells)
	})
	if err != nil {
		return err
	}
	if out == nil {
		head()
	}
	out.Flush()
	return out.Error()
}

// Plain keeps a spreadsheet from taking a text, or a part of it, for a formula: it would run it. Which character
// parts the cells of a CSV file depends on the reader's country and settings, so that a formula may also stand behind
// a semicolon, a tab or a line break; spaces before it and its full-width forms don't keep every program from running
// it.
func Plain(text string) string {
	text = formula.ReplaceAllString(text, "$1'$2")
	if text != "" && strings.ContainsRune("\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}

var formula = regexp.MustCompile(`((?:^|[;|\t\r\n])[\s\pZ\x00-\x1f"]*?)([=+\-@＝＋－＠])`)

// phone is a phone number as it is, and anything else without formulas.
func phone(p *string) string {
	if p == nil {
		return ""
	}
	return Phone(*p)
}

// Phone is a phone number as it is, and any other text as Plain has it.
func Phone(text string) string {
	if number.MatchString(text) {
		return text
	}
	return Plain(text)
}

var number = regexp.MustCompile(`^\+[0-9]+$`)

func text[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return Plain(string(*p))
}

func whole[T ~int | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

func some(n *int64) string {
	if n == nil {
		return ""
	}
	return whole(*n)
}

// object is values by name as JSON, nothing where there are none.
func object[V any](m map[string]V) string {
	if len(m) == 0 {
		return ""
	}
	b, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return Plain(string(b))
}

// clock writes times in a zone, nothing for none.
type clock struct{ zone *time.Location }

func at[T parley.Time | parley.DateTime](c clock, t T) string {
	if t == 0 {
		return ""
	}
	return parley.Time(t).Time().In(c.zone).Format("2006-01-02T15:04:05-07:00")
}

// pages walks through a list from its newest row, a batch at a time.
func pages[T any](list func(p store.Page) ([]T, int, error), id func(*T) int64, row func(*T) error) error {
	const size = 200
	for below := store.First; ; {
		rows, _, err := list(store.Page{Size: size, Below: below})
		if err != nil {
			return err
		}
		for i := range rows {
			if err := row(&rows[i]); err != nil {
				return err
			}
			below = id(&rows[i])
		}
		if len(rows) < size {
			return nil
		}
	}
}
