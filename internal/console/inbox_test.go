package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
)

func TestInbox(t *testing.T) {
	h := open(t)
	u, other := h.user(t), h.user(t)
	v := h.signedIn(t, u)
	v.get("/conversations").says("No conversations yet").says("Make an assistant first")
	a, b := h.assistant(t, u, "Front desk"), h.assistant(t, u, "Night desk")
	v.get("/conversations").says("curl " + h.url + "/api/conversations").says(a.UUID)

	widget, test := h.talk(t, a, parley.WidgetConversation), h.talk(t, b, parley.TestConversation)
	h.talk(t, h.assistant(t, other, "Foreign desk"), parley.WidgetConversation)
	h.model.Script(aitest.Behaviour{Text: "Until six."})
	h.say(t, widget, "When do you close?")
	today, yesterday := time.Now().UTC().Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	for query, want := range map[string]string{
		"":                                   "Test chat, Visitor",
		"type=widget":                        "Visitor",
		"type=whatsapp":                      "",
		"assistant_id=" + id(b.ID):           "Test chat",
		"type=test&assistant_id=" + id(a.ID): "",
		"date_from=" + today:                 "Test chat, Visitor",
		"date_to=" + yesterday:               "",
		"type=&assistant_id=&date_to=":       "Test chat, Visitor", // as the form sends it
	} {
		r := v.get("/conversations?" + query).is(http.StatusOK)
		var titles []string
		r.doc().Find("#results .stretch").Each(func(_ int, s *selection) { titles = append(titles, s.Text()) })
		if got := strings.Join(titles, ", "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if want == "" {
			r.says("No conversation matches these filters.")
		}
	}
	v.get("/conversations").says("AI: Until six.")
	for _, query := range []string{"type=fax", "page=0", "page=x", "date_from=2026-13-01", "assistant_id=x"} {
		v.get("/conversations?" + query).moved("/conversations")
	}
	v.get("/conversations?page=7").moved("/conversations?show=all")
	foreign, _, err := h.DB.AssistantPage(t.Context(), other.ID, store.AssistantFilter{}, store.Page{Number: 1, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	v.get("/conversations?assistant_id=" + id(foreign[0].ID)).is(http.StatusNotFound)
	v.get("/conversations/live?assistant_id=" + id(foreign[0].ID)).is(http.StatusNotFound)

	// The pages keep the filters.
	for range pageSize {
		h.talk(t, b, parley.TestConversation)
	}
	r := v.get("/conversations?type=test").says("1–25 of 26")
	next := r.doc().Find("[rel=next]").AttrOr("href", "")
	if r = v.get(next); !strings.Contains(next, "type=test") || r.doc().Find("#results li").Length() != 1 {
		t.Errorf("the second page is %s", next)
	}
	r.doc().Find("#results .stretch").Each(func(_ int, s *selection) {
		if s.AttrOr("href", "") != "/conversations/"+test.ID {
			t.Error("the oldest is not last")
		}
	})

	// From the second page of all, one comes back to all: also while somebody waits, where the inbox begins with those.
	if err := h.Chat.TakeOver(t.Context(), u.ID, widget.ID, nil); err != nil {
		t.Fatal(err)
	}
	h.say(t, widget, "Is there a person?")
	all := v.get("/conversations?show=all&page=2").doc()
	if got := all.Find("[rel=prev]").AttrOr("href", ""); got != "/conversations?show=all" {
		t.Errorf("the first page is %s", got)
	}
	v.get("/conversations?show=all&page=9").moved("/conversations?page=2&show=all")
}

// What a customer changes and deletes through a channel is shown where the conversation is open.
func TestRevisedMessagesLive(t *testing.T) {
	h := open(t)
	u := h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WhatsAppConversation)
	if err := h.Chat.TakeOver(t.Context(), u.ID, conv.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Chat.Receive(t.Context(), conv, "whatsapp", "one", "Good morning"); err != nil {
		t.Fatal(err)
	}
	_, next := h.signedIn(t, u).stream("GET", "/conversations/"+conv.ID+"/live", nil)
	until(t, next, "put", "Good morning")
	until(t, next, "put", `id="facts"`) // the last piece of the page as it stands
	for _, text := range []string{"Good evening", "Good night"} {
		if _, err := h.Chat.Revise(t.Context(), conv, "one", text); err != nil {
			t.Fatal(err)
		}
		until(t, next, "put", text)
	}
	if err := h.Chat.Retract(t.Context(), conv, "one"); err != nil {
		t.Fatal(err)
	}
	until(t, next, "put", "The customer deleted this message.")
}

func TestConversationByHand(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	conv, err := h.Chat.WithCustomer(t.Context(), a, parley.APIConversation, "+49 30 901820",
		map[string]string{"plan": "gold"})
	if err != nil {
		t.Fatal(err)
	}
	h.model.Script(aitest.Behaviour{Text: "Hi."})
	h.say(t, conv, "Hello")
	v := h.signedIn(t, u)
	at := "/conversations/" + conv.ID
	v.get(at).says("+49 30 901820").says("+4930901820").says("gold").says("$0.01").says("The assistant replies.")
	v.post(at+"/ai", url.Values{"on": {"0"}}).moved(at)
	v.get(at).says(u.Name + " is replying. The assistant is paused.")
	v.post(at+"/reply", url.Values{"message": {"This is Maria."}}).moved(at)
	if got := v.get(at).doc().Find(".said.human .words").Text(); got != "This is Maria." {
		t.Errorf("the person said %q", got)
	}
	v.post(at+"/ai", url.Values{"on": {"1"}}).moved(at)
	if now, err := h.DB.Conversation(t.Context(), u.ID, conv.ID); err != nil || !now.AIEnabled {
		t.Errorf("%+v %v", now, err)
	}
	// The values that are extracted at the end are shown.
	err = h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		conv.Extracted = map[string]any{"status": true, "summary": "<b>fine</b>", "callback": nil, "stars": 4.5}
		m := &parley.Message{ConversationID: conv.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer,
			Content: "Thank you, and have a nice day."}
		if err := tx.AddMessage(ctx, m, 0, parley.Now().Add(-time.Second)); err != nil {
			return err
		}
		_, err := tx.EndConversation(ctx, conv, parley.Findings{Values: conv.Extracted,
			Notes: map[string]string{"callback": `The model answered "maybe", which is no number.`}}, parley.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := v.get(at).doc().Find(".said.customer header [title=Language]").Text(); got != "en" {
		t.Errorf("the language of a message is shown as %q", got)
	}
	facts := v.get(at).doc().Find("#facts").Text()
	for _, want := range []string{"Ended", "yes", "<b>fine</b>", `not known: the model answered "maybe", which is no number`, "4.5"} {
		if !strings.Contains(facts, want) {
			t.Errorf("the facts lack %q: %s", want, facts)
		}
	}
	v.post(at+"/delete", nil).moved("/conversations?done=deleted")
	v.get(at).is(http.StatusNotFound)
}

func TestForeignConversationsAreUnknown(t *testing.T) {
	h := open(t)
	owner, other := h.user(t), h.user(t)
	a := h.assistant(t, owner, "Secret desk")
	conv := h.talk(t, a, parley.TestConversation)
	v := h.signedIn(t, other)
	for _, c := range []struct{ method, path, id string }{
		{"GET", "/conversations/%", conv.ID}, {"GET", "/conversations/%/live", conv.ID},
		{"POST", "/conversations/%/say", conv.ID},
		{"POST", "/conversations/%/reply", conv.ID}, {"POST", "/conversations/%/ai", conv.ID},
		{"POST", "/conversations/%/delete", conv.ID},
		{"GET", "/assistants/%/talk", id(a.ID)}, {"POST", "/assistants/%/talk", id(a.ID)},
	} {
		bodies := map[string]bool{}
		for _, one := range []string{c.id, "00000000-0000-4000-8000-000000000000", "0", "x", "%27"} {
			form := url.Values{"message": {"stolen"}, "on": {"0"}}
			if c.method == "GET" {
				form = nil
			}
			bodies[v.send(c.method, strings.Replace(c.path, "%", one, 1),
				form).is(http.StatusNotFound).doc().Find("main").Text()] = true
		}
		if len(bodies) != 1 {
			t.Errorf("%s %s tells a foreign id from an unknown one", c.method, c.path)
		}
	}
	if list, err := h.DB.Messages(t.Context(), conv.ID); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
	for _, path := range []string{"/conversations", "/ledger"} {
		if strings.Contains(v.get(path).body, "Secret desk") {
			t.Errorf("%s shows another user's things", path)
		}
	}
	stranger := h.visitor(t)
	for _, path := range []string{"/conversations/live", "/conversations/" + conv.ID + "/live"} {
		stranger.get(path, "HX-Request", "true").is(http.StatusUnauthorized)
	}
	v.post("/conversations/"+conv.ID+"/reply", url.Values{"message": {"x"}}, "Sec-Fetch-Site",
		"cross-site").is(http.StatusForbidden)
}

func TestHostileConversationStaysText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)> {{x}} </textarea> ` + "\u202e"
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, evil)
	conv, err := h.Chat.WithCustomer(t.Context(), a, parley.APIConversation, evil, map[string]string{evil: evil})
	if err != nil {
		t.Fatal(err)
	}
	h.model.Script(aitest.Behaviour{Text: evil})
	h.say(t, conv, evil)
	v := h.signedIn(t, u)
	for _, path := range []string{"/conversations", "/conversations/" + conv.ID, "/assistants/" + id(a.ID) +
		"/talk", "/ledger"} {
		r := v.get(path).is(http.StatusOK)
		if n := r.doc().Find("script:not([src]), img, [onerror]").Length(); n > 0 ||
			strings.Contains(r.body, "<script>") {
			t.Errorf("%s: the text came alive:\n%s", path, r.body)
		}
	}
	if got := v.get("/conversations/" + conv.ID).doc().Find(
		".said.customer .words").Text(); got != strings.TrimSpace(evil) && got != evil {
		t.Errorf("the words are shown as %q", got)
	}
}

// The list's stream reports new messages in its conversations at once, and new conversations soon.
func TestInboxIsLive(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	_, next := v.stream("GET", "/conversations/live", nil)
	first := until(t, next, "list", "").data["version"]
	if on := v.get("/conversations").doc().Find("#results").AttrOr("data-list", ""); on != first {
		t.Errorf("the page is at %q, the stream at %q", on, first)
	}
	conv := h.talk(t, a, parley.WidgetConversation)
	second := until(t, next, "list", "").data["version"]
	h.model.Script(aitest.Behaviour{Text: "Hi."})
	h.say(t, conv, "Hello")
	third := until(t, next, "list", "").data["version"]
	if first == second || second == third {
		t.Errorf("versions %q %q %q", first, second, third)
	}
}

// A stream ends with the session that opened it.
func TestLiveEndsWithTheSession(t *testing.T) {
	h := open(t)
	h.askWho = 0
	u := h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	v := h.signedIn(t, u)
	_, list := v.stream("GET", "/conversations/live", nil)
	_, one := v.stream("GET", "/conversations/"+conv.ID+"/live", nil)
	until(t, list, "list", "")
	until(t, one, "put", "Own Bakery")
	v.post("/signout", nil).is(http.StatusSeeOther)
	for _, next := range []func() (heard, bool){list, one} {
		for {
			if _, ok := next(); !ok {
				break
			}
		}
	}
}

// So it does when the role is lowered that opened it, and whoever comes back is judged by the new one.
func TestLiveEndsWithTheRole(t *testing.T) {
	h := open(t)
	h.askWho = 0
	u := h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	who := h.member(t, u, parley.RoleEditor)
	v := h.in(t, who)
	change := func(role parley.Role) {
		t.Helper()
		if _, err := h.Auth.ChangeMember(t.Context(), &auth.Who{User: u}, who.Member.ID, map[string]any{"role": string(role)}); err != nil {
			t.Fatal(err)
		}
	}
	lives := "/lives?" + url.Values{"at": {"/conversations/" + conv.ID + "/live"}}.Encode()
	_, list := v.stream("GET", "/conversations/live", nil)
	_, one := v.stream("GET", lives, nil)
	until(t, list, "list", "")
	until(t, one, "at", "")
	change(parley.RoleViewer)
	for _, next := range []func() (heard, bool){list, one} {
		for {
			if _, ok := next(); !ok {
				break
			}
		}
	}
	_, list = v.stream("GET", "/conversations/live", nil) // viewers may read it too
	until(t, list, "list", "")
	change(parley.RoleEditor) // more than before: it goes on
	h.model.Script(aitest.Behaviour{Text: "Hi."})
	h.say(t, conv, "Hello")
	until(t, list, "list", "")
}

// A conversation's stream has everything that the page has, and what comes later; it ends when the server stops.
func TestConversationIsLive(t *testing.T) {
	h := open(t)
	u := h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	v := h.signedIn(t, u)
	_, next := v.stream("GET", "/conversations/"+conv.ID+"/live", nil)
	until(t, next, "put", "Own Bakery")
	gate := make(chan struct{})
	h.model.Script(aitest.Behaviour{Text: "Until six.", Gate: gate})
	w, err := h.Chat.Send(t.Context(), conv, "When do you close?")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	until(t, next, "put", "When do you close?")
	if e := until(t, next, "put", `id="typing"`); strings.Contains(e.data["html"], "hidden") {
		t.Error("nobody types")
	}
	close(gate)
	until(t, next, "put", "Until six.")
	until(t, next, "put", "$0.01")
	v.post("/conversations/"+conv.ID+"/ai", url.Values{"on": {"0"}})
	until(t, next, "put", "is replying")
	h.model.Script(aitest.Behaviour{Status: 400})
	v.post("/conversations/"+conv.ID+"/ai", url.Values{"on": {"1"}})
	until(t, next, "put", "The assistant replies.")
	if w, err := h.Chat.Send(t.Context(), conv, "Hello?"); err != nil {
		t.Fatal(err)
	} else {
		w.Wait(t.Context())
		w.Leave()
	}
	until(t, next, "put", "There was no reply")
	h.Console.Stop()
	for {
		if _, ok := next(); !ok {
			break
		}
	}
}

// The inbox begins with what needs a person, and every page says how much that is.
func TestInboxParts(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	calm, ana := h.talk(t, a, parley.WidgetConversation), h.talk(t, a, parley.WidgetConversation)
	err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.AddVariables(ctx, ana, map[string]string{"Full_Name": "Ana <b>Lang</b>", "topic": "bread"}, []string{"Full_Name"})
	})
	if err != nil {
		t.Fatal(err)
	}
	titles := func(r *reply) string {
		return strings.Join(r.doc().Find("#results .stretch").Map(textOfNode), ", ")
	}
	badge := func(path string) string {
		d := v.get(path).doc()
		if d.Find("#waiting").AttrOr("data-v", "") != d.Find("#waiting-top").AttrOr("data-v", "") {
			t.Errorf("%s: the menu and the top disagree", path)
		}
		if _, hidden := d.Find("#waiting").Attr("hidden"); hidden {
			return ""
		}
		return d.Find("#waiting").AttrOr("data-v", "")
	}
	if got := titles(v.get("/conversations")); got != "Ana <b>Lang</b>, Visitor" || badge("/") != "" {
		t.Errorf("nothing waits: %q, badge %q", got, badge("/"))
	}
	v.get("/conversations?show=needs_person").says("Nobody is waiting for a person.")
	v.get("/conversations?show=mine").says("You haven't taken over any conversations.")
	_, next := v.stream("GET", "/waiting/live", nil)
	until(t, next, "put", `data-v="0"`)

	if err := h.Chat.TakeOver(t.Context(), u.ID, ana.ID, nil); err != nil { // as an automation does
		t.Fatal(err)
	}
	h.say(t, ana, "Is there a person?")
	until(t, next, "put", `data-v="1"`)
	for path, want := range map[string]string{"/conversations": "Ana <b>Lang</b>", "/conversations?show=all": "Ana <b>Lang</b>, Visitor",
		"/conversations?show=unassigned": "Ana <b>Lang</b>", "/conversations?show=mine": "", "/conversations?done=deleted": "Ana <b>Lang</b>",
		"/conversations?type=widget": "Ana <b>Lang</b>, Visitor", "/conversations?type=api&show=needs_person": ""} {
		if got := titles(v.get(path)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := badge("/keys") + badge("/conversations/nothing"); got != "11" {
		t.Errorf("badges %q", got)
	}
	d := v.get("/conversations").doc()
	if live, again := d.Find("#results").AttrOr("data-live", ""), d.Find("#results").AttrOr("data-again", ""); live !=
		"/conversations/live?show=needs_person" || again != "/conversations?show=needs_person" {
		t.Errorf("it is followed at %s, and read again at %s", live, again)
	}
	if got := d.Find(".parts-of [aria-current]").Text(); !strings.Contains(got, "Needs a person") {
		t.Errorf("the part is %q", got)
	}
	if again := v.get("/conversations?show=all").doc().Find("#results").AttrOr("data-again", ""); again != "/conversations?show=all" {
		t.Errorf("all is read again at %s", again)
	}

	at := "/conversations/" + ana.ID
	v.get(at).says("Ana <b>Lang</b>").says("Waiting since")
	v.post(at+"/ai", url.Values{"on": {"0"}}).moved(at)
	if got := titles(v.get("/conversations?show=mine")) + titles(v.get("/conversations?show=unassigned")); got != "Ana <b>Lang</b>" {
		t.Errorf("taken over: %q", got)
	}
	v.post(at+"/attended", nil).moved(at)
	until(t, next, "put", `data-v="0"`)
	if _, hidden := v.get(at).doc().Find("#waits").Attr("hidden"); !hidden || badge("/") != "" {
		t.Error("it waits still")
	}
	h.say(t, ana, "Hello?")
	until(t, next, "put", `data-v="1"`)
	v.post(at+"/reply", url.Values{"message": {"Here I am."}}).moved(at)
	until(t, next, "put", `data-v="0"`)
	v.post(at+"/ai", url.Values{"on": {"1"}}).moved(at)
	v.get("/conversations?show=mine").says("You haven't taken over any conversations.")

	stranger := h.signedIn(t, h.user(t))
	stranger.post("/conversations/"+calm.ID+"/attended", nil).is(http.StatusNotFound)
	stranger.get("/conversations").says("No conversations yet")
}
