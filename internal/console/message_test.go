package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/carrier"
	"parley/internal/parley"
	"parley/internal/store"
)

func TestMessages(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/messages").says("Send a text message").says("/user/sms")
	v.get("/messages/new").says("No number of yours can send")
	v.get("/messages/outbox").says("you have none yet")
	n := h.buy(t, u)

	form := v.get("/messages/new").form("/messages/new")
	if form.Get("from") != id(n.ID) {
		t.Errorf("the form holds %v", form)
	}
	form.Set("to", "+14155552671")
	form.Set("body", strings.Repeat("a", 160))
	v.post("/messages/count", form).is(http.StatusOK).says("1 segment to (415) 555-2671: $")
	form.Set("body", strings.Repeat("a", 159)+"€")
	v.post("/messages/count", form).says("2 segments to ")
	form.Set("to", "")
	v.post("/messages/count", form).says("2 segments.")

	for field, bad := range map[string]string{"to": "", "body": strings.Repeat("a", 301), "from": "x"} {
		f := url.Values{"from": {id(n.ID)}, "to": {"+14155552671"}, "body": {"Hello"}}
		f.Set(field, bad)
		if r := v.post("/messages/new", f).is(http.StatusUnprocessableEntity); r.doc().Find("#e-"+field).Text() == "" {
			t.Errorf("%s: no error beside the box", field)
		}
	}
	// The error of a refused message is beside its field, and the text that was written is still there.
	r := v.post("/messages/new", url.Values{"from": {id(n.ID)}, "to": {"123"},
		"body": {"Hello"}}).is(http.StatusUnprocessableEntity)
	if got := r.form("/messages/new").Get("body"); r.doc().Find("#e-to").Text() != "Invalid to phone number" ||
		got != "Hello" {
		t.Errorf("%q %q", r.doc().Find(".mistakes").Text(), got)
	}
	if r := v.post("/messages/new", url.Values{"from": {"424242"}, "to": {"+14155552671"},
		"body": {"Hello"}}).is(http.StatusUnprocessableEntity); r.doc().Find(
		"#e-from").Text() != "From number not found" {
		t.Errorf("%s", r.doc().Find(".mistakes").Text())
	}
	v.post("/messages/new", url.Values{"from": {id(n.ID)}, "to": {"+12025550001"},
		"body": {"Hello"}}).is(http.StatusUnprocessableEntity).says("The carrier did not take the message").says(
		"Nothing was charged")
	if err := h.SMS.Receive(t.Context(), carrier.Inbound{SID: "SMstop", From: "+12025550666", To: n.PhoneNumber,
		Body: "STOP"}); err != nil {
		t.Fatal(err)
	}
	if r := v.post("/messages/new", url.Values{"from": {id(n.ID)}, "to": {"+12025550666"},
		"body": {"Hello"}}).is(http.StatusUnprocessableEntity); !strings.Contains(r.doc().Find("#e-to").Text(),
		"opted out") {
		t.Errorf("%s", r.doc().Find(".mistakes").Text())
	}

	v.post("/messages/new", url.Values{"from": {id(n.ID)}, "to": {"+1 415 555 2671"},
		"body": {"Hello\r\nthere"}}).moved("/messages?done=sent")
	v.get("/messages?done=sent").says("Sent.").says("(415) 555-2671").says("Hello\nthere").says("1 segment").says(
		"Failed")
	for path, want := range map[string]int{"?status=failed": 1, "?status=sent": 1, "?to=%2B14155552671": 1,
		"?to=%2B14155552672": 0, "?phone_number_id=" + id(n.ID): 3,
		"?status=queued": 1, "?phone_number_id=424242": 0, "?date_from=2020-01-01": 3, "?date_to=2020-01-01": 0} {
		if got := v.get("/messages" + path).is(http.StatusOK).doc().Find("#results .list li").Length(); got != want {
			t.Errorf("%s: %d rows, want %d", path, got, want)
		}
	}
	// (The queued one is the answer to STOP.)
	v.get("/messages?status=x").moved("/messages")
	v.get("/messages?date_from=x").moved("/messages")

	// The list of sent messages, and a message that comes in.
	v.get("/messages/outbox").says("Hello\nthere")
	for field, bad := range map[string]string{"from": "1", "to": "+14155550000", "body": ""} {
		f := url.Values{"from": {"+14155552671"}, "to": {n.PhoneNumber}, "body": {"Hi"}}
		f.Set(field, bad)
		if r := v.post("/messages/outbox", f).is(http.StatusUnprocessableEntity); r.doc().Find("#e-"+
			field).Text() == "" {
			t.Errorf("%s: no error beside the box", field)
		}
	}
	v.post("/messages/outbox", url.Values{"from": {"+14155552671"}, "to": {n.PhoneNumber},
		"body": {"STOP"}}).moved("/messages/outbox?done=received")
	r = v.post("/messages/new", url.Values{"from": {id(n.ID)}, "to": {"+14155552671"},
		"body": {"Still there?"}}).is(http.StatusUnprocessableEntity)
	if !strings.Contains(r.doc().Find("#e-to").Text(), "opted out") {
		t.Error("STOP was not heeded")
	}
}

func TestMessageNeedsMoney(t *testing.T) {
	h := open(t)
	u := h.user(t)
	n := h.buy(t, u)
	h.Prices.SMS["US"] = 100 * parley.USD
	v := h.signedIn(t, u)
	r := v.post("/messages/new", url.Values{"from": {id(n.ID)}, "to": {"+14155552671"},
		"body": {"Hello"}}).is(http.StatusUnprocessableEntity)
	if got := r.doc().Find("[role=alert].mistakes").Text(); !strings.Contains(got, store.Insufficient.Message) {
		t.Errorf("%q", got)
	}
}

func TestNoOutboxWithoutTheSandbox(t *testing.T) {
	h := open(t, func(c *Config) { c.SMS.Sandbox = false })
	v := h.signedIn(t, h.user(t))
	v.get("/messages/outbox").is(http.StatusNotFound)
	if body := v.get("/messages").is(http.StatusOK).body; strings.Contains(body, "outbox") {
		t.Error("the list leads to an outbox that is not there")
	}
}

func TestWhatsAppSenders(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	v.get("/whatsapp").says("none of its numbers is yours yet")
	one := "/whatsapp/" + id(h.sender(t, u))
	v.get("/whatsapp").says("Acme").says("Online").says("Good quality").says("Nobody answers")
	page := v.get(one).says("1,000 people in 24 hours").says("order").says("Approved").says("Pending").says(
		"is ready. <b>").says("Variables: ")
	form := page.form(one)
	form.Set("assistant_id", id(a.ID))
	v.post(one, form).moved(one + "?done=saved")
	v.get("/whatsapp").says("Answered by Front desk")
	for _, bad := range []string{"424242", "x", id(h.assistant(t, h.user(t), "Other's").ID)} {
		form.Set("assistant_id", bad)
		if r := v.post(one, form).is(http.StatusUnprocessableEntity); r.doc().Find("#e-assistant_id").Text() == "" {
			t.Errorf("%s: no error beside the choice", bad)
		}
	}
	v.post(one, url.Values{}).is(http.StatusUnprocessableEntity)
	form.Set("assistant_id", "")
	v.post(one, form).moved(one + "?done=saved")
	v.get("/whatsapp").says("Nobody answers")

	bare := open(t, func(c *Config) { c.WhatsApp.Graph = nil })
	other := bare.signedIn(t, bare.user(t))
	other.get("/whatsapp").says("PARLEY_WHATSAPP_TOKEN")
	other.get("/whatsapp/1").is(http.StatusNotFound)
}
