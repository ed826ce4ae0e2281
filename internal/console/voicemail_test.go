package console

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"parley/internal/audio"
	"parley/internal/parley"
)

// message is a WAV file of quiet.
func message(seconds int) []byte {
	return append(audio.AppendWAVHeader(nil, 8000, 1, int64(16000*seconds)), make([]byte, 16000*seconds)...)
}

// A recorded message is uploaded on a page of the assistant's, heard there, replaced and removed; the editor says that it
// is there. What is no message is refused in words, and the former one stays.
func TestVoicemailRecording(t *testing.T) {
	h := open(t, func(c *Config) { c.Calls = exchange(t, c) })
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.assistant(t, u, "Night shift")
	editor, path := assistantPath(a.ID, ""), assistantPath(a.ID, "/voicemail")
	told := func(r *reply) string { return strings.Join(strings.Fields(r.doc().Find("#recorded").Text()), " ") }
	if got := told(v.get(editor)); got != "Upload a recording to have it played in place of these words." {
		t.Errorf("the editor says %q", got)
	}
	v.get(path + "/recording").is(http.StatusNotFound)
	v.post(path+"/delete", nil).is(http.StatusNotFound)
	if v.get(path).is(http.StatusOK).doc().Find("audio, #ask-remove, #not-played").Length() != 0 {
		t.Error("there is a player without a recording, or a warning")
	}

	v.sendFile(path, message(3)).moved(path + "?done=recorded")
	page := v.get(path + "?done=recorded").says("The recording is saved.").doc()
	if got := page.Find("#recorded .soft").First().Text(); !strings.Contains(got, "0:03 · uploaded 20") {
		t.Errorf("the page says %q", got)
	}
	if got := page.Find("audio").AttrOr("src", ""); got != path+"/recording" {
		t.Errorf("the player plays %q", got)
	}
	if got := told(v.get(editor)); got != "A recording of 0:03 is played in place of these words." {
		t.Errorf("the editor says %q", got)
	}
	heard := v.get(path + "/recording").is(http.StatusOK)
	if !bytes.HasPrefix([]byte(heard.body), audio.AppendWAVHeader(nil, 16000, 1, 96000)) || len(heard.body) != 44+96000 {
		t.Errorf("%d bytes are heard", len(heard.body))
	}

	for what, file := range map[string][]byte{
		"The file must be a WAV file": []byte("no sound"), "The file has no sound in it.": message(0),
		"The file may be 60 seconds long at most.": message(61)} {
		if got := v.sendFile(path, file).is(http.StatusUnprocessableEntity).doc().Find("#e-file").Text(); !strings.HasPrefix(got, what) {
			t.Errorf("%q is said, not %q", got, what)
		}
	}
	v.get(path).says("0:03")

	v.sendFile(path, message(5)).moved(path + "?done=recorded")
	v.get(path).says("0:05")
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"end_call_on_voicemail": numeral("0")}); err != nil {
		t.Fatal(err)
	}
	v.get(path).says("It is not played now")
	v.post(path+"/delete", nil).moved(path + "?done=unrecorded")
	v.get(path + "/recording").is(http.StatusNotFound)
	v.get(path + "?done=unrecorded").says("The recording is removed.")
}

// A viewer hears a recorded message, and changes nothing.
func TestVoicemailRecordingIsReadOnly(t *testing.T) {
	h := open(t, func(c *Config) { c.Calls = exchange(t, c) })
	u := h.user(t)
	a := h.assistant(t, u, "Night shift")
	path := assistantPath(a.ID, "/voicemail")
	h.signedIn(t, u).sendFile(path, message(1)).moved(path + "?done=recorded")
	v := h.in(t, h.member(t, u, parley.RoleViewer))
	page := v.get(path).is(http.StatusOK).doc()
	if page.Find("audio").Length() != 1 || page.Find("#ask-remove, main button[type=submit]").Length() != 0 {
		t.Error("a viewer can't hear it, or may change it")
	}
	v.get(path + "/recording").is(http.StatusOK)
}
