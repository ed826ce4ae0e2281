package rehearsal

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds are how much may be in a file, and how many cases may come of it.
type Bounds struct {
	Bytes int
	Cases int
}

// usual are the bounds of files on the tester's own machine.
var usual = Bounds{Bytes: 1 << 20, Cases: 10_000}

const (
	maxItems   = 1000    // of one list or mapping
	maxPattern = 1000    // characters of one regular expression
	maxWeight  = 100_000 // steps of the programs of a file's regular expressions
)

// measure counts what is in a file: its values, each as often as an alias repeats it, their texts, and the weight of its
// regular expressions. It is counted before anything is made of the values, so that a short file can't take much memory.
type measure struct {
	Bounds
	nodes, bytes, weight int
}

// add counts a value with all that is in it.
func (m *measure) add(n *yaml.Node) error {
	m.nodes++
	m.bytes += len(n.Value)
	if m.nodes > m.Bytes/4 || m.bytes > m.Bytes {
		return mistake(n, "the file is too long from here on, with what its aliases repeat")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return m.add(n.Alias)
	case yaml.ScalarNode:
		return m.addPattern(n)
	}
	items := len(n.Content)
	if n.Kind == yaml.MappingNode {
		items /= 2
	}
	if items > maxItems {
		return mistake(n, "this list has %d items: %d are the most", items, maxItems)
	}
	for _, one := range n.Content {
		if err := m.add(one); err != nil {
			return err
		}
	}
	return nil
}

// addPattern counts a text that may be a regular expression.
func (m *measure) addPattern(n *yaml.Node) error {
	from := strings.IndexByte(n.Value, '/')
	if from < 0 {
		return nil
	}
	pattern := n.Value[from+1:]
	if !strings.HasPrefix(strings.TrimLeft(n.Value, `"' `), "/") {
		return nil
	}
	pattern = pattern[:max(0, strings.LastIndexByte(pattern, '/'))]
	if len(pattern) > maxPattern {
		return mistake(n, "this regular expression is longer than %d characters", maxPattern)
	}
	re, err := syntax.Parse("(?i)"+pattern, syntax.Perl)
	if err != nil {
		return nil // who reads the value says so
	}
	if m.weight += weight(re); m.weight > maxWeight {
		return mistake(n, "the regular expressions of this file are too large: repeat less in them, such as {1000}")
	}
	return nil
}

// weight is about how many steps the program of a regular expression has.
func weight(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += weight(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxWeight+1)
}

// ranged says how many values "1..20" stands for; 1 for anything else, which is one value.
func ranged(s string) (from, n int, err error) {
	first, last, ok := strings.Cut(s, "..")
	if !ok {
		return 0, 1, nil
	}
	a, errA := count(1 << 30)(first)
	b, errB := count(1 << 30)(last)
	if errA != nil || errB != nil || b < a || b-a >= 1000 {
		return 0, 0, fmt.Errorf("%q is not a range such as 1..20, of at most 1000", s)
	}
	return a, b - a + 1, nil
}
