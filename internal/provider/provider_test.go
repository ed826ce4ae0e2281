package provider

import (
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/provider/openai"
)

func TestModel(t *testing.T) {
	s := aitest.NewServer(t)
	alone, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	with, err := Open(Config{OpenAI: &openai.Config{BaseURL: s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer with.Close()
	for _, c := range []struct {
		set             *Set
		provider, model string
		want            string // a part of the answer, "" when there is no such model
	}{
		{alone, "local", "local", "The sky is blue."},
		{alone, "local", "other", ""},
		{alone, "openai", aitest.ModelName, ""},
		{alone, "nobody", "local", ""},
		{with, "local", "local", "The sky is blue."},
		{with, "openai", aitest.ModelName, "You said: What colour is the sky?"},
		{with, "openai", "", ""},
		{with, "", "", ""},
	} {
		m, err := c.set.Model(c.provider, c.model)
		if c.want == "" {
			if ai.KindOf(err) != ai.Config {
				t.Errorf("%s/%s: got %v, %v", c.provider, c.model, m, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s/%s: %v", c.provider, c.model, err)
			continue
		}
		r, err := m.Generate(t.Context(), ai.Request{System: "The sky is blue.", Messages: []ai.Message{{Role: ai.User, Text: "What colour is the sky?"}}}, func(ai.Delta) error { return nil })
		if err != nil || !strings.Contains(r.Text, c.want) {
			t.Errorf("%s/%s: got %q, %v", c.provider, c.model, r.Text, err)
		}
	}
	if _, err := Open(Config{OpenAI: &openai.Config{BaseURL: "nonsense"}}); err == nil {
		t.Error("a base URL that is none was accepted")
	}
}
