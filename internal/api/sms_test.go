package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/api"
	"parley/internal/carrier"
	"parley/internal/carrier/sandbox"
	"parley/internal/channel/sms"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`)

func TestSendSMS(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy("US", true)
		body := map[string]any{"from": id(n), "to": "+1 (202) 555-0777", "body": " Hello 👋 "}
		made := h.post("/user/sms", body, status(200), header("Idempotency-Key", "k")).json()
		m := made["data"].(map[string]any)
		want := []string{"body", "created_at", "error", "from_number", "id", "phone_number_id", "segment_price",
			"segments", "sms_sid", "status", "to", "total_cost", "updated_at", "user_id"}
		if made["message"] != "SMS sent successfully" || !slices.Equal(keys(m), want) {
			t.Errorf("sent %v", made)
		}
		for k, v := range map[string]string{"phone_number_id": fmt.Sprint(id(n)), "to": "+12025550777",
			"body": "Hello 👋", "user_id": fmt.Sprint(h.user.ID), "segments": "1",
			"segment_price": "0.0083", "total_cost": "0.0083", "status": "sent", "error": "<nil>"} {
			if got := fmt.Sprint(m[k]); got != v {
				t.Errorf("%s is %s, want %s", k, got, v)
			}
		}
		if !dateTime.MatchString(m["created_at"].(string)) || !dateTime.MatchString(m["updated_at"].(string)) ||
			m["sms_sid"] == "" {
			t.Errorf("sent %v", m)
		}
		if again := h.post("/user/sms", body, status(200),
			header("Idempotency-Key", "k")); encode(again.json()) != encode(made) {
			t.Errorf("the same key answered %s", again.body)
		}
		if got := h.balance(); got != "3.8417" {
			t.Errorf("balance %s", got)
		}
		at := fmt.Sprintf("/user/sms/%d", id(m))
		if got := h.get(at, status(200)).json(); encode(got) != encode(m) {
			t.Errorf("GET answers %v", got)
		}
		for _, path := range []string{at, "/user/sms/99999", "/user/sms/x"} {
			h.stranger().get(path, status(404)).is(`{"message":"SMS not found"}`)
		}
		// The price depends on the destination and the number of segments.
		for to, want := range map[string]string{"+447400123456": "0.0524 2 0.1048",
			"+491701234567": "0.112 2 0.224", "+8613912345678": "0.1 2 0.2"} {
			m := h.post("/user/sms", map[string]any{"from": id(n), "to": to, "body": strings.Repeat("a", 161)},
				status(200)).json()["data"].(map[string]any)
			if got := fmt.Sprint(m["segment_price"], " ", m["segments"], " ", m["total_cost"]); got != want {
				t.Errorf("%s costs %s, want %s", to, got, want)
			}
		}
		// The carrier's refusal is reported at once, and costs nothing.
		before := h.balance()
		fail := map[string]any{"from": id(n), "to": "+12025550001", "body": "x"}
		h.post("/user/sms", fail, status(500), header("Idempotency-Key",
			"f")).is(`{"message":"Failed to send SMS","error":"The sandbox refuses messages to numbers that end in 0001."}`)
		h.post("/user/sms", fail, status(500), header("Idempotency-Key", "f")) // the key is free again
		if h.balance() != before {
			t.Errorf("a failure cost %s - %s", before, h.balance())
		}
		list := h.get("/user/sms?status=failed", status(200)).rows()
		if len(list) != 2 || list[0]["sms_sid"] != "" || list[0]["error"] == nil {
			t.Errorf("failed: %v", list)
		}
	})
}

// silent is a carrier that takes messages, but whose answers get lost.
type silent struct {
	carrier.Carrier
	sent int
}

func (s *silent) Send(context.Context, carrier.SMS) (string, error) {
	s.sent++
	return "", errors.New("connection reset by peer")
}

// forgetful is a carrier that takes a message while somebody erases the customer, and with them the message's row.
type forgetful struct {
	carrier.Carrier
	sent   int
	forget func()
}

func (f *forgetful) Send(ctx context.Context, m carrier.SMS) (string, error) {
	f.sent++
	f.forget()
	return f.Carrier.Send(ctx, m)
}

// A message that was sent, but could not be recorded as sent, is not sent again.
func TestSMSThatCantBeNoted(t *testing.T) {
	o := storetest.Options(t, "sqlite", rules)
	db := storetest.Open(t, o)
	f := &forgetful{Carrier: sandbox.New(sms.Outbox(db)), forget: func() { storetest.Exec(t, o, "DELETE FROM sms") }}
	h := open(t, db, func(c *api.Config) { c.SMS = &sms.Channel{DB: db, Carrier: f, Prices: c.Prices} })
	body := map[string]any{"from": id(h.buy("US", true)), "to": "+12025550777", "body": "x"}
	first := h.post("/user/sms", body, header("Idempotency-Key", "k"))
	again := h.post("/user/sms", body, header("Idempotency-Key", "k"))
	if f.sent != 1 || first.status < 400 || again.status < 400 {
		t.Errorf("it was sent %d times: %d %s, then %d %s", f.sent, first.status, first.body, again.status, again.body)
	}
}

// A message whose fate is unknown is reported to the sender as failed, and a request under the same key does not send
// it again.
func TestSMSWithoutAnAnswer(t *testing.T) {
	each(t, func(t *testing.T, base *harness) {
		s := &silent{Carrier: sandbox.New(sms.Outbox(base.db))}
		h := open(t, base.db, func(c *api.Config) { c.SMS = &sms.Channel{DB: base.db, Carrier: s, Prices: c.Prices} })
		body := map[string]any{"from": id(h.buy("US", true)), "to": "+12025550777", "body": "x"}
		before := h.balance()
		for range 2 {
			h.post("/user/sms", body, status(500), header("Idempotency-Key",
				"k")).is(`{"message":"Failed to send SMS","error":"The carrier did not answer."}`)
		}
		if s.sent != 1 || h.balance() != before {
			t.Errorf("it was sent %d times, the balance is %s and was %s", s.sent, h.balance(), before)
		}
		h.post("/user/sms", body, status(500))
		if s.sent != 2 {
			t.Errorf("without a key it was sent %d times", s.sent)
		}
	})
}

// Every precondition, in the order in which they are checked: each case also breaks all that come after it.
func TestSMSPreconditions(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.credit(20 * parley.USD)
		good, deaf := h.buy("US", true), h.buy("GB", false)
		trunk := h.post(trunksAt, trunkBody(), status(201)).json()["data"].(map[string]any)
		lapsed := h.buy("US", true)
		number := func(change func(*parley.Number)) int64 {
			n := &parley.Number{PhoneNumber: fmt.Sprintf("+1646555%04d", serial.Add(1)), CountryCode: "US",
				Type: parley.NumberNormal, PaidUntil: parley.Now() - 1}
			change(n)
			h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, h.user.ID, n) })
			return n.ID
		}
		old := number(func(n *parley.Number) { n.SMSCapable = true })
		oldDeaf := number(func(n *parley.Number) {})
		if err := h.texts.Receive(t.Context(), carrier.Inbound{SID: "SMstop", From: "+12025550666",
			To: good["phone_number"].(string), Body: "STOP"}); err != nil {
			t.Fatal(err)
		}
		other := h.stranger()
		for _, c := range []struct {
			name, text string
			from       int64
			to         string
			who        *harness
		}{
			{"no such number", "From number not found", 99999, "nobody", h},
			{"a stranger's number", "From number not found", id(good), "nobody", other},
			{"no recipient", "Invalid to phone number", oldDeaf, "nobody", h},
			{"national format", "Invalid to phone number", oldDeaf, "2025550777", h},
			{"no valid number", "Invalid to phone number", oldDeaf, "+1202555", h},
			{"no SMS, no subscription", "From number is not SMS capable", oldDeaf, "+12025550666", h},
			{"a landline", "From number is not SMS capable", id(deaf), "+12025550777", h},
			{"SIP", "From number is not SMS capable", trunkNumber(trunk), "+12025550777", h},
			{"not paid", "From number has no active subscription", old, "+12025550777", h},
			{"opted out", "The recipient has opted out of messages from this number", id(good), "+12025550666", h},
		} {
			c.who.post("/user/sms", map[string]any{"from": c.from, "to": c.to, "body": "x"},
				status(400)).is(`{"message":"` + c.text + `"}`)
		}
		// STOP holds for one number only
		h.post("/user/sms", map[string]any{"from": id(lapsed), "to": "+12025550666", "body": "x"}, status(200))
		h.write(func(ctx context.Context, tx *store.Tx) error {
			all, err := tx.Free(ctx, h.user.ID)
			if err != nil {
				return err
			}
			_, err = tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.SMSCharge, Amount: -all + 8299,
				Reference: "all", Description: "x"})
			return err
		})
		for _, from := range []int64{id(good), oldDeaf} { // the balance is checked before the number
			h.post("/user/sms", map[string]any{"from": from, "to": "+12025550666", "body": "x"},
				status(400)).is(`{"message":"Insufficient balance"}`)
		}
		if n := len(h.get("/user/sms").rows()); n != 2 { // including the answer to STOP
			t.Errorf("%d messages stand", n)
		}
	})
}

func trunkNumber(trunk map[string]any) int64 {
	return id(map[string]any{"id": trunk["phone_number_id"]})
}

func TestSMSFields(t *testing.T) {
	h := lite(t, nil)
	n := h.buy("US", true)
	body := func() map[string]any { return map[string]any{"from": id(n), "to": "+12025550777", "body": "x"} }
	h.post("/user/sms", nil, status(422)).fails("from", "to", "body")
	for field, kind := range map[string]string{"from": "int", "to": "string", "body": "string"} {
		for _, v := range wrong[kind] {
			h.post("/user/sms", nil, raw(encode(with(body(), map[string]any{field: json.RawMessage(v)}))),
				status(422)).says(field, "The "+field+" field "+mustBe[kind])
		}
		h.post("/user/sms", nil, raw(encode(with(body(), map[string]any{field: json.RawMessage("null")}))),
			status(422)).says(field, "The "+field+" field is required.")
	}
	h.post("/user/sms", with(body(), map[string]any{"body": " \n "}), status(422)).says("body",
		"The body field is required.")
	h.post("/user/sms", with(body(), map[string]any{"body": strings.Repeat("😀", 300)}), status(200))
	h.post("/user/sms", with(body(), map[string]any{"body": strings.Repeat("😀", 301)}), status(422)).says("body",
		"The body field must not be greater than 300 characters.")
	h.post("/user/sms", with(body(), map[string]any{"body": "a\x00b"}), status(422)).fails("body")
	h.post("/user/sms", with(body(), map[string]any{"to": strings.Repeat("1", 2000)}),
		status(400)).is(`{"message":"Invalid to phone number"}`)
	h.post("/user/sms", with(body(), map[string]any{"from": -1}), status(400)).is(`{"message":"From number not found"}`)
}

func TestListSMS(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		first, second := h.buy("US", true), h.buy("US", true)
		for i := range 7 {
			from := []map[string]any{first, second}[i%2]
			h.post("/user/sms", map[string]any{"from": id(from), "to": fmt.Sprintf("+1202555077%d", i%3),
				"body": fmt.Sprint("message ", i)}, status(200))
		}
		h.post("/user/sms", map[string]any{"from": id(first), "to": "+12025550001", "body": "fails"}, status(500))
		count := func(query string, want int) {
			t.Helper()
			if got := fmt.Sprint(h.get("/user/sms"+query, status(200)).json()["total"]); got != fmt.Sprint(want) {
				t.Errorf("%s: %s, want %d", query, got, want)
			}
		}
		count("", 8)
		count("?status=sent", 7)
		count("?status=failed", 1)
		count("?status=queued", 0)
		count(fmt.Sprintf("?phone_number_id=%d", id(second)), 3)
		count("?to=%2B12025550770", 3)
		count("?to=+12025550770", 3)
		count("?to=%2B1%20202%20555%200770", 3)
		count("?to=nobody", 0)
		count("?phone_number_id=0", 0)
		count("?phone_number_id=&status=&to=", 8)
		count("?date_from=2000-01-01&date_to=2999-01-01", 8)
		count("?date_to=2000-01-01", 0)
		count("?date_from=2999-01-01", 0)
		count(fmt.Sprintf("?status=sent&to=%%2B12025550770&phone_number_id=%d", id(first)), 2)
		page := h.get("/user/sms?per_page=3&page=2", status(200))
		if list := page.rows(); len(list) != 3 || list[0]["body"] != "message 4" ||
			fmt.Sprint(page.json()["last_page"]) != "3" {
			t.Errorf("page 2: %s", page.body)
		}
		for _, bad := range []string{"status=gone", "phone_number_id=x", "date_from=x", "per_page=0",
			"per_page=101", "page=0"} {
			name, _, _ := strings.Cut(bad, "=")
			h.get("/user/sms?"+bad, status(422)).fails(name)
		}
		if n := len(h.stranger().get("/user/sms").rows()); n != 0 {
			t.Errorf("a stranger sees %d", n)
		}
		if list := h.get("/user/sandbox/outbox?per_page=2", status(200)).rows(); len(list) != 2 ||
			list[0]["body"] != "message 6" || list[0]["status"] != "delivered" {
			t.Errorf("outbox: %v", list)
		}
		if n := len(h.stranger().get("/user/sandbox/outbox").rows()); n != 0 {
			t.Errorf("a stranger's outbox has %d", n)
		}
	})
}

func TestSandboxInbound(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy("US", true)
		const at = "/user/sandbox/sms-inbound"
		body := map[string]any{"from": "+1 202 555 0777", "to": n["phone_number"], "body": "Stop"}
		got := h.post(at, body, status(201)).json()["data"].(map[string]any)
		if got["from"] != "+12025550777" || got["sms_sid"] == "" {
			t.Errorf("received %v", got)
		}
		h.post("/user/sms", map[string]any{"from": id(n), "to": "+12025550777", "body": "x"},
			status(400)).is(`{"message":"The recipient has opted out of messages from this number"}`)
		h.stranger().post(at, body, status(404)).is(`{"message":"Phone number not found"}`)
		h.post(at, with(body, map[string]any{"to": "+12025550199"}), status(404))
		h.post(at, nil, status(422)).fails("from", "to", "body")
		h.post(at, map[string]any{"from": "x", "to": "y", "body": "z"}, status(422)).fails("from", "to")
		// Erasing a person deletes the messages, but not the opt-out.
		erased := h.delete("/user/customers/+12025550777", status(200)).json()
		if fmt.Sprint(erased["messages"]) != "1" {
			t.Errorf("erased %v", erased)
		}
		h.post("/user/sms", map[string]any{"from": id(n), "to": "+12025550777", "body": "x"}, status(400))
	})
}
