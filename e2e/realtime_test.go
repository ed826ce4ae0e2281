package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// inMode is a line whose assistant hears with a realtime model.
func inMode(t *testing.T, mode string, fields map[string]any, env ...string) (*line, *vendor) {
	t.Helper()
	l, v := speaking(t, append([]string{"PARLEY_OPENAI_REALTIME_MODEL=" + aitest.RealtimeModel,
		"PARLEY_OPENAI_REALTIME_STT_MODEL=" + aitest.TranscriptionModel}, env...)...)
	var models, voices []struct {
		ID   int64
		Code string
	}
	l.call(t, "GET", "/user/assistants/models?type="+mode, nil, &models)
	l.call(t, "GET", "/user/assistants/voices?language_id=1&mode="+mode, nil, &voices)
	if len(models) != 1 || len(voices) == 0 {
		t.Fatalf("models %v, voices %v", models, voices)
	}
	all := map[string]any{"mode": mode, "multimodal_model_id": models[0].ID, "voice_id": voices[0].ID,
		"initial_message": welcome, "post_call_evaluation": false, "record": false}
	for k, f := range fields {
		all[k] = f
	}
	var answer struct{ Warnings []string }
	if status := l.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", l.Assistant), all, &answer); status != http.StatusOK ||
		len(answer.Warnings) > 0 {
		t.Fatalf("answered %d: %+v", status, answer)
	}
	return l, v
}

// modes are the ways in which a realtime model holds a call; in the first one nobody else has its voice.
var modes = []struct {
	name, mode string
	env        []string
}{
	{"multimodal alone", "multimodal", []string{"PARLEY_OPENAI_TTS_MODEL="}},
	{"multimodal", "multimodal", nil},
	{"dualplex", "dualplex", nil},
}

// A call with a model that hears: it greets, answers, uses a tool, and its transcript is as any other's.
func TestRealtimeTalk(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l, v := inMode(t, m.mode, nil, m.env...)
			shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(`{"free":true}`))
			}))
			var tool struct{ Data struct{ ID int64 } }
			l.call(t, "POST", "/user/tools", map[string]any{"name": "table_free",
				"description": "Looks whether a table is free", "method": "GET", "endpoint": shop}, &tool)
			l.change(t, map[string]any{"tool_ids": []int64{tool.Data.ID}})
			c := l.greeted(t, l.phone)
			v.hears("I would like a table.", "For two.")
			v.ScriptRealtime(aitest.Behaviour{Text: "For how many people?"},
				aitest.Behaviour{Text: "Let me see.", Calls: []ai.ToolCall{{Name: "table_free", Arguments: "{}"}}},
				aitest.Behaviour{Text: "Your table is ready."})
			said := asks(t, c)
			first := hears(t, c, said.To())
			v.awaits(t, c, "For how many people?")
			silent(t, c, 300*time.Millisecond)
			asks(t, c)
			v.awaits(t, c, "Your table is ready.")
			silent(t, c, 500*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			const want = "AI: " + welcome + "\nCustomer: I would like a table.\nAI: For how many people?\nCustomer: For two.\nAI: Let me see. Your table is ready."
			if got := strings.ReplaceAll(row.Transcript, "\n\n", "\n"); strings.Join(strings.Fields(got), " ") !=
				strings.Join(strings.Fields(want), " ") {
				t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
			}
			t.Logf("at the wire %v", first.Sub(said.To()).Round(time.Millisecond))
			if list := v.Complaints(); len(list) > 0 {
				t.Errorf("the server complained of %v", list)
			}
		})
	}
}

// Who speaks into a reply silences it; the model is made to know what was heard, and so is the transcript.
func TestRealtimeInterrupted(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l, v := inMode(t, m.mode, nil, m.env...)
			c := l.greeted(t, l.phone)
			v.hears("What do you have?", "Stop, only bread please.")
			v.ScriptRealtime(aitest.Behaviour{Text: long}, aitest.Behaviour{Text: "Bread it is."})
			said := asks(t, c)
			at := hears(t, c, said.To())
			time.Sleep(time.Until(at.Add(1500 * time.Millisecond)))
			asks(t, c)
			v.awaits(t, c, "Bread it is.")
			silent(t, c, 500*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			if len(row.Turns) != 5 || !row.Turns[2].Interrupted || row.Turns[2].Text == long ||
				!strings.HasPrefix(long, row.Turns[2].Text) || len(row.Turns[2].Text) < 10 {
				t.Fatalf("%+v", row.Turns)
			}
			conversations := v.Conversations()
			items := conversations[len(conversations)-1].Items
			held := ""
			for _, i := range items {
				if i.Role == "assistant" && strings.HasPrefix(i.Text, "We have") {
					held = i.Text
				}
			}
			if d := len(strings.Fields(held)) - len(strings.Fields(row.Turns[2].Text)); d < -1 || d > 1 {
				t.Errorf("the model holds %q, the transcript %q", held, row.Turns[2].Text)
			}
			if list := v.Complaints(); len(list) > 0 {
				t.Errorf("the server complained of %v", list)
			}
		})
	}
}

// A socket that breaks in mid-sentence, and a session that expires, are not the end of a call.
func TestRealtimeGoesOn(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l, v := inMode(t, m.mode, nil, m.env...)
			c := l.greeted(t, l.phone)
			v.hears("What do you have?", "And when do you open?")
			v.ScriptRealtime(aitest.Behaviour{Text: long, Fault: aitest.Reset, After: 8},
				aitest.Behaviour{Text: "And so it goes on."}, aitest.Behaviour{Text: "We open at nine."})
			asks(t, c)
			v.awaits(t, c, "And so it goes on.")
			silent(t, c, 500*time.Millisecond)
			asks(t, c)
			v.awaits(t, c, "We open at nine.")
			silent(t, c, 500*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			if !strings.Contains(row.Transcript, "And so it goes on.") || !strings.Contains(row.Transcript,
				"Customer: And when do you open?\nAI: We open at nine.") {
				t.Error(row.Transcript)
			}
		})
	}
}

// A model that can't be reached ends the call, and its owner is told why.
func TestRealtimeGone(t *testing.T) {
	t.Parallel()
	l, v := inMode(t, "multimodal", nil)
	for range 8 {
		v.ScriptRealtime(aitest.Behaviour{Status: http.StatusServiceUnavailable})
	}
	l.ring(t, l.phone)
	row := l.over(t)
	row.expect(t, parley.CallFailed, parley.ProviderFailure)
	var full struct {
		Detail string `json:"ended_detail"`
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &full)
	if !strings.Contains(full.Detail, "overloaded") {
		t.Errorf("%q", full.Detail)
	}
}
