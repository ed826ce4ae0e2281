package api_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/store/storetest"
)

// What public clients of this API family send, and what they read from the answers: nodes for n8n, pieces for
// Activepieces, an MCP server, a client in Python. They send ids back as they got them, send numbers and booleans as
// their users typed them, and mostly take status 200 alone for success.

// has wants an object to have these fields, each of the kind that a client reads. A dotted name is a field within
// another.
func has(t testing.TB, o map[string]any, kinds map[string]string) {
	t.Helper()
	for path, want := range kinds {
		var v any = o
		for name := range strings.SplitSeq(path, ".") {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		if got := map[string]string{"json.Number": "number", "string": "string", "bool": "boolean",
			"[]interface {}": "list", "map[string]interface {}": "object"}[fmt.Sprintf("%T", v)]; got != want {
			t.Errorf("%s is %v, no %s", path, v, want)
		}
	}
}

// TestClientCalls: a node chooses an outbound assistant from a plain list and sends its id back as text, with
// variables from a form.
func TestClientCalls(t *testing.T) {
	p := openPhones(t, storetest.SQLite(t, rules))
	has(t, p.get("/user/me", status(200)).json(), map[string]string{"name": "string", "email": "string",
		"total_balance": "number"})
	list := p.get("/user/assistants/outbound", status(200)).list()
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	has(t, list[0], map[string]string{"id": "number", "name": "string"})
	for i, assistant := range []any{list[0]["id"], fmt.Sprint(list[0]["id"])} {
		variables := []any{map[string]any{"customer_name": "John", "age": 42, "vip": true}, map[string]any{}}[i]
		made := p.post("/user/make_call", map[string]any{"assistant_id": assistant, "phone_number": "+12025550101",
			"variables": variables}, status(200)).json()
		has(t, made, map[string]string{"message": "string", "call_id": "number"})
		has(t, p.get(fmt.Sprintf("/user/calls/%v", made["call_id"]), status(200)).json(),
			map[string]string{"id": "number", "type": "string", "status": "string", "assistant_name": "string",
				"assistant_phone_number": "string", "client_phone_number": "string", "duration": "number",
				"variables": "object", "total_cost": "number", "created_at": "string", "updated_at": "string"})
	}
	for _, query := range []string{"", "?page=1&per_page=25",
		fmt.Sprintf("?assistant_id=%v&page=1&per_page=10", list[0]["id"]),
		"?type=outbound&phone_number=%2B12025550101&date_from=2020-01-01&date_to=2100-01-01"} {
		got := p.get("/user/calls"+query, status(200)).json()
		has(t, got, map[string]string{"data": "list", "current_page": "number", "per_page": "number",
			"total": "number", "last_page": "number"})
		if fmt.Sprint(got["total"]) != "2" {
			t.Errorf("%q lists %v calls", query, got["total"])
		}
	}
}

// TestClientAssistants: lists to choose from, by page or whole, and webhooks that a trigger sets and removes.
func TestClientAssistants(t *testing.T) {
	h := lite(t, nil)
	a := h.assistant(nil)
	whole := h.get("/user/assistants", status(200)).list()
	if len(whole) != 1 {
		t.Fatalf("%v", whole)
	}
	has(t, whole[0], map[string]string{"id": "number", "name": "string", "created_at": "string",
		"updated_at": "string"})
	page := h.get("/user/assistants/get?per_page=100&page=1", status(200)).json()
	has(t, page, map[string]string{"data": "list", "last_page": "number"})
	has(t, page["data"].([]any)[0].(map[string]any),
		map[string]string{"id": "number", "name": "string", "type": "string", "status": "string"})
	for _, hook := range []string{"webhook", "inbound-webhook", "conversation-ended-webhook"} {
		has(t, h.post("/user/assistants/enable-"+hook,
			map[string]any{"assistant_id": a, "webhook_url": "https://hooks.example.com/x/1"}, status(200)).json(),
			map[string]string{"message": "string"})
		has(t, h.post("/user/assistants/disable-"+hook, map[string]any{"assistant_id": fmt.Sprint(a)},
			status(200)).json(), map[string]string{"message": "string"})
	}
	for _, path := range []string{"languages", "models?type=llm", "voices?mode=pipeline",
		"phone-numbers?type=outbound", "phone-numbers", "synthesizer-providers", "transcriber-providers"} {
		h.get("/user/assistants/"+path, status(200)).list()
	}
}

// TestClientCampaigns: a campaign from a form, its leads with the flag for duplicates as this API family spells it, and
// starting and stopping the campaign.
func TestClientCampaigns(t *testing.T) {
	h := lite(t, nil)
	made := h.post("/user/campaigns", map[string]any{"name": "Spring",
		"assistant_id": h.caller(map[string]any{"phone_number_id": h.number()}), "max_calls_in_parallel": 3,
		"allowed_hours_start_time": "09:00", "allowed_hours_end_time": "17:00",
		"allowed_days": []string{"monday", "friday"}, "max_retries": 3, "retry_interval": 60,
		"retry_on_voicemail": false, "retry_on_goal_incomplete": false, "mark_complete_when_no_leads": true},
		status(201)).json()
	has(t, made, map[string]string{"message": "string", "data.id": "number", "data.status": "string"})
	list := h.get("/user/campaigns", status(200)).list()
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	has(t, list[0], map[string]string{"id": "number", "name": "string"})
	lead := h.post("/user/lead", map[string]any{"campaign_id": list[0]["id"], "phone_number": "+14155550101",
		"variables": map[string]any{"customer_name": "John", "age": 42}, "allow_dupplicate": false,
		"secondary_contacts": []any{map[string]any{"phone_number": "+14155550102",
			"variables": map[string]any{"customer_name": ""}}}}, status(200)).json()
	has(t, lead, map[string]string{"message": "string", "data.id": "number", "data.campaign_id": "number",
		"data.phone_number": "string", "data.variables": "object", "data.status": "string",
		"data.campaign.name":      "string",
		"data.secondary_contacts": "list"})
	at := fmt.Sprintf("/leads/%v", lead["data"].(map[string]any)["id"])
	has(t, h.get("/user/leads?page=1&per_page=25", status(200)).json(),
		map[string]string{"data": "list", "total": "number"})
	for _, action := range []string{"start", "stop"} {
		has(t, h.post("/user/campaigns/update-status",
			map[string]any{"campaign_id": list[0]["id"], "action": action}, status(200)).json(),
			map[string]string{"message": "string", "success": "boolean"})
	}
	h.do("PATCH", "/user"+at, map[string]any{"variables": map[string]any{"city": "Rome"}}, status(200))
	h.put(at, map[string]any{"status": "reached-max-retries", "variables": map[string]any{"city": "Rome"}}, status(200))
	h.delete("/user"+at, status(200))
	h.delete(fmt.Sprintf("/user/campaign/%v", list[0]["id"]), status(200))
}

// TestClientConversations: a chat by the assistant's UUID, a reply to a customer by its id, and lists filtered by what
// the client knows.
func TestClientConversations(t *testing.T) {
	h, _ := talking(t, storetest.SQLite(t, rules), nil)
	a, uuid := h.active(nil)
	begun := h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test",
		"variables": map[string]any{"who": "Ana", "age": 42}}, status(200)).json()
	has(t, begun, map[string]string{"status": "boolean", "conversation_id": "string", "history": "list"})
	at := fmt.Sprintf("/conversations/%v", begun["conversation_id"])
	has(t, h.post(at+"/messages", map[string]any{"message": "Hi"}, status(200)).json(),
		map[string]string{"status": "boolean", "message": "string", "function_calls": "list"})
	has(t, h.get(at, status(200)).json(), map[string]string{"status": "boolean", "history": "list"})
	has(t, h.post("/ai/generate-reply", map[string]any{"assistant_id": a, "customer_identifier": "+1234567890",
		"message": "When do you open?", "variables": map[string]any{"n": 1}}, status(200)).json(),
		map[string]string{"success": "boolean", "conversation_id": "string", "customer_identifier": "string",
			"reply": "string"})
	for _, word := range []string{"disable", "enable"} {
		h.post("/automate"+at+"/"+word+"-ai", nil, status(200))
	}
	for query, n := range map[string]int{"": 2, "?type=test&per_page=5": 1, fmt.Sprintf("?assistant_id=%d", a): 2,
		"?external_identifier=%2B1234567890": 1} {
		got := h.get("/user/conversations"+query, status(200)).json()
		has(t, got, map[string]string{"data": "list", "per_page": "number"})
		if list := got["data"].([]any); len(list) != n {
			t.Errorf("%q lists %d conversations", query, len(list))
		} else {
			has(t, list[0].(map[string]any), map[string]string{"id": "string", "assistant_id": "string",
				"assistant_name": "string", "type": "string", "message_count": "number", "total_cost": "number",
				"ai_enabled": "boolean"})
		}
	}
}

// TestClientNumbers: the numbers that can be rented, those that are, and a text message from a number by its id.
func TestClientNumbers(t *testing.T) {
	h := lite(t, nil)
	found := h.get("/user/phone-numbers/search?country_code=US&contains=555", status(200)).json()["data"].([]any)
	has(t, found[0].(map[string]any), map[string]string{"phone_number": "string",
		"phone_number_formatted": "string", "country_code": "string", "price": "number",
		"stripe_price_id": "string", "sms_capable": "boolean"})
	n := h.buy("US", true)
	has(t, h.get("/user/phone-numbers/all", status(200)).json()["data"].([]any)[0].(map[string]any),
		map[string]string{"id": "number", "phone_number": "string", "country_code": "string", "type": "string",
			"type_label":  "string",
			"sms_capable": "boolean", "has_active_subscription": "boolean", "created_at": "string"})
	has(t, h.get("/user/phone-numbers", status(200)).list()[0],
		map[string]string{"id": "number", "phone_number": "string"})
	for _, from := range []any{id(n), fmt.Sprint(id(n))} {
		has(t, h.post("/user/sms", map[string]any{"from": from, "to": "+12025550777", "body": "Hello"},
			status(200)).json(), map[string]string{"message": "string", "data.id": "number"})
	}
}
