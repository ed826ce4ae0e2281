package console

import (
	"slices"
	"testing"

	"parley/internal/parley"
)

// The fallback lists are edited in their order, and are folded away until one is used.
func TestEditorOfWhatTakesOver(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	page := v.get(path)
	boxes := page.doc().Find(`details.more [name="fallback_voice_ids"]`)
	if _, open := boxes.Closest("details").Attr("open"); boxes.Length() != parley.MaxFallbacks || open {
		t.Errorf("%d boxes, open: %v", boxes.Length(), open)
	}
	voices := h.Catalog.Voices("pipeline", a.LanguageID)
	form := page.form(path)
	form["fallback_voice_ids"] = []string{id(voices[2].ID), "", id(voices[1].ID)}
	v.publish(path, form)
	got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
	if err != nil || len(got.FallbackVoiceIDs) != 2 || got.FallbackVoiceIDs[0] != voices[2].ID ||
		got.FallbackVoiceIDs[1] != voices[1].ID {
		t.Fatalf("%v: %v", got.FallbackVoiceIDs, err)
	}
	page = v.get(path)
	doc := page.doc()
	boxes = doc.Find(`[name="fallback_voice_ids"]`)
	if _, open := boxes.Closest("details").Attr("open"); !open ||
		boxes.First().Find("[selected]").AttrOr("value", "") != id(voices[2].ID) {
		t.Error("what was chosen is not shown")
	}
	form = page.form(path)
	form["fallback_voice_ids"] = []string{"5"}
	v.saved(path, form).says("This choice is not available any more.")
}

// So are further languages.
func TestEditorOfLanguages(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	form["secondary_language_ids"] = []string{"4", "", "2"}
	v.publish(path, form)
	got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
	if err != nil || !slices.Equal(got.SecondaryLanguageIDs, []int64{4, 2}) {
		t.Fatalf("%v: %v", got.SecondaryLanguageIDs, err)
	}
	boxes := v.get(path).doc().Find(`[name="secondary_language_ids"]`)
	if _, open := boxes.Closest("details").Attr("open"); !open || boxes.First().Find("[selected]").AttrOr("value", "") != "4" {
		t.Error("what was chosen is not shown")
	}
	form["secondary_language_ids"] = []string{id(a.LanguageID)}
	v.saved(path, form).says("must be another language")
}
