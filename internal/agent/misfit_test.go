package agent

import (
	"context"
	"encoding/json"
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

// A tool may find by itself that arguments don't fit. What it answers is never taken for that.
func TestMisfitOfATool(t *testing.T) {
	again := aitest.Step{Calls: []ai.ToolCall{{ID: "1", Name: "picky", Arguments: `{"n":1}`}, {ID: "2", Name: "plain", Arguments: `{"n":1}`}}}
	m := &aitest.Fake{}
	m.Script(again, again, aitest.Step{Text: "Sorry."})
	picky, plain := tool("picky", returns("")), tool("plain", returns("The tool was not called: we are closed."))
	picky.Run = func(context.Context, json.RawMessage) (string, error) {
		return "", Misfit("The tool was not called: it is odd.")
	}
	r, err := (&Turn{Model: m, History: user("go"), Tools: []Tool{picky, plain}}).Run(t.Context())
	if err != nil || len(r.Calls) != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r.Calls[0].Result != "The tool was not called: it is odd." || r.Calls[2].Result != "The tool was not called: it is odd."+hopeless {
		t.Errorf("told %q and %q", r.Calls[0].Result, r.Calls[2].Result)
	}
	if r.Calls[3].Result != "The tool was not called: we are closed." {
		t.Errorf("told %q", r.Calls[3].Result)
	}
}

// A required argument that has a default is left to the tool.
func TestArgumentWithDefault(t *testing.T) {
	s := json.RawMessage(`{"type":"object","required":["n","m"],"properties":{"n":{"type":"integer","default":2},"m":{"type":"integer"}}}`)
	if _, err := arguments(s, `{"m":1}`); err != nil {
		t.Error(err)
	}
	if _, err := arguments(s, `{"n":1}`); err == nil {
		t.Error("an argument without a default may be left out")
	}
}
