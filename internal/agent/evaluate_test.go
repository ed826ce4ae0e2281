package agent_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

func TestEvaluate(t *testing.T) {
	for answer, want := range map[string]map[string]any{
		`{"sentiment":"positive","outcome":"success","score":9}`: {"sentiment": "positive",
			"outcome": "success", "score": 9},
		"```json\n{\"sentiment\":\"Neutral \",\"outcome\":\"PARTIAL\"}\n```": {"sentiment": "neutral",
			"outcome": "partial", "score": nil},
		`{"sentiment":"angry","outcome":7,"score":11}`: {},
		`{"sentiment":null,"outcome":"failure","score":0}`: {"sentiment": nil,
			"outcome": "failure", "score": 0},
		`{"score":6.6}`: {"sentiment": nil, "outcome": nil, "score": 7},
		`{"score":"8"}`: {},
	} {
		f := &aitest.Fake{}
		f.Script(aitest.Step{Text: answer})
		got, usage, err := agent.Evaluate(t.Context(), f, "Sell cakes.", "AI: Hello\nCustomer: Hi")
		if err != nil || !reflect.DeepEqual(got.Map(), want) || usage.Out == 0 {
			t.Errorf("%s: %v, %v, %v", answer, got.Map(), usage, err)
		}
		req := f.Requests()[0]
		if !strings.Contains(req.System, "Sell cakes.") || req.Messages[0].Text != "AI: Hello\nCustomer: Hi" ||
			req.Schema == nil || len(req.Tools) != 0 {
			t.Errorf("asked %+v", req)
		}
	}
}

func TestEvaluateFails(t *testing.T) {
	down := &ai.Error{Kind: ai.Overloaded, Err: errors.New("busy")}
	f := &aitest.Fake{}
	f.Script(aitest.Step{Text: "I would say it went well."}, aitest.Step{Err: down})
	for _, kind := range []ai.Kind{ai.Malformed, ai.Overloaded} {
		if got, _, err := agent.Evaluate(t.Context(), f, "", "Customer: Hi"); ai.KindOf(err) != kind ||
			len(got.Map()) != 0 {
			t.Errorf("%v, %v, want %s", got, err, kind)
		}
	}
	// Long instructions and transcripts are cut: the end of the call counts.
	var long strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&long, "Customer: line %d\n", i)
	}
	f.Script(aitest.Step{Text: `{}`})
	if _, _, err := agent.Evaluate(t.Context(), f, strings.Repeat("Be kind. ", 20_000), long.String()); err != nil {
		t.Fatal(err)
	}
	req := f.Requests()[2]
	if n := agent.Tokens(req.System); n > 8_000 || n < 900 {
		t.Errorf("%d tokens of instructions", n)
	}
	if text := req.Messages[0].Text; agent.Tokens(text) > 50_000 || !strings.Contains(text, "line 59999") ||
		strings.Contains(text, "line 1\n") {
		t.Errorf("%d tokens of transcript", agent.Tokens(text))
	}
}
