package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/internal/assistant"
	"parley/internal/parley"
	"parley/internal/store"
)

// sendFile sends a file as the form on the page does.
func (v *visitor) sendFile(path string, content []byte) *reply {
	v.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "assistant.json")
	part.Write(content)
	w.Close()
	res, err := v.client.Post(v.harness.url+path, w.FormDataContentType(), &b)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return &reply{v.t, res.StatusCode, res.Header, string(raw)}
}

// exported is an assistant that uses everything, as a file exported by another user.
func exported(t *testing.T, h *harness, u *parley.User) (*parley.Assistant, []byte) {
	t.Helper()
	a, night, tool := h.assistant(t, u, "Front/desk “ä”"), h.assistant(t, u, "Night shift"), h.tool(t, u, "look_up")
	k := &parley.Knowledgebase{Name: "Opening hours"}
	if err := h.DB.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.CreateKnowledgebase(ctx, u.ID, k)
	}); err != nil {
		t.Fatal(err)
	}
	a, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		treeOf(map[string]any{"status": "active", "knowledgebase_id": k.ID, "tool_ids": []int64{tool.ID},
			"webhook_url":       "https://hooks.example.com/token",
			"is_webhook_active": true, "speech_speed": 1.1, "keywords": []string{"Acme"},
			"widget_settings": map[string]any{"color": "#ff0000"},
			"tools": []any{map[string]any{"type": "end_call"},
				map[string]any{"type": "assistant_transfer", "assistant_id": night.ID, "description": "At night"}}}))
	if err != nil {
		t.Fatal(err)
	}
	r := h.signedIn(t, u).get("/assistants/" + id(a.ID) + "/export").is(http.StatusOK)
	if got := r.header.Get("Content-Disposition"); got != "attachment; filename=front-desk-a.yaml" {
		t.Errorf("it is called %s", got)
	}
	for _, private := range []string{a.UUID, "hooks.example.com", "very-secret", "tool_ids", "assistant_id", "user_id", "\nstatus:",
		"phone_number"} {
		if strings.Contains(r.body, private) {
			t.Errorf("the file holds %s", private)
		}
	}
	return a, []byte(r.body)
}

// exportedJSON is the assistant of exported as the API exports it.
func exportedJSON(t *testing.T, h *harness, u *parley.User) []byte {
	t.Helper()
	a, _ := exported(t, h, u)
	f, err := h.Assistants.Export(t.Context(), u.ID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAssistantGoesAsAFile(t *testing.T) {
	h := open(t)
	u, other := h.user(t), h.user(t)
	a, file := exported(t, h, u)
	h.visitor(t).get("/assistants/" + id(a.ID) + "/export").is(http.StatusSeeOther)
	h.signedIn(t, other).get("/assistants/" + id(a.ID) + "/export").is(http.StatusNotFound)
	newest := func(u *parley.User) *parley.Assistant {
		t.Helper()
		list, err := h.DB.Assistants(t.Context(), u.ID, "")
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		return &list[slices.IndexFunc(list, func(x parley.Assistant) bool {
			return !slices.ContainsFunc(list, func(y parley.Assistant) bool { return y.ID > x.ID })
		})]
	}

	// Where everything that it names exists, the import is the same again.
	h.signedIn(t, u).sendFile("/assistants/import", file).is(http.StatusOK).says("Everything in the file was imported.")
	twin := newest(u)
	f, err := h.Assistants.Export(t.Context(), u.ID, a.ID) // with the fields that files have
	if err != nil {
		t.Fatal(err)
	}
	want := treeOf(a)
	for name := range want {
		if _, there := f.Assistant[name]; !there || name == "tools" || name == "post_call_json_schema" && a.PostCallShown {
			delete(want, name)
		}
	}
	got := treeOf(twin)
	for name, v := range want {
		if x, y := asJSON(v), asJSON(got[name]); x != y {
			t.Errorf("%s: %s became %s", name, x, y)
		}
	}
	if twin.ID == a.ID || twin.UUID == a.UUID || twin.Status != "inactive" || twin.WebhookURL != nil ||
		twin.IsWebhookActive || len(twin.ToolIDs) != 1 || twin.KnowledgebaseID == nil ||
		len(twin.Tools) != 2 || *twin.Tools[1].AssistantID != *a.Tools[1].AssistantID {
		t.Errorf("the twin is %+v", twin)
	}

	// Where it does not, the page says what was left out.
	r := h.signedIn(t, other).sendFile("/assistants/import", file).is(http.StatusOK)
	for _, left := range []string{"“Opening hours”: you have none", "The tool look_up: you have none",
		"Handing over to “Night shift”"} {
		r.says(left)
	}
	if theirs := newest(other); theirs.Name != a.Name || len(theirs.ToolIDs) != 0 ||
		theirs.KnowledgebaseID != nil || len(theirs.Tools) != 1 || theirs.SystemPrompt != a.SystemPrompt {
		t.Errorf("%+v", theirs)
	}
}

func asJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// Files that were written by hand, or come from a server with more features.
func TestAssistantFilesOfOthers(t *testing.T) {
	h := open(t)
	u := h.user(t)
	file := exportedJSON(t, h, h.user(t))
	v := h.signedIn(t, u)
	with := func(change func(f *assistant.File)) []byte {
		var f assistant.File
		if err := json.Unmarshal(file, &f); err != nil {
			t.Fatal(err)
		}
		change(&f)
		raw, _ := json.Marshal(f)
		return raw
	}
	for _, c := range []struct {
		change func(f *assistant.File)
		says   string
	}{
		{func(f *assistant.File) { f.LLMModel = "gpt-99" }, "The language model gpt-99: it is not available here"},
		{func(f *assistant.File) { f.Assistant["voice_id"] = 424242 }, "The voice: it is not available here"},
		{func(f *assistant.File) { f.Assistant["transcriber_provider_id"] = 99 },
			"The transcription provider: it is not available here"},
		{func(f *assistant.File) { f.Assistant["mode"], f.MultimodalModel = "multimodal", "gpt-ear" },
			"so the mode is pipeline"},
		{func(f *assistant.File) { f.Assistant["webhook_url"] = "https://evil.example.com" },
			"Webhook url: it belongs to the server"},
		{func(f *assistant.File) { f.Assistant["telepathy"] = true }, "Telepathy: this server doesn't know it."},
		{func(f *assistant.File) { f.Assistant["max_duration"] = 7 },
			"Max duration: The max_duration field must be at least 20"},
	} {
		v.sendFile("/assistants/import", with(c.change)).is(http.StatusOK).says(c.says)
	}
	list, err := h.DB.Assistants(t.Context(), u.ID, "")
	if err != nil || len(list) != 7 {
		t.Fatal(len(list), err)
	}
	for _, a := range list {
		if a.WebhookURL != nil || a.Status != "inactive" {
			t.Errorf("%+v", a)
		}
	}
	for name, raw := range map[string][]byte{"nothing": nil, "no JSON": []byte("<html>"), "a list": []byte("[1]"),
		"of something else":    []byte(`{"format": "x"}`),
		"without a name":       with(func(f *assistant.File) { delete(f.Assistant, "name") }),
		"a language of nobody": with(func(f *assistant.File) { f.Assistant["language_id"] = 999999 }),
		"a field of nobody":    []byte("name: x\ntelepathy: true\n"),
		"wrong types":          with(func(f *assistant.File) { f.Assistant["name"], f.Assistant["tools"] = 7, "x" })} {
		r := v.sendFile("/assistants/import", raw).is(http.StatusUnprocessableEntity)
		if r.doc().Find("#e-file").Text() == "" {
			t.Errorf("%s: no word beside the file", name)
		}
	}
	if after, err := h.DB.Assistants(t.Context(), u.ID, ""); err != nil || len(after) != 7 {
		t.Errorf("%d assistants after refusals, %v", len(after), err)
	}
	v.post("/assistants/import", nil).is(http.StatusUnprocessableEntity).says("Choose a file")
	v.sendFile("/assistants/import", bytes.Repeat([]byte(" "),
		formLimit+1)).is(http.StatusUnprocessableEntity).says("at most 1 MiB")
}
