package api_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/store/storetest"
)

// TestFamilyRequests: the requests of public clients of this API family (MCP servers, a Skill, nodes for n8n, a plugin for
// WordPress), in the order in which somebody would make them, succeed with the status that the clients take, and have
// what they read. {name} stands for what an earlier answer gave.
func TestFamilyRequests(t *testing.T) {
	h, _ := talking(t, storetest.SQLite(t, rules), nil)
	offer := h.get("/user/phone-numbers/search?country_code=US&contains=555", status(200)).json()["data"].([]any)[0].(map[string]any)
	known := map[string]any{"offer": offer["phone_number"]}
	fill := func(s string) string {
		for name, v := range known {
			s = strings.ReplaceAll(s, "{"+name+"}", fmt.Sprint(v))
		}
		return s
	}
	body := h.assistantBody()
	for i, c := range []struct {
		request, body string
		status        int
		keep, at      string // the name under which a value of the answer is known, and where it stands
		reads         string // fields, with dots
	}{
		{"GET /user/me", "", 200, "", "", "id name email total_balance"},
		{"POST /user/folder", `{"name":"Sales","color":"blue"}`, 201, "folder", "data.id", "message data.name data.color"},
		{"POST /user/label", `{"name":"VIP"}`, 201, "label", "data.id", "message data.name"},
		{"GET /user/folders?page=1&per_page=50", "", 200, "", "", "data total current_page last_page"},
		{"GET /user/labels?page=1&per_page=50", "", 200, "", "", "data total current_page last_page"},
		{"PUT /user/folder/{folder}", `{"name":"Sales 2"}`, 200, "", "", "data.name data.color"},
		{"PUT /user/label/{label}", `{"color":"red"}`, 200, "", "", "data.name data.color"},
		{"POST /user/tools", `{"name":"look_up","description":"Finds an order","endpoint":"https://example.com/orders","method":"GET","timeout":10,"headers":[],"schema":[{"name":"order","type":"string","description":"Its number"}]}`,
			201, "tool", "data.id", "data.name"},
		{"POST /user/knowledgebases", `{"name":"Prices"}`, 201, "kb", "data.id", "data.status"},
		{"POST /user/assistant", encode(with(body, map[string]any{"name": "Desk", "type": "outbound", "status": "active", "tools": []any{
			map[string]any{"type": "end_call", "data": map[string]any{"description": "When all is said."}}}})), 201, "assistant", "data.id",
			"message data.uuid"},
		{"PUT /user/assistant/{assistant}", `{"folder_id":{folder},"label_ids":[{label}],"tool_ids":[{tool}],"knowledgebase_id":{kb}}`, 200,
			"uuid", "data.uuid", "data.folder_id data.label_ids data.tools"},
		{"GET /user/assistants/get?per_page=100&page=1&type=outbound", "", 200, "", "", "data total last_page"},
		{"GET /user/assistants/get?folder_id={folder}&label_id={label}", "", 200, "", "", "data total"},
		{"POST /user/assistants/enable-inbound-webhook", `{"assistant_id":{assistant},"webhook_url":"https://hooks.example.com/a"}`, 200, "", "",
			"message data"},
		{"POST /user/assistants/disable-inbound-webhook", `{"assistant_id":{assistant}}`, 200, "", "", "message data"},
		{"POST /user/phone-numbers/purchase", `{"phone_number":"{offer}"}`, 201, "number", "data.id", "data.phone_number"},
		{"GET /user/phone-numbers/all", "", 200, "", "", "data"},
		{"POST /user/phone-numbers/sip-trunks", `{"phone_number":"+4930901820","nickname":"Office","sip_address":"sip.example.com","sip_username":"u","sip_password":"p","sip_trunk_type":"number","sip_calling_format":"e164","country_code":"DE","outbound_proxy":false,"allowed_inbound_ips":["192.0.2.1"]}`,
			201, "trunk", "data.id", "message data.phone_number_id data.nickname data.name"},
		{"GET /user/phone-numbers/sip-trunks", "", 200, "", "", "data"},
		{"PUT /user/phone-numbers/sip-trunks/{trunk}", `{"nickname":"Desk","outbound_proxy":true}`, 200, "owned", "data.phone_number_id",
			"data.outbound_proxy"},
		{"DELETE /user/phone-numbers/{owned}", "", 200, "", "", "message"},
		{"POST /user/sms", `{"from":{number},"to":"+12025550777","body":"Hello"}`, 200, "", "",
			"message data.id data.segments data.total_cost data.status"},
		{"POST /user/campaigns", `{"name":"Spring","assistant_id":{assistant},"phone_number_ids":[{number}]}`, 201, "campaign", "data.id",
			"data.status"},
		{"POST /user/lead", `{"campaign_id":{campaign},"phone_number":"+14155550101","variables":{"name":"Ana"}}`, 200, "lead", "data.id",
			"data.status"},
		{"PUT /leads/{lead}", `{"variables":{"city":"Rome"}}`, 200, "", "", "data.variables"},
		{"POST /user/campaigns/update-status", `{"campaign_id":{campaign},"action":"start"}`, 200, "", "", "success data.status"},
		{"POST /user/campaigns/update-status", `{"campaign_id":{campaign},"action":"stop"}`, 200, "", "", "success data.status"},
		{"GET /user/leads?page=1&per_page=25", "", 200, "", "", "data total"},
		{"GET /user/calls?status=ended_by_customer&assistant_id={assistant}&page=1&per_page=25", "", 200, "", "", "data total"},
		{"POST /conversations", `{"assistant_id":"{uuid}","type":"test"}`, 200, "talk", "conversation_id", "status history"},
		{"POST /conversations/{talk}/messages", `{"message":"Hi"}`, 200, "", "", "status message function_calls"},
		{"POST /automate/conversations/{talk}/disable-ai", "", 200, "", "", "status"},
		{"GET /user/conversations?assistant_id={assistant}&per_page=15", "", 200, "", "", "data total"},
		{"POST /user/ai/generate-reply", `{"assistant_id":{assistant},"customer_identifier":"+4915112345678","message":"Hi"}`, 200, "", "",
			"success reply conversation_id"},
		{"DELETE /user/leads/{lead}", "", 200, "", "", "message"},
		{"DELETE /user/campaign/{campaign}", "", 200, "", "", "message"},
		{"DELETE /user/folder/{folder}", "", 200, "", "", "message"},
		{"DELETE /user/label/{label}", "", 200, "", "", "message"},
		{"DELETE /user/assistant/{assistant}", "", 200, "", "", "message"},
		{"GET /user/conversations?assistant_id={assistant}", "", 200, "", "", "data total"},
	} {
		method, path, _ := strings.Cut(fill(c.request), " ")
		opts := []option{status(c.status)}
		if c.body != "" {
			opts = append(opts, raw(fill(c.body)))
		}
		got := h.do(method, path, nil, opts...).json()
		find := func(at string) (v any, there bool) {
			v = got
			for name := range strings.SplitSeq(at, ".") {
				m, _ := v.(map[string]any)
				if v, there = m[name]; !there {
					return nil, false
				}
			}
			return v, true
		}
		for at := range strings.FieldsSeq(c.reads) {
			if _, there := find(at); !there {
				t.Errorf("%d %s: the answer has no %s: %.300v", i, c.request, at, got)
			}
		}
		if c.keep != "" {
			known[c.keep], _ = find(c.at)
		}
		if t.Failed() {
			t.FailNow() // what follows needs it
		}
	}
}
