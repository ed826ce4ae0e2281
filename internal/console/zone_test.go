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

// inZone has a visitor's browser say its time zone, as the script does.
func (v *visitor) inZone(t *testing.T, zone string) {
	t.Helper()
	at, err := url.Parse(v.harness.url)
	if err != nil {
		t.Fatal(err)
	}
	v.client.Jar.SetCookies(at, []*http.Cookie{{Name: zoneCookie, Value: zone}})
}

// An account whose time zone nobody has chosen begins with that of the first browser, and so does all that is made in it.
func TestZoneOfTheBrowser(t *testing.T) {
	h := open(t, withCampaigns)
	made := func(assumed bool) *parley.User {
		u := h.user(t)
		u.Timezone, u.Country, u.ZoneAssumed = "UTC", "", assumed
		h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) })
		return u
	}
	signIn := func(u *parley.User, zone string) (*visitor, *parley.User) {
		v := h.visitor(t)
		v.inZone(t, zone)
		v.post("/signin", url.Values{"email": {u.Email}, "password": {password}}).moved("/")
		now, err := h.DB.User(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		return v, now
	}
	if _, u := signIn(made(false), "Europe/Berlin"); u.Timezone != "UTC" {
		t.Errorf("a zone that was chosen is now %s", u.Timezone)
	}
	one := made(true)
	if _, u := signIn(one, "Nowhere/At_all"); u.Timezone != "UTC" || !u.ZoneAssumed {
		t.Errorf("no zone: %+v", u)
	}
	v, u := signIn(one, "Europe/Berlin")
	if u.Timezone != "Europe/Berlin" || u.Country != "DE" || u.ZoneAssumed {
		t.Errorf("the zone is %s, in %q", u.Timezone, u.Country)
	}
	if _, u := signIn(one, "Asia/Tokyo"); u.Timezone != "Europe/Berlin" {
		t.Errorf("the second browser's zone is taken: %s", u.Timezone)
	}
	h.caller(t, u, "Front desk")
	n := h.buy(t, u)
	for _, path := range []string{"/campaigns/new", "/numbers/" + id(n.ID), "/account"} {
		if got := v.get(path).doc().Find("[name=timezone]").AttrOr("value", ""); got != "Europe/Berlin" {
			t.Errorf("%s begins with %q", path, got)
		}
	}

	// Who chooses UTC keeps it.
	two := made(true)
	w := h.signedIn(t, two)
	form := w.get("/account").form("/account")
	w.post("/account", form)
	if _, u := signIn(two, "Europe/Berlin"); u.Timezone != "UTC" {
		t.Errorf("the zone that was chosen became %s", u.Timezone)
	}
}

// The zone is said beside the days of a list, and all times of a page are in one zone.
func TestPagesSayTheirZone(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	u.Timezone = "America/New_York"
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) })
	v := h.signedIn(t, u)
	a := h.caller(t, u, "Front desk")
	h.called(t, u, a, over(parley.CustomerHangup))
	for _, path := range []string{"/ledger", "/calls", "/analytics", "/audit"} {
		doc := v.get(path).doc()
		if got := doc.Find(".days-between").Text(); !strings.Contains(got, "America/New_York") ||
			doc.Find("#main").AttrOr("data-zone", "") != "America/New_York" {
			t.Errorf("%s: %q", path, got)
		}
	}
	n := h.buy(t, u)
	route := parley.NewRoute("Asia/Tokyo")
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.SaveRoute(ctx, u.ID, n.ID, route) })
	if got := v.get("/numbers/"+id(n.ID)).doc().Find("#main").AttrOr("data-zone", ""); got != "Asia/Tokyo" {
		t.Errorf("a number's page is in %s", got)
	}
}
