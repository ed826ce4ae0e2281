package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

// The page of live calls shows those of every node, with who takes part, and follows them.
func TestLiveCalls(t *testing.T) {
	h := open(t)
	u, other := h.user(t), h.user(t)
	v := h.signedIn(t, u)
	v.get("/live-calls").is(http.StatusOK).says("No live calls")
	_, next := v.stream("GET", "/live-calls/live", nil)
	if e := until(t, next, "list", ""); e.data["version"] != v.get("/live-calls").doc().Find("#results").AttrOr("data-list", "x") {
		t.Errorf("the stream begins at %q", e.data["version"])
	}
	a := h.caller(t, u, "Front desk")
	talks := h.called(t, u, a, nil)
	rings := h.called(t, u, a, func(c *parley.Call) { c.Status, c.AnsweredAt, c.Turns = parley.CallRinging, 0, nil })
	h.called(t, u, a, over(parley.CustomerHangup))
	h.called(t, u, a, func(c *parley.Call) { c.Test = true })
	h.called(t, other, h.caller(t, other, "Foreign desk"), nil)
	until(t, next, "list", "")
	doc := v.get("/live-calls").says("2 calls at the moment.").doc()
	if n := doc.Find(".live-call").Length(); n != 2 || strings.Contains(doc.Text(), "Foreign desk") {
		t.Errorf("%d calls are shown", n)
	}
	one := doc.Find("#live-" + id(talks.ID)).Text()
	if !strings.Contains(one, "Which one?") || !strings.Contains(one, "1:0") || !strings.Contains(one, "Front desk") {
		t.Errorf("the call is shown as %q", one)
	}
	if doc.Find("#live-"+id(rings.ID)+" [data-keep]").Length() != 0 || doc.Find("#live-"+id(talks.ID)+" [data-keep]").Length() != 1 {
		t.Error("one takes part in calls that are under way, and in no others")
	}

	leg := &parley.CallLeg{CallID: talks.ID, Kind: parley.LegSupervisor, Mode: parley.LegTakeOver, Status: parley.LegJoined,
		PhoneNumber: "+4930901820"}
	left := &parley.CallLeg{CallID: talks.ID, Kind: parley.LegGuest, Mode: parley.LegTalk, Status: parley.LegEnded, PhoneNumber: "+4930901821"}
	left.EndedAt = parley.DateTime(parley.Now())
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateLeg(ctx, u.ID, leg); err != nil {
			return err
		}
		return tx.CreateLeg(ctx, u.ID, left)
	})
	until(t, next, "put", "has taken over")
	shown := v.get("/live-calls").says("+49 30 901820").doc()
	if got := shown.Find("#live-" + id(talks.ID) + " .leg button").Map(textOfNode); strings.Join(got, ", ") != "Hand back, Hang up" {
		t.Errorf("the telephone can: %q", got)
	}
	if strings.Contains(shown.Text(), "901821") {
		t.Error("who has left is shown")
	}

	at := "/calls/" + id(talks.ID)
	v.post(at+"/hangup", url.Values{"from": {"live"}}).moved("/live-calls?done=hung-up")
	v.post(at+"/invite", url.Values{"from": {"live"}, "mode": {"listen"}}).is(http.StatusUnprocessableEntity).
		says("Enter the telephone number")
	v.post(at+"/invite", url.Values{"phone_number": {"+4930901820"}, "mode": {"sing"}}).is(http.StatusUnprocessableEntity)
	v.post(at+"/invite", url.Values{"phone_number": {"+4930901820"}, "mode": {"listen"}, "phone_number_id": {"x"}}).
		is(http.StatusUnprocessableEntity)
	stranger := h.signedIn(t, other)
	for path, form := range map[string]url.Values{"/whisper": {"message": {"x"}},
		"/invite": {"phone_number": {"+4930901820"}, "mode": {"listen"}}, "/legs/" + id(leg.ID) + "/set": {"mode": {"listen"}}} {
		stranger.post(at+path, form).is(http.StatusNotFound)
	}
}
