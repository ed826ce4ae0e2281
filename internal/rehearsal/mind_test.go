package rehearsal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/internal/ai"
)

// scripted says its texts in order, and records what it was asked.
type scripted struct {
	texts []string
	asked []ai.Request
}

func (s *scripted) Generate(_ context.Context, req ai.Request, _ func(ai.Delta) error) (ai.Reply, error) {
	s.asked = append(s.asked, req)
	if len(s.texts) == 0 {
		return ai.Reply{}, errors.New("the model is gone")
	}
	text := s.texts[0]
	s.texts = s.texts[1:]
	return ai.Reply{Text: text, Finish: ai.Stop}, nil
}

func TestPersona(t *testing.T) {
	for said, want := range map[string]struct {
		words  string
		leaves bool
		fails  string
	}{
		"A table for two, please.":               {words: "A table for two, please."},
		"*sighs* Thank you,\ngoodbye. [hang up]": {words: "Thank you, goodbye.", leaves: true},
		"[Hang up]":                              {leaves: true},
		"(silence)":                              {fails: "the model says nothing"},
		strings.Repeat("a ", 1000):               {words: strings.TrimSpace(strings.Repeat("a ", 250))},
	} {
		m := &scripted{texts: []string{said}}
		words, leaves, err := mind{m}.next(t.Context(), "You are Ana.", []ai.Message{{Role: ai.User, Text: "Hello?"}})
		if strings.TrimSpace(words) != want.words || leaves != want.leaves || (err != nil) != (want.fails != "") ||
			err != nil && !strings.Contains(err.Error(), want.fails) || !strings.Contains(m.asked[0].System, "You are Ana.") {
			t.Errorf("of %.40q: %q, %v, %v", said, words, leaves, err)
		}
	}
}

// A model's verdict can fail a run, but never makes one pass; an answer that is no verdict is an error.
func TestReview(t *testing.T) {
	c := &Case{Criteria: []Criterion{{7, "The assistant is polite"}}}
	result := func() *Result {
		return &Result{Case: c, Timeline: &Timeline{}, Record: &Record{Transcript: "AI: Hello."},
			Verdicts: []Verdict{{What: "says hello", OK: false}}}
	}
	for said, want := range map[string]struct {
		failed int
		err    bool
	}{
		`{"why":"It greets.","met":true}`:                    {failed: 1},
		"```json\n{\"why\":\"It shouts.\",\"met\":false}```": {failed: 2},
		`{"why":"no verdict"}`:                               {failed: 1, err: true},
		"yes":                                                {failed: 1, err: true},
	} {
		m, r := &scripted{texts: []string{said}}, result()
		err := mind{m}.review(t.Context(), c, r)
		if len(r.Failed()) != want.failed || (err != nil) != want.err || m.asked[0].Schema == nil || m.asked[0].Messages[0].Text != "AI: Hello." {
			t.Errorf("%s: failed %v, %v", said, r.Failed(), err)
		}
	}
	if err := (mind{&scripted{}}).review(t.Context(), c, result()); err == nil {
		t.Error("a model that is gone judges")
	}
}
