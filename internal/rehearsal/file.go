package rehearsal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Load reads the cases of files and directories. In a directory, files whose name ends with .assistant.yaml are
// assistants and no cases.
func Load(paths []string) ([]Case, error) {
	var all []Case
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			list, err := Read(file, text)
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no cases in %s: they are in files whose name ends with .yaml",
			strings.Join(paths, " "))
	}
	return all, nil
}

const assistantFile = ".assistant.yaml"

func filesOf(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		hidden := e != nil && name != path && strings.HasPrefix(e.Name(), ".")
		switch {
		case err != nil:
			return err
		case e.IsDir() && hidden:
			return filepath.SkipDir
		case !e.IsDir() && !hidden && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) &&
			!strings.HasSuffix(name, assistantFile):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// timed are lines as `- interrupt: "wait" at reply+1s`, which are easy to write and no YAML: they are quoted as a whole.
var timed = regexp.MustCompile(`(?m)^(\s*-\s+(?:interrupt|backchannel|say):\s+)("[^"\n]*"\s+at\s+[^\s#]+)(\s*(?:#.*)?)$`)

// Read reads the cases of one file: one, or several with --- between them. A case with a matrix is several.
func Read(file string, text []byte) ([]Case, error) { return ReadOf("", file, text, usual) }

// ReadOf is Read for cases of an assistant: they need not say whom they call.
func ReadOf(assistant, file string, text []byte, b Bounds) (list []Case, err error) {
	defer func() {
		if m, ok := errors.AsType[*Mistake](err); ok {
			m.File = file
		}
	}()
	if len(text) > b.Bytes {
		return nil, &Mistake{Text: fmt.Sprintf("it is longer than %d KB", b.Bytes>>10)}
	}
	text = timed.ReplaceAll(text, []byte("${1}'${2}'${3}"))
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	m := measure{Bounds: b}
	for number := 1; ; number++ {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, yamlMistake(err)
		}
		if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
			continue
		}
		if err := m.add(doc.Content[0]); err != nil {
			return nil, err
		}
		c := newCase(file)
		c.Assistant, c.most = assistant, b.Cases-len(list)
		if number > 1 {
			c.Name += " " + strconv.Itoa(number)
		}
		if c.most == 0 {
			return nil, mistake(doc.Content[0], "more than %d cases in one file", b.Cases)
		}
		if err := c.read(doc.Content[0]); err != nil {
			return nil, err
		}
		variants, err := c.variants()
		if err != nil {
			return nil, err
		}
		list = append(list, variants...)
	}
	if len(list) == 0 {
		return nil, &Mistake{Text: "there is no case in it"}
	}
	return list, nil
}

const defaultLimit = 90 * time.Second

func newCase(file string) *Case {
	name := filepath.Base(file)
	return &Case{File: file, Name: strings.TrimSuffix(name, filepath.Ext(name)), Channel: Call, Repeat: 1, Seed: 1,
		Limit: defaultLimit, Sound: Sound{Codec: "pcmu"}, Caller: Caller{Pace: 1, Turns: usualTurns}}
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// yamlMistake tells a line where the YAML library does.
func yamlMistake(err error) error {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &Mistake{Line: line, Text: "this is not YAML: " + m[2]}
	}
	return &Mistake{Text: "this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
}

func mistake(n *yaml.Node, format string, args ...any) error {
	return &Mistake{Line: n.Line, Text: fmt.Sprintf(format, args...)}
}

// field reads the value of a key.
type field struct {
	name string
	read func(*yaml.Node) error
}

// object reads a mapping whose keys are all known.
func object(n *yaml.Node, what string, fields ...field) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return mistake(n, "%s must be written as key: value", what)
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		switch {
		case at < 0:
			return mistake(key, "%s has no %q: allowed are %s", what, key.Value, names(fields))
		case seen[key.Value]:
			return mistake(key, "%s has %q twice", what, key.Value)
		}
		seen[key.Value] = true
		if err := fields[at].read(value); err != nil {
			return at0(err, value)
		}
	}
	return nil
}

// at0 gives an error the line of a node where it has none.
func at0(err error, n *yaml.Node) error {
	if _, ok := errors.AsType[*Mistake](err); ok {
		return err
	}
	return mistake(n, "%v", err)
}

func names(fields []field) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return strings.Join(out, ", ")
}

// items reads a list, or one thing in its place.
func items(n *yaml.Node, fn func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return at0n(fn(n), n)
	}
	for _, one := range n.Content {
		if err := fn(one); err != nil {
			return at0(err, one)
		}
	}
	return nil
}

func at0n(err error, n *yaml.Node) error {
	if err == nil {
		return nil
	}
	return at0(err, n)
}

func scalar(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", mistake(n, "one value is needed here")
	}
	return n.Value, nil
}

// parsed is a field that is one value, read by a function.
func parsed[T any](name string, to *T, parse func(string) (T, error)) field {
	return field{name, func(n *yaml.Node) error {
		s, err := scalar(n)
		if err == nil {
			*to, err = parse(s)
		}
		return err
	}}
}

// optional is the same for what may be left out.
func optional[T any](name string, to **T, parse func(string) (T, error)) field {
	return field{name, func(n *yaml.Node) error {
		s, err := scalar(n)
		if err != nil {
			return err
		}
		v, err := parse(s)
		*to = &v
		return err
	}}
}

func text(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", errors.New("it is empty")
	}
	return s, nil
}

func count(most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > most {
			return 0, fmt.Errorf("%q is not a number from 0 to %d", s, most)
		}
		return n, nil
	}
}

func oneOf[T ~string](all ...T) func(string) (T, error) {
	return func(s string) (T, error) {
		if slices.Contains(all, T(s)) {
			return T(s), nil
		}
		return "", fmt.Errorf("%q is not known here: allowed are %s", s, strings.Trim(fmt.Sprint(all), "[]"))
	}
}

func money(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e6 {
		return 0, fmt.Errorf("%q is not an amount of USD such as 0.05", s)
	}
	return f, nil
}

func pace(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0.5 || f > 2 {
		return 0, fmt.Errorf("%q is not a pace from 0.5 to 2", s)
	}
	return f, nil
}
