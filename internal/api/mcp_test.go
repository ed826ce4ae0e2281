package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/store"
)

type orderNumber struct {
	Number int `json:"number"`
}

// orderServer is an MCP server of a shop over HTTP, for those who know its key.
func orderServer(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "look_up", Description: "Finds an order.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in orderNumber) (*sdk.CallToolResult, any, error) {
			if in.Number == 13 {
				return nil, nil, fmt.Errorf("there is no order %d", in.Number)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("Order %d is on its way.", in.Number)}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "cancel", Description: "Cancels an order."},
		func(_ context.Context, _ *sdk.CallToolRequest, in orderNumber) (*sdk.CallToolResult, any, error) {
			return nil, map[string]any{"cancelled": in.Number}, nil
		})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "s3cret" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(far.Close)
	return far.URL
}

// sql scans a value out of the database.
func (h *harness) sql(v any, query string, args ...any) {
	h.Helper()
	err := h.db.Write(h.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.SQL().NewRaw(query, args...).Scan(ctx, v) })
	if err != nil {
		h.Fatal(err)
	}
}

func serverBody(url string) map[string]any {
	return map[string]any{"kind": "mcp", "name": "shop", "description": "The shop.", "endpoint": url,
		"headers": []any{map[string]any{"name": "X-Key", "value": "{{key}}"}}}
}

// A saved MCP server is listed, and its tools are called from a chat, with the variables of the assistant in its headers.
func TestServerTools(t *testing.T) {
	h, model := rough(t)
	made := h.post("/user/tools",
		with(serverBody(orderServer(t)), map[string]any{"headers": []any{map[string]any{"name": "X-Key", "value": "s3cret"}}}),
		status(201)).json()
	if made["message"] != "Tool created successfully" {
		t.Errorf("message %v", made["message"])
	}
	tool := made["data"].(map[string]any)
	remote, _ := json.Marshal(tool["remote_tools"])
	for _, want := range []string{`"name":"look_up"`, `"annotations":{"readOnlyHint":true}`, `"read_only":true`, `"name":"cancel"`,
		`"annotations":{}`, `"destructive":true`, `"given":true`, `"json_schema":{`} {
		if !strings.Contains(string(remote), want) {
			t.Errorf("no %s in %s", want, remote)
		}
	}
	if tool["remote_error"] != "" || tool["remote_more"] != false || tool["allowed_tools"] != nil || tool["oauth"] != nil {
		t.Errorf("tool %v", tool)
	}
	_, uuid := h.active(map[string]any{"tool_ids": []any{id(tool)}})
	for _, c := range []struct{ name, args, want string }{
		{"look_up", `{"number":7}`, "Order 7 is on its way."},
		{"look_up", `{"number":13}`, "The tool failed: there is no order 13"},
		{"look_up", `{"number":"x"}`, `Error: the argument "number" must be of type integer`},
		{"cancel", `{"number":9}`, `{"cancelled":9}`},
	} {
		model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: c.name, Arguments: c.args}}}, aitest.Behaviour{Text: "There."})
		got := h.post("/conversations/"+h.converse(uuid)+"/messages", map[string]any{"message": "Where is it?"}, anonymous, status(200)).json()
		calls := got["function_calls"].([]any)
		if len(calls) != 1 || calls[0].(map[string]any)["result"] != c.want {
			t.Errorf("%s %s: %v", c.name, c.args, calls)
		}
	}
}

// What is saved of a server is shown and can be sent back; a server that can't be reached is saved, and the answer says so.
func TestServerLife(t *testing.T) {
	h, _ := rough(t)
	far := orderServer(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	body := with(serverBody(gone.URL), map[string]any{"oauth": map[string]any{"token_url": gone.URL, "client_id": "desk",
		"client_secret": " s3cret", "scope": "orders"}})
	for field, oauth := range map[string]any{"oauth": "desk", "oauth.client_id": map[string]any{"client_secret": "x"},
		"oauth.client_secret": map[string]any{"client_id": "desk"},
		"oauth.token_url":     map[string]any{"client_id": "desk", "client_secret": "x", "token_url": "tokens"}} {
		h.post("/user/tools", with(body, map[string]any{"oauth": oauth}), status(422)).fails(field)
	}
	h.post("/user/tools", with(body, map[string]any{"method": "POST", "kind": "ftp"}), status(422)).fails("kind")
	h.post("/user/tools", with(serverBody("https://example.com/{{a}}"), nil), status(422)).fails("endpoint")
	made := h.post("/user/tools", body, status(201)).json()
	const down = "no token could be had: the server does not accept connections there"
	if made["message"] != "Tool created successfully; its server could not be listed: "+down {
		t.Errorf("message %v", made["message"])
	}
	at := fmt.Sprintf("/user/tools/%d", id(made["data"].(map[string]any)))
	read := h.get(at, status(200))
	tool := read.json()
	oauth := fmt.Sprintf("map[client_id:desk client_secret: s3cret scope:orders token_url:%s]", gone.URL)
	if tool["method"] != "POST" || fmt.Sprint(tool["oauth"]) != oauth || tool["remote_error"] != down+"." ||
		tool["remote_listed_at"] != nil || fmt.Sprint(tool["remote_tools"]) != "[]" {
		t.Errorf("tool %s", read.body)
	}
	var sealed []byte
	if h.sql(&sealed, "SELECT oauth_secret FROM tools"); len(sealed) == 0 || strings.Contains(string(sealed), "s3cret") {
		t.Errorf("stored: %q", sealed)
	}
	if back := h.put(at, nil, raw(string(read.body)), status(200)).json(); fmt.Sprint(back["data"]) != fmt.Sprint(tool) {
		t.Errorf("sent back as it was read: %v", back)
	}
	h.put(at, nil, raw(`{"endpoint":"`+far+`","oauth":null,"allowed_tools":["cancel","gone"],"headers":[{"name":"X-Key","value":"s3cret"}]}`),
		status(200))
	read = h.get(at)
	given := map[string]any{}
	for _, l := range read.json()["remote_tools"].([]any) {
		l := l.(map[string]any)
		given[l["name"].(string)] = l["given"]
	}
	if fmt.Sprint(given) != "map[cancel:true look_up:false]" || read.json()["remote_listed_at"] == nil ||
		read.json()["oauth"] != nil {
		t.Errorf("tool %s", read.body)
	}
	h.sql(&sealed, "SELECT oauth_secret FROM tools")
	if len(sealed) > 0 {
		t.Errorf("stored without OAuth: %q", sealed)
	}
	// Another name keeps the list; another address has none of it.
	if now := h.put(at, map[string]any{"name": "store"}, status(200)).
		json()["data"].(map[string]any); len(now["remote_tools"].([]any)) != 2 {
		t.Errorf("with another name: %v", now)
	}
	if now := h.put(at, map[string]any{"endpoint": gone.URL}, status(200)).
		json()["data"].(map[string]any); len(now["remote_tools"].([]any)) != 0 {
		t.Errorf("at another address: %v", now)
	}
	h.put(at, map[string]any{"endpoint": far, "headers": []any{map[string]any{"name": "X-Key", "value": "{{key}}"}}}, status(200))
	listed := h.post(at+"/refresh", map[string]any{"variables": map[string]any{"key": "s3cret"}}, status(200)).json()
	if listed["message"] != "Tool listed" || len(listed["data"].(map[string]any)["remote_tools"].([]any)) != 2 {
		t.Errorf("listed with a variable: %v", listed)
	}
	if listed = h.post(at+"/refresh", map[string]any{}, status(200)).
		json(); listed["message"] != "Tool listed; its server could not be listed: the server answers with HTTP status 403 Forbidden" ||
		len(listed["data"].(map[string]any)["remote_tools"].([]any)) != 2 {
		t.Errorf("listed without: %v", listed)
	}
	try := func(body map[string]any) string {
		return fmt.Sprint(h.post(at+"/test", with(map[string]any{"variables": map[string]any{"key": "s3cret"}}, body),
			status(200)).json()["body"])
	}
	if got := try(map[string]any{"tool": "look_up", "arguments": map[string]any{"number": 5}}); got != "Order 5 is on its way." {
		t.Errorf("tried: %s", got)
	}
	h.post(at+"/test", map[string]any{}, status(422)).fails("tool")
	h.post(at+"/test", map[string]any{"tool": "gone"}, status(422)).fails("tool")
	h.post(fmt.Sprintf("/user/tools/%d/refresh", h.tool(nil)), nil, status(422)).fails("kind")
	other := h.stranger()
	other.post(at+"/refresh", nil, status(404)).is(`{"message":"Tool not found"}`)
	other.post(at+"/test", nil, status(404))
	h.delete(at, status(200))
	var left int
	if h.sql(&left, "SELECT count(*) FROM tool_listings"); left != 0 {
		t.Errorf("%d listings are left", left)
	}
}

// Two servers with the same names, and a tool with one of them, are kept apart; and a list that is not known when a chat begins
// is read in the background.
func TestServerNames(t *testing.T) {
	h, model := rough(t)
	key := map[string]any{"headers": []any{map[string]any{"name": "X-Key", "value": "s3cret"}}}
	h.tool(map[string]any{"name": "cancel"})
	one := id(h.post("/user/tools", with(with(serverBody(orderServer(t)), key), map[string]any{"name": "one"}), status(201)).
		json()["data"].(map[string]any))
	two := id(h.post("/user/tools", with(with(serverBody(orderServer(t)), key), map[string]any{"name": "two"}), status(201)).
		json()["data"].(map[string]any))
	plain := h.tool(map[string]any{"name": "look_up"})
	_, single := h.active(map[string]any{"tool_ids": []any{one, plain}})
	_, uuid := h.active(map[string]any{"tool_ids": []any{one, two, plain}})
	var gone int64
	if h.sql(&gone, "DELETE FROM tool_listings WHERE tool_id = ? RETURNING tool_id", two); gone != two {
		t.Fatal("the second was not listed")
	}
	asked := func(talk string) (names []string) {
		h.post("/conversations/"+talk+"/messages", map[string]any{"message": "Hi"}, anonymous, status(200))
		all := model.Requests()
		for _, tool := range all[len(all)-1].Request.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	if got := fmt.Sprint(asked(h.converse(single))); got != "[look_up cancel one_look_up]" {
		t.Errorf("of one server: %s", got)
	}
	talk := h.converse(uuid)
	look, hang := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for at := fmt.Sprintf("/user/tools/%d", two); h.get(at, status(200)).json()["remote_listed_at"] == nil; {
		select {
		case <-look.C:
		case <-hang:
			t.Fatal("it is never listed")
		}
	}
	if got := fmt.Sprint(asked(talk)); got != "[look_up one_cancel one_look_up two_cancel two_look_up]" {
		t.Errorf("of both: %s", got)
	}
	model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: "two_cancel", Arguments: `{"number":9}`}}},
		aitest.Behaviour{Text: "There."})
	got := h.post("/conversations/"+talk+"/messages", map[string]any{"message": "Cancel it"}, anonymous, status(200)).json()
	if calls := fmt.Sprint(got["function_calls"]); !strings.Contains(calls, `result:{"cancelled":9}`) {
		t.Errorf("calls %s", calls)
	}
}
