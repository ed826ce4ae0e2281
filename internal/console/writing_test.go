package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// What a person writes carries their name, also later, and the inbox and the page say who has a conversation.
func TestNamesInConversations(t *testing.T) {
	h := open(t)
	u := h.user(t)
	who := h.member(t, u, parley.RoleAgent)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	mo, at := h.in(t, who), "/conversations/"+conv.ID
	v := h.signedIn(t, u)
	if got := mo.get(at).doc().Find("#mode").Text(); !strings.Contains(got, "The assistant replies.") {
		t.Errorf("nobody has it: %q", got)
	}
	_, list := v.stream("GET", "/conversations/live", nil)
	first := until(t, list, "list", "").data["version"]
	mo.post(at+"/ai", url.Values{"on": {"0"}}).moved(at)
	if until(t, list, "list", "").data["version"] == first {
		t.Error("the inbox is not told who has taken over")
	}
	mo.post(at+"/reply", url.Values{"message": {"Here I am."}}).moved(at)
	doc := v.get(at).doc()
	if got := strings.TrimSpace(doc.Find(".said.human header bdi").First().Text()); got != "Mo agent" {
		t.Errorf("the reply is by %q", got)
	}
	if got := doc.Find("#mode").Text(); !strings.Contains(got, "Mo agent is replying. The assistant is paused.") {
		t.Errorf("the page says %q", got)
	}
	row := v.get("/conversations?show=all").doc().Find("#c-" + conv.ID)
	if got := row.Find(".tag.warm").Text(); got != "Mo agent" || !strings.Contains(row.Find(".line").Text(), "Mo agent: Here I am.") {
		t.Errorf("the inbox says %q, %q", got, row.Text())
	}
	v.post(at+"/ai", url.Values{"on": {"0"}}).moved(at)
	v.get(at).says(u.Name + " is replying.")

	// A name is kept as it was; who is gone has no conversation by name.
	mo.post(at+"/ai", url.Values{"on": {"0"}}).moved(at)
	v.post("/people/"+id(who.Member.ID)+"/delete", nil)
	if got := v.get(at).says("A person is replying.").doc().Find(".said.human header bdi").First().Text(); got != "Mo agent" {
		t.Errorf("the reply of who is gone is by %q", got)
	}
}

// Who writes is shown to the others who read the conversation, until they have sent it.
func TestWhoIsWriting(t *testing.T) {
	h := open(t)
	u := h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	v, mo, at := h.signedIn(t, u), h.in(t, h.member(t, u, parley.RoleAgent)), "/conversations/"+conv.ID
	if got := mo.get(at).doc().Find(".composer").AttrOr("data-writing", ""); got != at+"/writing" {
		t.Errorf("writing is told to %q", got)
	}
	_, own := mo.stream("GET", at+"/live", nil)
	_, next := v.stream("GET", at+"/live", nil)
	until(t, next, "put", `id="writing"`)
	until(t, own, "put", `id="writing"`)
	mo.post(at+"/writing", nil).is(http.StatusNoContent)
	if e := until(t, next, "put", `id="writing"`); strings.Contains(e.data["html"], "hidden") ||
		!strings.Contains(e.data["html"], "Mo agent is writing a reply.") {
		t.Errorf("shown: %s", e.data["html"])
	}
	v.get(at).says("Mo agent is writing a reply.")
	if strings.Contains(mo.get(at).body, "is writing a reply.") {
		t.Error("who writes is told of themselves")
	}
	mo.post(at+"/reply", url.Values{"message": {"Here I am."}}).moved(at)
	if e := until(t, next, "put", `id="writing"`); !strings.Contains(e.data["html"], "hidden") {
		t.Errorf("after it was sent: %s", e.data["html"])
	}
	stranger := h.signedIn(t, h.user(t))
	stranger.post(at+"/writing", nil).is(http.StatusNotFound)
	if names, err := h.DB.Writers(t.Context(), conv.UserID, conv.ID, -1); err != nil || len(names) != 0 {
		t.Errorf("%q write: %v", names, err)
	}
}

// Somebody who writes at another node is shown here, and who has stopped is forgotten.
func TestWriterAtAnotherNode(t *testing.T) {
	h := open(t)
	u := h.user(t)
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	v, at := h.signedIn(t, u), "/conversations/"+conv.ID
	_, next := v.stream("GET", at+"/live", nil)
	until(t, next, "put", `id="writing"`)
	writes := func(person int64, name string, lasts time.Duration) { // as another process stores it, which nothing tells of here
		h.write(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.Writes(ctx, conv.ID, parley.Person{ID: person, Name: name}, lasts)
		})
	}
	writes(7, "Mo", time.Minute)
	if e := until(t, next, "put", `id="writing"`); !strings.Contains(e.data["html"], "Mo is writing a reply.") {
		t.Errorf("shown: %s", e.data["html"])
	}
	writes(8, "Bo", time.Minute)
	v.get(at).says("Bo and Mo are writing replies.")
	writes(7, "Mo", -time.Second)
	v.get(at).says("Bo is writing a reply.")
	writes(8, "Bo", -time.Second)
	if strings.Contains(v.get(at).body, "is writing a reply.") {
		t.Error("who has stopped is shown")
	}
}

// The page of live calls names who listens.
func TestNamesInLiveCalls(t *testing.T) {
	h := open(t)
	u := h.user(t)
	c := h.called(t, u, h.caller(t, u, "Front desk"), nil)
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		for _, l := range []*parley.CallLeg{{Person: "Ana Lang", Mode: parley.LegListen},
			{Person: "Bo", Mode: parley.LegTalk, PhoneNumber: "+4930901820"}} {
			l.CallID, l.Kind, l.Status = c.ID, parley.LegSupervisor, parley.LegJoined
			if err := tx.CreateLeg(ctx, u.ID, l); err != nil {
				return err
			}
		}
		return nil
	})
	v := h.signedIn(t, u)
	for _, page := range []string{"/live-calls", "/calls/" + id(c.ID)} {
		got := strings.Join(strings.Fields(v.get(page).doc().Text()), " ")
		for _, want := range []string{"Ana Lang in a browser listens", "+49 30 901820 called by Bo talks with both"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q: %s", page, want, got)
			}
		}
	}
}
