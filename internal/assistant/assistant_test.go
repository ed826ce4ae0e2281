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
