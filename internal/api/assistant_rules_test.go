package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

// oneOf are the fields with a fixed set of values.
var oneOf = map[string]string{"type": "inbound, outbound", "mode": "pipeline, multimodal, dualplex",
	"status":             "active, inactive",
	"knowledgebase_mode": "function_call, prompt", "ambient_sound": "off, office, city, forest, crowded_room, cafe, nature",
	"endpoint_type": "vad, ai"}

// between are the bounds of numbers (decisions 3). The test also tries a step beyond them.
var between = map[string]struct{ low, high, step float64 }{
	"llm_temperature": {0, 1, .01}, "voice_stability": {0, 1, .01}, "voice_similarity": {0, 1, .01},
	"speech_speed":         {.7, 1.2, .01},
	"ambient_sound_volume": {0, 1, .001}, "min_interrupt_words": {0, 10, 1}, "interrupt_sensitivity": {0, 5, .01},
	"endpoint_sensitivity": {0, 5, .01},
	"max_duration":         {20, 3600, 1}, "max_silence_duration": {1, 360, 1}, "reengagement_interval": {1, 600, 1},
	"ringing_time":                    {1, 120, 1},
	"conversation_inactivity_timeout": {1, 1440, 1},
}

// longest is the most characters that a text may have.
var longest = map[string]int{"name": 255, "system_prompt": 100_000, "initial_message": 1000,
	"reengagement_prompt": 1000, "voice_mail_message": 1000}

func TestAssistantBounds(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(nil))
		for field, values := range oneOf {
			for _, bad := range []string{"nope", strings.ToUpper(strings.Split(values, ", ")[0])} {
				h.put(at, map[string]any{field: bad}, status(422)).says(field, "The "+field+
					" field must be one of: "+values+".")
			}
			want := "must be one of: " + values + "." // empty is not one of them
			if slices.Contains(assistantRequired, field) {
				want = "is required."
			}
			h.put(at, map[string]any{field: " "}, status(422)).says(field, "The "+field+" field "+want)
			for _, good := range strings.Split(values, ", ") {
				if field != "mode" && (field != "knowledgebase_mode" || good != "prompt") {
					h.put(at, map[string]any{field: " " + good + " "}, status(200))
				}
			}
		}
		text := func(x float64) string { b, _ := json.Marshal(x); return string(b) }
		for field, b := range between {
			for _, good := range []float64{b.low, b.high} {
				got := h.put(at, map[string]any{field: good}, status(200)).json()["data"].(map[string]any)[field]
				want := any(json.Number(text(good)))
				if assistantKinds[field] == "text" {
					want = fmt.Sprintf("%.2f", good)
					h.put(at, map[string]any{field: " " + text(good) + " "}, status(200)) // numeric text
					h.put(at, map[string]any{field: text(b.high + b.step)}, status(422)).fails(field)
				}
				if got != want {
					t.Errorf("%s %v came back as %v", field, good, got)
				}
			}
			h.put(at, map[string]any{field: b.low - b.step}, status(422)).says(field, "The "+field+
				" field must be at least "+text(b.low)+".")
			h.put(at, map[string]any{field: b.high + b.step}, status(422)).says(field, "The "+field+
				" field must not be greater than "+text(b.high)+".")
			h.put(at, nil, raw(`{"`+field+`":1e308}`), status(422)).fails(field)
			h.put(at, nil, raw(`{"`+field+`":-1e308}`), status(422)).fails(field)
		}
		h.put(at, nil, raw(`{"max_duration":6e1,"llm_temperature":5e-1}`), status(200))
		if got := h.get(at).json(); got["max_duration"] != json.Number("60") || got["llm_temperature"] != "0.50" {
			t.Errorf("exponents became %v and %v", got["max_duration"], got["llm_temperature"])
		}
		for field, n := range longest {
			for _, char := range []string{"a", "é", "😀"} {
				h.put(at, map[string]any{field: strings.Repeat(char, n)}, status(200))
				h.put(at, map[string]any{field: strings.Repeat(char, n+1)}, status(422)).says(field,
					fmt.Sprintf("The %s field must not be greater than %d characters.", field, n))
			}
		}
		for _, field := range []string{"webhook_url", "inbound_webhook_url", "conversation_ended_webhook_url"} {
			for _, bad := range []string{"x", "example.com/hook", "ftp://example.com", "//example.com", "http://",
				"https://a b", "mailto:a@b.c"} {
				h.put(at, map[string]any{field: bad}, status(422)).says(field, "The "+field+
					" field must be a valid URL.")
			}
			h.put(at, map[string]any{field: "https://example.com/hook?x=1#y"}, status(200))
			if got := h.put(at, map[string]any{field: " "},
				status(200)).json()["data"].(map[string]any)[field]; got != nil {
				t.Errorf("an emptied %s is %v", field, got)
			}
		}
		for _, bad := range []string{"Mars/Olympus", "local", "Local", "CEST+2", "../../etc/passwd",
			"/etc/localtime", "Europe/../Europe/Berlin", strings.Repeat("x", 64)} {
			h.put(at, map[string]any{"timezone": bad}, status(422)).says("timezone",
				"The timezone field must be a valid IANA time zone such as Europe/Berlin.")
		}
		for _, bad := range []map[string]any{{"name": "ab"}, {"name": strings.Repeat("a", 17)}, {"name": "Abc"},
			{"name": "a b"}, {"name": "äbc"}, {"name": ""},
			{"type": "boolean"}, {"type": ""}, {"description": "ab"}, {"description": strings.Repeat("é", 256)}} {
			item := with(map[string]any{"name": "abc", "type": "bool", "description": "abc"}, bad)
			for field := range bad {
				h.put(at, map[string]any{"post_call_schema": []any{item}},
					status(422)).fails("post_call_schema.0." + field)
			}
		}
		item := map[string]any{"name": "a_1", "type": "number", "description": strings.Repeat("é", 255)}
		h.put(at, map[string]any{"post_call_schema": []any{item}}, status(200))
		h.put(at, map[string]any{"post_call_schema": []any{item, item}},
			status(422)).says("post_call_schema.1.name", "The post_call_schema.1.name field has a duplicate value.")
	})
}

func TestAssistantCrossFieldRules(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		german := h.voice("pipeline", 4)
		multi := map[string]any{"mode": "multimodal", "voice_id": h.voice("multimodal", 1),
			"multimodal_model_id": h.model("multimodal"), "llm_model_id": nil}
		dual := map[string]any{"mode": "dualplex", "multimodal_model_id": h.model("dualplex"), "llm_model_id": nil}
		voices := h.get("/user/assistants/voices?mode=pipeline&language_id=1").list()
		provider := func(v map[string]any) json.Number { n, _ := v["synthesizer_provider_id"].(json.Number); return n }
		own := provider(voices[0])
		var alien json.Number
		for _, p := range h.get("/user/assistants/synthesizer-providers").list() {
			if p["id"] != own {
				alien = p["id"].(json.Number)
			}
		}
		listens := h.first("/user/assistants/transcriber-providers?language_id=1")
		both := func(a, b map[string]any) map[string]any {
			out := map[string]any{}
			for k, v := range a {
				out[k] = v
			}
			for k, v := range b {
				out[k] = v
			}
			return out
		}
		for _, c := range []struct {
			name   string
			change map[string]any
			fields string // the fields that fail, separated by spaces
		}{
			{"nothing", nil, ""},
			{"pipeline without its model", map[string]any{"llm_model_id": nil}, "llm_model_id"},
			{"multimodal", multi, ""},
			{"dualplex", dual, ""},
			{"multimodal without its model", both(multi, map[string]any{"multimodal_model_id": nil}),
				"multimodal_model_id"},
			{"dualplex without its model", both(dual, map[string]any{"multimodal_model_id": nil}),
				"multimodal_model_id"},
			{"multimodal with a dualplex model", both(multi,
				map[string]any{"multimodal_model_id": h.model("dualplex")}), "multimodal_model_id"},
			{"a model of the other kind", map[string]any{"llm_model_id": h.model("multimodal")}, "llm_model_id"},
			{"a text model as multimodal", both(multi, map[string]any{"multimodal_model_id": h.model("llm")}),
				"multimodal_model_id"},
			{"unknown model", map[string]any{"llm_model_id": 999999}, "llm_model_id"},
			{"negative model", map[string]any{"llm_model_id": -1}, "llm_model_id"},
			{"unknown voice", map[string]any{"voice_id": 999999999}, "voice_id"},
			{"voice zero", map[string]any{"voice_id": 0}, "voice_id"},
			{"language zero", map[string]any{"language_id": 0}, "language_id"},
			{"unknown language", map[string]any{"language_id": 999}, "language_id"},
			{"a voice of another language", map[string]any{"voice_id": german}, "voice_id"},
			{"a voice of another mode", map[string]any{"voice_id": multi["voice_id"]}, "voice_id"},
			{"multimodal with a pipeline voice", with(multi, map[string]any{"voice_id": voices[0]["id"]}), "voice_id"},
			{"the voice's provider", map[string]any{"synthesizer_provider_id": own}, ""},
			{"another provider than the voice's", map[string]any{"synthesizer_provider_id": alien},
				"synthesizer_provider_id"},
			{"unknown provider", map[string]any{"synthesizer_provider_id": 12345}, "synthesizer_provider_id"},
			{"a transcriber", map[string]any{"transcriber_provider_id": listens}, ""},
			{"unknown transcriber", map[string]any{"transcriber_provider_id": 12345}, "transcriber_provider_id"},
			{"a transcriber outside pipeline", both(multi, map[string]any{"transcriber_provider_id": listens}),
				"transcriber_provider_id"},
			{"no interruptions outside pipeline", both(multi, map[string]any{"allow_interruptions": false}),
				"allow_interruptions"},
			{"no interruptions in pipeline", map[string]any{"allow_interruptions": false}, ""},
			{"fillers outside pipeline", both(dual, map[string]any{"fillers": 1}), "fillers"},
			{"backchannels outside pipeline", both(dual, map[string]any{"backchannels": true}), "backchannels"},
			{"backchannels", map[string]any{"backchannels": true}, ""},
			{"no background speech outside pipeline", both(dual, map[string]any{"background_speech_cancellation": true}), ""},
			{"background speech as a word", map[string]any{"background_speech_cancellation": "quiet"}, "background_speech_cancellation"},
			{"fillers as a boolean", map[string]any{"fillers": true}, ""},
			{"knowledge in the prompt outside pipeline",
				both(multi, map[string]any{"knowledgebase_mode": "prompt"}), "knowledgebase_mode"},
			{"a webhook without its URL", map[string]any{"is_webhook_active": true}, "webhook_url"},
			{"a webhook with an empty URL", map[string]any{"is_webhook_active": true, "webhook_url": ""},
				"webhook_url"},
			{"a webhook with a bad URL", map[string]any{"is_webhook_active": true, "webhook_url": "x"}, "webhook_url"},
			{"an unknown number", map[string]any{"phone_number_id": 99}, "phone_number_id"},
			{"an unknown knowledgebase", map[string]any{"knowledgebase_id": 99}, "knowledgebase_id"},
			{"unknown tools", map[string]any{"tool_ids": []any{98, 99}}, "tool_ids.0 tool_ids.1"},
			{"the largest id", map[string]any{"tool_ids": []any{int64(1<<63 - 1)},
				"phone_number_id": int64(1<<63 - 1)}, "tool_ids.0 phone_number_id"},
			{"rules of both sorts", both(multi, map[string]any{"name": "", "max_duration": 5, "fillers": 1,
				"is_webhook_active": true}), "name max_duration fillers webhook_url"},
		} {
			body := with(h.assistantBody(), c.change)
			a := h.post("/user/assistant", body)
			if fields := strings.Fields(c.fields); len(fields) > 0 {
				a.TB = h.in(t).TB
				if got := a.fails(fields...); got == nil || t.Failed() {
					t.Fatalf("%s", c.name)
				}
			} else if a.status != 201 {
				t.Errorf("%s: %s", c.name, a.body)
			}
		}
		h.post("/user/assistant", with(h.assistantBody(), map[string]any{"llm_model_id": 999999}),
			status(422)).says("llm_model_id", "The selected llm_model_id is invalid.")
		h.post("/user/assistant", nil, status(422)).fails(assistantRequired...)
		// The assistant is validated after the change is merged: its mode can't change while it has settings that the
		// mode forbids.
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(map[string]any{"fillers": 1, "allow_interruptions": false}))
		h.put(at, map[string]any{"mode": "dualplex"}, status(422)).fails("multimodal_model_id")
		// it is unchanged
		h.put(at, map[string]any{"mode": "dualplex", "fillers": 1, "allow_interruptions": false},
			status(422)).fails("multimodal_model_id")
		h.put(at, map[string]any{"language_id": 4}, status(422)).fails("voice_id")
		h.put(at, map[string]any{"language_id": 4, "voice_id": german}, status(200))
		if got := h.get(at).json()["language"]; got != "de" {
			t.Errorf("language %v", got)
		}
	})
}

func TestAssistantForeignThings(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		other := h.stranger()
		number := func(u *parley.User, phone string, kind parley.NumberType) int64 {
			n := &parley.Number{PhoneNumber: phone, CountryCode: "US", Type: kind}
			h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, u.ID, n) })
			return n.ID
		}
		theirs, own := number(other.user, "+14155552670", parley.NumberNormal),
			number(h.user, "+14155552671", parley.NumberNormal)
		shown := number(h.user, "+14155552672", parley.NumberCallerID)
		trunk := number(h.user, "+14155552673", parley.NumberSIP)
		post := func(change map[string]any) *answer {
			t.Helper()
			return h.post("/user/assistant", with(h.assistantBody(), change))
		}
		tool, alien, peer := h.tool(nil), other.tool(nil), other.assistant(nil)
		post(map[string]any{"phone_number_id": theirs}).says("phone_number_id",
			"The selected phone_number_id is invalid.")
		post(map[string]any{"tool_ids": []any{tool, alien}}).says("tool_ids.1", "The selected tool_ids.1 is invalid.")
		post(map[string]any{"tool_ids": []any{tool, tool}}).says("tool_ids.1",
			"The tool_ids.1 field has a duplicate value.")
		post(map[string]any{"tools": []any{map[string]any{"type": "mid_call", "id": alien}}}).fails("tool_ids.0")
		post(map[string]any{"tools": []any{map[string]any{"type": "assistant_transfer",
			"assistant_id": peer}}}).fails("tools.0.assistant_id")
		post(map[string]any{"phone_number_id": shown}).says("phone_number_id",
			"The phone_number_id field must not be a caller-id number on an inbound assistant.")
		post(map[string]any{"phone_number_id": shown, "type": "outbound"})
		if n := len(h.get("/user/assistants").list()); n != 1 {
			t.Errorf("%d assistants were made", n)
		}

		first := h.assistant(map[string]any{"phone_number_id": own})
		taken := "The phone_number_id field is already assigned to another inbound assistant."
		post(map[string]any{"phone_number_id": own}).says("phone_number_id", taken)
		out := h.assistant(map[string]any{"phone_number_id": own, "type": "outbound"})
		h.put(fmt.Sprintf("/user/assistant/%d", out), map[string]any{"type": "inbound"},
			status(422)).says("phone_number_id", taken)
		h.put(fmt.Sprintf("/user/assistant/%d", first), map[string]any{"phone_number_id": own, "name": "x"},
			status(200))

		available := func(query string) (s string) {
			for _, n := range h.get("/user/assistants/phone-numbers"+query, status(200)).list() {
				s += fmt.Sprint(n["id"], " ", n["type_label"], " ", n["is_available"], "; ")
			}
			return s
		}
		if got, want := available(""), fmt.Sprintf("%d SIP true; %d Caller ID false; %d Normal false; ", trunk,
			shown, own); got != want || available("?type=outbound") != want {
			t.Errorf("numbers: %s, want %s", got, want)
		}
		if got, want := available("?type=inbound"), fmt.Sprintf("%d SIP true; ", trunk); got != want {
			t.Errorf("numbers for inbound: %s, want %s", got, want)
		}
		h.get("/user/assistants/phone-numbers?type=web", status(422)).fails("type")
		h.delete(fmt.Sprintf("/user/assistant/%d", first), status(200)) // frees the number
		h.put(fmt.Sprintf("/user/assistant/%d", out), map[string]any{"type": "inbound"}, status(200))
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteNumber(ctx, h.user.ID, own) })
		if got := h.get(fmt.Sprintf("/user/assistant/%d", out)).json()["phone_number_id"]; got != nil {
			t.Errorf("a number that is gone is still %v", got)
		}
	})
}

func TestAssistantBuiltInTools(t *testing.T) {
	h := lite(t, nil)
	tool, peer := h.tool(nil), h.assistant(nil)
	self := h.assistant(nil)
	at := fmt.Sprintf("/user/assistant/%d", self)
	mid := fmt.Sprintf(`{"type":"mid_call","id":%d},`, tool)
	for _, c := range []struct{ tools, field, shown string }{
		{`{"type":"end_call"}`, "", `{"type":"end_call"}`},
		{`{"type":"collect_keypad"}`, "", `{"type":"collect_keypad","timeout":5,"stop_key":"#"}`},
		{`{"type":"collect_keypad","timeout":30,"stop_key":"*"}`, "",
			`{"type":"collect_keypad","timeout":30,"stop_key":"*"}`},
		{`{"type":"collect_keypad","timeout":0}`, "tools.0.timeout", ""},
		{`{"type":"collect_keypad","timeout":31}`, "tools.0.timeout", ""},
		{`{"type":"collect_keypad","stop_key":"1"}`, "tools.0.stop_key", ""},
		{`{"type":"call_transfer"}`, "tools.0.phone_number", ""},
		{`{"type":"call_transfer","phone_number":"1"}`, "tools.0.phone_number", ""},
		{`{"type":"call_transfer","phone_number":"sip:0301234567@pbx.example.com"}`, "tools.0.phone_number", ""},
		{`{"type":"call_transfer","phone_number":" 123 "}`, "", `{"type":"call_transfer","phone_number":"123"}`},
		{`{"type":"call_transfer","phone_number":"sip:sales@pbx.example.com:5070"}`, "",
			`{"type":"call_transfer","phone_number":"sip:sales@pbx.example.com:5070"}`},
		{`{"type":"call_transfer","phone_number":"+1 (415) 555-2671","description":"Sales","warm_transfer":false}`, "",
			`{"type":"call_transfer","phone_number":"+14155552671","description":"Sales","warm_transfer":false}`},
		{`{"type":"warm_call_transfer"}`, "tools.0.supervisor_phone", ""},
		{`{"type":"warm_call_transfer","supervisor_phone":"1"}`, "tools.0.supervisor_phone", ""},
		{`{"type":"warm_call_transfer","supervisor_phone":"204","outbound_phone_id":99}`, "tools.0.outbound_phone_id", ""},
		{`{"type":"warm_call_transfer","supervisor_phone":"204","caller_id_mode":"mine"}`, "tools.0.caller_id_mode", ""},
		{`{"type":"warm_call_transfer","supervisor_phone":"204","hold_music":"jazz"}`, "tools.0.hold_music", ""},
		{`{"type":"warm_call_transfer","supervisor_phone":"204","hold_music_volume":101}`, "tools.0.hold_music_volume", ""},
		{`{"type":"warm_call_transfer","supervisor_phone":"+1 (415) 555-2671","outbound_phone_id":null,"hold_music":"none","connected_message":"Hi."}`, "",
			`{"type":"warm_call_transfer","supervisor_phone":"+14155552671","caller_id_mode":"outbound_number","hold_music":"none","hold_music_volume":80,"connected_message":"Hi."}`},
		{`{"type":"assistant_transfer"}`, "tools.0.assistant_id", ""},
		{`{"type":"assistant_transfer","assistant_id":99}`, "tools.0.assistant_id", ""},
		{fmt.Sprintf(`{"type":"assistant_transfer","assistant_id":%d}`, self), "tools.0.assistant_id", ""},
		{fmt.Sprintf(`{"type":"assistant_transfer","assistant_id":%d}`, peer), "",
			fmt.Sprintf(`{"type":"assistant_transfer","assistant_id":%d}`, peer)},
		{`{"type":"end_call"},{"type":"end_call"}`, "tools.1.type", ""},
		// The position is the one in the request, also behind an entry that stands for tool_ids.
		{mid + `{"type":"call_transfer","phone_number":"x"}`, "tools.1.phone_number", ""},
		{mid + mid + `{"type":"assistant_transfer","assistant_id":99}`, "tools.2.assistant_id", ""},
	} {
		a := h.put(at, nil, raw(`{"tools":[`+c.tools+`],"tool_ids":[]}`))
		if c.field != "" {
			a.fails(c.field)
			continue
		}
		var got struct {
			Data struct{ Tools json.RawMessage }
		}
		a.decode(&got)
		if string(got.Data.Tools) != "["+c.shown+"]" {
			t.Errorf("%s is shown as %s", c.tools, got.Data.Tools)
		}
	}
}
