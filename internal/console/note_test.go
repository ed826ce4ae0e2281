package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parley"
)

// Notes are written and removed on a conversation's page, where the canned answers are offered.
func TestNotesAndCannedAnswers(t *testing.T) {
	h := open(t)
	u, other := h.user(t), h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	v, stranger := h.signedIn(t, u), h.signedIn(t, other)
	at := "/conversations/" + conv.ID
	v.post(at+"/notes", url.Values{"message": {" Called back.\r\nWants <b>two</b>. "}}).moved(at)
	v.post(at+"/notes", url.Values{"message": {" "}}).is(http.StatusUnprocessableEntity)
	v.post(at+"/notes", url.Values{"message": {strings.Repeat("x", 2001)}}).is(http.StatusUnprocessableEntity)
	doc := v.get(at).doc()
	if got := doc.Find("#notes .note-words").Text(); got != "Called back.\nWants <b>two</b>." {
		t.Errorf("the note says %q", got)
	}
	if got := doc.Find("#notes bdi").Text(); got != u.Name {
		t.Errorf("%q wrote it", got)
	}
	remove := doc.Find("#notes form").AttrOr("action", "")
	stranger.post(at+"/notes", url.Values{"message": {"x"}}).is(http.StatusNotFound)
	stranger.post(remove, nil).is(http.StatusNotFound)
	if n := v.get(at).doc().Find("#notes li").Length(); n != 1 {
		t.Errorf("%d notes", n)
	}
	v.post(remove, nil).moved(at)
	v.post(remove, nil).is(http.StatusNotFound)
	if n := v.get(at).doc().Find("#notes li").Length(); n != 0 {
		t.Errorf("%d notes, after the only one was deleted", n)
	}

	v.post("/canned-answers", url.Values{"name": {"/Hours"}, "content": {"From seven\r\nto six."}}).moved("/canned-answers?done=saved")
	v.post("/canned-answers", url.Values{"name": {"HOURS"}, "content": {"x"}}).is(http.StatusUnprocessableEntity).
		says("There is already a canned answer with this name.")
	v.post("/canned-answers", url.Values{"name": {"two words"}, "content": {""}}).is(http.StatusUnprocessableEntity)
	choice := v.get(at).doc().Find("[data-canned-name]")
	if name, text := choice.AttrOr("data-canned-name", ""), choice.AttrOr("data-canned-text", ""); name != "hours" ||
		text != "From seven\nto six." {
		t.Errorf("offered: %q %q", name, text)
	}
	one := v.get("/canned-answers").doc().Find(".list-main a").AttrOr("href", "")
	form := v.get(one).form(one)
	form.Set("name", "open")
	stranger.get(one).is(http.StatusNotFound)
	stranger.post(one, form).is(http.StatusNotFound)
	stranger.post(one+"/delete", nil).is(http.StatusNotFound)
	v.post(one, form).moved("/canned-answers?done=saved")
	v.get("/canned-answers").says("/open")
	v.post(one+"/delete", nil).moved("/canned-answers?done=deleted")
	if n := v.get(at).doc().Find("[data-canned-name]").Length(); n != 0 {
		t.Errorf("%d are offered", n)
	}
}
