package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/provider/anthropic/anthropictest"
	"parley/internal/provider/gemini/geminitest"
)

// With each vendor's model, an assistant looks up an order with a tool, and answers from the result.
func TestMinds(t *testing.T) {
	share(t, call)
	claude, gemini := anthropictest.New(t), geminitest.New(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(anthropictest.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "PARLEY_EGRESS_ALLOW=127.0.0.0/8", "PARLEY_ANTHROPIC_BASE_URL="+claude.URL, "PARLEY_ANTHROPIC_API_KEY_FILE="+key,
		"PARLEY_ANTHROPIC_MODEL="+anthropictest.Deep, "PARLEY_GEMINI_BASE_URL="+gemini.URL,
		"PARLEY_GEMINI_API_KEY="+geminitest.Key, "PARLEY_GEMINI_MODEL="+geminitest.Flash)
	s.bakery(t)
	type model struct {
		ID   int64
		Name string
	}
	var models []model
	if status := s.call(t, "GET", "/user/assistants/models?type=llm", nil, &models); status != http.StatusOK {
		t.Fatalf("the models are answered %d", status)
	}
	for _, code := range []string{anthropictest.Deep, geminitest.Flash} {
		i := slices.IndexFunc(models, func(m model) bool { return m.Name == code })
		if i < 0 {
			t.Fatalf("%s is not among %v", code, models)
		}
		if status := s.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(s.Assistant, 10),
			map[string]any{"llm_model_id": models[i].ID}, nil); status != http.StatusOK {
			t.Fatalf("the assistant is answered %d", status)
		}
		status, got := s.say(t, s.converse(t), `Please call order_status with {"number":"4711"}`)
		if status != http.StatusOK || got.Message == nil || !strings.HasPrefix(*got.Message, "The tool answered: ") ||
			!strings.Contains(*got.Message, "baked") || len(got.FunctionCalls) != 1 {
			t.Errorf("%s answered %d %+v", code, status, got)
		}
	}
	said, _ := s.operate(t, "doctor")
	for _, want := range []string{"ok    anthropic       " + claude.URL + " answers; " + anthropictest.Deep,
		"ok    gemini          " + gemini.URL + " answers; " + geminitest.Flash} {
		if !strings.Contains(said, want) || strings.Contains(said, anthropictest.Key) {
			t.Errorf("the doctor says\n%s\nwant %q, and no key", said, want)
		}
	}
	if last := claude.Requests()[len(claude.Requests())-1]; last.Thoughts != 1 {
		t.Errorf("%d thoughts came back with the tool's result", last.Thoughts)
	}
	for name, last := range map[string]ai.Request{
		"anthropic": claude.Requests()[len(claude.Requests())-1].Request,
		"gemini":    gemini.Requests()[len(gemini.Requests())-1].Request} {
		if len(last.Tools) < 2 || !strings.Contains(last.System, "Acme Bakery") {
			t.Errorf("%s was asked %+v", name, last)
		}
	}
}
