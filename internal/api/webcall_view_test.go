package api

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/call"
	"parley/internal/event"
	"parley/internal/parley"
)

// Somebody who tests their own assistant sees what its tools were given and answered, cut where it is long; a visitor of a
// website is told that a tool was used, and nothing else of it.
func TestToolsInWebCalls(t *testing.T) {
	used := func(result string) event.Event {
		return event.Event{Kind: call.Tool, Data: parley.CallTool{FunctionCall: parley.FunctionCall{Name: "order_status",
			Arguments: json.RawMessage(`{"number":"4711"}`), Result: result}}}
	}
	for _, c := range []struct {
		sees view
		e    event.Event
		want string
	}{
		{visitorView, used("secret"), `{"name":"order_status","type":"tool"}`},
		{ownerView, used("ready"), `{"arguments":"{\"number\":\"4711\"}","failed":false,"name":"order_status","result":"ready","type":"tool"}`},
		{ownerView, used("The tool failed: no answer."), `"failed":true`},
		{ownerView, used(strings.Repeat("é", maxResult+1)), `"result":"` + strings.Repeat("é", maxResult) + `…"`},
		{ownerView, event.Event{Kind: call.Partial, Data: "What time"}, `{"text":"What time","type":"partial"}`},
		{ownerView, event.Event{Kind: call.Turn, Data: parley.CallTurn{Whispered: true}}, "null"},
	} {
		if got, err := json.Marshal(c.sees(c.e)); err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("told %.200s, want %.200s: %v", got, c.want, err)
		}
	}
}
