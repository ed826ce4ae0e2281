package setup_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/keyring"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/anthropic/anthropictest"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/deepgram/deepgramtest"
	"parley/internal/provider/local"
	"parley/internal/setup"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// nobody is the built-in vendor, without starting its programs.
func nobody() *ai.Vendor {
	v := local.Declare(local.Programs{})
	v.Check = nil
	return v
}

// Each part shows the true state, from a server without a key to a server with keys, and back, and at once.
func TestSetup(t *testing.T) {
	db := storetest.SQLite(t, store.Rules{})
	claude := anthropictest.New(t)
	vendors := provider.All(nobody(), anthropic.Declare(&anthropic.Settings{Model: []string{anthropictest.Quick}}),
		deepgram.Declare(&deepgram.Settings{BaseURL: deepgramtest.NewServer(t).URL}))
	keys, err := keyring.Open(t.Context(), db, vendors, "", func(int64, string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	var asked atomic.Int64
	state := parley.DoctorOK
	s := &setup.Setup{Keys: keys, Assistants: &assistant.Studio{DB: db, Catalog: keys.Catalog, Providers: keys.Providers},
		Server: []setup.Check{{Code: "jobs", Name: "Job workers", Ask: func(context.Context) []parley.Finding {
			asked.Add(1)
			return []parley.Finding{{State: parley.DoctorOK, Text: "running"}, {State: state, Text: "all of them"}}
		}}}}
	u := storetest.User(t, db, 0)
	parts := func() map[string]setup.Part {
		list, err := s.Of(t.Context(), u, true)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]setup.Part{}
		for _, p := range list {
			found[p.Code] = p
		}
		return found
	}
	expect := func(code, state, text string) {
		t.Helper()
		if p := parts()[code]; p.State != state || !strings.Contains(p.Text, text) {
			t.Errorf("%s: %+v, want %s, %q", code, p, state, text)
		}
	}
	expect("model", setup.Fail, "No language model is connected")
	expect("voices", setup.Note, "built-in voices")
	expect("ears", setup.Note, "built-in recognizer")
	expect("assistants", setup.Note, "none")
	if p, there := parts()["jobs"]; there {
		t.Errorf("who does not operate the server is shown %+v", p)
	}
	if _, err := keys.Set(t.Context(), 0, anthropic.Code, ai.Key{Secret: anthropictest.Key, BaseURL: claude.URL}); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Set(t.Context(), 0, deepgram.Code, ai.Key{Secret: deepgramtest.Key}); err != nil {
		t.Fatal(err)
	}
	expect("model", setup.OK, "Anthropic")
	expect("voices", setup.OK, "Deepgram")
	expect("ears", setup.OK, "Deepgram")
	mine := keys.Catalog.For(u.ID)
	_, err = s.Assistants.Create(t.Context(), u.ID, map[string]any{"name": "Desk", "type": "inbound", "mode": "pipeline",
		"timezone": "UTC", "system_prompt": "Help.", "language_id": json.Number("1"),
		"voice_id":     json.Number(strconv.FormatInt(mine.Voices("pipeline", 1)[0].ID, 10)),
		"llm_model_id": json.Number(strconv.FormatInt(mine.ModelsOf(parley.LLM)[0].ID, 10))})
	if err != nil {
		t.Fatal(err)
	}
	u.Operator = true // checks anew
	expect("jobs", setup.OK, "Running.")
	expect("assistants", setup.OK, "All assistants have")
	if asked.Load() != 1 {
		t.Errorf("asked %d times within a minute", asked.Load())
	}
	if err := keys.Remove(t.Context(), 0, anthropic.Code); err != nil {
		t.Fatal(err)
	}
	state = parley.DoctorFail
	expect("model", setup.Fail, "No language model is connected")
	expect("assistants", setup.Fail, "It can't be used. Desk: ")
	expect("jobs", setup.Fail, "All of them.")
}

// A connected provider that refuses its key is shown with the reason.
func TestProviderThatRefuses(t *testing.T) {
	db := storetest.SQLite(t, store.Rules{})
	keys, err := keyring.Open(t.Context(), db, provider.All(nobody(), deepgram.Declare(&deepgram.Settings{APIKey: "wrong-key",
		BaseURL: deepgramtest.NewServer(t).URL})), "", func(int64, string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	s := &setup.Setup{Keys: keys, Assistants: &assistant.Studio{DB: db, Catalog: keys.Catalog, Providers: keys.Providers}}
	u, manages := storetest.User(t, db, 0), true
	expect := func(why string) {
		t.Helper()
		list, err := s.Of(t.Context(), u, manages)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list[1:3] {
			if p.State != setup.Fail || !strings.Contains(p.Text, "Deepgram does not work: "+why) ||
				strings.Contains(p.Text, "wrong-key") {
				t.Errorf("%+v, want %q", p, why)
			}
		}
	}
	// The server's key is only the operator's business.
	expect("the server's operator is told why.")
	u.Operator = true
	expect("http")
	manages = false
	expect("the server's operator is told why.") // nor a viewer's in the operator's account
}

// Nobody but those who manage the operator's account is told of the server.
func TestServerIsTheManagersBusiness(t *testing.T) {
	db := storetest.SQLite(t, store.Rules{})
	keys, err := keyring.Open(t.Context(), db, provider.All(nobody()), "", func(int64, string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	s := &setup.Setup{Keys: keys, Assistants: &assistant.Studio{DB: db, Catalog: keys.Catalog, Providers: keys.Providers},
		Server: []setup.Check{{Code: "jobs", Name: "Job workers", Ask: func(context.Context) []parley.Finding {
			return []parley.Finding{{State: parley.DoctorOK, Text: "running"}}
		}}}}
	u := storetest.User(t, db, 0)
	for range 2 { // what was found for one is not told to another
		for _, c := range []struct{ operator, manages, told bool }{{true, true, true}, {true, false, false}, {false, true, false},
			{false, false, false}} {
			u.Operator = c.operator
			list, err := s.Of(t.Context(), u, c.manages)
			if err != nil {
				t.Fatal(err)
			}
			if told := slices.ContainsFunc(list, func(p setup.Part) bool { return p.Code == "jobs" }); told != c.told {
				t.Errorf("%+v: told of the server: %v", c, told)
			}
		}
	}
}

// Its operator is told which models that the server's settings name are retired soon, or were, and the owner of assistants
// which of these use one.
func TestRetiring(t *testing.T) {
	const soon, past = 20 * 24 * time.Hour, -24 * time.Hour
	for _, c := range []struct {
		in          time.Duration
		state, said string
	}{
		{soon, setup.Note, "is retired by Anthropic on "},
		{past, setup.Fail, "was retired by Anthropic on "},
		{4 * soon, setup.OK, ""},
	} {
		db := storetest.SQLite(t, store.Rules{})
		claude := anthropictest.New(t)
		v := anthropic.Declare(&anthropic.Settings{APIKey: anthropictest.Key, BaseURL: claude.URL, Model: []string{anthropictest.Quick}})
		v.Retired = func() ai.Retirements {
			return ai.Retirements{{Model: anthropictest.Quick, Day: time.Now().UTC().Add(c.in).Format(time.DateOnly), Instead: "claude-next"}}
		}
		keys, err := keyring.Open(t.Context(), db, provider.All(nobody(), v), "", func(int64, string) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(keys.Close)
		s := &setup.Setup{Keys: keys, Assistants: &assistant.Studio{DB: db, Catalog: keys.Catalog, Providers: keys.Providers}}
		u := storetest.User(t, db, 0)
		mine := keys.Catalog.For(u.ID)
		if _, err = s.Assistants.Create(t.Context(), u.ID, map[string]any{"name": "Desk", "type": "inbound", "mode": "pipeline",
			"timezone": "UTC", "system_prompt": "Help.", "language_id": json.Number("1"),
			"voice_id":     json.Number(strconv.FormatInt(mine.Voices("pipeline", 1)[0].ID, 10)),
			"llm_model_id": json.Number(strconv.FormatInt(mine.ModelsOf(parley.LLM)[0].ID, 10))}); err != nil {
			t.Fatal(err)
		}
		for _, operator := range []bool{false, true} {
			u.Operator = operator
			list, err := s.Of(t.Context(), u, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				state, said := setup.OK, ""
				switch {
				case p.Code == "assistants":
					state, said = c.state, c.said
				case p.Code == "model" && operator:
					if state = c.state; c.said != "" {
						said = anthropictest.Quick + " " + c.said
					}
				case p.Code != "model":
					continue
				}
				if p.State != state || !strings.Contains(p.Text, said) || said == "" && strings.Contains(p.Text, "retired") ||
					said != "" && !strings.Contains(p.Text, "claude-next") {
					t.Errorf("in %v, operator %v: %+v, want %s, %q", c.in, operator, p, state, said)
				}
			}
		}
	}
}
