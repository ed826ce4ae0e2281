package console

import (
	"net/http"
	"strings"
	"testing"

	"parley/internal/exam"
	"parley/internal/parley"
)

// Changes that can't be tried now are still in the form, with the reason above them.
func TestTryKeepsWhatWasWritten(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	conv := h.talk(t, a, parley.WidgetConversation)
	h.say(t, conv, "When are you open?")
	if _, err := h.Exams.Create(t.Context(), u.ID, a.ID, firstScript); err != nil {
		t.Fatal(err)
	}
	for range 3 { // as many as there may be
		if _, err := h.Exams.Start(t.Context(), u.ID, a.ID, exam.Order{}); err != nil {
			t.Fatal(err)
		}
	}
	v, at := h.signedIn(t, u), assistantPath(a.ID, "/test-runs")
	form := v.get(assistantPath(a.ID, "/try?conversation="+conv.ID)).is(http.StatusOK).form(at)
	models := h.Catalog.ModelsOf(parley.LLM)
	form.Set("system_prompt", "We sell <b>bread</b>.\r\nAnd cakes.")
	form.Set("initial_message", "Good evening.")
	form.Set("llm_model_id", id(models[len(models)-1].ID))
	r := v.post(at, form).is(http.StatusConflict).says("Replay").says("test runs are in progress")
	again := r.form(at)
	for name := range form {
		if got := strings.TrimSpace(again.Get(name)); got != form.Get(name) {
			t.Errorf("%s is %q, not %q", name, got, form.Get(name))
		}
	}
	if _, ok := again["call_id"]; ok || len(again) != len(form) {
		t.Errorf("the form is %v", again)
	}
	v.post(at, nil).is(http.StatusConflict).says("Tests").says("test runs are in progress") // from the list
}
