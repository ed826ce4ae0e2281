package assistant_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/stage"
	"parley/internal/store/storetest"
	"parley/internal/tool"
)

var noon = time.Date(2026, 1, 31, 23, 30, 0, 0, time.UTC)

func TestVariables(t *testing.T) {
	a := &parley.Assistant{ID: 7, Name: "Desk", Timezone: "Asia/Tokyo", LanguageID: 32,
		Variables: map[string]string{"who": "nobody", "own": "1", "assistant_id": "99"}}
	own := maps.Clone(a.Variables)
	got := assistant.Variables(a, assistant.Occasion{Now: noon, CustomerPhone: "+1",
		Variables: map[string]string{"who": "Ana", "current_date": "never", "assistant_phone": "+2"}})
	want := map[string]string{"who": "Ana", "own": "1", "customer_phone": "+1", "assistant_phone": "+2",
		"assistant_id": "7", "assistant_name": "Desk",
		"current_date": "2026-02-01", "current_time": "08:30", "current_weekday": "日曜日"} // Tokyo's
	if !maps.Equal(got, want) {
		t.Errorf("variables %v", got)
	}
	if !maps.Equal(a.Variables, own) {
		t.Errorf("the assistant's own became %v", a.Variables)
	}
	got = assistant.Variables(&parley.Assistant{}, assistant.Occasion{Now: noon})
	for _, name := range parley.BuiltinVariables {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is not there", name)
		}
	}
}

func TestReady(t *testing.T) {
	var seen string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.URL.String() + " " + r.Header.Get("X-Who")
		w.Write([]byte("shipped"))
	}))
	defer srv.Close()
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	defer guard.Close()
	d := studio(t, storetest.SQLite(t))
	var err error
	if d.Providers, err = provider.Open(provider.All()); err != nil {
		t.Fatal(err)
	}
	defer d.Providers.Close()
	d.Tools = tool.New(guard)
	model := d.Catalog.ModelsOf(parley.LLM)[0].ID
	a := &parley.Assistant{ID: 7, Timezone: "UTC", LLMModelID: &model, LLMTemperature: 55,
		SystemPrompt: "You help {{who}}. {{gone}}", InitialMessage: "Hello {{who}}.",
		MidCallTools: []parley.Tool{{ID: 1, Name: "look_up", Description: "D", Endpoint: srv.URL + "/{order}",
			Method: "GET", Timeout: 5,
			Headers: []parley.ToolHeader{{Name: "X-Who", Value: "{{who}}"}},
			Schema:  []parley.ToolParam{{Name: "order", Type: "number", Description: "Which", Required: true}}}}}
	r, err := d.Ready(a, assistant.Occasion{Now: noon, Variables: map[string]string{"who": "{{assistant_id}}"}})
	if err != nil {
		t.Fatal(err)
	}
	turn := r.Turn([]ai.Message{}, nil)
	if r.Initial != "Hello {{assistant_id}}." || turn.System != "You help {{assistant_id}}. " { // rendered only once
		t.Errorf("says %q, thinks %q", r.Initial, turn.System)
	}
	if *turn.Temperature != .55 || len(turn.Tools) != 1 || turn.Tools[0].Name != "look_up" {
		t.Errorf("turn %+v", turn)
	}
	text, err := turn.Tools[0].Run(t.Context(), json.RawMessage(`{"order":9007199254740993}`))
	if err != nil || !strings.Contains(text, "shipped") || seen != "/9007199254740993 {{assistant_id}}" {
		t.Errorf("the tool was asked %q and says %q: %v", seen, text, err)
	}
	// A visitor's values are in the prompt and in the path, but in no header.
	a.MidCallTools[0].Endpoint, a.Variables = srv.URL+"/{order}/{{who}}", map[string]string{"who": "own"}
	for _, c := range []struct {
		occasion     assistant.Occasion
		prompt, seen string
	}{
		{assistant.Occasion{Visitor: map[string]string{"who": "Eve", "assistant_id": "8"}}, "Eve", "/1/Eve own"},
		{assistant.Occasion{Visitor: map[string]string{"who": "Eve"}, Variables: map[string]string{"who": "Ana"}},
			"Eve", "/1/Eve Ana"},
		{assistant.Occasion{Variables: map[string]string{"who": "Ana"}}, "Ana", "/1/Ana Ana"},
	} {
		r, err := d.Ready(a, c.occasion)
		if err != nil {
			t.Fatal(err)
		}
		turn := r.Turn(nil, nil)
		if _, err := turn.Tools[0].Run(t.Context(), json.RawMessage(`{"order":1}`)); err != nil || seen != c.seen ||
			turn.System != "You help "+c.prompt+". " || r.Variables["assistant_id"] != "7" {
			t.Errorf("%+v: the tool was asked %q, want %q; prompt %q: %v", c.occasion, seen, c.seen, turn.System, err)
		}
	}
	if _, err := turn.Tools[0].Run(t.Context(), json.RawMessage(`[1]`)); err == nil {
		t.Error("arguments that are no object are taken")
	}
	testOccasion(t, d, a, &seen)
	unknown := int64(999)
	a.LLMModelID = &unknown
	var e *ai.Error
	if _, err := d.Ready(a, assistant.Occasion{}); !errors.As(err, &e) || e.Kind != ai.Config {
		t.Errorf("without its model: %v", err)
	}
	a.LLMModelID = nil // an assistant whose own model hears and speaks
	if _, err := d.Ready(a, assistant.Occasion{}); err != nil {
		t.Error(err)
	}
}

// testOccasion tries a test's occasion: no tool's endpoint is called unless the test says so, even if its stage no
// longer exists.
func testOccasion(t *testing.T, d *assistant.Studio, a *parley.Assistant, seen *string) {
	t.Helper()
	d.Stages = stage.New()
	a.SystemPrompt = "It is {{current_date}}."
	for name, c := range map[string]struct {
		set    *stage.Set // nil: the token is unknown
		answer string
		asked  bool
		prompt string
	}{
		"unknown": {nil, `{"ok":true}`, false, "It is 2026-01-31."},
		"unsaid":  {&stage.Set{}, `{"ok":true}`, false, "It is 2026-01-31."},
		"said":    {&stage.Set{Mocks: map[string]stage.Mock{"look_up": {Reply: "lost"}}}, "lost", false, "It is 2026-01-31."},
		"real":    {&stage.Set{Mocks: map[string]stage.Mock{"look_up": {Real: true}}}, "shipped", true, "It is 2026-01-31."},
		"pinned":  {&stage.Set{Now: noon.AddDate(0, 0, 1)}, `{"ok":true}`, false, "It is 2026-02-01."},
	} {
		*seen = ""
		token := "test-unknown"
		if c.set != nil {
			var err error
			if token, err = d.Stages.Begin(1, a.ID, *c.set, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		r, err := d.Ready(a, assistant.Occasion{Now: noon, Test: token})
		if err != nil {
			t.Fatal(err)
		}
		turn := r.Turn(nil, nil)
		text, err := turn.Tools[0].Run(t.Context(), json.RawMessage(`{"order":1}`))
		if err != nil || text != c.answer || (*seen != "") != c.asked || turn.System != c.prompt {
			t.Errorf("%s: the tool says %q, its endpoint was asked %q, prompt %q: %v", name, text, *seen, turn.System, err)
		}
	}
}
