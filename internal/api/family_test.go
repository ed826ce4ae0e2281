package api_test

import (
	"context"
	"fmt"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestCallFilters: calls are found by who hung up, in the words of this API family, and by assistants that are deleted.
func TestCallFilters(t *testing.T) {
	eachDB(t, func(t *testing.T, db *store.DB) {
		h, _ := talking(t, db, nil)
		a, uuid := h.active(nil)
		ended := func(reason parley.EndedReason, answered bool) int64 {
			c := &parley.Call{AssistantID: a, Type: parley.CallOutbound}
			c.Status, c.EndedReason = reason.EndStatus(answered), reason
			h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, h.user.ID, c) })
			return c.ID
		}
		customer, assistant := ended(parley.CustomerHangup, true), ended(parley.AssistantHangup, true)
		moved, busy := ended(parley.Transferred, true), ended(parley.LineBusy, false)
		found := func(query string) (list []int64) {
			t.Helper()
			for _, row := range h.get("/user/calls"+query, status(200)).rows() {
				list = append(list, id(row))
			}
			return list
		}
		check := func() {
			t.Helper()
			for query, want := range map[string][]int64{"?status=ended": {moved, assistant, customer},
				"?status=completed":         {moved, assistant, customer},
				"?status=ended_by_customer": {customer}, "?status=ended_by_assistant": {assistant}, "?status=busy": {busy},
				"?status=ended_by_customer&ended_reason=assistant_hangup":   nil,
				fmt.Sprintf("?assistant_id=%d&status=ended_by_customer", a): {customer},
				"?assistant_id=" + uuid:                       {busy, moved, assistant, customer},
				fmt.Sprintf("?assistant_id=%d&per_page=1", a): {busy}} {
				if got := found(query); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%q finds %v, want %v", query, got, want)
				}
			}
		}
		check()
		h.get("/user/calls?status=over", status(422)).fails("status")
		talk := h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"}, status(200)).json()["conversation_id"]
		h.delete(fmt.Sprintf("/user/assistant/%d", a), status(200))
		check()
		for _, which := range []string{fmt.Sprint(a), uuid} {
			rows := h.get("/user/conversations?assistant_id="+which, status(200)).rows()
			if len(rows) != 1 || rows[0]["id"] != talk {
				t.Errorf("conversations of the deleted assistant %s: %v", which, rows)
			}
		}
		other := h.stranger()
		for _, list := range []string{"calls", "conversations"} {
			other.get(fmt.Sprintf("/user/%s?assistant_id=%d", list, a), status(404)).is(`{"message":"Assistant not found"}`)
			other.get(fmt.Sprintf("/user/%s?assistant_id=%s", list, uuid), status(404))
		}
	})
}

// TestLeadLists: without a page the leads come as a plain array, the newest 1,000; with one in the envelope.
func TestLeadLists(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		if got := h.get("/user/leads", status(200)).list(); len(got) != 0 {
			t.Errorf("none: %v", got)
		}
		var rows []*parley.Lead
		for i := range 1003 {
			rows = append(rows, &parley.Lead{PhoneNumber: fmt.Sprintf("+1202555%04d", i)})
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddLeads(ctx, h.user.ID, c, rows, true)
			return err
		})
		list := h.get("/user/leads", status(200)).list()
		if len(list) != 1000 || list[0]["phone_number"] != "+12025551002" || list[0]["campaign"] == nil {
			t.Fatalf("%d leads, the first %v", len(list), list[0])
		}
		if got := h.get(fmt.Sprintf("/user/leads?campaign_id=%d&phone_number=%%2B12025550000", c), status(200)).list(); len(got) != 1 {
			t.Errorf("one by its number: %v", got)
		}
		for query, n := range map[string]int{"?page=1": 15, "?per_page=100": 100, "?page=2&per_page=2": 2} {
			if got := h.get("/user/leads"+query, status(200)).json(); fmt.Sprint(got["total"]) != "1003" || len(got["data"].([]any)) != n {
				t.Errorf("%q: %v of %v", query, len(got["data"].([]any)), got["total"])
			}
		}
		h.get("/user/leads?page=0", status(422)).fails("page")
	})
}

// TestToolData: the settings of a built-in tool may stand beside its type, or in an object.
func TestToolData(t *testing.T) {
	h := lite(t, nil)
	peer := h.assistant(nil)
	_, uuid := h.active(nil)
	tool := h.tool(nil)
	made := h.post("/user/assistant", with(h.assistantBody(), map[string]any{"tools": []any{
		map[string]any{"type": "end_call", "data": map[string]any{"description": "When all is said."}},
		map[string]any{"type": "call_transfer", "description": "To a person.",
			"data": map[string]any{"phone_number": "+1 202 555 0123", "description": "Not this."}},
		map[string]any{"type": "assistant_transfer", "data": map[string]any{"assistant_id": uuid}},
		map[string]any{"type": "assistant_transfer", "data": map[string]any{"assistant_id": peer}},
		map[string]any{"type": "mid_call", "data": map[string]any{"id": tool}},
		map[string]any{"type": "dtmf_input", "data": nil},
	}}), status(201)).json()["data"].(map[string]any)
	var got []string
	for _, item := range made["tools"].([]any) {
		m := item.(map[string]any)
		got = append(got, fmt.Sprint(m["type"], "|", m["description"], "|", m["phone_number"], "|", m["data"]))
	}
	want := []string{"end_call|When all is said.|<nil>|<nil>", "call_transfer|To a person.|+12025550123|<nil>",
		"assistant_transfer|<nil>|<nil>|<nil>", "assistant_transfer|<nil>|<nil>|<nil>", "dtmf_input|<nil>|<nil>|<nil>"}
	if fmt.Sprint(got[:5]) != fmt.Sprint(want) || fmt.Sprint(made["tool_ids"]) != fmt.Sprintf("[%d]", tool) {
		t.Errorf("tools %v, tool_ids %v", got, made["tool_ids"])
	}
	h.post("/user/assistant", with(h.assistantBody(), map[string]any{"tools": []any{
		map[string]any{"type": "call_transfer", "data": "+12025550123"}}}), status(422)).
		says("tools.0.data", "The tools.0.data field must be an object.")
	h.post("/user/assistant", with(h.assistantBody(), map[string]any{"tools": []any{
		map[string]any{"type": "call_transfer", "data": map[string]any{"phone_number": "x"}}}}), status(422)).fails("tools.0.phone_number")
}

// TestTrailingSlash: a path with a slash at its end is the same path.
func TestTrailingSlash(t *testing.T) {
	h := lite(t, nil)
	a := h.assistant(nil)
	for _, path := range []string{"/user/me", "/user/assistants/get", fmt.Sprintf("/user/assistant/%d", a), "/user/calls", "/openapi.json"} {
		if with, without := h.get(path+"/", status(200)), h.get(path, status(200)); path != "/user/me" &&
			string(with.body) != string(without.body) {
			t.Errorf("%s/ answers %.200s", path, with.body)
		}
	}
	if got := h.get("/user/assistants/get/?per_page=1", status(200)).json()["path"]; got != h.url+"/api/user/assistants/get" {
		t.Errorf("links lead to %v", got)
	}
	made := h.post("/user/tools/", toolBody(), status(201)).json()["data"].(map[string]any)
	at := fmt.Sprintf("/user/tools/%d/", id(made))
	h.put(at, map[string]any{"timeout": 5}, status(200))
	h.delete(at, status(200))
	h.get("/user/me/", status(401), header("Authorization", ""))
	h.get("/user/nothing/", status(404)).is(`{"message":"Not found."}`)
	h.get("/user/tools//", status(404))
	h.do("PATCH", "/user/calls/", nil, status(405))
}

// TestAssistantType: the list of assistants can be narrowed by their type.
func TestAssistantType(t *testing.T) {
	h := open(t, storetest.SQLite(t, rules), nil)
	inbound, outbound := h.assistant(map[string]any{"type": "inbound"}), h.assistant(map[string]any{"type": "outbound"})
	for query, want := range map[string]string{"": fmt.Sprint([]int64{inbound, outbound}), "?type=inbound": fmt.Sprint([]int64{inbound}),
		"?type=outbound&per_page=5": fmt.Sprint([]int64{outbound})} {
		got := []int64{}
		for _, row := range h.get("/user/assistants/get"+query, status(200)).rows() {
			got = append(got, id(row))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q lists %v, want %s", query, got, want)
		}
	}
	h.get("/user/assistants/get?type=both", status(422)).fails("type")
}
