package console

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

func TestNumberLife(t *testing.T) {
	h := open(t)
	u := h.user(t)
	desk, night := h.assistant(t, u, "Front desk"), h.assistant(t, u, "Night desk")
	for _, a := range []*parley.Assistant{desk, night} {
		if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"type": "inbound"}); err != nil {
			t.Fatal(err)
		}
	}
	v := h.signedIn(t, u)
	v.get("/numbers").says("Get a phone number").says("/user/phone-numbers/search")

	// Search: the same rules and texts as the API.
	v.get("/numbers/buy").is(http.StatusOK).says("Available balance: $5").says("United States · $")
	for path, field := range map[string]string{"country_code=DE": "country_code",
		"country_code=US&contains=12a": "contains", "country_code=US&contains=12345678901": "contains"} {
		if r := v.get("/numbers/buy?" + path).is(http.StatusUnprocessableEntity); r.doc().Find("#e-"+
			field).Text() == "" {
			t.Errorf("%s: no error beside the box", path)
		}
	}
	v.get("/numbers/buy?country_code=US&contains=9999999999").is(http.StatusOK).says(
		"No free number in United States contains 9999999999")
	found := v.get("/numbers/buy?country_code=US&contains=").is(http.StatusOK)
	offers := found.doc().Find(".list li")
	if offers.Length() < 10 {
		t.Fatalf("%d offers", offers.Length())
	}

	// Buy: the question says what will be charged; a number that is not on offer is refused on the same page.
	buy := offers.First().Find("form")
	number := buy.Find("[name=phone_number]").AttrOr("value", "")
	if text := offers.First().Find("[role=alertdialog]").Text(); !strings.Contains(text, "You'll pay $") {
		t.Errorf("the question: %s", text)
	}
	form := url.Values{"phone_number": {number}, "country_code": {"US"}, "contains": {""}}
	at := v.post("/numbers/buy", form).is(http.StatusSeeOther).header.Get("Location")
	v.get(at).is(http.StatusOK).says("Number added.").says(number)
	one, _, _ := strings.Cut(at, "?")
	r := v.post("/numbers/buy", form).is(http.StatusUnprocessableEntity)
	if text := r.doc().Find("[role=alert].mistakes").Text(); !strings.Contains(text, "is not available") ||
		r.doc().Find(".list li").Length() < 10 {
		t.Errorf("bought twice: %q", text)
	}

	// Nickname and assistant.
	form = v.get(one).form(one)
	form.Set("nickname", strings.Repeat("x", 51))
	if r := v.post(one, form).is(http.StatusUnprocessableEntity); r.doc().Find("#e-nickname").Text() == "" {
		t.Error("no error beside the nickname")
	}
	form.Set("nickname", "Shop line")
	form.Set("assistant_id", id(desk.ID))
	v.post(one, form).moved(one + "?done=saved")
	if text := v.get("/numbers").says("Shop line").doc().Find(".list").Text(); !strings.Contains(text,
		"Not answered: Front desk is inactive") {
		t.Errorf("the numbers are %s", text)
	}
	answered := func(a *parley.Assistant, want bool) {
		t.Helper()
		got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
		if err != nil || (got.PhoneNumberID != nil) != want {
			t.Errorf("%s answers %v, want %v (%v)", a.Name, got.PhoneNumberID, want, err)
		}
	}
	answered(desk, true)
	form = v.get(one).form(one)
	if form.Get("assistant_id") != id(desk.ID) || form.Get("nickname") != "Shop line" {
		t.Errorf("the form holds %v", form)
	}
	form.Set("assistant_id", id(night.ID)) // the number moves
	v.post(one, form).moved(one + "?done=saved")
	answered(desk, false)
	answered(night, true)
	for _, bad := range []string{"424242", "x", id(h.assistant(t, h.user(t), "Other's").ID)} {
		form.Set("assistant_id", bad)
		if r := v.post(one, form).is(http.StatusUnprocessableEntity); r.doc().Find("#e-assistant_id").Text() == "" {
			t.Errorf("%s: no error beside the assistant", bad)
		}
	}
	answered(night, true)
	form.Set("assistant_id", "")
	form.Set("nickname", "")
	v.post(one, form).moved(one + "?done=saved")
	answered(night, false)
	if n, err := h.DB.Numbers(t.Context(), u.ID); err != nil || n[0].Nickname != nil {
		t.Errorf("%+v %v", n, err)
	}

	// A released number stays until its paid month ends, and can't be released again.
	v.get(one).says("Until its paid month ends it stays yours")
	v.post(one+"/delete", nil).moved("/numbers?done=released")
	if p := v.get(one).says("it is released then"); p.doc().Find("#ask-release").Length() != 0 {
		t.Error("it can be given up twice")
	}
	v.post(one+"/delete", nil).is(http.StatusBadRequest).says("already released")
	v.get("/numbers").says("Being released")
}

func TestNumberNeedsMoney(t *testing.T) {
	h := open(t)
	u := h.user(t)
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -5 * parley.USD,
			Reference: "spent"})
		return err
	})
	v := h.signedIn(t, u)
	number := v.get("/numbers/buy?country_code=US").doc().Find(".list [name=phone_number]").First().AttrOr("value", "")
	r := v.post("/numbers/buy", url.Values{"phone_number": {number},
		"country_code": {"US"}}).is(http.StatusUnprocessableEntity).says(store.Insufficient.Message)
	if r.doc().Find(".list li").Length() == 0 {
		t.Error("the search is lost")
	}
}

func TestTrunks(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/trunks").says("Connect your own telephone system").says("/user/phone-numbers/sip-trunks")
	form := v.get("/trunks/new").form("/trunks/new")
	form.Set("name", "Office")
	form.Set("phone_number", "+49 30 901820")
	form.Set("sip_address", "10.0.0.5:5060")
	form.Set("sip_username", "office")
	form.Set("sip_password", "s3cret word ")
	form["register"] = []string{"0", "1"}
	form.Set("inbound_authorization_type", "ip")
	form.Set("allowed_inbound_ips", "192.0.2.0/24\r\n2001:db8::1")
	for field, bad := range map[string]string{"name": strings.Repeat("x", 256), "phone_number": "123", "prefix": "abc", "from_domain": "a b",
		"sip_address": "no host!", "sip_username": "a b", "transport": "sctp", "srtp": "x",
		"inbound_authorization_type": "none", "sip_password": "", "outbound_proxy": ":", "allowed_inbound_ips": ""} {
		f := url.Values{}
		for k, v := range form {
			f[k] = v
		}
		f.Set(field, bad)
		r := v.post("/trunks/new", f).is(http.StatusUnprocessableEntity)
		if r.doc().Find("#e-"+field).Text() == "" {
			t.Errorf("%s: no error beside the box: %s", field, r.doc().Find(".mistakes").Text())
		}
		if strings.Contains(r.body, "s3cret") {
			t.Error("the page holds the password")
		}
	}
	f := maps.Clone(form)
	f.Set("tls_ca", "no certificate")
	if got := v.post("/trunks/new", f).is(http.StatusUnprocessableEntity).doc().Find("#e-tls_ca").Text(); !strings.Contains(got, "PEM") {
		t.Errorf("a certificate that is none: %q", got)
	}
	at := v.post("/trunks/new", form).is(http.StatusSeeOther).header.Get("Location")
	one, _, _ := strings.Cut(at, "?")
	stored := func() (*parley.Trunk, string) {
		t.Helper()
		list, err := h.DB.Trunks(t.Context(), u.ID)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		password, err := h.DB.TrunkPassword(&list[0])
		if err != nil {
			t.Fatal(err)
		}
		return &list[0], password
	}
	if got, password := stored(); password != "s3cret word " || !got.Register || got.PhoneNumber != "+4930901820" ||
		len(got.AllowedInboundIPs) != 2 {
		t.Errorf("%+v %q", got, password)
	}
	if r := v.get(one).says("Office"); strings.Contains(r.body, "s3cret") ||
		r.doc().Find("[name=sip_password]").AttrOr("value", "-") != "" {
		t.Error("the password comes back")
	}
	v.get("/trunks").says("Office").says("10.0.0.5:5060")
	v.get("/numbers").says("SIP")

	// A number that is already on this server.
	if r := v.post("/trunks/new", form).is(http.StatusUnprocessableEntity); !strings.Contains(
		r.doc().Find("#e-phone_number").Text(), "is owned already") {
		t.Error("the number is taken twice")
	}

	// An empty box keeps the password; the checkbox removes it.
	form = v.get(one).form(one)
	form.Set("name", "Headquarters")
	v.post(one, form).moved(one + "?done=saved")
	if got, password := stored(); got.Name != "Headquarters" || password != "s3cret word " {
		t.Errorf("%s %q", got.Name, password)
	}
	form = v.get(one).form(one)
	form.Set("forget_password", "1")
	if r := v.post(one, form).is(http.StatusUnprocessableEntity); r.doc().Find("#e-sip_password").Text() == "" {
		t.Error("registering needs no password")
	}
	form["register"] = []string{"0"}
	v.post(one, form).moved(one + "?done=saved")
	if got, password := stored(); got.Register || password != "" {
		t.Errorf("%+v %q", got, password)
	}
	v.post(one+"/check", nil).is(http.StatusOK).says("the trunk was not contacted")
	v.post(one+"/delete", nil).moved("/trunks?done=deleted")
	v.get("/trunks").says("Connect your own telephone system")
	v.get("/numbers").says("Get a phone number")
}

func TestCallerIDs(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	const at = "/numbers/caller-id"
	for _, bad := range []string{"", "123", "+49"} {
		if r := v.post(at, url.Values{"phone_number": {bad}}).is(http.StatusUnprocessableEntity); r.doc().Find(
			"#e-phone_number").Text() == "" {
			t.Errorf("%q: no error beside the box", bad)
		}
	}
	v.post(at, url.Values{"phone_number": {"+12025550001"}}).is(http.StatusUnprocessableEntity).says(
		"Failed to send the code")
	one := v.post(at, url.Values{"phone_number": {"+49 30 901820"}}).is(http.StatusSeeOther).header.Get("Location")
	v.get(one).is(http.StatusOK).says("+49 30 901820").says("outbox")
	code := strings.Fields(v.get("/messages/outbox").says("is your code").doc().Find(
		"#outbox .words-whole").First().Text())[0]
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	for _, bad := range []string{"", wrong} {
		if r := v.post(one+"/verify", url.Values{"code": {bad}}).is(http.StatusUnprocessableEntity); r.doc().Find(
			"#e-code").Text() == "" {
			t.Errorf("%q: no error beside the box", bad)
		}
	}
	to := v.post(one+"/verify", url.Values{"code": {code}}).is(http.StatusSeeOther).header.Get("Location")
	v.get(to).says("The number is verified.").says("Caller ID")
	v.post(at, url.Values{"phone_number": {"+49 30 901820"}}).is(http.StatusUnprocessableEntity).says(
		"is already yours")
	for range 20 {
		if r := v.post(at, url.Values{"phone_number": {"+4930901821"}}); r.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("codes are sent without end")
}

// A number whose assistant is inactive says wherever it is shown that it is not answered.
func TestNumberOfAnInactiveAssistant(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	n := h.trunk(t, u, "Office line", "+4930901822")
	change := func(fields map[string]any) {
		t.Helper()
		if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, fields); err != nil {
			t.Fatal(err)
		}
	}
	change(map[string]any{"status": "active", "phone_number_id": numeral(id(n.PhoneNumberID))})
	v := h.signedIn(t, u)
	at := []string{"/numbers", numberPath(n.PhoneNumberID, ""), "/trunks", assistantPath(a.ID, "")}
	for _, path := range at {
		if text := v.get(path).is(http.StatusOK).doc().Find(
			"main .wrong, main .wrong-box").Text(); strings.Contains(text, "ot answered") {
			t.Errorf("%s says that an active assistant does not answer", path)
		}
	}
	if text := v.get("/numbers").doc().Find(".list").Text(); !strings.Contains(text, "Answered by Front desk") {
		t.Errorf("the numbers are %s", text)
	}
	change(map[string]any{"status": "inactive"})
	for _, path := range at {
		if text := v.get(path).doc().Find("main .wrong, main .wrong-box").Text(); !strings.Contains(text,
			"ot answered") || !strings.Contains(text, "inactive") {
			t.Errorf("%s does not say that nobody answers: %q", path, text)
		}
	}
	v.get(numberPath(n.PhoneNumberID, "")).says("Front desk (inactive)")
}

// The opening hours, who answers outside them, and which callers are rejected are set on the number's page.
func TestNumberRoute(t *testing.T) {
	h := open(t)
	u := h.user(t)
	night := h.assistant(t, u, "Night desk")
	if _, err := h.Assistants.Update(t.Context(), u.ID, night.ID, map[string]any{"type": "inbound"}); err != nil {
		t.Fatal(err)
	}
	n, v := h.buy(t, u), h.signedIn(t, u)
	page := numberPath(n.ID, "")
	at := page
	form := v.get(page).is(http.StatusOK).says("Hours and callers").form(at)
	form.Set("hours", "")
	form["hours.0.days"] = []string{"monday", "friday"}
	form.Set("hours.0.from", "09:00")
	form.Set("hours.0.to", "")
	if r := v.post(at, form).is(http.StatusUnprocessableEntity); r.doc().Find("[id='e-hours.0.to']").Text() == "" {
		t.Error("hours without an end are taken")
	}
	form.Set("hours.0.to", "17:30")
	form.Set("timezone", "Europe/Berlin")
	form.Set("closed_dates", "2026-12-25\r\n2026-12-26\r\n")
	form.Set("otherwise", "assistant")
	form.Set("blocked_callers", "+1900*\nbob")
	r := v.post(at, form).is(http.StatusUnprocessableEntity)
	for _, field := range []string{"otherwise_assistant_id", "blocked_callers"} {
		if r.doc().Find("#e-"+field).Text() == "" {
			t.Errorf("no error beside %s", field)
		}
	}
	form.Set("blocked_callers", "+1900*")
	form.Set("otherwise_assistant_id", id(night.ID))
	form.Set("when_full", "queue")
	form.Set("lines", "2")
	form.Set("after_queue", "telephone")
	form.Set("early_media", "1")
	r = v.post(at, form).is(http.StatusUnprocessableEntity)
	if r.doc().Find("#e-telephones").Text() == "" {
		t.Error("nobody is to ring, and nothing says so")
	}
	form.Set("telephones", "")
	form.Set("telephones.0.phone_number", "+49 30 901820")
	form.Set("telephones.0.seconds", "")
	form.Set("voicemail_greeting", "Leave {{assistant_name}} a message.")
	v.post(at, form).moved(page + "?done=saved")
	doc := v.get(page).doc()
	if got := doc.Find("[name='telephones.0.phone_number']").AttrOr("value", ""); got != "+4930901820" {
		t.Errorf("the telephone is %q", got)
	}
	if box := doc.Find("[name='hours.0.days'][checked]"); box.Length() != 2 {
		t.Errorf("%d days are ticked", box.Length())
	}
	for name, want := range map[string]string{"hours.0.from": "09:00", "hours.0.to": "17:30", "timezone": "Europe/Berlin"} {
		if got := doc.Find("[name='"+name+"']").First().AttrOr("value", ""); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	stored, err := h.DB.Number(t.Context(), u.ID, n.ID)
	if err != nil {
		t.Fatal(err)
	}
	if r := stored.Route; r == nil || *r.OtherwiseAssistantID != night.ID || len(r.ClosedDates) != 2 || r.BlockAnonymous ||
		r.WhenFull != parley.RouteQueue || !r.EarlyMedia || *r.Lines != 2 || r.Telephones[0].Seconds != 20 || r.QueueSeconds != 300 ||
		r.VoicemailGreeting != "Leave {{assistant_name}} a message." {
		t.Errorf("stored: %+v", r)
	}

	// What is refused is not stored in part: neither the hours nor the name.
	form.Set("hours.0.to", "18:45")
	form.Set("nickname", "Shop")
	form.Set("assistant_id", "424242")
	if r := v.post(at, form).is(http.StatusUnprocessableEntity); r.doc().Find("#e-assistant_id").Text() == "" {
		t.Error("no error beside the assistant")
	}
	form.Set("assistant_id", id(night.ID))
	form.Set("otherwise_assistant_id", "424242")
	if r := v.post(at, form).is(http.StatusUnprocessableEntity); r.doc().Find("#e-otherwise_assistant_id").Text() == "" {
		t.Error("no error beside the other assistant")
	}
	form = v.get(page).form(at)
	if form.Get("hours.0.to") != "17:30" || form.Get("nickname") != "" || form.Get("assistant_id") != "" {
		t.Errorf("stored in part: %v", form)
	}
	h.signedIn(t, h.user(t)).post(at, form).is(http.StatusNotFound)
}

// TestTrunkPresets: the form offers the carriers that are known, is filled in with what one wants, and shows its guide.
func TestTrunkPresets(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	if page := v.get("/trunks/new"); page.doc().Find("#choose-preset option").Length() != 27 || page.doc().Find("[data-guide]").Length() != 0 {
		t.Error("not all presets are offered, or a guide is shown before one is chosen")
	}
	page := v.get("/trunks/new?preset=sipgate").says("P-Preferred-Identity").says("Not looked up")
	if page.doc().Find("[data-guide] a[href^='https://help.sipgate.de/']").Length() != 2 {
		t.Error("the guide has not its sources")
	}
	form := page.form("/trunks/new")
	for field, want := range map[string]string{"sip_address": "sipconnect.sipgate.de", "identity_header": "ppi", "privacy": "id",
		"preset": "sipgate"} {
		if got := form.Get(field); got != want {
			t.Errorf("%s is filled in with %q", field, got)
		}
	}
	form.Set("phone_number", "+4930901820")
	form.Set("sip_username", "1234567t0")
	form.Set("from_user", "4711")
	form.Set("sip_password", "s3cret")
	form["register"] = []string{"0", "1"}
	at := v.post("/trunks/new", form).is(http.StatusSeeOther).header.Get("Location")
	one, _, _ := strings.Cut(at, "?")
	stored := func() *parley.Trunk {
		t.Helper()
		list, err := h.DB.Trunks(t.Context(), u.ID)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return &list[0]
	}
	if got := stored(); got.Preset == nil || *got.Preset != "sipgate" || got.FromUser != "4711" || got.Privacy != "id" || !got.Register {
		t.Errorf("%+v", got)
	}
	// Another one is only offered: nothing changes before it is saved.
	form = v.get(one + "?preset=exotel").says("Exotel prefers TLS").form(one)
	if got := stored(); *got.Preset != "sipgate" || form.Get("transport") != "tcp" || form.Get("from_user") != "4711" ||
		form.Get("privacy") != "anonymous" {
		t.Errorf("%s; %v", *got.Preset, form)
	}
	v.post(one, form).moved(one + "?done=saved")
	if got := stored(); *got.Preset != "exotel" || got.Transport != "tcp" || got.Privacy != "anonymous" {
		t.Errorf("%+v", got)
	}
	form = v.get(one + "?preset=").form(one)
	v.post(one, form).moved(one + "?done=saved")
	if got := stored(); got.Preset != nil || got.Transport != "tcp" {
		t.Errorf("%+v", got)
	}
}
