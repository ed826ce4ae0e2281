package api_test

import (
	"fmt"
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
	return map[string]any{"name": name, "part": "model", "protocol": "openai", "url": "https://llm.example.com/v1", "model": "qwen3",
		"key": endpointKey, "headers": []any{map[string]any{"name": "X-Team", "value": "the-team's-secret"}}}
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
		if whole["key"] != "" || whole["key_hint"] != "9876" || fmt.Sprint(whole["headers"]) != "[map[name:X-Team value:]]" {
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
		h.put(at, map[string]any{"key": nil, "headers": []any{}}, status(200))
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
		voice := map[string]any{"name": "a voice", "part": "voice", "protocol": "deepgram", "url": "https://v.example.com", "voice": "aura"}
		spoken := h.post("/user/endpoints", voice, status(201)).json()["data"].(map[string]any)["id"]
		at := fmt.Sprintf("/user/endpoints/%v", id)
		h.post("/user/endpoints", endpointBody("mine"), status(422)).fails("name")
		for field, body := range map[string]map[string]any{
			"protocol":       {"protocol": "deepgram"},
			"model":          {"model": ""},
			"voice":          {"part": "voice"},
			"url":            {"url": "ftp://example.com"},
			"headers.0.name": {"headers": []any{map[string]any{"name": "x-parley-call", "value": "1"}}},
			"wait_ms":        {"wait_ms": 40_000},
			"key":            {"key": "two words"},
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
		if list := other.get("/user/endpoints", status(200)).list(); len(list) != 0 {
			t.Errorf("a stranger sees %v", list)
		}
		const llm, speaks, hears = "llm_endpoint_id", "voice_endpoint_id", "transcriber_endpoint_id"
		theirs := fmt.Sprintf("/user/assistant/%d", other.assistant(nil))
		other.put(theirs, map[string]any{llm: id}, status(422)).fails(llm)
		mine := fmt.Sprintf("/user/assistant/%d", h.assistant(nil))
		h.put(mine, map[string]any{llm: spoken}, status(422)).fails(llm)
		h.put(mine, map[string]any{hears: id}, status(422)).fails(hears)
		h.put(mine, map[string]any{llm: id, speaks: spoken}, status(200))
		got := h.get(mine).json()
		if got[llm] != id || got[speaks] != spoken || got[hears] != nil {
			t.Errorf("the assistant has %v %v %v", got[llm], got[speaks], got[hears])
		}
		h.delete(at, status(200))
		if got := h.get(mine).json(); got[llm] != nil || got[speaks] != spoken {
			t.Errorf("after the deletion the assistant has %v %v", got[llm], got[speaks])
		}
		var log []string
		for _, e := range h.get("/user/audit?kind=endpoint", status(200)).json()["data"].([]any) {
			log = append(log, fmt.Sprint(e.(map[string]any)["action"]))
		}
		if strings.Join(log, " ") != "deleted created created" {
			t.Errorf("the audit log has %v", log)
		}
	})
}

// Who may have endpoints is the operator's to say; an account has so many.
func TestEndpointMakers(t *testing.T) {
	for makers, want := range map[string]int{"none": 403, "default": 201, "trial": 403} {
		h := lite(t, func(c *api.Config) {
			c.Endpoints = endpoint.New(c.DB, egress.New(nil), c.Keys.Providers, []string{makers}, func(int64, string) {})
			t.Cleanup(c.Endpoints.Close)
		})
		h.post("/user/endpoints", endpointBody("mine"), status(want))
		if want != 201 {
			continue
		}
		for i := range parley.MostEndpoints - 1 {
			h.post("/user/endpoints", endpointBody(fmt.Sprintf("mine %d", i)), status(201))
		}
		h.post("/user/endpoints", endpointBody("one more"), status(403))
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
