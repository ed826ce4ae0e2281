package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley"
	"parley/internal/ai/aitest"
)

// inMode is a line whose assistant holds its calls in a mode.
func inMode(t *testing.T, mode string, fields map[string]any, env ...string) (*line, *vendor) {
	t.Helper()
	l, v := speaking(t, append([]string{"PARLEY_OPENAI_REALTIME_MODEL=" + aitest.RealtimeModel,
		"PARLEY_OPENAI_REALTIME_STT_MODEL=" + aitest.TranscriptionModel}, env...)...)
	var answer struct{ Warnings []string }
	if status := l.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", l.Assistant), modeFields(t, l, mode, fields),
		&answer); status != http.StatusOK || len(answer.Warnings) > 0 {
		t.Fatalf("answered %d: %+v", status, answer)
	}
	return l, v
}

// modeFields are those of an assistant in a mode, with further ones.
func modeFields(t *testing.T, l *line, mode string, fields map[string]any) map[string]any {
	t.Helper()
	all := map[string]any{"mode": mode, "initial_message": welcome, "post_call_evaluation": false, "record": false}
	if mode != "pipeline" {
		var models, voices []struct{ ID int64 }
		l.call(t, "GET", "/user/assistants/models?type="+mode, nil, &models)
		l.call(t, "GET", "/user/assistants/voices?language_id=1&mode="+mode, nil, &voices)
		if len(models) != 1 || len(voices) == 0 {
			t.Fatalf("models %v, voices %v", models, voices)
		}
		all["multimodal_model_id"], all["voice_id"] = models[0].ID, voices[0].ID
	}
	for k, f := range fields {
		all[k] = f
	}
	return all
}

// Where the vendor's speech model has the realtime model's voice, the greeting is its, and heard at once.
func TestRealtimeGreets(t *testing.T) {
	t.Parallel()
	l, v := inMode(t, "multimodal", nil)
	c := l.greeted(t, l.phone)
	v.hears("I would like a table.")
	v.ScriptRealtime(aitest.Behaviour{Text: "For how many people?"})
	asks(t, c)
	v.awaits(t, c, "For how many people?")
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
	if list := v.Speeches(); len(list) != 1 || list[0].Input != welcome {
		t.Errorf("its speech model was asked for %+v", list)
	}
	if list := v.Complaints(); len(list) > 0 {
		t.Errorf("the server complained of %v", list)
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
