package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shown are the fields of contract 2.6 with their values in a new assistant of assistantBody; "*" is any value.
var shown = map[string]string{
	"id": "*", "uuid": "*", "user_id": "*", "phone_number_id": "null", "engine_id": "null",
	"synthesizer_id": "null", "transcriber_id": "null",
	"voice_id": "*", "instance_id": "1", "name": `"Desk"`, "variables": "{}", "post_call_evaluation": "true",
	"fillers":          "0",
	"post_call_schema": "*", "tools": "[]", "is_webhook_active": "false", "webhook_url": "null",
	"inbound_webhook_url": "null",
	"language":            `"en"`, "language_id": "1", "type": `"inbound"`, "status": `"inactive"`,
	"mode":         `"pipeline"`,
	"max_duration": "600",
	"record":       "false", "initial_message": `""`, "system_prompt": `"Be kind."`, "flows_platform_id": "null",
	"timezone":             `"Europe/Berlin"`,
	"max_silence_duration": "40", "reengagement_interval": "30", "end_call_on_voicemail": "1",
	"llm_temperature": `"0.10"`,
	"voice_stability": `"0.70"`, "voice_similarity": `"0.50"`, "speech_speed": `"1.00"`, "allow_interruptions": "true",
	"enable_noise_cancellation": "true", "background_speech_cancellation": "false", "prompt_current_time": "true",
	"endpoint_sensitivity": "0.5", "endpoint_type": `"vad"`, "interrupt_sensitivity": "0.5",
	"min_interrupt_words": "null", "wait_for_customer": "false", "transcriber_provider_id": "null",
	"synthesizer_provider_id": "null",
	"llm_model_id":            "*", "multimodal_model_id": "null", "ambient_sound": `"off"`,
	"ambient_sound_volume":           `"0.50"`,
	"send_webhook_only_on_completed": "true", "include_recording_in_webhook": "true",
	"filler_config": `{"neutral":[],"negative":[],"positive":[],"question":[]}`, "knowledgebase_id": "null",
	"knowledgebase_mode": `"function_call"`, "widget_settings": "*", "deleted_at": "null", "created_at": "*",
	"updated_at": "*",
	// decisions 3
	"post_call_json_schema": "*", "tool_ids": "[]", "reengagement_prompt": `""`, "ringing_time": "30", "voice_mail_message": `""`,
	"conversation_inactivity_timeout": "30",
	"conversation_ended_webhook_url":  "null", "keywords": "[]", "pronunciations": "{}",
}

func TestAssistantLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.post("/user/assistant", h.assistantBody(), status(201))
		var created struct {
			Message string
			Data    map[string]json.RawMessage
		}
		made.decode(&created)
		if created.Message != "Assistant created successfully" {
			t.Errorf("message %q", created.Message)
		}
		for field, want := range shown {
			if got, ok := created.Data[field]; !ok || want != "*" && string(got) != want {
				t.Errorf("%s is %s, want %s", field, got, want)
			}
		}
		for _, field := range []string{"created_at", "updated_at"} {
			if !isoTime.MatchString(strings.Trim(string(created.Data[field]), `"`)) {
				t.Errorf("%s is %s", field, created.Data[field])
			}
		}
		at := "/user/assistant/" + string(created.Data["id"])
		one := h.get(at, status(200))
		var bare map[string]json.RawMessage
		one.decode(&bare)
		if encode(bare) != encode(created.Data) {
			t.Errorf("GET differs from what was made:\n%s\n%s", encode(bare), encode(created.Data))
		}
		for _, list := range []string{"/user/assistants", "/user/assistants/get"} {
			if !strings.Contains(string(h.get(list, status(200)).body), strings.TrimSpace(string(one.body))) {
				t.Errorf("%s does not hold the full assistant", list)
			}
		}
		if strings.TrimSpace(string(h.get("/user/assistants/outbound").body)) != "[]" {
			t.Error("an inbound assistant is listed as outbound")
		}
		second := id(h.post("/user/assistants", with(h.assistantBody(), map[string]any{"type": "outbound"}),
			status(201)).json()["data"].(map[string]any))
		short := h.get("/user/assistants/outbound", status(200)).list()
		want := []string{"id", "user_id", "name", "type", "mode", "status", "voice_id", "language_id", "timezone",
			"initial_message", "system_prompt",
			"variables", "webhook_url", "is_webhook_active", "created_at", "updated_at"}
		for _, field := range want {
			if _, ok := short[0][field]; !ok || len(short) != 1 || id(short[0]) != second {
				t.Errorf("the outbound list has no %s", field)
			}
		}
		if list := h.get("/user/assistants").list(); id(list[0]) > id(list[1]) {
			t.Error("assistants are not listed by id")
		}
		other := h.stranger()
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			other.do(method, at, nil, status(404)).is(`{"message":"Assistant not found"}`)
		}
		h.delete(at, status(200)).is(`{"message":"Assistant deleted successfully"}`)
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			h.do(method, at, nil, status(404)).is(`{"message":"Assistant not found"}`)
		}
		if n := len(h.get("/user/assistants").list()); n != 1 {
			t.Errorf("%d assistants are left", n)
		}
	})
}

// difference is where two texts start to differ.
func difference(a, b []byte) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	from := max(0, i-40)
	return fmt.Sprintf("%.90q to %.90q", a[from:], b[from:])
}

// full is an assistant in which every field is filled in.
func (h *harness) full(toolID, otherID int64) map[string]any {
	return with(h.assistantBody(), map[string]any{
		"name": "Größe 😀 ' ? \\ $1", "status": "active", "type": "inbound",
		"variables":       map[string]any{"who": " Zoë ", "a.b": "{{who}}", "e": ""},
		"initial_message": "Hello {{who}}.", "tool_ids": []any{toolID}, "keywords": []any{"Parley"},
		"pronunciations": map[string]any{"SQL": "sequel"},
		"tools": []any{map[string]any{"type": "end_call"},
			map[string]any{"type": "call_transfer", "phone_number": "+14155552671", "warm_transfer": true,
				"warm_transfer_message": "Call for you."}, map[string]any{"type": "dtmf_input"},
			map[string]any{"type": "collect_keypad", "stop_key": "#", "timeout": 9},
			map[string]any{"type": "assistant_transfer", "assistant_id": otherID,
				"message_before_transfer": "One moment."}},
		"llm_temperature": "0.55", "voice_stability": 0.2, "voice_similarity": 1, "speech_speed": 1.2,
		"ambient_sound": "cafe", "ambient_sound_volume": 0,
		"min_interrupt_words": 3, "interrupt_sensitivity": 1.25, "endpoint_type": "ai", "endpoint_sensitivity": 5,
		"fillers":       1,
		"filler_config": map[string]any{"neutral": []any{"Hm."}, "question": []any{"Let me see."}}, "record": true,
		"wait_for_customer":         true,
		"enable_noise_cancellation": false, "background_speech_cancellation": true, "prompt_current_time": false, "max_duration": 3600,
		"max_silence_duration": 360, "reengagement_interval": 600, "reengagement_prompt": "Still there?",
		"ringing_time": 120, "end_call_on_voicemail": false, "voice_mail_message": "Call back.",
		"post_call_evaluation": false,
		"post_call_schema":     []any{map[string]any{"name": "sale", "type": "bool", "description": "Sold?"}},
		"is_webhook_active":    true,
		"webhook_url":          "https://example.com/a", "inbound_webhook_url": "https://example.com/b",
		"conversation_ended_webhook_url": "https://example.com/c",
		"send_webhook_only_on_completed": false, "include_recording_in_webhook": false,
		"conversation_inactivity_timeout": 1440, "allow_interruptions": false,
		"knowledgebase_mode": "prompt",
		"widget_settings": map[string]any{"theme": "dark", "color": "#abc", "position": "top-left", "mode": "both",
			"title": "T", "auto_open": true,
			"avatar_url": "https://example.com/a.png", "allowed_origins": []any{"https://example.com"},
			"pre_chat_fields": []any{map[string]any{"variable": "email", "label": "E-mail", "type": "email",
				"required": true}}},
	})
}

// What an assistant shows can be sent back, and sent again for another one, also where it is empty, gone or slow by now.
func TestAssistantSentBack(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		slow := h.tool(map[string]any{"mode": "async", "timeout": 120})
		trunk := h.trunk("+4930901820")
		aid := h.assistant(map[string]any{"tool_ids": []any{slow}, "post_call_schema": []any{},
			"tools": []any{map[string]any{"type": "warm_call_transfer", "supervisor_phone": "+4930901821",
				"outbound_phone_id": trunk["phone_number_id"]}}})
		at := fmt.Sprintf("/user/assistant/%d", aid)
		h.put(at, map[string]any{"post_call_schema": []any{}}, status(200))
		same := func(when string) {
			t.Helper()
			before := h.get(at, status(200))
			h.put(at, nil, raw(string(before.body)), status(200))
			if after := h.get(at); !bytes.Equal(before.body, after.body) {
				t.Errorf("%s: %s", when, difference(before.body, after.body))
			}
		}
		same("at first")
		h.post("/user/assistant", nil, raw(string(h.get(at).body)), status(201))
		h.delete(fmt.Sprintf("%s/%d", trunksAt, id(trunk)), status(200))
		same("without the number")
		h.put(at, map[string]any{"name": "Renamed"}, status(200))
		h.put(at, map[string]any{"tools": []any{map[string]any{"type": "collect_keypad", "timeout": 31}}}, status(422)).
			says("tools.0.timeout", "The tools.0.timeout field must not be greater than 30.")
	})
}

// Sending back by PUT what GET returned is accepted and changes nothing, whatever the assistant holds.
func TestAssistantPutOfGet(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool, peer := h.tool(map[string]any{"headers": []any{map[string]any{"name": "X", "value": "y"}}}),
			h.assistant(nil)
		least := fmt.Sprintf("/user/assistant/%d", h.assistant(nil))
		full := fmt.Sprintf("/user/assistant/%d", id(h.post("/user/assistant", h.full(tool, peer),
			status(201)).json()["data"].(map[string]any)))
		multi := fmt.Sprintf("/user/assistant/%d", h.assistant(map[string]any{"mode": "multimodal",
			"voice_id":            h.voice("multimodal", 1),
			"multimodal_model_id": h.model("multimodal"), "llm_model_id": nil}))
		same := func(when string) {
			t.Helper()
			for _, at := range []string{least, full, multi} {
				before := h.get(at, status(200))
				put := h.put(at, nil, raw(string(before.body)), status(200)).json()
				if put["message"] != "Assistant updated successfully" ||
					fmt.Sprint(put["data"]) != fmt.Sprint(before.json()) {
					t.Errorf("%s: PUT of %s answers otherwise: %s", when, at, put["message"])
				}
				if after := h.get(at); !bytes.Equal(before.body, after.body) {
					t.Errorf("%s: PUT of what GET returned changed %s", when, difference(before.body, after.body))
				}
				h.put(at, nil, status(200))
				h.put(at, nil,
					raw(`{"unknown":1,"id":7,"uuid":"x","user_id":9,"created_at":5,"deleted_at":"now",`+
						`"instance_id":4,"language":"xx","prompt_version":8}`), status(200))
				if after := h.get(at); !bytes.Equal(before.body, after.body) {
					t.Errorf("%s: what can't be changed was: %s", when, difference(before.body, after.body))
				}
			}
		}
		same("at first")
		got := h.get(full).json()
		if s := fmt.Sprint(got["tools"]); strings.Count(s, "type:mid_call") != 1 || len(got["tools"].([]any)) != 6 {
			t.Errorf("tools are %s", s)
		}
		h.delete(fmt.Sprintf("/user/assistant/%d", peer), status(200)) // an assistant_transfer names it
		same("after its peer was deleted")
		h.put(full, map[string]any{"name": "Renamed"}, status(200))
		h.delete(fmt.Sprintf("/user/tools/%d", tool), status(200))
		same("after its tool was deleted")
	})
}

func TestAssistantPartialPut(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool, peer := h.tool(nil), h.assistant(nil)
		at := fmt.Sprintf("/user/assistant/%d", id(h.post("/user/assistant", h.full(tool, peer),
			status(201)).json()["data"].(map[string]any)))
		before := h.get(at).json()
		now := func(body string) map[string]any {
			t.Helper()
			h.put(at, nil, raw(body), status(200))
			return h.get(at).json()
		}
		// Changing one field changes nothing else.
		after := now(`{"name":"B"}`)
		for field, v := range before {
			if fmt.Sprint(v) != fmt.Sprint(after[field]) && field != "name" && field != "updated_at" {
				t.Errorf("a change of name changed %s to %v", field, after[field])
			}
		}
		// Lists and variables are replaced; objects of settings are merged.
		after = now(`{"variables":{"x":"y"},"keywords":["a","b"],"filler_config":{"neutral":[]},"widget_settings":{"title":"New"},"tools":[{"type":"end_call"}],"tool_ids":[],"post_call_schema":[]}`)
		for field, want := range map[string]string{"variables": "map[x:y]", "keywords": "[a b]",
			"tools": "[map[type:end_call]]", "tool_ids": "[]", "post_call_schema": "[]",
			"filler_config": "map[negative:[] neutral:[] positive:[] question:[Let me see.]]"} {
			if got := fmt.Sprint(after[field]); got != want {
				t.Errorf("%s is %s, want %s", field, got, want)
			}
		}
		if w := after["widget_settings"].(map[string]any); w["title"] != "New" || w["theme"] != "dark" {
			t.Errorf("widget_settings %v", w)
		}
		// A mid_call entry stands for a tool_id when no tool_ids are sent.
		if after = now(fmt.Sprintf(`{"tools":[{"type":"mid_call","id":%d},{"type":"dtmf_input"}]}`,
			tool)); fmt.Sprint(after["tool_ids"]) != fmt.Sprintf("[%d]", tool) {
			t.Errorf("tool_ids %v", after["tool_ids"])
		}
		if after = now(`{"tools":[],"tool_ids":[]}`); fmt.Sprint(after["tools"], after["tool_ids"]) != "[] []" {
			t.Errorf("tools %v", after["tools"])
		}
		// null sets a field to null or to its default.
		h.put(at, nil, raw(`{"is_webhook_active":false}`), status(200))
		var clear []string
		for field := range assistantKinds {
			if !slices.Contains(assistantRequired, field) && field != "llm_model_id" {
				clear = append(clear, `"`+field+`":null`)
			}
		}
		cleared := "{" + strings.Join(clear, ",") + "}"
		after = now(cleared)
		if err := h.checker.request("PUT", "/user/assistant/{id}", cleared); err != nil {
			t.Errorf("the reference does not know that null clears: %v", err)
		}
		for field, want := range shown {
			if _, ok := assistantKinds[field]; ok && want != "*" && !slices.Contains(assistantRequired, field) {
				if got, _ := json.Marshal(after[field]); field != "filler_config" && string(got) != want {
					t.Errorf("%s is %s after null, want %s", field, got, want)
				}
			}
		}
		for _, field := range assistantRequired {
			h.put(at, nil, raw(`{"`+field+`":null}`), status(422)).says(field, "The "+field+" field is required.")
		}
		h.put(at, nil, raw(`{"llm_model_id":null}`), status(422)).says("llm_model_id",
			"The llm_model_id field is required when mode is pipeline.")
	})
}

var assistantRequired = []string{"name", "voice_id", "language_id", "type", "mode", "timezone", "system_prompt"}

// assistantKinds are the fields that a request may have, with their kind (see wrong).
var assistantKinds = map[string]string{
	"name": "string", "voice_id": "int", "language_id": "int", "type": "string", "mode": "string",
	"timezone": "string", "system_prompt": "string",
	"llm_model_id": "int", "multimodal_model_id": "int", "initial_message": "string", "status": "string",
	"phone_number_id":  "int",
	"knowledgebase_id": "int", "knowledgebase_mode": "string", "tool_ids": "array", "tools": "array",
	"llm_temperature": "text",
	"voice_stability": "text", "voice_similarity": "text", "speech_speed": "text", "ambient_sound_volume": "text",
	"ambient_sound":           "string",
	"synthesizer_provider_id": "int", "transcriber_provider_id": "int", "allow_interruptions": "bool",
	"min_interrupt_words":   "int",
	"interrupt_sensitivity": "number", "endpoint_type": "string", "endpoint_sensitivity": "number",
	"fillers": "flag", "filler_config": "object",
	"record": "bool", "enable_noise_cancellation": "bool", "background_speech_cancellation": "bool", "prompt_current_time": "bool",
	"wait_for_customer": "bool", "post_call_evaluation": "bool", "is_webhook_active": "bool",
	"webhook_url": "string", "inbound_webhook_url": "string", "conversation_ended_webhook_url": "string",
	"send_webhook_only_on_completed": "bool",
	"include_recording_in_webhook":   "bool", "max_duration": "int", "max_silence_duration": "int",
	"reengagement_interval": "int",
	"reengagement_prompt":   "string", "ringing_time": "int", "end_call_on_voicemail": "flag",
	"voice_mail_message":    "string",
	"post_call_json_schema": "schema", "post_call_schema": "array", "variables": "variables", "conversation_inactivity_timeout": "int",
	"widget_settings": "object", "keywords": "array",
	"pronunciations": "object",
}

func TestAssistantWrongTypes(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(nil))
		before := h.get(at).body
		base := h.assistantBody()
		for field, kind := range assistantKinds {
			for _, value := range wrong[kind] {
				want := "The " + field + " field " + mustBe[kind]
				h.post("/user/assistant", with(base, map[string]any{field: json.RawMessage(value)}),
					status(422)).says(field, want)
				h.put(at, nil, raw(`{"`+field+`":`+value+`}`), status(422)).says(field, want)
			}
		}
		if after := h.get(at).body; !bytes.Equal(before, after) {
			t.Errorf("a refused PUT changed %s", after)
		}
		if n := len(h.get("/user/assistants").list()); n != 1 {
			t.Errorf("refused POSTs made %d assistants", n-1)
		}
		// All of them at once.
		all, fields := []string{}, []string{}
		for field, kind := range assistantKinds {
			all, fields = append(all, `"`+field+`":`+wrong[kind][0]), append(fields, field)
		}
		h.post("/user/assistant", nil, raw("{"+strings.Join(all, ",")+"}"), status(422)).fails(fields...)
	})
}

// The error of a nested field names its place.
func TestAssistantNestedWrongTypes(t *testing.T) {
	h := lite(t, nil)
	at := fmt.Sprintf("/user/assistant/%d", h.assistant(nil))
	for body, field := range map[string]string{
		`{"variables":{"a":{}}}`: "variables.a", `{"variables":{"a":["x"],"b":1}}`: "variables.a",
		`{"variables":{"":"x"}}`: "variables", `{"variables":{"a":"\u0000"}}`: "variables.a",
		`{"variables":{"a\u0000":"x"}}`: "variables",
		`{"variables":{"a":"\ud800"}}`:  "variables.a", `{"pronunciations":{"a":true}}`: "pronunciations.a",
		`{"keywords":[5]}`: "keywords.0", `{"keywords":["a",null]}`: "keywords.1",
		`{"keywords":["a",""]}`: "keywords.1", `{"keywords":[["a"]]}`: "keywords.0",
		`{"tool_ids":["x"]}`: "tool_ids.0", `{"tool_ids":[null]}`: "tool_ids.0", `{"tool_ids":[1.5]}`: "tool_ids.0",
		`{"tool_ids":[{}]}`:      "tool_ids.0",
		`{"tools":["end_call"]}`: "tools.0", `{"tools":[null]}`: "tools.0", `{"tools":[{}]}`: "tools.0.type",
		`{"tools":[{"type":5}]}`:      "tools.0.type",
		`{"tools":[{"type":"nope"}]}`: "tools.0.type", `{"tools":[{"type":"mid_call"}]}`: "tools.0.id",
		`{"tools":[{"type":"collect_keypad","timeout":"5s"}]}`:                                     "tools.0.timeout",
		`{"tools":[{"type":"call_transfer","phone_number":"+14155552671","warm_transfer":"yes"}]}`: "tools.0.warm_transfer",
		`{"tools":[{"type":"end_call","headers":[5]}]}`:                                            "tools.0.headers.0",
		`{"filler_config":{"neutral":"x"}}`:                                                        "filler_config.neutral",
		`{"filler_config":{"neutral":[5]}}`:                                                        "filler_config.neutral.0",
		`{"post_call_schema":["x"]}`:                                                               "post_call_schema.0",
		`{"post_call_schema":[{"name":"abc","type":"boolean","description":"abc"}]}`:               "post_call_schema.0.type",
		`{"widget_settings":{"theme":5}}`:                                                          "widget_settings.theme",
		`{"widget_settings":{"auto_open":"yes"}}`:                                                  "widget_settings.auto_open",
		`{"widget_settings":{"allowed_origins":"*"}}`:                                              "widget_settings.allowed_origins",
		`{"widget_settings":{"allowed_origins":["https://example.com/x"]}}`:                        "widget_settings.allowed_origins.0",
		`{"widget_settings":{"pre_chat_fields":[{"variable":"a","label":5}]}}`:                     "widget_settings.pre_chat_fields.0.label",
		`{"widget_settings":{"avatar_url":"x"}}`:                                                   "widget_settings.avatar_url",
	} {
		h.put(at, nil, raw(body), status(422)).fails(field)
	}
}
