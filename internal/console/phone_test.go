package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A page says how a number is read before it counts, and stores what it said.
func TestNumbersAreRead(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.post("/account", url.Values{"name": {"Ana"}, "email": {u.Email}, "timezone": {"UTC"}, "country": {"DE"}}).moved("/account?done=saved")
	if got := v.get("/account").doc().Find("#f-country option[selected]").Text(); got != "Germany" {
		t.Errorf("the account is in %q", got)
	}
	for _, c := range []struct{ query, want string }{
		{"phone?phone_number=0171+1234567", "0171 1234567 is read as +491711234567."},
		{"phone?to=0049171/1234567", "0049171/1234567 is read as +491711234567."},
		{"phone?phone_number=%2B491711234567", ""}, {"phone?phone_number=01", ""}, {"phone?phone_number=", ""}, {"phone", ""},
		{"phone?phone_number=0171+12345678901", "There is no phone number 0171 12345678901 in Germany"},
		{"phone?phone_number=4.9E%2B11", "a spreadsheet shortens"},
		{"phone/transfer?tools.0.phone_number=204", ""}, {"phone/transfer?x=sip:anna@pbx", ""},
		{"phone/transfer?x=030+901820", "030 901820 is read as +4930901820."},
	} {
		r := v.get("/" + c.query).is(http.StatusOK)
		if got := strings.TrimSpace(r.doc().Find("#read-as").Text()); c.want == "" && got != "" ||
			!strings.HasPrefix(got, c.want) && !strings.Contains(got, c.want) {
			t.Errorf("%s says %q, want %q", c.query, got, c.want)
		}
	}
	if at, _ := v.get("/do-not-call").doc().Find("#f-phone_number").Attr("hx-get"); at != "/phone" {
		t.Errorf("the box asks %q how its number is read", at)
	}
	v.post("/do-not-call", url.Values{"phone_number": {"0171 123'45'67"}}).moved("/do-not-call?done=listed")
	v.post("/do-not-call", url.Values{"phone_number": {"4.91512E+11"}}).is(http.StatusUnprocessableEntity)
	list, err := h.DB.Blacklist(t.Context(), u.ID)
	if err != nil || len(list) != 1 || list[0].PhoneNumber != "+491711234567" {
		t.Errorf("%+v %v", list, err)
	}
}
