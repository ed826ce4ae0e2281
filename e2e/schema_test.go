package e2e

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// Arguments that don't fit a tool's JSON Schema are not sent; the model is told why, and mends them.
func TestToolSchemaInConversation(t *testing.T) {
	share(t, call)
	var mu sync.Mutex
	var sent []string
	shop := http.NewServeMux()
	shop.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, string(body))
		io.WriteString(w, `{"placed":true}`)
	})
	at := serveLocal(t, shop)
	p, model := thinking(t)
	var made struct {
		Data struct {
			ID     int64
			Schema []struct{ Name string }
			Notes  []string `json:"schema_notes"`
		}
	}
	if status := p.call(t, "POST", "/user/tools", map[string]any{"name": "place_order", "description": "Places an order", "method": "POST",
		"endpoint": at + "/orders", "json_schema": map[string]any{"type": "object", "required": []string{"items"}, "properties": map[string]any{
			"count": map[string]any{"type": "integer", "default": 1},
			"items": map[string]any{"type": "array", "items": map[string]any{"type": "object", "required": []string{"sku"},
				"properties": map[string]any{"sku": map[string]any{"type": "string", "pattern": "^[A-Z]+$"}}}}}}}, &made); status != 201 {
		t.Fatal(status)
	}
	if len(made.Data.Schema) != 1 || made.Data.Schema[0].Name != "count" || len(made.Data.Notes) < 2 {
		t.Errorf("made %+v", made.Data)
	}
	if status := p.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(p.Assistant, 10),
		map[string]any{"tool_ids": []int64{made.Data.ID}}, nil); status != 200 {
		t.Fatal(status)
	}
	order := func(id, arguments string) aitest.Behaviour {
		return aitest.Behaviour{Calls: []ai.ToolCall{{ID: id, Name: "place_order", Arguments: arguments}}}
	}
	id := p.converse(t)
	model.Script(order("c1", `{"items":[{"sku":"ab"}]}`), order("c2", `{"items":[{"sku":"AB"}]}`), aitest.Behaviour{Text: "It is placed."})
	status, r := p.say(t, id, "One AB, please.")
	if status != 200 || *r.Message != "It is placed." || len(r.FunctionCalls) != 2 {
		t.Fatalf("%d %+v", status, r)
	}
	if got := r.FunctionCalls[0].Result; got != "The tool was not called: the argument items.0.sku: 'ab' does not match pattern '^[A-Z]+$'." {
		t.Errorf("told %q", got)
	}
	model.Script(order("c3", `{"items":[]}`), order("c4", `{"items":[{}]}`), order("c5", `{"items":[{}]}`), aitest.Behaviour{Text: "Sorry."})
	if status, r = p.say(t, id, "And another one."); status != 200 || len(r.FunctionCalls) != 3 {
		t.Fatalf("%d %+v", status, r)
	}
	if got := r.FunctionCalls[2].Result; !strings.Contains(got, "missing property 'sku'") ||
		!strings.Contains(got, "This is the second time") {
		t.Errorf("told %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(sent, []string{`{"count":1,"items":[{"sku":"AB"}]}`, `{"count":1,"items":[]}`}) {
		t.Errorf("sent %q", sent)
	}
}
