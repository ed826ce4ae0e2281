package openai

import (
	"regexp"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// Names that OpenAI doesn't take go out in another form and come back as they were.
func TestNames(t *testing.T) {
	long := strings.Repeat("look_up_", 20)
	s := aitest.NewServer(t)
	m := client(t, s, 0)
	seen := map[string]bool{}
	for _, name := range []string{"plain", "with-dash", strings.Repeat("x", 64), strings.Repeat("x", 65), long +
		"a", long + "b", "look up", "look.up", "größe", "", "😀"} {
		wire := names{}.wire(name)
		if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(wire) || seen[wire] {
			t.Errorf("%q goes out as %q", name, wire)
		}
		seen[wire] = true
		s.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: wire, Arguments: "{}"}}})
		req := ask("go")
		req.Tools = []ai.Tool{{Name: name}}
		if r, err := m.Generate(t.Context(), req, ignore); err != nil || len(r.Calls) != 1 || r.Calls[0].Name != name {
			t.Errorf("%q came back as %+v, %v", name, r.Calls, err)
		}
	}
	if (names{}).wire("plain") != "plain" {
		t.Error("a plain name was changed")
	}
}
