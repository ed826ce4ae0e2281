package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"parley/internal/parley"
)

// Assistants are put into folders and given labels, and found by them.
func TestFoldersAndLabels(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v, stranger := h.signedIn(t, u), h.signedIn(t, h.user(t))
	desk, night := h.assistant(t, u, "Front desk"), h.assistant(t, u, "Night desk")
	if n := v.get("/assistants").doc().Find("select[name=folder], select[name=label]").Length(); n != 0 {
		t.Errorf("%d filters without anything to filter by", n)
	}
	for _, at := range []string{"/folders", "/labels"} {
		v.post(at, url.Values{"name": {"Sales"}, "color": {"blue"}}).moved(at + "?done=saved")
		v.post(at, url.Values{"name": {"Sales"}, "color": {""}}).is(http.StatusUnprocessableEntity).says("The name has already been taken.")
		v.post(at, url.Values{"name": {""}, "color": {"black"}}).is(http.StatusUnprocessableEntity)
		one := v.get(at).doc().Find(".list-main a").First().AttrOr("href", "")
		form := v.get(one).form(one)
		if form.Get("color") != "blue" {
			t.Errorf("%s has the colour %q", one, form.Get("color"))
		}
		form.Set("color", "red")
		stranger.get(one).is(http.StatusNotFound)
		stranger.post(one, form).is(http.StatusNotFound)
		stranger.post(one+"/delete", nil).is(http.StatusNotFound)
		v.post(one, form).moved(at + "?done=saved")
		if n := v.get(at).doc().Find(".swatch.color-red").Length(); n != 1 {
			t.Errorf("%s shows %d red ones", at, n)
		}
	}
	id := func(at string) string {
		href := v.get(at).doc().Find(".list-main a").First().AttrOr("href", "")
		return href[strings.LastIndexByte(href, '/')+1:]
	}
	folder, label := id("/folders"), id("/labels")
	filing := "/assistants/" + strconv.FormatInt(desk.ID, 10) + "/groups"
	stranger.get(filing).is(http.StatusNotFound)
	v.post(filing, url.Values{"folder_id": {folder}, "label_ids": {label}}).moved("/assistants?done=saved")
	now, err := h.DB.Assistant(t.Context(), u.ID, desk.ID)
	if err != nil || now.FolderID == nil || strconv.FormatInt(*now.FolderID, 10) != folder || len(now.LabelIDs) != 1 {
		t.Fatalf("filed in %v, %v: %v", now.FolderID, now.LabelIDs, err)
	}
	if v.get(filing).doc().Find("option[selected][value='"+folder+"'], input[checked][value='"+label+"']").Length() != 2 {
		t.Error("the form does not show what was chosen")
	}
	for query, want := range map[string]string{"": "Front desk,Night desk", "?folder=" + folder: "Front desk", "?label=" + label: "Front desk",
		"?folder=" + folder + "&q=night": "", "?label=" + label + "&q=desk": "Front desk"} {
		var got []string
		for _, a := range []*parley.Assistant{desk, night} {
			if v.get("/assistants"+query).doc().Find(".list a.stretch[href='/assistants/"+strconv.FormatInt(a.ID, 10)+"']").Length() > 0 {
				got = append(got, a.Name)
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q shows %v, want %s", query, got, want)
		}
	}
	if text := v.get("/assistants").doc().Find(".chip").Text(); strings.Count(text, "Sales") != 2 {
		t.Errorf("the list shows %q", text)
	}
	// Somebody else's folder is none.
	stranger.post("/folders", url.Values{"name": {"x"}, "color": {""}}).is(http.StatusSeeOther)
	href := stranger.get("/folders").doc().Find(".list-main a").First().AttrOr("href", "")
	v.post(filing, url.Values{"folder_id": {href[strings.LastIndexByte(href, '/')+1:]}}).moved(filing)
	v.post(filing, url.Values{"folder_id": {""}}).moved("/assistants?done=saved")
	v.post("/folders/"+folder+"/delete", nil).moved("/folders?done=deleted")
	v.post("/labels/"+label+"/delete", nil).moved("/labels?done=deleted")
	if n := v.get("/assistants").doc().Find(".chip").Length(); n != 0 {
		t.Errorf("%d chips are left", n)
	}
}
