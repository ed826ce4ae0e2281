package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"parley/internal/egress"
	"parley/internal/schema"
	"parley/internal/tool"
)

const nested = `{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"object",
	"properties":{"sku":{"type":"string","pattern":"^[A-Z]+$"}}}},"count":{"type":"integer","default":2}}}`

// A tool's JSON Schema is edited as text in place of the list of parameters, and the tool is tried with arguments that are typed as JSON.
func TestToolSchemaIsEdited(t *testing.T) {
	var got string
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
	}))
	t.Cleanup(far.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	h := open(t, func(c *Config) { c.Assistants.Tools = tool.New(guard) })
	u := h.user(t)
	v := h.signedIn(t, u)
	made, err := tool.Create(t.Context(), h.DB, u.ID,
		map[string]any{"name": "order", "description": "Orders.", "endpoint": far.URL, "method": "POST",
			"schema": []any{map[string]any{"name": "number", "type": "number", "description": "Its number"}}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/tools/" + id(made.ID)
	form := v.get(path).form(path)
	if form.Get("schema.0.name") != "number" || strings.TrimSpace(form.Get("json_schema")) != "" {
		t.Errorf("the short form is edited as %v", form)
	}
	form.Set("json_schema", `{"type":"array"}`)
	v.post(path, form).says("JSON Schema of the parameters").says(`must have "type": "object"`)
	form.Set("json_schema", `{"type":`)
	v.post(path, form).says("must be an object: a JSON Schema.")
	form.Set("json_schema", nested)
	v.post(path, form)
	now, err := h.DB.Tool(t.Context(), u.ID, made.ID)
	if err != nil || !schema.Same(now.JSONSchema, []byte(nested)) || len(now.Schema) != 1 || now.Schema[0].Name != "count" {
		t.Fatalf("saved as %s, %+v, %v", now.JSONSchema, now.Schema, err)
	}

	page := v.get(path).says("Gemini has no pattern (at items.items.sku)")
	form = page.form(path)
	if form.Has("schema.0.name") || !schema.Same([]byte(form.Get("json_schema")), []byte(nested)) {
		t.Errorf("edited as %v", form)
	}
	v.post(path, form)
	if same, err := h.DB.Tool(t.Context(), u.ID, made.ID); err != nil || same.UpdatedAt != now.UpdatedAt {
		t.Errorf("saving it unchanged changed it: %v", err)
	}

	try := page.form(path + "/try")
	try.Set("arguments", `{"items":[{"sku":"AB"}]}`)
	v.post(path+"/try", try).says("200 OK")
	if want := `{"count":2,"items":[{"sku":"AB"}]}`; !schema.Same([]byte(got), []byte(want)) {
		t.Errorf("sent %s", got)
	}
	got = ""
	try.Set("arguments", `{"items":[{"sku":"ab"}]}`)
	if r := v.post(path+"/try", try).says("does not match pattern"); r.form(path+"/try").Get("arguments") != try.Get("arguments") {
		t.Error("what was typed is gone")
	}
	try.Set("arguments", `[1]`)
	v.post(path+"/try", try).says("The arguments are no JSON object")
	if got != "" {
		t.Errorf("sent %s", got)
	}

	form.Set("json_schema", "")
	v.post(path, form)
	if now, err = h.DB.Tool(t.Context(), u.ID, made.ID); err != nil || now.JSONSchema != nil || len(now.Schema) != 1 ||
		now.Schema[0].Name != "count" {
		t.Errorf("emptied: %s, %+v, %v", now.JSONSchema, now.Schema, err)
	}
}

// What is found out may be a JSON Schema, edited as text in place of the list.
func TestPostCallSchemaIsEdited(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	if !form.Has("post_call_schema.0.name") || strings.TrimSpace(form.Get("post_call_json_schema")) != "" {
		t.Fatalf("the short form is edited as %v", form)
	}
	form.Set("post_call_json_schema", `{"type":"object"}`)
	v.post(path, form).says("must have properties")
	const own = `{"type":"object","properties":{"mood":{"enum":["good","bad"]},"reached":{"type":"boolean"}}}`
	form.Set("post_call_json_schema", own)
	v.publish(path, form)
	got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
	if err != nil || !schema.Same(got.PostCallJSONSchema, []byte(own)) || len(got.PostCallSchema) != 1 {
		t.Fatalf("saved as %s, %+v, %v", got.PostCallJSONSchema, got.PostCallSchema, err)
	}
	form = v.get(path).form(path)
	if form.Has("post_call_schema.0.name") || !schema.Same([]byte(form.Get("post_call_json_schema")), []byte(own)) {
		t.Errorf("edited as %v", form)
	}
	v.post(path, form).moved(path + "?done=same")
	form.Set("post_call_json_schema", "")
	v.publish(path, form)
	got, err = h.Assistants.Get(t.Context(), u.ID, a.ID)
	if err != nil || !got.PostCallShown || len(got.PostCallSchema) != 1 || got.PostCallSchema[0].Name != "reached" {
		t.Errorf("emptied: %s, %+v, %v", got.PostCallJSONSchema, got.PostCallSchema, err)
	}
}
