package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/egress"
	"parley/internal/endpoint"
	"parley/internal/parley"
)

const endpointKey = "sk-the-account's-own-9876"

func endpointBody(name string) map[string]any {
	return map[string]any{"name": name, "kind": "llm", "protocol": "openai", "url": "https://llm.example.com/v1", "model": "qwen3",
		"api_key": endpointKey, "headers": []any{map[string]any{"name": "X-Team", "value": "the-team's-secret"}}}
}

// An endpoint's secrets are kept encrypted and never shown; what was read can be written back, and other servers don't get them.
func TestEndpointSecrets(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.post("/user/endpoints", endpointBody("mine"), status(201))
		at := fmt.Sprintf("/user/endpoints/%v", made.json()["data"].(map[string]any)["id"])
		for _, a := range []*answer{made, h.get(at, status(200)), h.get("/user/endpoints", status(200)), h.get("/user/audit", status(200))} {
			if strings.Contains(string(a.body), endpointKey) || strings.Contains(string(a.body), "team's-secret") {
				t.Errorf("a secret is shown: %s", a.body)
			}
		}
		whole := h.get(at).json()
		if _, shown := whole["api_key"]; shown || whole["key_hint"] != "9876" || fmt.Sprint(whole["headers"]) != "[map[name:X-Team value:]]" {
			t.Errorf("shown: %v", whole)
		}
		var stored string
		h.sql(&stored, "SELECT CAST(secrets AS TEXT) || url || name FROM endpoints")
		if strings.Contains(stored, endpointKey) {
			t.Error("the key is not encrypted")
		}
		var id int64
		h.sql(&id, "SELECT id FROM endpoints")
		secrets := func(want string) {
			t.Helper()
			e, err := h.db.Endpoint(t.Context(), h.user.ID, id)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(e.Key, e.Headers); got != want {
				t.Errorf("kept %s, want %s", got, want)
			}
		}
		both := endpointKey + "[{X-Team the-team's-secret}]"
		h.put(at, whole, status(200))
		h.put(at, map[string]any{"url": "https://llm.example.com/v2"}, status(200))
		secrets(both)
		h.put(at, map[string]any{"url": "https://evil.example.com/v2"}, status(200))
		secrets("[{X-Team }]")
		h.put(at, endpointBody("mine"), status(200))
		secrets(both)
		whole["url"] = "https://evil.example.com"
		h.put(at, whole, status(200))
		secrets("[{X-Team }]")
		h.put(at, endpointBody("mine"), status(200))
		h.put(at, map[string]any{"api_key": nil, "headers": []any{}}, status(200))
		secrets("[]")
		if log := h.get("/user/audit", status(200)).body; strings.Contains(string(log), endpointKey) ||
			strings.Contains(string(log), "team's-secret") {
			t.Errorf("the audit log has a secret: %s", log)
		}
	})
}

// Endpoints are their account's alone, follow their rules, and are named by assistants.
func TestEndpoints(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		id := h.post("/user/endpoints", endpointBody("mine"), status(201)).json()["data"].(map[string]any)["id"]
		h.post("/user/endpoints", voicesBody("a voice", "aura"), status(201))
		at := fmt.Sprintf("/user/endpoints/%v", id)
		h.post("/user/endpoints", endpointBody("mine"), status(422)).fails("name")
		for field, body := range map[string]map[string]any{
			"protocol":       {"protocol": "deepgram"},
			"model":          {"model": ""},
			"voices":         {"kind": "tts"},
			"kind":           {"kind": "model"},
			"url":            {"url": "ftp://example.com"},
			"headers.0.name": {"headers": []any{map[string]any{"name": "x-parley-call", "value": "1"}}},
			"wait_ms":        {"wait_ms": 40_000},
			"api_key":        {"api_key": "two words"},

			"voices.0.code":     {"kind": "tts", "voices": []any{map[string]any{"name": "Anna"}}},
			"voices.0.gender":   {"kind": "tts", "voices": []any{map[string]any{"code": "anna", "gender": "neuter"}}},
			"voices.0.language": {"kind": "tts", "voices": []any{map[string]any{"code": "anna", "language": "xx"}}},
			"voices.1.code":     {"kind": "tts", "voices": []any{map[string]any{"code": "anna"}, map[string]any{"code": "anna", "language": "de"}}},
		} {
			wrong := endpointBody("another")
			for k, v := range body {
				wrong[k] = v
			}
			h.post("/user/endpoints", wrong, status(422)).fails(field)
		}
		wrong := endpointBody("another")
		wrong["url"] = "wss://llm.example.com"
		h.post("/user/endpoints", wrong, status(422)).fails("url")
		other := h.stranger()
		for _, do := range []func() *answer{
			func() *answer { return other.get(at, status(404)) },
			func() *answer { return other.put(at, map[string]any{"name": "theirs"}, status(404)) },
			func() *answer { return other.delete(at, status(404)) },
			func() *answer { return other.post(at+"/test", nil, status(404)) },
		} {
			do()
		}
		if list := other.get("/user/endpoints", status(200)).json()["data"].([]any); len(list) != 0 {
			t.Errorf("a stranger sees %v", list)
		}
		h.delete(at, status(200))
		var log []string
		for _, e := range h.get("/user/audit?kind=endpoint", status(200)).json()["data"].([]any) {
			log = append(log, fmt.Sprint(e.(map[string]any)["action"]))
		}
		if strings.Join(log, " ") != "deleted created created" {
			t.Errorf("the audit log has %v", log)
		}
	})
}

// The list is the usual envelope, newest first.
func TestEndpointPages(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		for _, name := range []string{"b", "c", "a"} {
			h.post("/user/endpoints", endpointBody(name), status(201))
		}
		names := func(path string, total float64) (list string) {
			t.Helper()
			r := h.get(path, status(200)).json()
			for _, e := range r["data"].([]any) {
				list += e.(map[string]any)["name"].(string)
			}
			if got, _ := r["total"].(json.Number).Float64(); got != total {
				t.Errorf("%s: %v of %v", path, got, total)
			}
			return list
		}
		if got := names("/user/endpoints", 3); got != "acb" {
			t.Errorf("the list is %s", got)
		}
		if got := names("/user/endpoints?per_page=2&page=2", 3); got != "b" {
			t.Errorf("the second page is %s", got)
		}
	})
}

// An account has endpoints unless the operator turns them off; it has so many.
func TestEndpointReach(t *testing.T) {
	for reach, want := range map[string]int{endpoint.Off: 403, endpoint.Public: 201} {
		h := lite(t, func(c *api.Config) {
			c.Endpoints = endpoint.New(c.DB, egress.New(nil), c.Keys.Providers, reach, func(int64, string) {})
			c.Assistants.Endpoints = c.Endpoints
			t.Cleanup(c.Endpoints.Close)
		})
		h.post("/user/endpoints", endpointBody("mine"), status(want))
		if want != 201 {
			continue
		}
		for i := range parley.MaxEndpoints - 1 {
			h.post("/user/endpoints", endpointBody(fmt.Sprintf("mine %d", i)), status(201))
		}
		h.post("/user/endpoints", endpointBody("one more"), status(403))
	}
}

func voicesBody(name string, codes ...string) map[string]any {
	var voices []any
	for _, code := range codes {
		voices = append(voices, map[string]any{"code": code})
	}
	return map[string]any{"name": name, "kind": "tts", "protocol": "deepgram", "url": "https://v.example.com", "voices": voices}
}

// listed is the id of what a look-up lists by a code, nil where it doesn't. Of voices, that of English.
func (h *harness) listed(path, code string) any {
	for _, one := range h.get("/user/assistants/"+path, status(200)).list() {
		if language := one["language_id"]; one["code"] == code && (language == nil || fmt.Sprint(language) == "1") {
			return one["id"]
		}
	}
	return nil
}

// Endpoints are in the look-ups by ids of their own, which assistants name as they name any. What was chosen before takes over, and is
// there again when the endpoint is deleted.
func TestEndpointChosen(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		save := func(body map[string]any) string {
			return fmt.Sprintf("/user/endpoints/%v", h.post("/user/endpoints", body, status(201)).json()["data"].(map[string]any)["id"])
		}
		model := save(endpointBody("mine"))
		save(map[string]any{"name": "program", "kind": "agent", "protocol": "parley", "url": "wss://p.example.com"})
		recognizer := save(map[string]any{"name": "ear", "kind": "stt", "protocol": "deepgram", "url": "https://v.example.com"})
		speaks := save(voicesBody("speaks", "anna", "ben"))
		ids := map[string]any{"llm_model_id": h.listed("models?type=llm", "endpoint/mine"), "voice_id": h.listed("voices", "ben"),
			"transcriber_provider_id": h.listed("transcriber-providers", "endpoint/ear")}
		for field, id := range ids {
			if id == nil {
				t.Fatalf("no id for %s", field)
			}
		}
		program, provider := h.listed("models", "endpoint/program"), h.listed("synthesizer-providers", "endpoint/speaks")
		if program == nil || provider == nil || h.listed("models?type=multimodal", "endpoint/mine") != nil {
			t.Errorf("listed are %v %v", program, provider)
		}
		for _, one := range h.get("/user/assistants/voices?language_id=4", status(200)).list() {
			if one["code"] == "ben" && (one["name"] != "ben" || one["gender"] != "female" ||
				fmt.Sprint(one["language_id"]) != "4" || one["synthesizer_provider_id"] != provider) {
				t.Errorf("the voice is %v", one)
			}
		}

		models := slices.DeleteFunc(h.get("/user/assistants/models?type=llm", status(200)).list(),
			func(m map[string]any) bool { return strings.HasPrefix(m["code"].(string), "endpoint/") })
		if len(models) < 2 {
			t.Fatal("the first model is the only one")
		}
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(map[string]any{"llm_model_id": models[1]["id"]}))
		before := h.get(at, status(200)).json()
		h.put(at, ids, status(200))
		chosen := func() string {
			whole := h.get(at, status(200)).json()
			return fmt.Sprint(whole["llm_model_id"], " ", whole["voice_id"], " ", whole["transcriber_provider_id"])
		}
		want := fmt.Sprint(ids["llm_model_id"], " ", ids["voice_id"], " ", ids["transcriber_provider_id"])
		if got := chosen(); got != want {
			t.Errorf("the assistant has %s, want %s", got, want)
		}
		whole := h.get(at, status(200)).json()
		h.put(at, whole, status(200))
		if now := h.get(at, status(200)).json(); now["updated_at"] != whole["updated_at"] || chosen() != want {
			t.Errorf("what was shown and written back changed it: %v", now)
		}
		if one := h.get("/user/assistants", status(200)).list()[0]; one["llm_model_id"] != ids["llm_model_id"] {
			t.Errorf("the list has %v", one["llm_model_id"])
		}
		h.put(at, map[string]any{"voice_id": ids["voice_id"], "synthesizer_provider_id": provider}, status(200))
		if now := h.get(at, status(200)).json(); now["synthesizer_provider_id"] != nil {
			t.Errorf("the provider is %v", now["synthesizer_provider_id"])
		}

		// another account's, and one of another kind
		other := h.stranger()
		theirs := fmt.Sprintf("/user/assistant/%d", other.assistant(nil))
		for field, id := range ids {
			other.put(theirs, map[string]any{field: id}, status(422)).says(field, "The selected "+field+" is invalid.")
		}
		if other.listed("models", "endpoint/mine") != nil || other.listed("voices", "ben") != nil {
			t.Error("another account is offered the endpoints")
		}
		h.put(at, map[string]any{"llm_model_id": h.listed("transcriber-providers", "endpoint/ear")}, status(422)).
			says("llm_model_id", "The selected llm_model_id is invalid.")
		h.put(at, map[string]any{"fallback_llm_model_ids": []any{program}}, status(422)).fails("fallback_llm_model_ids.0")

		// a voice's id stays when the list changes, and comes back with its code
		h.put(speaks, voicesBody("speaks", "zoe", "anna"), status(200))
		h.put(at, h.get(at).json(), status(200))
		if got := chosen(); got != want {
			t.Errorf("after the change of voices the assistant has %s, want %s", got, want)
		}
		h.put(at, map[string]any{"voice_id": before["voice_id"]}, status(200))
		h.put(at, map[string]any{"voice_id": ids["voice_id"]}, status(422)).fails("voice_id")
		h.put(speaks, voicesBody("speaks", "ben", "zoe", "anna"), status(200))
		if got := h.listed("voices", "ben"); got != ids["voice_id"] {
			t.Errorf("the voice has the id %v, had %v", got, ids["voice_id"])
		}
		german := voicesBody("german", "karl")
		german["voices"].([]any)[0].(map[string]any)["language"] = "de"
		save(german)
		for _, one := range h.get("/user/assistants/voices", status(200)).list() {
			if one["code"] == "karl" {
				h.put(at, map[string]any{"voice_id": one["id"]}, status(422)).
					says("voice_id", "The voice_id field must name a voice that speaks the assistant's language.")
			}
		}

		// naming others leaves the endpoint
		h.put(at, map[string]any{"llm_model_id": program, "voice_id": ids["voice_id"]}, status(200))
		if now := h.get(at).json(); now["llm_model_id"] != program {
			t.Errorf("the model is %v", now["llm_model_id"])
		}
		h.put(at, map[string]any{"llm_model_id": before["llm_model_id"]}, status(200))
		if now := h.get(at).json(); now["llm_model_id"] != before["llm_model_id"] || now["voice_id"] != ids["voice_id"] {
			t.Errorf("the model is %v, the voice %v", now["llm_model_id"], now["voice_id"])
		}
		h.put(at, map[string]any{"mode": "multimodal", "llm_model_id": ids["llm_model_id"]}, status(422)).
			fails("llm_model_id", "multimodal_model_id", "voice_id")

		// a deleted one leaves what it was laid over
		h.put(at, ids, status(200))
		for _, path := range []string{model, recognizer, speaks} {
			h.delete(path, status(200))
		}
		if now, was := chosen(), fmt.Sprint(before["llm_model_id"], " ", before["voice_id"], " ", before["transcriber_provider_id"]); now != was {
			t.Errorf("after the deletion the assistant has %s, want %s", now, was)
		}
	})
}

// What the former version saved is as it was: its words are those of the rows still, and its one voice is the first.
func TestEndpointsSavedBefore(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.post("/user/endpoints", voicesBody("speaks", "anna"), status(201))
		h.post("/user/endpoints", map[string]any{"name": "program", "kind": "agent", "protocol": "parley",
			"url": "wss://p.example.com"}, status(201))
		var rows string
		h.sql(&rows, "SELECT max(part || ' ' || protocol || ' ' || voice) || ', ' || min(part || ' ' || protocol || ' ' || voice) FROM endpoints")
		if rows != "voice deepgram anna, model custom " {
			t.Errorf("the rows are %q", rows)
		}
		voice := h.listed("voices", "anna")
		var name string
		h.sql(&name, "UPDATE endpoints SET voices = '[]', voice_codes = '[]' WHERE part = 'voice' RETURNING name")
		var kinds []string
		for _, e := range h.get("/user/endpoints", status(200)).json()["data"].([]any) {
			one := e.(map[string]any)
			kinds = append(kinds, fmt.Sprint(one["kind"], " ", one["protocol"], " ", len(one["voices"].([]any))))
		}
		if got := strings.Join(kinds, ", "); got != "agent parley 0, tts deepgram 1" {
			t.Errorf("the endpoints are %s", got)
		}
		if got := h.listed("voices", "anna"); got != voice || voice == nil {
			t.Errorf("the voice is %v, was %v", got, voice)
		}
	})
}

// A new assistant may have endpoints from the beginning, and so may its copy and its draft; files have what takes over.
func TestEndpointChosenAtOnce(t *testing.T) {
	h := lite(t, nil)
	h.post("/user/endpoints", endpointBody("mine"), status(201))
	h.post("/user/endpoints", voicesBody("speaks", "anna"), status(201))
	model, voice := h.listed("models", "endpoint/mine"), h.listed("voices", "anna")
	id := h.assistant(map[string]any{"llm_model_id": model, "voice_id": voice})
	at := fmt.Sprintf("/user/assistants/%d", id)
	a, err := h.db.Assistant(t.Context(), h.user.ID, id)
	if err != nil || a.LLMModelID == nil || a.VoiceID == 0 || a.Endpoint("llm_model_id") == nil {
		t.Fatalf("%+v %v", a, err)
	}
	copied := h.post(at+"/duplicate", nil, status(201)).json()["data"].(map[string]any)
	if copied["llm_model_id"] != model || copied["voice_id"] != voice {
		t.Errorf("the copy has %v %v", copied["llm_model_id"], copied["voice_id"])
	}
	draft := h.put(at+"/draft", map[string]any{"name": "Other", "llm_model_id": *a.LLMModelID}, status(200)).json()["data"].(map[string]any)
	if fmt.Sprint(draft["changed"]) != "[name llm_model_id]" || draft["assistant"].(map[string]any)["voice_id"] != voice {
		t.Errorf("the draft has %v", draft["changed"])
	}
	of, err := h.api.Assistants.Drafted(t.Context(), h.user.ID, id)
	if err != nil || of.Endpoint("voice_id") == nil || of.Endpoint("llm_model_id") != nil {
		t.Errorf("the draft has the endpoints %v: %v", of.Endpoints, err)
	}
	draft = h.put(at+"/draft", map[string]any{"llm_model_id": model}, status(200)).json()["data"].(map[string]any)
	if fmt.Sprint(draft["changed"]) != "[name]" {
		t.Errorf("the draft has %v", draft["changed"])
	}
	text, _, err := h.api.Assistants.ExportYAML(t.Context(), h.user.ID, id)
	if err != nil || !strings.Contains(string(text), "llm_model: endpoint/mine") ||
		!strings.Contains(string(text), "voice: endpoint/speaks/anna") {
		t.Errorf("the file is\n%s%v", text, err)
	}
	read, left, err := h.api.Assistants.ImportYAML(t.Context(), h.user.ID, text)
	if err != nil || read.LLMEndpointID == nil || read.VoiceEndpointID == nil {
		t.Errorf("of the file came %+v without %v: %v", read, left, err)
	}
	file := h.get(at+"/export", status(200)).json()
	if got := fmt.Sprint(file["assistant"].(map[string]any)["voice_id"]); got != fmt.Sprint(a.VoiceID) {
		t.Errorf("the file has the voice %s", got)
	}
}

// A test measures an endpoint and says what it lacks; where the guard refuses the address it says so. No secret is in it.
func TestEndpointMeasured(t *testing.T) {
	h := lite(t, nil)
	model := aitest.NewServer(t)
	model.Models = []string{"qwen3"}
	body := endpointBody("mine")
	body["url"] = model.URL
	at := fmt.Sprintf("/user/endpoints/%v", h.post("/user/endpoints", body, status(201)).json()["data"].(map[string]any)["id"])
	measure := func() string {
		var text []string
		r := h.post(at+"/test", nil, status(200)).json()
		for _, f := range r["findings"].([]any) {
			one := f.(map[string]any)
			text = append(text, fmt.Sprint(one["what"], " ", one["state"]))
		}
		return fmt.Sprint(r["ok"], " ", strings.Join(text, ", "))
	}
	model.Script(aitest.Behaviour{Text: "one, two, three, four, five, six, seven, eight."},
		aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c", Name: "code_of_the_day", Arguments: "{}"}}}, aitest.Behaviour{Text: "It is blue-742."},
		aitest.Behaviour{Text: "one, two, three, four, five, six, seven, eight."}, aitest.Behaviour{Text: "stopped."})
	if got := measure(); got != "true first_token ok, streaming ok, tools ok, cancel ok" {
		t.Errorf("measured %s", got)
	}
	model.Script(aitest.Behaviour{Text: "one, two, three, four, five, six, seven, eight."}, aitest.Behaviour{Text: "I have no such tool."},
		aitest.Behaviour{Text: "one, two, three, four, five, six, seven, eight."}, aitest.Behaviour{Text: "stopped."})
	if got := measure(); got != "false first_token ok, streaming ok, tools missing, cancel ok" {
		t.Errorf("measured %s", got)
	}
	model.Script(aitest.Behaviour{Status: 401, Message: "no such key: " + endpointKey})
	a := h.post(at+"/test", nil, status(200))
	if strings.Contains(string(a.body), endpointKey) || !strings.Contains(string(a.body), "failed") {
		t.Errorf("answered %s", a.body)
	}
	h.put(at, map[string]any{"url": "http://[fd00::1]:9"}, status(200))
	if a := h.post(at+"/test", nil, status(200)); !strings.Contains(string(a.body), egress.Setting) {
		t.Errorf("answered %s", a.body)
	}
	n, last := 0, 200 // while requests are made, a slow machine's clock allows more of them
	for ; last == 200 && n < 60; n++ {
		last = h.post(at+"/test", nil).status
	}
	if last != 429 {
		t.Errorf("test %d was answered with %d", n, last)
	}
}
