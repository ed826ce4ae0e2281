package console

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/internal/parley"
)

// A test call is answered by the code that answers browsers elsewhere, but only for the user's own assistants. Refusals
// go to a script.
func TestWebCall(t *testing.T) {
	var called []int64
	var first string // the initial message of the assistant that is called
	var refuse error
	var anew []string // what calls were connected anew with
	h := open(t, func(c *Config) {
		c.Answer = func(w http.ResponseWriter, r *http.Request, a *parley.Assistant, place func(string) string) error {
			if refuse != nil {
				return refuse
			}
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "v=0" ||
				r.Header.Get("Content-Type") != "application/sdp" {
				t.Errorf("the offer came as %q, %v", body, err)
			}
			called, first = append(called, a.ID), a.InitialMessage
			w.Header().Set("Location", place("secret"))
			w.WriteHeader(http.StatusCreated)
			return nil
		}
		c.Hangup = func(_ context.Context, session string) bool { return session == "secret" }
		c.Reconnect = func(w http.ResponseWriter, r *http.Request, session string) error {
			if session != "secret" {
				return parley.Errorf(parley.NotFound, "This call is over already.")
			}
			body, err := io.ReadAll(r.Body)
			anew = append(anew, string(body)+r.Header.Get("If-Match"))
			w.Header().Set("ETag", `"new"`)
			w.WriteHeader(http.StatusOK)
			return err
		}
	})
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	path := "/assistants/" + id(a.ID) + "/web-call"
	send := func(v *visitor, method, path string) (int, string, string) {
		t.Helper()
		req, err := http.NewRequest(method, h.url+path, strings.NewReader("v=0"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/sdp")
		req.Header.Set("HX-Request", "true")
		req.Header.Set("If-Match", "*")
		res, err := v.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(raw), res.Header.Get("Location")
	}
	v, other := h.signedIn(t, u), h.signedIn(t, h.user(t))
	if page := v.get("/assistants/" + id(a.ID)).doc(); page.Find(`[data-call="`+path+`"][hidden]`).Length() != 1 ||
		page.Find("[data-call-start]").Length() != 1 {
		t.Error("the editor has no test call")
	}
	status, _, place := send(v, "POST", path)
	if status != http.StatusCreated || place != path+"/secret" || len(called) != 1 || called[0] != a.ID {
		t.Fatalf("answered %d at %q, calls %v", status, place, called)
	}
	// Its network changes: the call is connected anew, by those whose assistant it is, and by its secret.
	if status, body, _ := send(other, "PATCH", place); status != http.StatusNotFound || len(anew) != 0 {
		t.Errorf("somebody else's call is connected anew: %d %s", status, body)
	}
	if status, body, _ := send(v, "PATCH", path+"/guess"); status != http.StatusNotFound ||
		!strings.Contains(body, `"message":"This call is over already."`) {
		t.Errorf("a call that is over is connected anew: %d %s", status, body)
	}
	if status, body, _ := send(v, "PATCH", place); status != http.StatusOK || len(anew) != 1 || anew[0] != "v=0*" {
		t.Errorf("connected anew with %d %s: %q", status, body, anew)
	}
	if status, said, _ := send(other, "POST", path); status != http.StatusNotFound ||
		!strings.Contains(said, `"message":"Assistant not found"`) {
		t.Errorf("a stranger's call is answered %d %s", status, said)
	}
	if status, _, _ := send(h.visitor(t), "POST", path); status != http.StatusUnauthorized {
		t.Errorf("a call without a session is answered %d", status)
	}
	if status, _, _ := send(other, "DELETE", place); status != http.StatusNotFound {
		t.Errorf("a stranger's hangup is answered %d", status)
	}
	if status, _, _ := send(v, "DELETE", place); status != http.StatusNoContent {
		t.Errorf("a hangup is answered %d", status)
	}
	if status, _, _ := send(v, "DELETE", path+"/other"); status != http.StatusNotFound {
		t.Errorf("a second hangup is answered %d", status)
	}
	refuse = parley.Errorf(parley.Payment, "Insufficient balance")
	if status, said, _ := send(v, "POST", path); status != http.StatusPaymentRequired ||
		!strings.Contains(said, "Insufficient balance") {
		t.Errorf("without money: %d %s", status, said)
	}
	if len(called) != 1 {
		t.Errorf("calls were begun: %v", called)
	}
	refuse = nil
	if _, err := h.Assistants.SaveDraft(t.Context(), u.ID, a.ID, map[string]any{"initial_message": "Drafted hello."}); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := send(v, "POST", path); status != http.StatusCreated || first != "Drafted hello." {
		t.Errorf("with a draft it is answered %d by %q", status, first)
	}

	none := open(t)
	nu := none.user(t)
	na := none.assistant(t, nu, "Front desk")
	nv := none.signedIn(t, nu)
	if nv.get("/assistants/"+id(na.ID)).doc().Find("[data-call-start]").Length() != 0 {
		t.Error("a call is offered where there is none")
	}
	nv.post("/assistants/"+id(na.ID)+"/web-call", nil).is(http.StatusServiceUnavailable)
}

func TestWidgetSnippet(t *testing.T) {
	h := open(t, func(c *Config) { c.Front.PublicURL = "https://voice.example.com/sub" })
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	page := v.get("/assistants/" + id(a.ID))
	if got, want := page.doc().Find("#snippet").AttrOr("value", ""),
		`<script src="https://voice.example.com/sub/embed.js" data-assistant-id="`+a.UUID+
			`" async></script>`; got != want {
		t.Errorf("the line is %s", got)
	}
	page.says("make it active first")
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"status": "active"}); err != nil {
		t.Fatal(err)
	}
	if v.get("/assistants/"+id(a.ID)).doc().Find(`a[href="/widget-demo?assistant=`+a.UUID+`"]`).Length() != 1 {
		t.Error("no way to the demo page")
	}
}
