package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/carrier/sandbox"
	"parley/internal/channel/sms"
	"parley/internal/channel/whatsapp"
	"parley/internal/channel/whatsapp/graph/graphtest"
	"parley/internal/event"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/store"
)

// connect gives a console the sandbox carrier and a WhatsApp account.
func connect(t *testing.T, c *Config) {
	t.Helper()
	platform := graphtest.New(t)
	platform.Set([]graphtest.Object{graphtest.Number("111", "+1 631-555-8151", "Acme", "CONNECTED", "GREEN",
		"TIER_1K"), graphtest.Number("222", "+49 151 23456789", "Acme DE", "DISCONNECTED", "RED", "TIER_UNLIMITED")},
		[]graphtest.Object{graphtest.Template("t1", "order", "APPROVED", "POSITIONAL",
			"Dear {{1}}, your order {{2}} is ready. <b>"),
			graphtest.Template("t2", "new", "PENDING", "POSITIONAL", "Soon.")})
	from := sandbox.New(sms.Outbox(c.DB))
	c.Numbers = number.New(number.Config{DB: c.DB, Carrier: from, Prices: c.Prices})
	c.SMS = &sms.Channel{DB: c.DB, Carrier: from, Sandbox: true, Prices: c.Prices, Chat: c.Chat}
	c.WhatsApp = &whatsapp.Channel{DB: c.DB, Prices: c.Prices, Chat: c.Chat, Graph: platform.Client(t)}
	c.Knowledge, c.Calls = shelf(t, c.DB), exchange(t, c)
	if err := c.WhatsApp.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) write(t *testing.T, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	if err := h.DB.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// buy rents a number.
func (h *harness) buy(t *testing.T, u *parley.User) *parley.Number {
	t.Helper()
	list, err := h.Numbers.Search(t.Context(), u.ID, "US", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if o.SMSCapable {
			n, err := h.Numbers.Buy(t.Context(), u.ID, o.PhoneNumber)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no number can send text messages")
	return nil
}

// trunk makes a SIP trunk.
func (h *harness) trunk(t *testing.T, u *parley.User, name, number string) *parley.Trunk {
	t.Helper()
	trunk := &parley.Trunk{Name: name, PhoneNumber: number, SIPAddress: "10.0.0.5:5060", SIPUsername: "office",
		Transport: "udp", SRTP: "off", InboundAuthorizationType: "auth"}
	h.DB.SealPassword(trunk, secret)
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTrunk(ctx, u.ID, trunk) })
	return trunk
}

// askCallerID has a code sent to a number.
func (h *harness) askCallerID(t *testing.T, u *parley.User, number string) int64 {
	t.Helper()
	id, err := h.Numbers.AskCallerID(t.Context(), u.ID, number)
	if err != nil {
		t.Fatal(err)
	}
	return id.ID
}

// delivery makes a delivery of a test event to an assistant's endpoint.
func (h *harness) delivery(t *testing.T, u *parley.User, a *parley.Assistant) *parley.Delivery {
	t.Helper()
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		map[string]any{"conversation_ended_webhook_url": "https://shop.example.com/ended"}); err != nil {
		t.Fatal(err)
	}
	got, err := h.DB.Assistant(t.Context(), u.ID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	d := event.Sample(got, event.FirstKind(got))
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueDelivery(ctx, u.ID, d) })
	return d
}

// sender gives the user the WhatsApp account's first number.
func (h *harness) sender(t *testing.T, u *parley.User) int64 {
	t.Helper()
	s, err := h.WhatsApp.Assign(t.Context(), "+16315558151", u.ID)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// channels are the pages of numbers, messages and webhooks, for a user who has one of everything.
func (h *harness) channels(t *testing.T, u *parley.User, a *parley.Assistant) []string {
	t.Helper()
	n := h.buy(t, u)
	if _, err := h.SMS.Send(t.Context(), u.ID, n.ID, "+14155552671", "Hello"); err != nil {
		t.Fatal(err)
	}
	calls := []string{"/calls", "/calls?status=busy", "/calls/new", "/assistants/" + id(a.ID) + "/call", "/calls/" +
		id(h.called(t, u, a, nil).ID)}
	ended := h.called(t, u, a, over(parley.CustomerHangup))
	h.record(t, ended)
	calls = append(calls, "/calls/"+id(ended.ID))
	return append(calls, "/numbers", "/numbers/"+id(n.ID), "/numbers/buy",
		"/numbers/buy?country_code=GB&contains=74", "/numbers/caller-id",
		"/numbers/caller-id/"+id(h.askCallerID(t, u, "+4930901820")), "/trunks", "/trunks/new", "/trunks/"+
			id(h.trunk(t, u, "Office", "+4930901822").ID),
		"/messages", "/messages?status=failed", "/messages/new", "/messages/outbox", "/whatsapp", "/whatsapp/"+
			id(h.sender(t, u)),
		"/webhooks", "/webhooks?status=failed", "/webhooks/settings", "/webhooks/"+id(h.delivery(t, u, a).ID))
}

func TestChannelsOfOthersAreUnknown(t *testing.T) {
	h := open(t)
	owner, other := h.user(t), h.user(t)
	a := h.assistant(t, owner, "Secret plans")
	n, trunk, d, s := h.buy(t, owner), h.trunk(t, owner, "Secret trunk", "+4930901822"), h.delivery(t, owner, a),
		h.sender(t, owner)
	asked := h.askCallerID(t, owner, "+4930901820")
	v := h.signedIn(t, other)
	for _, c := range []struct{ method, path, id string }{
		{"GET", "/numbers/%", id(n.ID)}, {"POST", "/numbers/%", id(n.ID)}, {"POST", "/numbers/%/delete", id(n.ID)},
		{"GET", "/numbers/caller-id/%", id(asked)}, {"POST", "/numbers/caller-id/%/verify", id(asked)},
		{"GET", "/trunks/%", id(trunk.ID)}, {"POST", "/trunks/%", id(trunk.ID)},
		{"POST", "/trunks/%/check", id(trunk.ID)}, {"POST", "/trunks/%/delete", id(trunk.ID)},
		{"GET", "/whatsapp/%", id(s)}, {"POST", "/whatsapp/%", id(s)},
		{"GET", "/webhooks/%", id(d.ID)}, {"POST", "/webhooks/%/resend", id(d.ID)},
		{"POST", "/webhooks/settings/test/%", id(a.ID)},
	} {
		bodies := map[string]bool{}
		for _, one := range []string{c.id, "424242", "0", "007", "-1", "99999999999999999999"} {
			form := url.Values{"name": {"stolen"}, "assistant_id": {""}, "event": {"conversation.ended"}}
			if c.method == "GET" {
				form = nil
			}
			bodies[v.send(c.method, strings.Replace(c.path, "%", one, 1),
				form).is(http.StatusNotFound).doc().Find("main").Text()] = true
		}
		if len(bodies) != 1 {
			t.Errorf("%s %s tells a foreign id from an unknown one: %v", c.method, c.path, bodies)
		}
	}
	for _, path := range []string{"/numbers", "/trunks", "/messages", "/messages/outbox", "/whatsapp", "/webhooks",
		"/webhooks/settings"} {
		text := v.get(path).is(http.StatusOK).doc().Find("main").Text()
		for _, theirs := range []string{"Secret plans", "Secret trunk", "Acme", "shop.example.com",
			parley.FormatPhone(n.PhoneNumber), "is your code"} {
			if strings.Contains(text, theirs) {
				t.Errorf("%s shows another user's %s", path, theirs)
			}
		}
	}
	if got, err := h.DB.Number(t.Context(), owner.ID, n.ID); err != nil || got.ReleasedAt != 0 {
		t.Errorf("the owner's number became %+v, %v", got, err)
	}
}

func TestChannelsShowHostileTextAsText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, evil)
	paths := h.channels(t, u, a)
	trunk := h.trunk(t, u, evil, "+4930901823")
	n, err := h.DB.Numbers(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	v := h.signedIn(t, u)
	nick := url.Values{"nickname": {evil[:50]}}
	v.post("/numbers/"+id(n[len(n)-1].ID), nick).is(http.StatusSeeOther)
	if _, err := h.SMS.Send(t.Context(), u.ID, n[len(n)-1].ID, "+14155552671", evil); err != nil {
		t.Fatal(err)
	}
	d := parley.NewDelivery(parley.EventBalanceLow, "https://x.example/"+evil, map[string]any{"</pre><script>": evil})
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		status, text := 500, evil
		return tx.RecordDelivery(ctx, u.ID, d, &parley.DeliveryAttempt{At: parley.Now(), Status: &status,
			Error: &text, Answer: evil})
	})
	replies := []*reply{v.get("/webhooks/" + id(d.ID)), v.get("/trunks/" + id(trunk.ID)),
		v.post("/messages/new", url.Values{"from": {evil}, "to": {evil}, "body": {evil}}),
		v.post("/messages/count", url.Values{"from": {evil}, "to": {evil}, "body": {evil}}),
		v.post("/messages/outbox", url.Values{"from": {evil}, "to": {evil}, "body": {evil}}),
		v.post("/trunks/new", url.Values{"name": {evil}, "phone_number": {evil}, "sip_address": {evil}}),
		v.get("/numbers/buy?country_code=" + url.QueryEscape(evil) + "&contains=" + url.QueryEscape(evil)),
		v.post("/numbers/buy", url.Values{"phone_number": {evil}}),
		v.post("/numbers/caller-id", url.Values{"phone_number": {evil}}),
		v.post("/webhooks/settings", url.Values{"url": {evil}}),
		v.get("/messages?to=" + url.QueryEscape(evil[:30]))}
	for _, path := range paths {
		replies = append(replies, v.get(path))
	}
	for _, r := range replies {
		if n := r.doc().Find("script:not([src]), img, [onerror]").Length(); n > 0 ||
			strings.Contains(r.body, "<script>") {
			t.Errorf("%d elements of the text came alive:\n%.3000s", n, r.body)
		}
	}
}
