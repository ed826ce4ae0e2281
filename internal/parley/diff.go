package parley

import "strings"

// DiffLine is a line of a comparison: kept ("="), taken out ("-") or put in ("+").
type DiffLine struct {
	Op   string `json:"op" enum:"=,-,+"`
	Text string `json:"text"`
}

// Diff compares two texts line by line, with the longest common subsequence kept. Texts are prompts: past a few
// thousand lines it compares only what differs between a common head and tail.
func Diff(before, after string) []DiffLine {
	a, b := lines(before), lines(after)
	out := []DiffLine{}
	add := func(op string, list []string) {
		for _, s := range list {
			out = append(out, DiffLine{op, s})
		}
	}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add("=", a[:head])
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x)*len(y) > 4_000_000 { // a table of that many cells is not worth a nicer picture
		add("-", x)
		add("+", y)
	} else {
		middle(x, y, add)
	}
	add("=", a[len(a)-tail:])
	return out
}

// middle fills the table of longest common subsequences and walks it.
func middle(x, y []string, add func(string, []string)) {
	width := len(y) + 1
	common := make([]int32, (len(x)+1)*width) // of x[i:] and y[j:]
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		switch {
		case x[i] == y[j]:
			add("=", x[i:i+1])
			i++
			j++
		case common[(i+1)*width+j] >= common[i*width+j+1]:
			add("-", x[i:i+1])
			i++
		default:
			add("+", y[j:j+1])
			j++
		}
	}
	add("-", x[i:])
	add("+", y[j:])
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
