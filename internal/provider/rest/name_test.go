package rest

import (
	"regexp"
	"strings"
	"testing"

	"parley/internal/ai"
)

// Names that a vendor doesn't accept are sent in another form and come back as they were.
func TestNames(t *testing.T) {
	long := strings.Repeat("look_up_", 20)
	seen := map[string]bool{}
	for _, name := range []string{"plain", "with-dash", strings.Repeat("x", 64), strings.Repeat("x", 65), long +
		"a", long + "b", "look up", "look.up", "größe", "", "😀", "4711", "-x"} {
		wire := Names{}.Wire(name)
		if !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`).MatchString(wire) || seen[wire] {
			t.Errorf("%q goes out as %q", name, wire)
		}
		seen[wire] = true
		if own := NewNames([]ai.Tool{{Name: name}}).Own(wire); own != name {
			t.Errorf("%q came back as %q", name, own)
		}
	}
	if (Names{}).Wire("plain") != "plain" {
		t.Error("a plain name was changed")
	}
}
