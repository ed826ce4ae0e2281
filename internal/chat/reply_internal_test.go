package chat

import (
	"fmt"
	"testing"

	"parley/internal/ai"
	"parley/internal/parley"
)

// The message that is answered is the last, also when so much was said since that nothing before it is read.
func TestBeforeLast(t *testing.T) {
	m := &parley.Message{Content: "Where is it?"}
	told := []ai.Message{{Role: ai.Assistant, Text: "told"}}
	for name, past := range map[string][]ai.Message{"nothing is read": nil, "it is read": {{Role: ai.User, Text: m.Content}}} {
		if got := fmt.Sprint(beforeLast(past, m, told)); got != fmt.Sprint([]ai.Message{told[0], {Role: ai.User, Text: m.Content}}) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
