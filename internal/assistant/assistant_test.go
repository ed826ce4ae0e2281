package assistant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// studio returns the studio of a server with this configuration, on db.
func studio(t *testing.T, db *store.DB, instead ...*ai.Vendor) *assistant.Studio {
	t.Helper()
	c := catalog.New("", provider.All(instead...))
	if err := db.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.KeepModels(ctx, c.Models())
	}); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Models(t.Context())
	if err == nil {
		err = c.SetModels(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &assistant.Studio{DB: db, Catalog: c}
}

// body returns the fewest fields that make an assistant, with changes.
func body(d *assistant.Studio, change string, args ...any) map[string]any {
	text := fmt.Sprintf(`{"name":"Desk","voice_id":%d,"language_id":1,"type":"inbound","mode":"pipeline","timezone":"UTC","system_prompt":"Be kind.","llm_model_id":%d}`,
		d.Catalog.Voices("pipeline", 1)[0].ID, d.Catalog.ModelsOf(parley.LLM)[0].ID)
	out := tree(text)
	for k, v := range tree(fmt.Sprintf(change, args...)) {
		out[k] = v
	}
	return out
}

func tree(text string) (v map[string]any) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

func fails(t *testing.T, err error, fields ...string) {
	t.Helper()
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != parley.Invalid || len(e.Fields) != len(fields) {
		t.Fatalf("%v, want %v to fail", err, fields)
	}
	for _, name := range fields {
		if !e.Fields.Has(name) {
			t.Errorf("%v, want %s among them", e.Fields, name)
		}
	}
}

// An assistant survives the removal of a provider: it keeps what it uses of it, but can't be given it again.
func TestWhatIsNotConfiguredAnyMore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		rich := studio(t, db, openai.Declare(&openai.Settings{APIKey: "k", ChatModel: []string{"gpt-4o"},
			TTSModel: "tts-1", STTModel: "whisper-1"}))
		var transcriber int64
		for _, p := range rich.Catalog.Transcribers(1) {
			if p.Code == openai.Code {
				transcriber = p.ID
			}
		}
		made, err := rich.Create(t.Context(), u.ID, body(rich, `{"transcriber_provider_id":%d}`, transcriber))
		if err != nil {
			t.Fatal(err)
		}
		poor := studio(t, db)
		same := tree(string(encode(t, made)))
		kept, err := poor.Update(t.Context(), u.ID, made.ID, same)
		if err != nil || kept.UpdatedAt != made.UpdatedAt || kept.VoiceID != made.VoiceID ||
			*kept.LLMModelID != *made.LLMModelID {
			t.Fatalf("PUT of what GET returned: %v", err)
		}
		if _, err := poor.Update(t.Context(), u.ID, made.ID, tree(`{"name":"New"}`)); err != nil {
			t.Error(err)
		}
		for _, field := range []string{"voice_id", "llm_model_id", "transcriber_provider_id"} {
			_, err := poor.Create(t.Context(), u.ID, body(poor, `{%q:%v}`, field, same[field]))
			fails(t, err, field)
		}
	})
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCompleteShowsMidCallTools(t *testing.T) {
	d := studio(t, storetest.SQLite(t))
	a := &parley.Assistant{LanguageID: 4, Tools: []parley.AssistantTool{{Type: "end_call"}},
		MidCallTools: []parley.Tool{
			{ID: 3, Name: "look_up", Description: "D", Endpoint: "https://example.com", Method: "GET", Timeout: 9,
				Headers: []parley.ToolHeader{{Name: "A", Value: "b"}}}}}
	d.Complete(a)
	if got, want := string(encode(t, a.Tools)), `[{"type":"end_call"},{"type":"mid_call","description":"D","timeout":9,"id":3,"name":"look_up","endpoint":"https://example.com","method":"GET","headers":[{"name":"A","value":"b"}]}]`; got != want {
		t.Errorf("tools %s", got)
	}
	if a.Language != "de" || a.InstanceID != 1 {
		t.Errorf("language %q, instance %d", a.Language, a.InstanceID)
	}
}

// All failing fields are reported at once, whichever check finds them, and nothing is stored.
func TestCreateTellsEverything(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := studio(t, db), storetest.User(t, db, 0)
		_, err := d.Create(t.Context(), u.ID, body(d,
			`{"name":"","max_duration":1,"voice_id":5,"tool_ids":[9],"tools":[{"type":"mid_call"},{"type":"call_transfer","phone_number":"x"}],"is_webhook_active":true}`))
		fails(t, err, "name", "max_duration", "tools.0.id", "voice_id", "tool_ids.0", "tools.1.phone_number",
			"webhook_url")
		if list, err := d.All(t.Context(), u.ID, ""); err != nil || len(list) != 0 {
			t.Errorf("%d are stored: %v", len(list), err)
		}
		if _, err := d.Update(t.Context(), u.ID, 99, tree(`{"name":""}`)); !store.IsNotFound(err) {
			t.Errorf("an unknown one: %v", err)
		}
	})
}

// What is found out may be a JSON Schema: both forms are shown, the one that is changed counts, and drafts, copies and files have it.
func TestPostCallJSONSchema(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const own = `{"properties":{"dishes":{"items":{"type":"string"},"type":"array"},"reached":{"description":"Whether","type":"boolean"}},"type":"object"}`
		d, u, ctx := studio(t, db), storetest.User(t, db, 0), t.Context()
		plain, err := d.Create(ctx, u.ID, body(d, `{"post_call_schema":[{"name":"reached","type":"bool","description":"Whether"}]}`))
		if err != nil || string(plain.PostCallJSONSchema) !=
			`{"type":"object","properties":{"reached":{"type":"boolean","description":"Whether"}},"required":["reached"]}` {
			t.Fatalf("%v: the short form is shown as %s", err, plain.PostCallJSONSchema)
		}
		if names := assistant.Asked(plain); len(names) != 1 || names[0] != "reached" {
			t.Errorf("asks for %q", names)
		}
		a, err := d.Create(ctx, u.ID, body(d, `{"post_call_json_schema":%s}`, own))
		if err != nil {
			t.Fatal(err)
		}
		has := func(what string, a *parley.Assistant, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if string(a.PostCallJSONSchema) != own || len(a.PostCallSchema) != 1 || a.PostCallSchema[0].Type != "bool" ||
				len(assistant.Asked(a)) != 2 {
				t.Errorf("%s: %s, %+v", what, a.PostCallJSONSchema, a.PostCallSchema)
			}
		}
		has("made", a, err)
		a, err = d.Update(ctx, u.ID, a.ID, tree(`{"name":"Other","post_call_schema":[{"name":"reached","type":"bool","description":"Whether"}]}`))
		has("something else changed", a, err)
		a, err = d.Update(ctx, u.ID, a.ID, tree(string(encode(t, a))))
		has("all sent back", a, err)
		a, err = d.Duplicate(ctx, u.ID, a.ID)
		has("copied", a, err)
		file, err := d.Export(ctx, u.ID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		file.Assistant = tree(string(encode(t, file.Assistant)))
		again, _, err := d.Import(ctx, u.ID, file)
		has("from a file", again, err)
		_, err = d.Update(ctx, u.ID, a.ID, tree(`{"post_call_json_schema":{"type":"object"}}`))
		fails(t, err, "post_call_json_schema")

		if _, err := d.SaveDraft(ctx, u.ID, plain.ID, tree(`{"name":"Another"}`)); err != nil {
			t.Fatal(err)
		}
		if changes, err := d.DraftChanges(ctx, u.ID, plain.ID); err != nil || len(changes) != 1 || changes[0].Field != "name" {
			t.Errorf("another name changes %+v, %v", changes, err)
		}
		if err := d.Discard(ctx, u.ID, plain.ID); err != nil {
			t.Fatal(err)
		}
		draft, err := d.SaveDraft(ctx, u.ID, plain.ID, tree(`{"post_call_json_schema":`+own+`}`))
		if err != nil {
			t.Fatal(err)
		}
		has("drafted", draft.Assistant, err)
		if changes, err := d.DraftChanges(ctx, u.ID, plain.ID); err != nil || len(changes) != 1 || changes[0].Field != "post_call_json_schema" {
			t.Errorf("the draft changes %+v, %v", changes, err)
		}
		now, err := d.Publish(ctx, u.ID, plain.ID, assistant.Publishing{})
		has("published", now, err)
		if draft, err = d.SaveDraft(ctx, u.ID, plain.ID, tree(`{"post_call_json_schema":null}`)); err != nil {
			t.Fatal(err)
		}
		if changes, err := d.DraftChanges(ctx, u.ID, plain.ID); err != nil || len(changes) != 1 ||
			draft.Assistant.PostCallSchema[0].Name != "reached" {
			t.Errorf("cleared: %+v, %v, %+v", changes, err, draft.Assistant.PostCallSchema)
		}
		now, err = d.Update(ctx, u.ID, plain.ID, tree(`{"post_call_schema":[{"name":"mood","type":"string","description":"How it was"}]}`))
		if err != nil || len(now.PostCallSchema) != 1 || assistant.Asked(now)[0] != "mood" || len(assistant.Asked(now)) != 1 {
			t.Errorf("the short form alone: %+v, %s, %v", now.PostCallSchema, now.PostCallJSONSchema, err)
		}
	})
}
