package agent

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
)

var items = []parley.ExtractedItem{
	{Name: "status", Type: "bool", Description: "Whether the goal of the conversation was reached"},
	{Name: "summary", Type: "string", Description: "A short summary of the conversation"},
	{Name: "people", Type: "number", Description: "How many people come"},
}

const talk = "AI: How can I help?\nCustomer: A table for 3 people.\nAI: Done.\nCustomer: Great, thanks."

func TestExtractChecksTypes(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   string
		kind   ai.Kind
	}{
		{`{"status":true,"summary":"A table.","people":3}`, "map[people:3 status:true summary:A table.]", ""},
		{`{"status":"true","summary":7,"people":"three or four"}`, "map[people:<nil> status:true summary:7]", ""},
		{`{"status":null,"more":1}`, "map[people:<nil> status:<nil> summary:<nil>]", ""},
		{"Here {it} is:\n```json\n{\"status\":false,\"people\":2.5}\n```\nBye}",
			"map[people:2.5 status:false summary:<nil>]", ""},
		{"I can't.", "map[people:<nil> status:<nil> summary:<nil>]", ai.Malformed},
		{`{"status":tr`, "map[people:<nil> status:<nil> summary:<nil>]", ai.Malformed},
	} {
		m := &aitest.Fake{}
		m.Script(aitest.Step{Text: c.answer})
		got, usage, err := Extract(t.Context(), m, items, talk)
		if fmt.Sprint(got.Values) != c.want || ai.KindOf(err) != c.kind || usage.Out == 0 {
			t.Errorf("%s: got %v, %+v, %v", c.answer, got, usage, err)
		}
	}
	m := &aitest.Fake{}
	m.Script(aitest.Step{Err: &ai.Error{Kind: ai.Overloaded, Err: errors.New("x")}},
		aitest.Step{Err: &ai.Error{Kind: ai.Config, Err: errors.New("sk-1")}})
	if got, _, err := Extract(t.Context(), m, items, talk); ai.KindOf(err) != ai.Overloaded || len(got.Values) != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, _, _ := Extract(t.Context(), m, items, talk); len(got.Notes) != 3 ||
		!strings.HasPrefix(got.Notes["people"], "The conversation could not be read. The model") {
		t.Errorf("a model that fails leaves the notes %q", got.Notes)
	}
	if got, _, err := Extract(t.Context(), m, nil, talk); err != nil || len(got.Values) != 0 || len(m.Requests()) != 2 {
		t.Errorf("nothing asked: %v, %v", got, err)
	}
}

// Each value that is missing has its reason, and none that is there.
func TestExtractNotes(t *testing.T) {
	m := &aitest.Fake{}
	m.Script(aitest.Step{Text: `{"status":"maybe","summary":"A table."}`})
	got, _, err := Extract(t.Context(), m, items, talk)
	if want := map[string]string{"status": `The model answered "maybe", which is neither yes nor no.`,
		"people": "The conversation doesn't say."}; err != nil || !maps.Equal(got.Notes, want) {
		t.Errorf("the notes are %q, %v", got.Notes, err)
	}
}

func TestExtractOnModels(t *testing.T) {
	s := aitest.NewServer(t) // it refuses schemas that OpenAI would
	client, err := openai.Open(openai.Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for name, c := range map[string]struct {
		model ai.Model
		want  string
	}{
		"openai": {client.Model(aitest.ModelName), "map[people:1 status:true summary:Great, thanks.]"},
		"local":  {local.Model{}, "map[people:3 status:true summary:A table for 3 people. Great, thanks.]"},
	} {
		got, usage, err := Extract(t.Context(), c.model, items, talk)
		if err != nil || fmt.Sprint(got.Values) != c.want || usage.In == 0 {
			t.Errorf("%s: got %v, %+v, %v", name, got, usage, err)
		}
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		text   string
		budget int
		want   string
	}{
		{"a\nb\n", 100, "a\nb\n"},
		{"aaaa\nbbbb\ncccc\n", 3, "cccc\n"},
		{"aaaa\nbbbb\ncccc", 3, "bbbb\ncccc"},
		{strings.Repeat("x", 100), 10, strings.Repeat("x", 10)},
		{"a\n" + strings.Repeat("é", 100), 11, strings.Repeat("é", 5)},
	} {
		if got := tail(c.text, c.budget); got != c.want {
			t.Errorf("%.20q to %d: %q, want %q", c.text, c.budget, got, c.want)
		}
	}
	if got := tail(strings.Repeat("Customer: word word\n", 100_000), maxTranscript); Tokens(got) > maxTranscript ||
		len(got) < maxTranscript {
		t.Errorf("%d bytes", len(got))
	}
}

// What a JSON Schema asks for has values that fit it, mended where they are only written in another way, or none and the reason.
func TestExtractSchema(t *testing.T) {
	own := []byte(`{"type":"object","$defs":{"dish":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"count":{"type":"integer"}}}},
		"properties":{"dishes":{"type":"array","items":{"$ref":"#/$defs/dish"}},"mood":{"enum":["good","bad"]},"people":{"type":"integer","minimum":1},
			"day":{"type":"string","format":"date","description":"The day, as YYYY-MM-DD"},"paid":{"type":["boolean","null"]},"name":{"type":"string"}}}`)
	m := &aitest.Fake{}
	m.Script(
		aitest.Step{
			Text: `{"dishes":[{"name":"soup","count":2}],"mood":"fair","people":"3 people","day":"2026-11-27","paid":"yes","name":null,"more":1}`},
		aitest.Step{Text: `{"dishes":[{"count":2}],"mood":"good","people":0,"day":"soon","paid":null,"name":"Eva"}`},
		aitest.Step{Err: &ai.Error{Kind: ai.Overloaded, Err: errors.New("x")}})
	got, _, err := ExtractSchema(t.Context(), m, own, talk)
	if err != nil || fmt.Sprint(got.Values) != "map[day:2026-11-27 dishes:[map[count:2 name:soup]] mood:<nil> name:<nil> paid:true people:3]" {
		t.Errorf("found %v, %v", got.Values, err)
	}
	if len(got.Notes) != 2 || got.Notes["name"] != unsaid ||
		got.Notes["mood"] != `The model answered "fair", which does not fit: value must be one of 'good', 'bad'.` {
		t.Errorf("noted %q", got.Notes)
	}
	asked := m.Requests()[0]
	if !strings.Contains(asked.System, "YYYY-MM-DD") || !strings.Contains(string(asked.Schema.JSON), `"additionalProperties":false`) ||
		!strings.Contains(string(asked.Schema.JSON), `"people":{"minimum":1,"type":["integer","null"]}`) ||
		!strings.Contains(string(asked.Schema.JSON), `"required":["day","dishes","mood","name","paid","people"]`) {
		t.Errorf("asked for %s by %s", asked.Schema.JSON, asked.System)
	}
	got, _, err = ExtractSchema(t.Context(), m, own, talk)
	if err != nil || fmt.Sprint(got.Values) != "map[day:<nil> dishes:<nil> mood:good name:Eva paid:<nil> people:<nil>]" ||
		!strings.Contains(got.Notes["dishes"], "missing property 'name'") || !strings.Contains(got.Notes["people"], "minimum") {
		t.Errorf("found %v, noted %q, %v", got.Values, got.Notes, err)
	}
	if got, _, err = ExtractSchema(t.Context(), m, own, talk); ai.KindOf(err) != ai.Overloaded || len(got.Values) != 6 || len(got.Notes) != 6 {
		t.Errorf("a model that fails leaves %v, %v", got, err)
	}
}
