package agent

import (
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// What doesn't fit is told with the reason; the second time the model is told to let it be.
func TestMisfitOnce(t *testing.T) {
	wrong := aitest.Step{Calls: []ai.ToolCall{{ID: "1", Name: "a", Arguments: `{"n":"x"}`}, {ID: "2", Name: "a", Arguments: `{}`}}}
	right := aitest.Step{Calls: []ai.ToolCall{{ID: "3", Name: "a", Arguments: `{"n":1}`}}}
	m := &aitest.Fake{}
	m.Script(wrong, wrong, right, wrong, aitest.Step{Text: "Sorry."})
	r, err := (&Turn{Model: m, History: user("go"), Tools: []Tool{tool("a", returns("fine"))}}).Run(t.Context())
	if err != nil || len(r.Calls) != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, again := range []bool{false, false, true, true, false, false, false} {
		if strings.HasSuffix(r.Calls[i].Result, hopeless) != again {
			t.Errorf("call %d: told %q", i, r.Calls[i].Result)
		}
	}
}
