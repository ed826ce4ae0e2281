package api_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/campaign"
	"parley/internal/parley"
	"parley/internal/store/storetest"
)

// An account has the country of its time zone, until another is chosen.
func TestCountry(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		is := func(want string) {
			t.Helper()
			if got := h.get("/user/me", status(200)).json()["country"]; got != want {
				t.Errorf("the country is %v, want %q", got, want)
			}
		}
		is("")
		h.put("/user/me", map[string]any{"timezone": "Europe/Berlin"}, status(200))
		is("DE")
		h.put("/user/me", map[string]any{"timezone": "America/Lima"}, status(200))
		is("DE")
		h.put("/user/me", map[string]any{"country": "AT"}, status(200))
		is("AT")
		h.put("/user/me", map[string]any{"country": "XX"}).says("country",
			"The country field must be a valid country code such as DE (ISO 3166-1 alpha-2).")
		h.put("/user/me", map[string]any{"country": "Austria"}, status(422))
		h.put("/user/me", map[string]any{"country": ""}, status(200))
		is("")
		admin, editor := *h, *h
		admin.token = h.credential(h.member(parley.RoleAdministrator), "session", "")
		editor.token = h.credential(h.member(parley.RoleEditor), "session", "")
		admin.put("/user/me", map[string]any{"country": "FR"}, status(200))
		is("FR")
		editor.put("/user/me", map[string]any{"country": "IT"}, status(403))
		editor.put("/user/me", map[string]any{"country": "FR", "name": "Ed"}, status(200)) // as it was read
		is("FR")
	})
}

// Wherever a telephone number comes in, it is read as it is dialled in the account's country, and stored as E.164.
func TestNationalNumbers(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.put("/user/me", map[string]any{"country": "DE"}, status(200))
		storetest.Jobs(t, h.db, h.api.Campaigns.AddWorkers, campaign.Queue)
		c := h.campaign(nil)
		const written, read = "\u200e(0171) 123'45\u00a067\u200b", "+491711234567"
		made := h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": written,
			"secondary_contacts": []any{map[string]any{"phone_number": "0049 172/1234567"}}}, status(200)).json()["data"].(map[string]any)
		if contacts := fmt.Sprint(made["secondary_contacts"]); made["phone_number"] != read || !strings.Contains(contacts, "+491721234567") {
			t.Errorf("a lead with %v and %v", made["phone_number"], contacts)
		}
		if got := h.put(fmt.Sprintf("/user/leads/%d", id(made)), map[string]any{"phone_number": "０１７３ 1234567"},
			status(200)).json()["data"].(map[string]any)["phone_number"]; got != "+491731234567" {
			t.Errorf("changed to %v", got)
		}
		for query, want := range map[string]string{"0173%201234567": "1", "+491731234567": "1", "%2B491731234567": "1",
			"491731234567": "1", "0174%201234567": "0"} {
			if got := fmt.Sprint(h.get("/user/leads?page=1&phone_number=" + query).json()["total"]); got != want {
				t.Errorf("%s finds %s leads, want %s", query, got, want)
			}
		}
		if got := h.post("/user/blacklist", map[string]any{"phone_number": written}, status(201)).
			json()["data"].(map[string]any)["phone_number"]; got != read {
			t.Errorf("%v is not to be called", got)
		}
		h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "4.91512E+11"}).says("phone_number",
			"The phone_number field must be a valid phone number in international format.",
			"4.91512E+11 is how a spreadsheet shortens a long number, and its last digits are lost: format the column as text, "+
				"enter the numbers again, and save the list.")
		h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "0171 12345"}).says("phone_number",
			"The phone_number field must be a valid phone number in international format.",
			"There is no phone number 0171 12345 in Germany: write numbers of other countries with + and the country code.")
		h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+49 171 1"}).says("phone_number",
			"The phone_number field must be a valid phone number in international format.")

		a := h.assistant(map[string]any{"tools": []any{
			map[string]any{"type": "call_transfer", "phone_number": "030 901820", "description": "to the desk"},
			map[string]any{"type": "warm_call_transfer", "supervisor_phone": "204"}}})
		tools := fmt.Sprint(h.get(fmt.Sprintf("/user/assistant/%d", a), status(200)).json())
		if !strings.Contains(tools, "phone_number:+4930901820") || !strings.Contains(tools, "supervisor_phone:204") {
			t.Errorf("transfers: %s", tools)
		}

		for _, trunk := range []struct{ written, country, read string }{{"030 / 901820", "", "+4930901820"}, {"01 234 5678", "AT", "+4312345678"},
			{"+43 1 2345679", "", "+4312345679"}} {
			made := h.post(trunksAt, with(trunkBody(), map[string]any{"phone_number": trunk.written, "country_code": trunk.country}),
				status(201)).json()["data"].(map[string]any)
			if made["phone_number"] != trunk.read {
				t.Errorf("%s is the trunk's number as %v", trunk.written, made["phone_number"])
			}
			h.put(fmt.Sprintf("%s/%d", trunksAt, id(made)), map[string]any{"phone_number": "0171 12345", "country_code": ""}).says("phone_number",
				"The phone_number field must be a phone number in international format.",
				"There is no phone number 0171 12345 in Germany: write numbers of other countries with + and the country code.")
		}

		list := "phone_number,name\n0171 1234501,Ana\n+49 171 1234502,Bo\n02025550123,Cy\n"
		report := fmt.Sprint(h.post("/user/leads/import", nil, multi("file", strings.NewReader(list), "campaign_id", fmt.Sprint(c)),
			status(200)).json()["data"])
		if !strings.Contains(report, "imported:2 ") && !strings.Contains(report, "imported:3 ") {
			t.Errorf("imported: %s", report)
		}
		us := "phone_number\n(202) 555-0123\n"
		report = fmt.Sprint(h.post("/user/leads/import", nil, multi("file", strings.NewReader(us), "campaign_id", fmt.Sprint(c), "country", "US"),
			status(200)).json()["data"])
		if !strings.Contains(report, "imported:1 ") {
			t.Errorf("imported: %s", report)
		}
		if got := fmt.Sprint(h.get("/user/leads?page=1&phone_number=%2B12025550123").json()["total"]); got != "1" {
			t.Errorf("%s leads in the United States", got)
		}
	})
}

// A text message refuses a number in the contract's words, whatever its form, and goes to one in national form.
func TestSMSNumbers(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.put("/user/me", map[string]any{"country": "DE"}, status(200))
		h.credit(10 * parley.USD)
		from := id(h.buy("US", true))
		for _, to := range []string{"4.91512E+11", "0171 12", "nobody"} {
			h.post("/user/sms", map[string]any{"from": from, "to": to, "body": "x"}, status(400)).is(`{"message":"Invalid to phone number"}`)
		}
		if got := string(h.post("/user/sms", map[string]any{"from": from, "to": "0171/1234567", "body": "x"}).body); !strings.Contains(got,
			`"+491711234567"`) {
			t.Errorf("sent: %s", got)
		}
	})
}
