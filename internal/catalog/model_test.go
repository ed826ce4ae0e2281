package catalog

import (
	"slices"
	"sync"
	"testing"

	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/local"
	"parley/internal/provider/openai"
)

// numbered gives the configured models of c ids from 101 up, as a database would.
func numbered(c *Catalog) []parley.Model {
	rows := slices.Clone(c.Models())
	for i := range rows {
		rows[i].ID = int64(101 + i)
	}
	return rows
}

func TestModels(t *testing.T) {
	named := func(code string, models ...parley.Model) *ai.Vendor {
		return &ai.Vendor{Code: code, Models: func() []parley.Model { return models }}
	}
	llm := func(code string) parley.Model { return parley.Model{Kind: parley.LLM, Code: code, Name: code} }
	for name, test := range map[string]struct {
		vendors []*ai.Vendor
		want    []string // kind provider code
	}{
		"nothing": {provider.All(), []string{"llm local local"}},
		"everything": {provider.All(openai.Declare(&openai.Settings{APIKey: "k",
			ChatModel: []string{"gpt-5", "gpt-5-mini"}, RealtimeModel: []string{"gpt-realtime"}})), []string{
			"llm openai gpt-5", "llm openai gpt-5-mini", "multimodal openai gpt-realtime",
			"dualplex openai gpt-realtime", "llm local local",
		}},
		"same code twice, empty names, a false built-in": {
			provider.All(named("openai", llm("a"), llm("a"), llm(""), llm("local")),
				named("elevenlabs", llm("a"), llm("b"))),
			[]string{"llm openai a", "llm elevenlabs b", "llm local local"},
		},
		"a code under two kinds": {
			provider.All(openai.Declare(&openai.Settings{APIKey: "k", ChatModel: []string{"omni"},
				RealtimeModel: []string{"omni"}})),
			[]string{"llm openai omni", "multimodal openai omni", "dualplex openai omni", "llm local local"},
		},
		"the built-in one declared first": {append([]*ai.Vendor{local.Declare(local.Programs{})},
			named("x", llm("a"))), []string{"llm x a", "llm local local"}},
	} {
		c := New("", test.vendors)
		var got []string
		for _, m := range c.Models() {
			got = append(got, string(m.Kind)+" "+m.Provider+" "+m.Code)
			if m.ID != 0 || m.Name == "" {
				t.Errorf("%s: %+v before SetModels", name, m)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestSetModels(t *testing.T) {
	c := everything()
	rows := append(numbered(c),
		// configured earlier
		parley.Model{ID: 7, Name: "gpt-4", Code: "gpt-4", Kind: parley.LLM, Provider: openai.Code},
		parley.Model{ID: 8, Name: "gpt-5", Code: "gpt-5", Kind: parley.Dualplex, Provider: openai.Code},
	)
	slices.Reverse(rows)
	if err := c.SetModels(rows); err != nil {
		t.Fatal(err)
	}
	for i, m := range c.Models() {
		if want := int64(101 + i); m.ID != want {
			t.Errorf("%s %s has id %d, want %d", m.Kind, m.Code, m.ID, want)
		}
		if found := c.Model(m.ID); found == nil || *found != m || !c.ModelConfigured(m.ID) {
			t.Errorf("model %d: found %+v, configured %v", m.ID, found, c.ModelConfigured(m.ID))
		}
	}
	for _, id := range []int64{7, 8} {
		if m := c.Model(id); m == nil || m.ID != id || c.ModelConfigured(id) {
			t.Errorf("model %d: found %+v, configured %v; want found, not configured", id, m, c.ModelConfigured(id))
		}
	}
	for kind, want := range map[parley.ModelKind][]int64{
		parley.LLM:        {101, 102, 105},
		parley.Multimodal: {103},
		parley.Dualplex:   {104},
		"":                {101, 102, 103, 104, 105},
		"other":           nil,
	} {
		list := c.ModelsOf(kind)
		var got []int64
		for _, m := range list {
			got = append(got, m.ID)
		}
		if list == nil || !slices.Equal(got, want) {
			t.Errorf("models of %q: %v, want %v", kind, got, want)
		}
	}
}

// A configured model without an id would be listed as model 0: it is refused, and the earlier models stay.
func TestSetModelsMissing(t *testing.T) {
	c := everything()
	rows := numbered(c)
	if err := c.SetModels(rows); err != nil {
		t.Fatal(err)
	}
	if err := c.SetModels(rows[1:]); err == nil {
		t.Error("no error for a model without an id")
	}
	if c.Models()[0].ID != 101 || c.Model(101) == nil {
		t.Errorf("models changed in spite of the error: %+v", c.Models())
	}
}

// Another node may have added models meanwhile: SetModels runs while requests are served.
func TestSetModelsConcurrently(t *testing.T) {
	c := everything()
	rows := numbered(c)
	if err := c.SetModels(rows); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 200 {
				more := append(slices.Clone(rows), parley.Model{ID: int64(1000 + i*1000 + n), Code: "x",
					Kind: parley.LLM})
				if err := c.SetModels(more); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				if m := c.Model(101); m == nil || m.Code != "gpt-5" || c.ModelsOf(parley.LLM)[0].ID != 101 {
					t.Errorf("model 101 is %+v", m)
				}
			}
		})
	}
	wg.Wait()
}
