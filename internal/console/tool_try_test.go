package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"parley/internal/egress"
	"parley/internal/tool"
)

// A tool is tried with typed arguments through the guard, and the page shows the request without its secrets.
func TestToolIsTried(t *testing.T) {
	var got string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
		if r.URL.Path == "/orders/13" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, `{"state":"baked"}`)
	}))
	t.Cleanup(far.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	h := open(t, func(c *Config) { c.Assistants.Tools = tool.New(guard) })
	u := h.user(t)
	v := h.signedIn(t, u)
	made, err := tool.Create(t.Context(), h.DB, u.ID, map[string]any{"name": "order_state", "description": "Says how an order stands.",
		"endpoint": far.URL + "/orders/{number}", "method": "POST", "headers": []any{map[string]any{"name": "Authorization", "value": secret}},
		"schema": []any{map[string]any{"name": "number", "type": "number", "description": "Its number"},
			map[string]any{"name": "urgent", "type": "boolean", "description": "Whether it is urgent", "required": false}}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/tools/" + id(made.ID)
	form := v.get(path).form(path + "/try")
	form.Set("argument.number", "4711")
	form.Set("argument.urgent", "true")
	r := v.post(path+"/try", form).is(http.StatusOK)
	if want := "POST /orders/4711 " + secret + ` {"urgent":true}`; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	r.says("200 OK").says("POST " + far.URL + "/orders/4711").says("Authorization: ••••••••").says(`"urgent": true`)
	if told := r.doc().Find("[data-told]").Text(); told != `{"state":"baked"}` {
		t.Errorf("the model is told %q", told)
	}
	if strings.Contains(r.body, "very-secret") {
		t.Error("the page holds a header's value")
	}
	if again := r.form(path + "/try"); again.Get("argument.number") != "4711" || again.Get("argument.urgent") != "true" {
		t.Errorf("what was typed is gone: %v", again)
	}

	form.Set("argument.number", "13")
	r = v.post(path+"/try", form)
	if told := r.says("404 Not Found").doc().Find("[data-told]").Text(); told != "The tool failed with HTTP status 404 Not Found." {
		t.Errorf("the model is told %q", told)
	}
	got = ""
	r = v.post(path+"/try", url.Values{"argument.number": {"many"}}).says("No answer")
	r.says("The tool was not called: the argument number must be a number.")
	if got != "" {
		t.Errorf("sent %q", got)
	}
	other := h.signedIn(t, h.user(t))
	other.post(path+"/try", form).is(http.StatusNotFound)
}
