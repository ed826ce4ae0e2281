package exam

import (
	"errors"
	"fmt"
	"strings"

	"parley/internal/parley"
	"parley/internal/rehearsal"
)

// Read reads the script of a test: one test, which its matrix may make several cases of. The error is a field's, with the
// line of the mistake.
func Read(script string) ([]rehearsal.Case, error) {
	cases, err := read(script)
	if m, ok := errors.AsType[*rehearsal.Mistake](err); ok {
		text := "Line " + fmt.Sprint(max(1, m.Line)) + ": " + strings.TrimSuffix(m.Text, ".") + "."
		if m.Line == 0 {
			text = strings.ToUpper(m.Text[:1]) + m.Text[1:] + "."
		}
		var wrong parley.Fields
		wrong.AddText("script", text)
		return nil, &Mistake{wrong.Err(), m.Line}
	}
	return cases, err
}

// Mistake is why a script is none: a field's error that knows its line, 0 for none.
type Mistake struct {
	error
	Line int
}

func (m *Mistake) Unwrap() error { return m.error }

// unnamed is what a test is called that says no name: a name can't begin so.
const unnamed = "\x00"

func read(script string) ([]rehearsal.Case, error) {
	no := func(line int, format string, args ...any) error {
		return &rehearsal.Mistake{Line: line, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case strings.TrimSpace(script) == "":
		return nil, no(0, "the script is empty")
	case len(script) > maxScript:
		return nil, no(0, "the script is longer than %d KB", maxScript>>10)
	}
	cases, err := rehearsal.ReadOf("this assistant", unnamed, []byte(script),
		rehearsal.Bounds{Bytes: maxScript, Cases: maxOfOne})
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range cases { // whom it names in call has no part in it: an assistant's tests are of that assistant
		c := &cases[i]
		switch {
		case c.Name == unnamed:
			return nil, no(c.Line, "a test needs a name, such as name: Books a table")
		case len(c.Name) > 255:
			return nil, no(c.Line, "the name is longer than 255 characters")
		case c.Stranger():
			return nil, no(c.Line, "call is %s, but these tests can only call the assistant: leave it out", c.Assistant)
		case c.Outbound:
			return nil, no(c.Line, "these tests simulate callers; use parley test for an assistant that calls")
		case c.Line != cases[0].Line:
			return nil, no(c.Line, "this is a second test: create a separate test for it")
		case c.Limit > maxLimit:
			return nil, no(c.Line, "limit is more than %v, which is the most here", maxLimit)
		}
		for _, m := range c.Mocks {
			if m.Real {
				return nil, no(c.Line, "the tool %s is real: in these tests all tools are mocked", m.Tool)
			}
		}
		n += c.Repeat
	}
	if n > maxOfOne {
		return nil, no(cases[0].Line, "its matrix and repeat make %d performances: %d are the most here", n, maxOfOne)
	}
	return cases, nil
}

// performance is one conversation of a test.
type performance struct {
	rehearsal.Case
	title string
}

// performances are the conversations of a test, in the order of their places.
func performances(cases []rehearsal.Case) (list []performance) {
	for i := range cases {
		for round := 1; round <= cases[i].Repeat; round++ {
			one := &rehearsal.Result{Case: &cases[i], Round: round}
			c := cases[i]
			c.Seed, c.Repeat = one.Seed(), 1
			list = append(list, performance{c, one.Title()})
		}
	}
	return list
}
