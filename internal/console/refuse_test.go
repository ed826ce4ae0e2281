package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parley"
)

// A number is put on the do-not-call list and taken off, and a customer is erased.
func TestDoNotCall(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/do-not-call").is(http.StatusOK).says("Nobody is on the list.")
	v.post("/do-not-call", url.Values{"phone_number": {"no number"}}).is(http.StatusUnprocessableEntity)
	v.post("/do-not-call", url.Values{"phone_number": {"+4930901811"}}).moved("/do-not-call?done=listed")
	list, err := h.DB.Blacklist(t.Context(), u.ID)
	if err != nil || len(list) != 1 || list[0].PhoneNumber != "+4930901811" {
		t.Fatalf("%+v %v", list, err)
	}
	v.get("/do-not-call").says("+49")
	v.post("/do-not-call/"+id(list[0].ID)+"/delete", nil).moved("/do-not-call?done=unlisted")
	v.get("/do-not-call").says("Nobody is on the list.")

	v.post("/customers/erase", url.Values{"customer": {" "}}).is(http.StatusUnprocessableEntity).says("Nothing was erased")
	c := h.called(t, u, h.assistant(t, u, "Desk"), over(parley.CustomerHangup))
	other := h.signedIn(t, h.user(t))
	other.post("/customers/erase", url.Values{"customer": {*c.CustomerPhone}}).is(http.StatusOK).says("Erased: 0 calls")
	v.post("/customers/erase", url.Values{"customer": {*c.CustomerPhone}}).is(http.StatusOK).says("Erased: 1 call,")
	if got := v.get("/calls").body; strings.Contains(got, "call-"+id(c.ID)) {
		t.Error("the call is still there")
	}
}
