package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"parley/internal/api"
	"parley/internal/billing"
	"parley/internal/carrier/carriertest"
	"parley/internal/channel/sms"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/store"
)

// rows are the rows of an answer's data.
func (a *answer) rows() (list []map[string]any) {
	a.Helper()
	for _, r := range a.json()["data"].([]any) {
		list = append(list, r.(map[string]any))
	}
	return list
}

func keys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// buy searches for a number of a country that can send text messages, or one that can't, and buys it.
func (h *harness) buy(country string, sms bool) map[string]any {
	h.Helper()
	for _, n := range h.get("/user/phone-numbers/search?country_code="+country, status(200)).rows() {
		if n["sms_capable"] == sms {
			return h.post("/user/phone-numbers/purchase", map[string]any{"phone_number": n["phone_number"]},
				status(201)).json()["data"].(map[string]any)
		}
	}
	h.Fatalf("no number in %s has sms %v", country, sms)
	return nil
}

func (h *harness) balance() string {
	h.Helper()
	return string(h.get("/user/me", status(200)).json()["total_balance"].(json.Number))
}

func (h *harness) credit(amount parley.Money) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: amount,
			Reference: word(), Description: "x"})
		return err
	})
}

func TestSearchNumbers(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		for country, prefix := range map[string]string{"": "+1", "US": "+1", "CA": "+1", "GB": "+44", "AU": "+61",
			"IL": "+972", "PL": "+48", "FI": "+358", "NL": "+31", "DK": "+45", "IT": "+39"} {
			list := h.get("/user/phone-numbers/search?country_code="+country, status(200)).rows()
			if len(list) < 10 {
				t.Errorf("%s: %d numbers", country, len(list))
			}
			for _, n := range list {
				if got := keys(n); !slices.Equal(got,
					[]string{"address_requirements", "country_code", "phone_number", "phone_number_formatted",
						"price", "sms_capable", "stripe_price_id"}) {
					t.Fatalf("fields %v", got)
				}
				number := n["phone_number"].(string)
				p, err := phonenumbers.Parse(number, "")
				region := map[bool]string{true: "US", false: country}[country == ""]
				if err != nil || !phonenumbers.IsValidNumber(p) || n["country_code"] != region ||
					phonenumbers.GetRegionCodeForNumber(p) != region || !strings.HasPrefix(number, prefix) {
					t.Errorf("%s: %v", country, n)
				}
				style := phonenumbers.INTERNATIONAL
				if prefix == "+1" {
					style = phonenumbers.NATIONAL
				}
				if n["phone_number_formatted"] != phonenumbers.Format(p, style) || n["stripe_price_id"] != "" {
					t.Errorf("%s: %v", country, n)
				}
			}
		}
		list := h.get("/user/phone-numbers/search?country_code=GB&contains=7400", status(200)).rows()
		if len(list) == 0 {
			t.Error("nothing contains 7400")
		}
		for _, n := range list {
			if !strings.Contains(n["phone_number"].(string), "7400") {
				t.Errorf("found %v", n)
			}
		}
		h.get("/user/phone-numbers/search?contains=9999999999", status(200)).is(`{"data":[]}`)
		h.get("/user/phone-numbers/search?contains=", status(200))
		for _, bad := range []string{"abc", "12a", "%2B12", "1%202", "1.5", "-1", "%00", "%EF%BC%91"} {
			h.get("/user/phone-numbers/search?contains="+bad, status(422)).fails("contains")
		}
		h.get("/user/phone-numbers/search?contains=12345678901", status(422)).fails("contains")
		for _, bad := range []string{"DE", "us", "USA", "X", "1"} {
			h.get("/user/phone-numbers/search?country_code="+bad, status(422)).says("country_code",
				"The country_code field must be one of: US, CA, GB, AU, IL, PL, FI, NL, DK, IT.")
		}
		h.get("/user/phone-numbers/search?country_code=DE&contains=x", status(422)).fails("country_code", "contains")
	})
}

func TestNumberLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.get("/user/phone-numbers/all", status(200)).is(`{"data":[]}`)
		h.get("/user/phone-numbers", status(200)).is(`[]`)
		h.post("/user/phone-numbers/purchase", map[string]any{"phone_number": "+14155559876"}, status(400)).is(
			`{"error":"The phone number +14155559876 is not available. Search for numbers and choose one of those."}`)
		first := h.get("/user/phone-numbers/search", status(200)).rows()[0]
		want := map[string]any{"phone_number": first["phone_number"]}
		made := h.post("/user/phone-numbers/purchase", want, status(201), header("Idempotency-Key", "k1")).json()
		n := made["data"].(map[string]any)
		if made["message"] != "Phone number purchased successfully" || n["phone_number"] != first["phone_number"] ||
			n["type"] != "normal" || n["type_label"] != "Normal" ||
			n["nickname"] != nil || n["country_code"] != "US" || n["sms_capable"] != true ||
			n["has_active_subscription"] != true || n["assistant_id"] != nil ||
			!isoTime.MatchString(n["created_at"].(string)) {
			t.Errorf("bought %v", made)
		}
		if got := h.balance(); got != "3.85" {
			t.Errorf("balance %s", got)
		}
		again := h.post("/user/phone-numbers/purchase", want, status(201), header("Idempotency-Key", "k1"))
		if encode(again.json()) != encode(made) || h.balance() != "3.85" {
			t.Errorf("the same key answered %s, balance %s", again.body, h.balance())
		}
		h.post("/user/phone-numbers/purchase", map[string]any{"phone_number": "+1"}, status(409),
			header("Idempotency-Key", "k1"))
		if a := h.post("/user/phone-numbers/purchase", want, status(400)); !strings.Contains(string(a.body),
			`{"error":"`) {
			t.Errorf("taken: %s", a.body)
		}
		for _, l := range h.get("/user/phone-numbers/search").rows() {
			if l["phone_number"] == first["phone_number"] {
				t.Error("a search finds a number that is taken")
			}
		}
		other := h.stranger()
		for _, l := range other.get("/user/phone-numbers/search").rows()[:1] {
			other.post("/user/phone-numbers/purchase", map[string]any{"phone_number": l["phone_number"]},
				status(402)).is(`{"error":"Insufficient balance"}`)
		}
		other.get("/user/phone-numbers/all", status(200)).is(`{"data":[]}`)

		at := fmt.Sprintf("/user/phone-numbers/%d", id(n))
		a := h.assistant(map[string]any{"phone_number_id": id(n)})
		row := h.get("/user/phone-numbers/all", status(200)).rows()[0]
		for _, k := range []string{"id", "phone_number", "nickname", "country_code", "type", "type_label",
			"sms_capable", "has_active_subscription", "assistant_id", "created_at"} {
			if _, ok := row[k]; !ok {
				t.Errorf("no %s in %v", k, row)
			}
		}
		if fmt.Sprint(row["assistant_id"]) != fmt.Sprint(a) {
			t.Errorf("assistant_id %v, want %d", row["assistant_id"], a)
		}
		if list := h.get("/user/phone-numbers", status(200)).list(); len(list) != 1 || encode(list[0]) != encode(row) {
			t.Errorf("the bare list holds %v", list)
		}
		if got := h.put(at, map[string]any{"nickname": " Front desk "},
			status(200)).json(); got["message"] != "Phone number updated successfully" ||
			got["data"].(map[string]any)["nickname"] != "Front desk" {
			t.Errorf("renamed %v", got)
		}
		h.put(at, map[string]any{}, status(200))
		if got := h.put(at, map[string]any{"nickname": strings.Repeat("😀", 50), "phone_number": "+1"},
			status(200)).json()["data"].(map[string]any); got["nickname"] != strings.Repeat("😀", 50) ||
			got["phone_number"] != n["phone_number"] {
			t.Errorf("renamed %v", got)
		}
		h.put(at, nil, raw(`{"nickname":null}`), status(200))
		if got := h.get("/user/phone-numbers/all").rows()[0]["nickname"]; got != nil {
			t.Errorf("cleared to %v", got)
		}
		h.put(at, map[string]any{"nickname": strings.Repeat("x", 51)}, status(422)).says("nickname",
			"The nickname field must not be greater than 50 characters.")
		for _, v := range wrong["string"] {
			h.put(at, nil, raw(`{"nickname":`+v+`}`), status(422)).says("nickname",
				"The nickname field must be a string.")
			h.post("/user/phone-numbers/purchase", nil, raw(`{"phone_number":`+v+`}`),
				status(422)).says("phone_number", "The phone_number field must be a string.")
		}
		h.post("/user/phone-numbers/purchase", nil, status(422)).says("phone_number",
			"The phone_number field is required.")
		for _, path := range []string{at, "/user/phone-numbers/99999", "/user/phone-numbers/x",
			"/user/phone-numbers/99999999999999999999"} {
			other.put(path, map[string]any{"nickname": "x"}, status(404)).is(`{"error":"Phone number not found"}`)
			other.delete(path, status(404)).is(`{"error":"Phone number not found"}`)
		}
		h.delete(at, status(200)).is(`{"message":"Phone number deleted successfully"}`)
		if a := h.delete(at, status(400)); !strings.HasPrefix(string(a.body),
			`{"error":"The phone number is already released`) {
			t.Errorf("again: %s", a.body)
		}
		if row := h.get("/user/phone-numbers/all").rows()[0]; row["has_active_subscription"] != true ||
			row["released_at"] == nil || row["assistant_id"] == nil {
			t.Errorf("kept for the time that is paid: %v", row)
		}
	})
}

func TestCallerIDs(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		const at, phone = "/user/phone-numbers/caller-ids", "+12025550777"
		ask := func() (map[string]any, string) {
			t.Helper()
			made := h.post(at, map[string]any{"phone_number": "+1 (202) 555-0777"}, status(201)).json()
			out := h.get("/user/sandbox/outbox", status(200)).rows()[0]
			if out["to"] != phone {
				t.Errorf("the newest message is %v", out)
			}
			return made["data"].(map[string]any), out["body"].(string)[:6]
		}
		c, code := ask()
		if c["phone_number"] != phone || strings.Contains(encode(c), code) {
			t.Errorf("asked %v", c)
		}
		verify := fmt.Sprintf("%s/%d/verify", at, id(c))
		wrongCode := map[bool]string{true: "000000", false: "111111"}[code == "111111"]
		h.stranger().post(verify, map[string]any{"code": code}, status(404)).is(`{"error":"Caller ID not found"}`)
		h.post(verify, nil, status(422)).says("code", "The code field is required.")
		for _, v := range wrong["string"] {
			h.post(verify, nil, raw(`{"code":`+v+`}`), status(422)).says("code", "The code field must be a string.")
		}
		for range 5 {
			h.post(verify, map[string]any{"code": wrongCode}, status(422)).says("code", "The code is wrong.")
		}
		h.post(verify, map[string]any{"code": code}, status(422)).says("code",
			"The code was entered wrong too often. Request a new one.")
		c, code = ask()
		verify = fmt.Sprintf("%s/%d/verify", at, id(c))
		done := h.post(verify, map[string]any{"code": " " + code + " "}, status(200)).json()
		n := done["data"].(map[string]any)
		if done["message"] != "Caller ID verified successfully" || n["type"] != "caller_id" ||
			n["type_label"] != "Caller ID" || n["has_active_subscription"] != false || n["sms_capable"] != false {
			t.Errorf("verified %v", done)
		}
		h.post(verify, map[string]any{"code": code}, status(404))
		h.post(at, map[string]any{"phone_number": phone},
			status(400)).is(`{"error":"The phone number +12025550777 is already yours."}`)
		// A caller id is for outgoing calls only.
		h.post("/user/assistant", with(h.assistantBody(), map[string]any{"phone_number_id": id(n)}),
			status(422)).fails("phone_number_id")
		h.assistant(map[string]any{"phone_number_id": id(n), "type": "outbound"})
		if list := h.get("/user/assistants/phone-numbers?type=inbound").list(); len(list) != 0 {
			t.Errorf("assignable: %v", list)
		}
		other := h.stranger() // has the same telephone
		other.post(at, map[string]any{"phone_number": phone}, status(402)).is(`{"error":"Insufficient balance"}`)
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Post(ctx, other.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: parley.USD,
				Reference: "more", Description: "test"})
			return err
		})
		other.post(at, map[string]any{"phone_number": phone}, status(201))
		h.post(at, map[string]any{"phone_number": "+12025550001"},
			status(500)).is(`{"error":"Failed to send the code: The sandbox refuses messages to numbers that end in 0001."}`)
		h.post(at, map[string]any{"phone_number": "12025550777"}, status(422)).says("phone_number",
			"The phone_number field must be a phone number in international format.",
			"12025550777 has no country code: write it with + and the country code, or choose the country of your account.")
		for _, bad := range []string{"+1", "+999123", "hello", "+1202555077x"} {
			h.post(at, map[string]any{"phone_number": bad}, status(422)).says("phone_number",
				"The phone_number field must be a phone number in international format.")
		}
		h.post(at, nil, status(422)).says("phone_number", "The phone_number field is required.")
		h.delete(fmt.Sprintf("/user/phone-numbers/%d", id(n)), status(200))
		if n := len(h.get("/user/phone-numbers/all").rows()); n != 0 {
			t.Errorf("%d numbers are left", n)
		}
		for range 20 { // so that nobody is pestered with codes
			if a := h.post(at, map[string]any{"phone_number": "+12025550778"}); a.status == 429 {
				return
			}
		}
		t.Error("codes without an end")
	})
}

// The whole way through Twilio's protocol: search, purchase, messages, refusals, and an account that Twilio rejects.
func TestTwilioBehindTheAPI(t *testing.T) {
	server := carriertest.NewServer(t)
	prices, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	h := lite(t, func(c *api.Config) {
		twilio := server.Client("https://voice.example.com")
		c.Numbers = number.New(number.Config{DB: c.DB, Carrier: twilio, Prices: prices})
		c.SMS = &sms.Channel{DB: c.DB, Carrier: twilio, Prices: prices}
	})
	h.get("/user/sandbox/outbox", status(404))
	h.get("/user/phone-numbers/search?country_code=FI", status(200)).is(`{"data":[]}`)
	n := h.buy("US", true)
	from := map[string]any{"from": id(n), "to": "+12025550777", "body": "Hello"}
	m := h.post("/user/sms", from, status(200)).json()["data"].(map[string]any)
	if m["status"] != "sent" || m["sms_sid"] != server.Messages()[0].SID || h.balance() != "3.8417" {
		t.Errorf("sent %v, balance %s", m, h.balance())
	}
	h.post("/user/sms", with(from, map[string]any{"to": "+12025550009"}),
		status(500)).is(`{"message":"Failed to send SMS","error":"Attempt to send to unsubscribed recipient"}`)
	server.Fail = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "POST" {
			carriertest.Refuse(w, 503, 20503, "Service unavailable, with the secret "+carriertest.AuthToken)
		}
		return r.Method == "POST"
	}
	h.post("/user/sms", from, status(500)).is(`{"message":"Failed to send SMS","error":"The carrier did not answer."}`)
	second := h.get("/user/phone-numbers/search").rows()[0]["phone_number"]
	h.post("/user/phone-numbers/purchase", map[string]any{"phone_number": second},
		status(500)).is(`{"error":"Failed to purchase the phone number"}`)
	server.Fail = func(w http.ResponseWriter, r *http.Request) bool {
		carriertest.Refuse(w, 401, 20003, "Authenticate")
		return true
	}
	h.get("/user/phone-numbers/search", status(500)).is(`{"error":"Failed to search phone numbers"}`)
	h.post("/user/sms", from, status(500)).
		is(`{"message":"Failed to send SMS","error":"The carrier refuses this server's account: its operator must look at it."}`)
	if h.balance() != "3.8417" {
		t.Errorf("failures cost %s", h.balance())
	}
	server.Fail = nil
	for _, m := range h.get("/user/sms?status=failed", status(200)).rows() {
		if m["error"] == nil || strings.Contains(encode(m), carriertest.AuthToken) {
			t.Errorf("failed without a word, or with too many: %v", m)
		}
	}
}

// Only the owner of a number can set, read or delete its route, which is set as a whole.
func TestNumberRoute(t *testing.T) {
	h := lite(t, nil)
	n := h.buy("US", true)
	path := fmt.Sprintf("/user/phone-numbers/routes/%v", n["id"])
	if got := h.get(path, status(200)).json(); got["data"] != nil {
		t.Errorf("at first: %v", got)
	}
	night := h.assistant(map[string]any{"type": "inbound"})
	sent := map[string]any{"timezone": "Europe/Berlin",
		"hours":           []map[string]any{{"days": []string{"monday"}, "from": "09:00", "to": "17:00"}},
		"closed_dates":    []string{"2026-12-25"},
		"otherwise":       "assistant",
		"blocked_callers": []string{"+49 30 901820", "+1900*"}, "otherwise_assistant_id": night,
		"telephones": []map[string]any{{"phone_number": "+49 30 901821"}}, "when_full": "queue"}
	h.put(path, sent, status(200))
	got := h.get(path, status(200)).json()["data"].(map[string]any)
	if got["timezone"] != "Europe/Berlin" || got["otherwise"] != "assistant" ||
		fmt.Sprint(got["otherwise_assistant_id"]) != fmt.Sprint(night) ||
		fmt.Sprint(got["blocked_callers"]) != "[+4930901820 +1900*]" || fmt.Sprint(got["closed_dates"]) != "[2026-12-25]" ||
		fmt.Sprint(got["hours"]) != "[map[days:[monday] from:09:00 to:17:00]]" || got["block_anonymous"] != false ||
		fmt.Sprint(got["telephones"]) != "[map[phone_number:+4930901821 seconds:20]]" || got["when_full"] != "queue" ||
		fmt.Sprint(got["queue_seconds"]) != "300" || got["unanswered"] != "words" || got["lines"] != nil {
		t.Errorf("got %v", got)
	}
	for field, wrong := range map[string]map[string]any{
		"timezone":                  {"timezone": "Mars/Olympus"},
		"hours.0.from":              {"hours": []map[string]any{{"from": "9 am"}}},
		"hours.0.days.0":            {"hours": []map[string]any{{"days": []string{"someday"}}}},
		"closed_dates":              {"closed_dates": []string{"2026-02-30"}},
		"otherwise":                 {"otherwise": "panic"},
		"otherwise_assistant_id":    {"otherwise": "assistant"},
		"telephones":                {"after_queue": "telephone"},
		"telephones.0.phone_number": {"telephones": []map[string]any{{"phone_number": "bob"}}},
		"voicemail_seconds":         {"voicemail_seconds": 4},
		"when_full":                 {"when_full": "assistant"},
		"lines":                     {"lines": 0},
		"blocked_callers":           {"blocked_callers": []string{"bob"}},
	} {
		if got := h.put(path, wrong, status(422)).json(); got["errors"].(map[string]any)[field] == nil {
			t.Errorf("%s: %v", field, got)
		}
	}
	outbound := h.assistant(map[string]any{"type": "outbound"})
	h.put(path, map[string]any{"otherwise": "assistant", "otherwise_assistant_id": outbound}, status(422))
	other := h.stranger()
	other.get(path, status(404))
	other.put(path, sent, status(404))
	other.delete(path, status(404))
	h.put(path, map[string]any{}, status(200)) // a field that is not sent is as if it had never been set
	if got := h.get(path, status(200)).json()["data"].(map[string]any); got["timezone"] != "UTC" || got["otherwise"] != "refuse" {
		t.Errorf("got %v", got)
	}
	h.delete(path, status(200))
	if got := h.get(path, status(200)).json(); got["data"] != nil {
		t.Errorf("in the end: %v", got)
	}
}
