package manifest

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A file that is nested within itself, or whose names are long, is refused before it takes the server's memory: whoever may
// import an assistant in the console sends such files.
func TestHostileFiles(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	for name, text := range map[string]string{
		"a list in itself":         "name: &a [*a]\n",
		"a mapping in itself":      "name: &a {b: *a}\n",
		"aliases of aliases":       aliases(6),
		"a long name":              "? " + long + "\n: [" + strings.Repeat("1, ", 100_000) + "1]\n",
		"a long name, many fields": "? " + long + "\n: {" + manyFields(100_000) + "}\n",
		"a long name, repeated":    "a: &a\n  ? " + long + "\n  : 1\nb: [" + strings.Repeat("*a, ", 10_000) + "1]\n",
		"nested":                   "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := ReadAssistant([]byte(text))
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "it holds too much") {
				t.Errorf("read: %.300v", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 300 {
				t.Errorf("%d MB for %d bytes", took, len(text))
			}
		})
	}
}

// manyFields are n fields of a mapping.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("f" + strconv.Itoa(i) + ": 1, ")
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// aliases is a list of nine lists, of nine lists each, and so on.
func aliases(depth int) string {
	text, inner := "", "1"
	for i := range depth {
		name := string(rune('a' + i))
		text += name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat(inner+", ", 9), ", ") + "]\n"
		inner = "*" + name
	}
	return text
}
