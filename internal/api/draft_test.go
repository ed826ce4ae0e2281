package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// rows is one field of each object in a list.
func rows(v any, key string) (list []string) {
	for _, row := range v.([]any) {
		list = append(list, fmt.Sprint(row.(map[string]any)[key]))
	}
	return list
}

func TestVersionsOfAssistants(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool := h.tool(nil)
		a := h.assistant(map[string]any{"system_prompt": "one\ntwo", "variables": map[string]any{"k": "v"}, "tool_ids": []any{tool}})
		live, at := fmt.Sprintf("/user/assistant/%d", a), fmt.Sprintf("/user/assistants/%d/versions", a)
		h.put(live, map[string]any{"system_prompt": "one\n2", "max_duration": 90, "tool_ids": []any{}}, status(200))
		h.put(live, map[string]any{"max_duration": 90}, status(200)) // nothing changes
		h.post("/user/assistants/enable-webhook", map[string]any{"assistant_id": a, "webhook_url": "https://example.com/hook"}, status(200))
		list := h.get(at, status(200)).json()
		if got := rows(list["data"], "version"); fmt.Sprint(got) != "[3 2 1]" || list["total"] != json.Number("3") {
			t.Fatalf("versions %v", list)
		}
		if got := rows(list["data"], "changed"); got[0] != "[is_webhook_active webhook_url]" ||
			got[1] != "[system_prompt tool_ids max_duration]" && got[1] != "[system_prompt max_duration tool_ids]" {
			t.Errorf("changed %v", got)
		}
		if got := rows(list["data"], "author"); !strings.Contains(got[1], "API key “test”") {
			t.Errorf("authors %v", got)
		}
		h.get(at+"?per_page=0", status(422)).fails("per_page")
		one := h.get(at+"/1", status(200)).json()["assistant"].(map[string]any)
		if one["system_prompt"] != "one\ntwo" || fmt.Sprint(one["tool_ids"]) != fmt.Sprintf("[%d]", tool) ||
			fmt.Sprint(one["variables"]) != "map[k:v]" {
			t.Errorf("version 1 is %v", one)
		}
		diff := h.get(at+"/1/diff?to=2", status(200)).json()
		for _, row := range diff["changes"].([]any) {
			c := row.(map[string]any)
			if c["field"] == "system_prompt" && len(c["lines"].([]any)) != 3 || c["field"] == "max_duration" && c["to"] != json.Number("90") {
				t.Errorf("changed %v", c)
			}
		}
		if got := h.get(at + "/1/diff").json()["to"]; got != json.Number("3") {
			t.Errorf("compared with %v", got)
		}
		h.get(at+"/1/diff?to=9", status(404))
		h.get(at+"/1/diff?to=0", status(422)).fails("to")
		back := h.post(at+"/1/restore", nil, status(200)).json()["data"].(map[string]any)
		if back["system_prompt"] != "one\ntwo" || back["max_duration"] != json.Number("600") || back["webhook_url"] != nil ||
			fmt.Sprint(back["tool_ids"]) != fmt.Sprintf("[%d]", tool) {
			t.Errorf("restored %v", back)
		}
		newest := h.get(at).json()["data"].([]any)[0].(map[string]any)
		if newest["version"] != json.Number("4") || newest["note"] != "Restored version 1" {
			t.Errorf("restoring made %v", newest)
		}
		h.post(at+"/4/restore", nil, status(200)) // it is live: nothing new
		if n := h.get(at).json()["total"]; n != json.Number("4") {
			t.Errorf("%v versions", n)
		}
		// A tool that a version names may be deleted by now.
		h.delete(fmt.Sprintf("/user/tools/%d", tool), status(200))
		h.put(live, map[string]any{"max_duration": 91}, status(200))
		h.post(at+"/1/restore", nil, status(422)).fails("tool_ids.0")

		other := h.stranger()
		for _, tail := range []string{"", "/1", "/1/diff", "/1/diff?to=2"} {
			other.get(at+tail, status(404)).is(`{"message":"Assistant not found"}`)
		}
		other.post(at+"/1/restore", nil, status(404))
		for _, id := range noIDs {
			h.get(at+"/"+id, status(404))
			h.get(at+"/"+id+"/diff", status(404))
			h.post(at+"/"+id+"/restore", nil, status(404))
		}
		h.delete(live, status(200))
		h.get(at, status(404)).is(`{"message":"Assistant not found"}`)
		h.post(at+"/1/restore", nil, status(404))
	})
}

func TestDraftIsNotLiveUntilPublished(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(map[string]any{"name": "Desk"})
		live, one := fmt.Sprintf("/user/assistant/%d", a), fmt.Sprintf("/user/assistants/%d", a)
		h.get(one+"/draft", status(404)).is(`{"message":"This assistant has no draft"}`)
		h.post(one+"/publish", map[string]any{}, status(404))
		h.delete(one+"/draft", status(404))
		d := h.put(one+"/draft", map[string]any{"name": "Front", "variables": map[string]any{"a": "b"}}, status(200)).
			json()["data"].(map[string]any)
		if fmt.Sprint(d["changed"]) != "[name variables]" || d["live_changed"] != false || fmt.Sprint(d["problems"]) != "map[]" ||
			d["assistant"].(map[string]any)["name"] != "Front" || !strings.Contains(d["author"].(string), "API key “test”") {
			t.Fatalf("draft %v", d)
		}
		if got := h.get(live).json(); got["name"] != "Desk" || len(got["variables"].(map[string]any)) != 0 {
			t.Errorf("a draft is live: %v", got["name"])
		}
		// A second change adds to it; PATCH is PUT.
		h.do("PATCH", one+"/draft", map[string]any{"max_duration": 90}, status(200))
		if got := rows(h.get(one+"/draft/diff", status(200)).json()["changes"], "field"); fmt.Sprint(got) != "[name variables max_duration]" {
			t.Errorf("differs in %v", got)
		}
		// If a field is invalid by itself, the request is refused and none of it is kept.
		h.put(one+"/draft", map[string]any{"max_duration": 7, "name": "Lost"}, status(422)).fails("max_duration")
		// Fields that don't fit together are kept, but can't be published.
		d = h.put(one+"/draft", map[string]any{"is_webhook_active": true, "tool_ids": []any{999}}, status(200)).json()["data"].(map[string]any)
		if p := d["problems"].(map[string]any); len(p) != 2 || p["webhook_url"] == nil || p["tool_ids.0"] == nil ||
			d["assistant"].(map[string]any)["name"] != "Front" {
			t.Errorf("problems %v", d["problems"])
		}
		h.post(one+"/publish", map[string]any{}, status(422)).fails("tool_ids.0", "webhook_url")
		if got := h.get(live).json(); got["name"] != "Desk" {
			t.Errorf("a refused draft is live: %v", got["name"])
		}
		h.put(one+"/draft", map[string]any{"is_webhook_active": false, "tool_ids": []any{}}, status(200))
		got := h.post(one+"/publish", map[string]any{"note": "A new name."}, status(200)).json()["data"].(map[string]any)
		if got["name"] != "Front" || got["max_duration"] != json.Number("90") || fmt.Sprint(got["variables"]) != "map[a:b]" {
			t.Errorf("published %v", got)
		}
		if v := h.get(one + "/versions").json()["data"].([]any)[0].(map[string]any); v["note"] != "A new name." ||
			v["version"] != json.Number("2") || fmt.Sprint(v["changed"]) != "[name variables max_duration]" {
			t.Errorf("the version is %v", v)
		}
		h.get(one+"/draft", status(404))

		// A draft with no differences is no draft.
		h.put(one+"/draft", map[string]any{"name": "Back"}, status(200))
		if d := h.put(one+"/draft", map[string]any{"name": "Front"}, status(200)).
			json()["data"].(map[string]any); len(d["changed"].([]any)) != 0 {
			t.Errorf("changed %v", d["changed"])
		}
		h.get(one+"/draft", status(404))
		h.put(one+"/draft", map[string]any{"name": "Back"}, status(200))

		other := h.stranger()
		other.get(one+"/draft", status(404)).is(`{"message":"Assistant not found"}`)
		other.get(one+"/draft/diff", status(404))
		other.put(one+"/draft", map[string]any{"name": "Theirs"}, status(404))
		other.delete(one+"/draft", status(404))
		other.post(one+"/publish", map[string]any{}, status(404))
		h.delete(one+"/draft", status(200))
		h.get(one+"/draft", status(404))
	})
}

// The live assistant may change while there is a draft: publishing then says so, and goes ahead only when told to.
func TestDraftIsOvertaken(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(map[string]any{"name": "Desk", "max_duration": 60})
		live, one := fmt.Sprintf("/user/assistant/%d", a), fmt.Sprintf("/user/assistants/%d", a)
		h.put(one+"/draft", map[string]any{"name": "Front"}, status(200))
		h.put(live, map[string]any{"name": "By the API", "max_duration": 99}, status(200))
		if got := h.get(live).json(); got["name"] != "By the API" {
			t.Errorf("an update is not live at once: %v", got["name"])
		}
		if d := h.get(one + "/draft").json()["data"].(map[string]any); d["live_changed"] != true ||
			d["assistant"].(map[string]any)["max_duration"] != json.Number("99") {
			t.Errorf("draft %v", d)
		}
		refusal := h.post(one+"/publish", map[string]any{}, status(409)).json()["message"].(string)
		for _, want := range []string{"by ", "API key “test”", "overwrite", "(name)", "discard"} {
			if !strings.Contains(refusal, want) {
				t.Errorf("%q does not say %q", refusal, want)
			}
		}
		if got := h.get(live).json(); got["name"] != "By the API" {
			t.Errorf("a refused draft is live: %v", got["name"])
		}
		got := h.post(one+"/publish", map[string]any{"overwrite": true}, status(200)).json()["data"].(map[string]any)
		if got["name"] != "Front" || got["max_duration"] != json.Number("99") {
			t.Errorf("published %v, %v", got["name"], got["max_duration"])
		}
	})
}

// A file holds the whole assistant except its secrets; an import says what it had to leave out.
func TestAssistantsAsFiles(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool := h.tool(map[string]any{"headers": []any{map[string]any{"name": "Authorization", "value": "Bearer {{shop_key}}"}}})
		a := h.assistant(map[string]any{"tool_ids": []any{tool}, "status": "active", "max_duration": 77,
			"variables": map[string]any{"shop_key": "s3cret-4711", "company": "Sunrise"}})
		one := fmt.Sprintf("/user/assistants/%d", a)
		file := h.get(one+"/export", status(200))
		if strings.Contains(string(file.body), "4711") || !strings.Contains(string(file.body), "Sunrise") {
			t.Errorf("exported %s", file.body)
		}
		other := h.stranger()
		other.get(one+"/export", status(404)).is(`{"message":"Assistant not found"}`)
		other.post(one+"/duplicate", nil, status(404))
		made := other.post("/user/assistants/import", file.json(), status(201)).json()
		data := made["data"].(map[string]any)
		if data["name"] != "Desk" || data["max_duration"] != json.Number("77") || data["status"] != "inactive" ||
			len(data["tool_ids"].([]any)) != 0 {
			t.Errorf("imported %v", data)
		}
		if left := fmt.Sprint(made["left_out"]); !strings.Contains(left, "you have none of this name") {
			t.Errorf("left out %v", left)
		}
		strange := file.json()
		strange["assistant"].(map[string]any)["voice_id"] = 424242
		if left := fmt.Sprint(h.post("/user/assistants/import", strange, status(201)).json()["left_out"]); !strings.Contains(left,
			"The voice: it is not available here") {
			t.Errorf("left out %v", left)
		}
		h.post("/user/assistants/import", map[string]any{"format": "x", "assistant": map[string]any{}}, status(422))
		h.post("/user/assistants/import", map[string]any{}, status(422)).fails("format", "assistant")

		twin := h.post(one+"/duplicate", nil, status(201)).json()["data"].(map[string]any)
		if twin["name"] != "Desk (copy)" || twin["status"] != "inactive" || twin["max_duration"] != json.Number("77") ||
			fmt.Sprint(twin["variables"]) != "map[company:Sunrise shop_key:s3cret-4711]" ||
			fmt.Sprint(twin["tool_ids"]) != fmt.Sprintf("[%d]", tool) {
			t.Errorf("the copy is %v", twin)
		}
		if v := h.get(fmt.Sprintf("/user/assistants/%d/versions", id(twin))).json(); v["total"] != json.Number("1") {
			t.Errorf("the copy has %v versions", v["total"])
		}
	})
}

// A draft may have to pass its tests before it is published. Only a run of all tests on the draft as last saved counts.
func TestDraftMustPassItsTests(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(map[string]any{"require_tests": true})
		one := fmt.Sprintf("/user/assistants/%d", a)
		h.put(one+"/draft", map[string]any{"name": "Front"}, status(200))
		if text := h.post(one+"/publish", map[string]any{}, status(409)).
			json()["message"].(string); !strings.Contains(text, "have not been run") {
			t.Errorf("refused with %q", text)
		}
		h.post(one+"/test-runs", map[string]any{"draft": true}, status(422)) // there are no tests
		for _, name := range []string{"One", "Two"} {
			h.post(one+"/tests", map[string]any{"script": "name: " + name + "\nchannel: chat\nsteps:\n  - say: Hello\n"}, status(201))
		}
		tests := h.get(one + "/tests").json()["data"].([]any)
		run := func(body map[string]any, state parley.TestState) int64 {
			t.Helper()
			made := h.post(one+"/test-runs", body, status(201)).json()["data"].(map[string]any)
			if made["draft_at"] == nil {
				t.Errorf("the run is of no draft: %v", made)
			}
			now := parley.Now()
			h.write(func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.ClaimTests(ctx, "node", true, now, now.Add(time.Minute), 10)
				for i := range list {
					if list[i].State = state; err == nil {
						_, err = tx.FinishTest(ctx, &list[i])
					}
				}
				return err
			})
			return id(made)
		}
		refused := func(why string) {
			t.Helper()
			if text := h.post(one+"/publish", map[string]any{}, status(409)).json()["message"].(string); !strings.Contains(text, why) {
				t.Errorf("refused with %q, want %q", text, why)
			}
		}
		run(map[string]any{"draft": true}, parley.TestFailed)
		refused("2 of 2 did not pass")
		run(map[string]any{"draft": true, "test_ids": []any{tests[0].(map[string]any)["id"]}}, parley.TestPassed)
		refused("left 1 of them out")
		run(map[string]any{"draft": true}, parley.TestPassed)
		h.put(one+"/draft", map[string]any{"name": "Other"}, status(200)) // the tests ran on another draft
		refused("have not been run")
		if got := h.get(one + "/tests").json()["data"].([]any)[0].(map[string]any); got["draft_state"] != "" || got["live_state"] != "" ||
			got["last_state"] != "pass" {
			t.Errorf("the test is %v", got)
		}
		last := run(map[string]any{"draft": true}, parley.TestPassed)
		if got := h.get(one + "/tests").json()["data"].([]any)[0].(map[string]any); got["draft_state"] != "pass" ||
			got["draft_run_id"] != json.Number(fmt.Sprint(last)) {
			t.Errorf("the test is %v", got)
		}
		h.post(one+"/publish", map[string]any{"note": "Better."}, status(200))
		if v := h.get(one + "/versions").json()["data"].([]any)[0].(map[string]any); v["note"] != "Better." {
			t.Errorf("the version is %v", v)
		}
		// The version records who published it without its tests.
		h.put(one+"/draft", map[string]any{"name": "In a hurry"}, status(200))
		h.post(one+"/publish", map[string]any{"note": "Now.", "skip_tests": true}, status(200))
		if v := h.get(one + "/versions").json()["data"].([]any)[0].(map[string]any); !strings.HasPrefix(v["note"].(string),
			"Now. (Published without its tests: ") {
			t.Errorf("the version is %v", v)
		}
		h.post(one+"/test-runs", map[string]any{"draft": true}, status(404))
		h.post(one+"/test-runs", map[string]any{"draft": "yes"}, status(422)).fails("draft")
	})
}

// A share link lets a stranger talk to the draft, and to nothing else, until it is revoked.
func TestShareLinks(t *testing.T) {
	h, _ := talking(t, storetest.SQLite(t, rules), nil)
	a := h.assistant(map[string]any{"initial_message": "Live hello."}) // it is inactive
	one := fmt.Sprintf("/user/assistants/%d", a)
	h.put(one+"/draft",
		map[string]any{"initial_message": "Draft hello.", "widget_settings": map[string]any{"allowed_origins": []any{"https://shop.example"}}},
		status(200))
	made := h.post(one+"/share-links", nil, status(201)).json()["data"].(map[string]any)
	link := made["url"].(string)
	token := link[strings.LastIndex(link, "/")+1:]
	if !strings.Contains(link, "/share/share-") || strings.Contains(string(h.get(one+"/share-links", status(200)).body), token) {
		t.Errorf("the link is %s", link)
	}
	anybody := []option{header("Authorization", "")}
	with := func(o ...option) []option { return append(o, anybody...) }
	if w := h.get("/widgets/"+token, with(status(200))...).json(); w["initial_message"] != "Draft hello." {
		t.Errorf("the widget is %v", w)
	}
	begun := h.post("/conversations", map[string]any{"assistant_id": token}, with(status(200))...).json()
	conv := begun["conversation_id"].(string)
	if fmt.Sprint(begun["history"]) != "[map[content:Draft hello. role:assistant]]" {
		t.Errorf("it begins with %v", begun["history"])
	}
	said := h.post("/conversations/"+conv+"/messages", map[string]any{"message": "Hi"}, with(status(200))...).json()
	if said["status"] != true {
		t.Errorf("answered %v", said)
	}
	list := h.get("/user/conversations?type=test", status(200)).json()["data"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["id"] != conv || list[0].(map[string]any)["total_cost"] != json.Number("0") {
		t.Errorf("the owner sees %v", list)
	}
	// The token opens nothing else, and a wrong token opens nothing.
	h.get("/user/me", header("Authorization", "Bearer "+strings.Replace(strings.TrimPrefix(token, "share-"), "-", "|", 1)), status(401))
	h.post("/conversations", map[string]any{"assistant_id": token[:len(token)-1] + "x"}, with(status(404))...)
	other := h.stranger()
	other.get(one+"/share-links", status(404))
	other.post(one+"/share-links", nil, status(404))
	other.delete(one+"/share-links", status(404))
	h.get("/widgets/"+token, with(status(200))...)
	// It is stored hashed, and expires after a day.
	keys, err := h.db.KeysNamed(t.Context(), h.user.ID, parley.ShareLink, fmt.Sprint(a), parley.Now())
	if err != nil || len(keys) != 1 || strings.Contains(token, string(keys[0].Hash)) ||
		keys[0].ExpiresAt.Sub(keys[0].CreatedAt).Round(time.Minute) != 24*time.Hour {
		t.Errorf("stored as %+v, %v", keys, err)
	}
	if keys, _ := h.db.KeysNamed(t.Context(), h.user.ID, parley.ShareLink, fmt.Sprint(a), keys[0].ExpiresAt); len(keys) != 0 {
		t.Error("after a day it is still there")
	}
	h.delete(one+"/share-links", status(200))
	h.get("/widgets/"+token, with(status(404))...)
	h.post("/conversations", map[string]any{"assistant_id": token}, with(status(404))...)
	h.get("/conversations/"+conv, with(status(404))...)
	h.post("/conversations/"+conv+"/messages", map[string]any{"message": "Still there?"}, with(status(404))...)
	h.get("/user/conversations/"+conv, status(200))
}
