package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/auth"
	"parley/internal/limit"
	"parley/internal/parley"
	"parley/internal/web"
)

// One connection carries the streams of many pages, each with its own rights; what is refused says so, and the others go on.
func TestManyStreamsOverOneConnection(t *testing.T) {
	h := open(t)
	u, other := h.user(t), h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	foreign := h.talk(t, h.assistant(t, other, "Foreign desk"), parley.WidgetConversation)
	v := h.signedIn(t, u)
	at := url.Values{"at": {"/conversations/" + conv.ID + "/live", "/conversations/live?show=all", "/waiting/live",
		"/conversations/" + foreign.ID + "/live", "/conversations", "https://elsewhere.example.com/live", "//elsewhere.example.com/live"}}
	_, next := v.stream("GET", "/lives?"+at.Encode(), nil)
	type carried struct{ at, event string }
	had := map[carried]string{}
	hear := func(at, event, part string) {
		t.Helper()
		for {
			if strings.Contains(had[carried{at, event}], part) && had[carried{at, event}] != "" {
				return
			}
			e, ok := next()
			if !ok {
				t.Fatalf("the connection ended before %s said %s %q", at, event, part)
			}
			had[carried{e.data["at"], e.data["event"]}] += e.data["data"]
		}
	}
	hear("/conversations/"+conv.ID+"/live", "put", "Own Bakery")
	hear("/conversations/live?show=all", "list", "version")
	hear("/waiting/live", "waits", "0 conversations need")
	hear("/conversations/"+foreign.ID+"/live", "refused", "Not found")
	for _, wrong := range []string{"/conversations", "https://elsewhere.example.com/live", "//elsewhere.example.com/live"} {
		hear(wrong, "refused", "")
	}
	if err := h.Chat.TakeOver(t.Context(), u.ID, conv.ID, nil); err != nil {
		t.Fatal(err)
	}
	h.say(t, conv, "Anybody?")
	hear("/conversations/"+conv.ID+"/live", "put", "Anybody?")
	hear("/waiting/live", "waits", "1 conversation needs")
	for key, said := range had {
		if strings.Contains(said, "Foreign desk") {
			t.Errorf("%v shows another account's", key)
		}
	}
	h.Stop()
	for {
		if _, ok := next(); !ok {
			break
		}
	}
	many := url.Values{}
	for range maxLives + 1 {
		many.Add("at", "/waiting/live")
	}
	v.get("/lives?" + many.Encode()).is(http.StatusUnprocessableEntity)
	h.visitor(t).get("/lives?at=%2Fwaiting%2Flive", "HX-Request", "true").is(http.StatusUnauthorized)
}

// What goes wrong with one page's stream does not end those of the others, and it is asked for again.
func TestOneStreamFails(t *testing.T) {
	h := open(t)
	v := h.signedIn(t, h.user(t))
	tries := 0
	h.mux.HandleFunc("GET /broken/live", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", web.EventStream)
		if tries++; tries == 1 {
			panic("broken")
		}
		w.Write([]byte("event: put\ndata: {}\n\n"))
		w.WriteHeader(http.StatusOK)
	})
	_, next := v.stream("GET", "/lives?"+url.Values{"at": {"/broken/live", "/waiting/live"}}.Encode(), nil)
	for had := map[string]bool{}; !had["/broken/live"] || !had["/waiting/live"]; {
		e, ok := next()
		if !ok {
			t.Fatalf("the connection ended: %v", had)
		}
		had[e.data["at"]] = true
	}
}

// A page's stream is begun once, however often it is asked for, and an account's pages are bounded over all of its connections.
func TestStreamsAreBounded(t *testing.T) {
	gate := limit.New(func(string) parley.Plan { return parley.Plan{RequestsTogether: 10, Streams: 1} }, auth.Rate{})
	h := open(t, func(c *Config) { c.Gate = gate })
	u := h.user(t)
	v := h.signedIn(t, u)
	begun := 0
	h.mux.HandleFunc("GET /counted/live", func(w http.ResponseWriter, _ *http.Request) {
		begun++
		w.Header().Set("Content-Type", web.EventStream)
		w.WriteHeader(http.StatusOK)
	})
	v.get("/lives?"+url.Values{"at": {"/counted/live", "/counted/live", "/counted/live"}}.Encode(), "Parley-Once", "1").is(http.StatusOK)
	if begun != 1 {
		t.Errorf("a stream is begun %d times", begun)
	}
	const waits = "/lives?at=%2Fwaiting%2Flive"
	var leave []func()
	for range limit.PagesPerStream {
		out, err := gate.Follow(u.ID, u.Plan)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, out)
	}
	if text := v.get(waits, "Parley-Once", "1").is(http.StatusOK).body; strings.Contains(text, "waits") {
		t.Errorf("beside %d others: %s", limit.PagesPerStream, text)
	}
	leave[0]()
	if text := v.get(waits, "Parley-Once", "1").is(http.StatusOK).body; !strings.Contains(text, "waits") {
		t.Errorf("once one has ended: %s", text)
	}
}
