package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestLookups(t *testing.T) {
	h := lite(t, nil)
	for path, want := range map[string]string{
		"languages": "id iso_2 name", "models": "code id name", "transcriber-providers": "code id name",
		"synthesizer-providers": "code id name voice_similarity voice_stability",
		"voices": "accent age code gender id language_id name preview_url realtime_vendor synthesizer_provider_id " +
			"voice_similarity voice_stability",
	} {
		list := h.get("/user/assistants/"+path, status(200)).list()
		if len(list) == 0 {
			t.Errorf("%s is empty", path)
			continue
		}
		seen := map[int64]bool{}
		for _, row := range list {
			if got := strings.Join(slices.Sorted(maps.Keys(row)), " "); got != want || seen[id(row)] || id(row) <= 0 {
				t.Errorf("%s holds %v", path, row)
			}
			seen[id(row)] = true
		}
	}
	all := h.get("/user/assistants/voices").list()
	count := 0
	for _, mode := range []string{"pipeline", "multimodal", "dualplex"} {
		list := h.get("/user/assistants/voices?mode="+mode, status(200)).list()
		if len(list) == 0 || len(list) > len(all) {
			t.Errorf("%d voices serve %s", len(list), mode)
		}
		if mode != "dualplex" { // its voices are those of pipeline
			count += len(list)
		}
	}
	if count != len(all) {
		t.Errorf("%d voices by mode, %d in all", count, len(all))
	}
	for _, v := range h.get("/user/assistants/voices?mode=pipeline&language_id=4").list() {
		if v["language_id"] != json.Number("4") || !strings.HasPrefix(v["preview_url"].(string),
			"https://voice.example.com/api/voices/") || v["gender"] != "male" && v["gender"] != "female" {
			t.Errorf("a German voice: %v", v)
		}
	}
	for _, path := range []string{"voices", "synthesizer-providers", "transcriber-providers"} {
		h.get("/user/assistants/"+path+"?language_id=x", status(422)).says("language_id",
			"The language_id field must be an integer.")
		h.get("/user/assistants/"+path+"?language_id=999999", status(200)).is("[]")
		h.get("/user/assistants/"+path+"?language_id=-1", status(200)).is("[]")
		h.get("/user/assistants/"+path+"?language_id=&other=1", status(200))
	}
	h.get("/user/assistants/voices?mode=phone", status(422)).says("mode",
		"The mode field must be one of: pipeline, multimodal, dualplex.")
	h.get("/user/assistants/voices?mode=phone&language_id=x", status(422)).fails("mode", "language_id")
	h.get("/user/assistants/voices?mode=%ff%00", status(422)).fails("mode")
	for _, kind := range []string{"llm", "multimodal", "dualplex"} {
		if len(h.get("/user/assistants/models?type="+kind, status(200)).list()) == 0 {
			t.Errorf("no model is %s", kind)
		}
	}
	h.get("/user/assistants/models?type=gpt", status(422)).fails("type")
	h.get("/user/assistants/phone-numbers", status(200)).is("[]")
}

func TestWebhookToggles(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(nil)
		foreign := h.stranger().assistant(nil)
		at := fmt.Sprintf("/user/assistant/%d", a)
		for path, field := range map[string]string{"webhook": "webhook_url",
			"inbound-webhook": "inbound_webhook_url", "conversation-ended-webhook": "conversation_ended_webhook_url"} {
			enable, disable := "/user/assistants/enable-"+path, "/user/assistants/disable-"+path
			body := map[string]any{"assistant_id": a, "webhook_url": "https://example.com/" + path}
			h.post(enable, body, status(200)).is(`{"message":"Webhook enabled successfully","data":[]}`)
			got := h.get(at).json()
			if got[field] != "https://example.com/"+path || path == "webhook" && got["is_webhook_active"] != true {
				t.Errorf("%s: %v, active %v", enable, got[field], got["is_webhook_active"])
			}
			h.post(enable, nil, status(422)).is(`{"message":"The assistant_id field is required. (and 1 more error)","errors":{"assistant_id":["The assistant_id field is required."],"webhook_url":["The webhook_url field is required."]}}`)
			h.post(enable, with(body, map[string]any{"webhook_url": nil}), status(422)).says("webhook_url",
				"The webhook_url field is required.")
			for _, v := range []any{"", " ", 5, true, []any{}, "x", "ftp://example.com", "https://example.com/" +
				strings.Repeat("a", 2048)} {
				h.post(enable, with(body, map[string]any{"webhook_url": v}), status(422)).fails("webhook_url")
			}
			for _, v := range []string{`null`, `"one"`, `1.5`, `true`, `[]`, `{}`, `99999999999999999999`} {
				h.post(enable, nil, raw(`{"webhook_url":"https://example.com","assistant_id":`+v+`}`),
					status(422)).fails("assistant_id")
				h.post(disable, nil, raw(`{"assistant_id":`+v+`}`), status(422)).fails("assistant_id")
			}
			for _, n := range []int64{0, -1, 999999, foreign, 1<<63 - 1} {
				for _, p := range []string{enable, disable} {
					h.post(p, with(body, map[string]any{"assistant_id": n}),
						status(404)).is(`{"message":"Assistant not found"}`)
				}
			}
			h.post(disable, map[string]any{"assistant_id": a},
				status(200)).is(`{"message":"Webhook disabled successfully","data":[]}`)
			got = h.get(at).json()
			if got["is_webhook_active"] != false || got[field] != nil {
				t.Errorf("%s left %v, active %v", disable, got[field], got["is_webhook_active"])
			}
			h.post(disable, map[string]any{"assistant_id": a}, status(200)) // again
		}
	})
}

func TestPromptVersions(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(map[string]any{"system_prompt": "one\ntwo\nthree", "initial_message": "Hi."})
		at := fmt.Sprintf("/user/assistant/%d", a)
		h.put(at, map[string]any{"name": "Other"}, status(200)) // no new wording
		h.put(at, map[string]any{"system_prompt": "one\n2\nthree"}, status(200))
		h.put(at, map[string]any{"initial_message": "Hello."}, status(200))
		h.put(at, map[string]any{"initial_message": "Hello."}, status(200))
		list := h.get(at+"/prompt-versions", status(200)).json()
		rows := list["data"].([]any)
		if list["total"] != json.Number("3") || rows[0].(map[string]any)["version"] != json.Number("3") {
			t.Errorf("versions %v", rows)
		}
		if n := len(h.get(at + "/prompt-versions?per_page=1&page=2").json()["data"].([]any)); n != 1 {
			t.Errorf("a page of %d", n)
		}
		h.get(at+"/prompt-versions?per_page=0", status(422)).fails("per_page")
		one := h.get(at+"/prompt-versions/1", status(200)).json()
		if one["system_prompt"] != "one\ntwo\nthree" || one["initial_message"] != "Hi." ||
			!isoTime.MatchString(one["created_at"].(string)) {
			t.Errorf("version 1 is %v", one)
		}
		h.get(at+"/prompt-versions/1/diff", status(200)).is(
			`{"from":1,"to":3,"system_prompt":[{"op":"=","text":"one"},{"op":"-","text":"two"},{"op":"+","text":"2"},{"op":"=","text":"three"}],` +
				`"initial_message":[{"op":"-","text":"Hi."},{"op":"+","text":"Hello."}]}`)
		if got := h.get(at + "/prompt-versions/1/diff?to=2").json()["to"]; got != json.Number("2") {
			t.Errorf("diff to %v", got)
		}
		h.get(at+"/prompt-versions/1/diff?to=9", status(404))
		h.get(at+"/prompt-versions/1/diff?to=0", status(422)).fails("to")
		h.get(at+"/prompt-versions/1/diff?to=x", status(422)).fails("to")
		h.get(at+"/prompt-versions/9", status(404))
		h.post(at+"/prompt-versions/9/restore", nil, status(404))
		data := h.post(at+"/prompt-versions/1/restore", nil, status(200)).json()["data"].(map[string]any)
		if data["system_prompt"] != "one\ntwo\nthree" || data["initial_message"] != "Hi." ||
			data["prompt_version"] != json.Number("4") {
			t.Errorf("restored %v", data["prompt_version"])
		}
		h.post(at+"/prompt-versions/4/restore", nil, status(200)) // the present version: nothing new
		if n := h.get(at + "/prompt-versions").json()["total"]; n != json.Number("4") {
			t.Errorf("%v versions", n)
		}
		other := h.stranger()
		for _, tail := range []string{"", "/1", "/1/diff"} {
			other.get(at+"/prompt-versions"+tail, status(404))
		}
		other.post(at+"/prompt-versions/1/restore", nil, status(404))
		h.delete(at, status(200))
		h.get(at+"/prompt-versions", status(404)).is(`{"message":"Assistant not found"}`)
		h.get(at+"/prompt-versions/1", status(404))
		h.post(at+"/prompt-versions/1/restore", nil, status(404))
	})
}
