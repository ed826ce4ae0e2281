package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTrunkNames: a trunk needs no name, and what follows from its number follows it.
func TestTrunkNames(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		body := map[string]any{"phone_number": "+49 30 12345678", "sip_address": "pbx.example.com"}
		made := h.post(trunksAt, body, status(201)).json()["data"].(map[string]any)
		if made["name"] != "+493012345678" || made["nickname"] != nil || made["country_code"] != "DE" {
			t.Errorf("made %v", made)
		}
		at := fmt.Sprintf("%s/%d", trunksAt, id(made))
		for _, c := range []struct{ send, name, nickname, country string }{
			{`{"phone_number":"+12025550123"}`, "+12025550123", "<nil>", "US"},
			{`{"nickname":" Front desk "}`, "Front desk", "Front desk", "US"},
			{`{"nickname":"Desk"}`, "Desk", "Desk", "US"},
			{`{"name":"PBX","country_code":"gb"}`, "PBX", "Desk", "GB"},
			{`{"nickname":null,"phone_number":"+12025550124"}`, "PBX", "<nil>", "GB"},
			{`{"name":null,"country_code":""}`, "+12025550124", "<nil>", "US"},
			{`{"name":"","nickname":"x"}`, "x", "x", "US"},
		} {
			got := h.put(at, nil, raw(c.send), status(200)).json()["data"].(map[string]any)
			if got["name"] != c.name || fmt.Sprint(got["nickname"]) != c.nickname || got["country_code"] != c.country {
				t.Errorf("%s: %v, %v, %v", c.send, got["name"], got["nickname"], got["country_code"])
			}
			if again := h.get(at, status(200)).json()["data"]; fmt.Sprint(again) != fmt.Sprint(got) {
				t.Errorf("%s: GET answers %v", c.send, again)
			}
		}
		h.post(trunksAt, with(body, map[string]any{"nickname": strings.Repeat("x", 51), "country_code": "ZZ"}), status(422)).
			fails("nickname", "country_code")
	})
}

// TestTrunkFields: each setting of how a trunk is talked to is kept and shown as it was given, and a wrong one refused.
func TestTrunkFields(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.post(trunksAt, trunkBody(), status(201)).json()["data"].(map[string]any)
		at := fmt.Sprintf("%s/%d", trunksAt, id(made))
		for field, c := range map[string]struct{ good, bad []any }{
			"outbound_proxy":     {[]any{true, false, "proxy.example.com:5070", nil}, []any{"not a host", 3, []any{}}},
			"sip_calling_format": {[]any{"e164", "national", "+e164"}, []any{"E164", 1}},
			"prefix":             {[]any{"0", "9*#", ""}, []any{"a", strings.Repeat("1", 17)}},
			"from_user":          {[]any{"username", "4711-a", "number"}, []any{"a b", `"`}},
			"auth_username":      {[]any{"4711-a@example.com", ""}, []any{"a b", strings.Repeat("x", 256)}},
			"caller_name":        {[]any{"Ana & Söhne, 2", ""}, []any{`a"b`, `a\b`, "<a>", "a\nb", strings.Repeat("x", 65)}},
			"sign_calls":         {[]any{true, false}, []any{"yes"}},
			"early_media":        {[]any{"ignore", "play"}, []any{"on"}},
			"from_domain":        {[]any{"sip.example.com", "192.0.2.1", nil}, []any{"sip.example.com:5060", "a b"}},
			"contact_domain":     {[]any{"sbc.example.com", nil}, []any{"<x>"}},
			"user_phone":         {[]any{true, false}, []any{"yes"}},
			"identity_header":    {[]any{"ppi", "rpid", "none", "pai"}, []any{"PAI"}},
			"privacy":            {[]any{"id", "anonymous"}, []any{"none", true}},
			"called_number_from": {[]any{[]any{"p-called-party-id", "to"}, []any{"diversion", "request_uri"}, []any{}}, []any{[]any{"from"}, "to"}},
			"inbound_hosts":      {[]any{[]any{"sip.example.com"}, []any{}}, []any{[]any{"a b"}}},
			"rtp_source":         {[]any{"any", "signalled", nil}, []any{"all"}},
			"options":            {[]any{false, true}, []any{"no"}},
			"preset":             {[]any{"fritzbox", nil}, []any{"unheard of"}},
		} {
			for _, v := range c.good {
				got := h.put(at, map[string]any{field: v}, status(200)).json()["data"].(map[string]any)[field]
				if fmt.Sprint(got) != fmt.Sprint(v) || fmt.Sprintf("%T", got) == "string" != (fmt.Sprintf("%T", v) == "string") {
					t.Errorf("%s: %v became %v", field, v, got)
				}
			}
			for _, v := range c.bad {
				wrong := h.put(at, map[string]any{field: v}, status(422)).json()["errors"].(map[string]any)
				for name := range wrong {
					if len(wrong) != 1 || name != field && !strings.HasPrefix(name, field+".") {
						t.Errorf("%s: %v is refused by %v", field, v, wrong)
					}
				}
			}
		}
		h.put(at, map[string]any{"inbound_authorization_type": "ip", "allowed_inbound_ips": []any{}}, status(422)).fails("allowed_inbound_ips")
		h.put(at, map[string]any{"inbound_authorization_type": "ip", "inbound_hosts": []any{"sip.example.com"}}, status(200))
	})
}

// TestTrunkExtension: an extension is a short text that several telephone systems may have.
func TestTrunkExtension(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		body := map[string]any{"sip_trunk_type": "extension", "phone_number": "100", "sip_address": "pbx.example.com", "country_code": "DE"}
		made := h.post(trunksAt, body, status(201)).json()["data"].(map[string]any)
		if made["phone_number"] != "100" || made["name"] != "100" || made["sip_trunk_type"] != "extension" {
			t.Errorf("made %v", made)
		}
		if row := h.get("/user/phone-numbers/all", status(200)).rows()[0]; row["phone_number"] != "100" || row["type"] != "sip" ||
			row["country_code"] != "DE" {
			t.Errorf("its number: %v", row)
		}
		h.post(trunksAt, body, status(201))
		h.stranger().post(trunksAt, body, status(201))
		for _, wrong := range []string{"", "1234567890123456", "a b", "x@y"} {
			h.post(trunksAt, with(body, map[string]any{"phone_number": wrong}), status(422)).fails("phone_number")
		}
		h.post(trunksAt, with(body, map[string]any{"phone_number": "123456789012345"}), status(201))
		// One that is somebody's telephone number would get their calls.
		theirs := h.stranger()
		theirs.post(trunksAt, trunkBody(), status(201))
		h.post(trunksAt, with(body, map[string]any{"phone_number": "03012345678"}), status(422)).fails("phone_number")
		h.post(trunksAt, with(body, map[string]any{"sip_trunk_type": "number"}), status(422)).fails("phone_number")
	})
}

// TestTrunkRanges: a trunk's further numbers are owned numbers of their own.
func TestTrunkRanges(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		numbers := func() (list []string) {
			for _, row := range h.get("/user/phone-numbers/all", status(200)).rows() {
				list = append(list, row["phone_number"].(string))
			}
			slices.Sort(list)
			return list
		}
		body := map[string]any{"phone_number": "+4930901820", "sip_address": "pbx.example.com",
			"numbers": []string{"+4930901820-+4930901823", "+49 30 901830"}}
		made := h.post(trunksAt, body, status(201)).json()["data"].(map[string]any)
		if got := fmt.Sprint(made["numbers"]); got != "[+4930901820-+4930901823 +4930901830]" {
			t.Errorf("shown as %s", got)
		}
		want := []string{"+4930901820", "+4930901821", "+4930901822", "+4930901823", "+4930901830"}
		if got := numbers(); !slices.Equal(got, want) {
			t.Errorf("owned are %v", got)
		}
		other := h.stranger()
		for _, n := range []string{"+4930901822", "+4930901820"} {
			other.post(trunksAt, with(body, map[string]any{"phone_number": n, "numbers": []string{}}), status(409))
		}
		if got := other.post(trunksAt,
			with(body, map[string]any{"phone_number": "+493012345678", "numbers": []string{"+4930901821-+4930901825"}}),
			status(409)).json()["error"]; got != "The phone number +4930901821 is owned already." {
			t.Errorf("a range with a taken number: %v", got)
		}
		// Each can have an assistant of its own.
		var second int64
		for _, row := range h.get("/user/phone-numbers/all", status(200)).rows() {
			if row["phone_number"] == "+4930901822" {
				second = id(row)
			}
		}
		a := h.assistant(map[string]any{"phone_number_id": second})
		at := fmt.Sprintf("%s/%d", trunksAt, id(made))
		h.put(at, made, status(200))
		if got := numbers(); !slices.Equal(got, want) {
			t.Errorf("sent back: %v", got)
		}
		h.put(at, map[string]any{"numbers": []string{"+4930901822-+4930901824"}}, status(200))
		if got := h.get(fmt.Sprintf("/user/assistant/%d", a), status(200)).json()["phone_number_id"]; fmt.Sprint(got) != fmt.Sprint(second) {
			t.Errorf("the assistant has lost a number that stayed: %v", got)
		}
		// A number that is deleted goes from the trunk.
		h.delete(fmt.Sprintf("/user/phone-numbers/%d", second), status(200))
		if got := fmt.Sprint(h.get(at, status(200)).json()["data"].(map[string]any)["numbers"]); got != "[+4930901823-+4930901824]" {
			t.Errorf("the trunk has %s", got)
		}
		if got := numbers(); !slices.Equal(got, []string{"+4930901820", "+4930901823", "+4930901824"}) {
			t.Errorf("owned are %v", got)
		}
		h.put(at, map[string]any{"numbers": []string{"+4930901820-99", "+4930901900-3", "+49 30 901830-17"}}, status(200))
		if got := fmt.Sprint(h.get(at, status(200)).
			json()["data"].(map[string]any)["numbers"]); got != "[+4930901820-+4930901899 +4930901900-+4930901903 +493090183017]" {
			t.Errorf("in short: %s", got)
		}
		for _, wrong := range []string{"+4930901829-20", "+4930901820-10", "4930901820", "+4930901829-+4930901820", "+4930901820-+493090182012",
			"+4930100000-+4930109999", "x"} {
			h.put(at, map[string]any{"numbers": []string{wrong}}, status(422)).fails("numbers.0")
		}
		h.put(at, map[string]any{"numbers": []string{"+4930100000-+4930100899", "+4930200000-+4930200899"}}, status(422)).fails("numbers")
		h.delete(at, status(200))
		if got := numbers(); len(got) != 0 {
			t.Errorf("after the trunk: %v", got)
		}
	})
}

// TestTrunkPreset: a preset fills in what its documents want, and what the user says goes first, now and before.
func TestTrunkPreset(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		list := h.get(trunksAt+"/presets", status(200)).json()["data"].([]any)
		ids := map[string]bool{}
		for _, p := range list {
			ids[p.(map[string]any)["id"].(string)] = true
		}
		if len(list) != 26 || !ids["twilio"] || !ids["fritzbox"] {
			t.Errorf("%d presets: %v", len(list), ids)
		}
		body := map[string]any{"phone_number": "+4930901820", "sip_username": "1234567t0", "sip_password": "x", "preset": "sipgate",
			"from_user": "4711"}
		made := h.post(trunksAt, body, status(201)).json()["data"].(map[string]any)
		for field, want := range map[string]any{"sip_address": "sipconnect.sipgate.de", "register": true, "identity_header": "ppi",
			"privacy": "id", "sip_calling_format": "e164", "from_user": "4711", "preset": "sipgate", "country_code": "DE"} {
			if made[field] != want {
				t.Errorf("%s is %v, want %v", field, made[field], want)
			}
		}
		at := fmt.Sprintf("%s/%d", trunksAt, id(made))
		if again := h.put(at, made, status(200)).json()["data"].(map[string]any); again["from_user"] != "4711" || again["privacy"] != "id" {
			t.Errorf("sent back: %v", again)
		}
		h.put(at, map[string]any{"privacy": "anonymous", "sip_address": "sip.example.com"}, status(200))
		changed := h.put(at, map[string]any{"preset": "exotel"}, status(200)).json()["data"].(map[string]any)
		for field, want := range map[string]any{"sip_address": "sip.example.com", "register": false, "identity_header": "pai", "transport": "tcp",
			"sip_calling_format": "+e164", "from_user": "4711", "preset": "exotel"} {
			if changed[field] != want {
				t.Errorf("with another preset %s is %v, want %v", field, changed[field], want)
			}
		}
		if none := h.put(at, map[string]any{"preset": nil}, status(200)).json()["data"].(map[string]any); none["preset"] != nil ||
			none["transport"] != "tcp" {
			t.Errorf("without a preset: %v", none)
		}
		// What was enough without a preset is enough with one.
		for _, name := range []string{"telnyx", "teams", "fritzbox"} {
			made := h.post(trunksAt, map[string]any{"phone_number": "+493012345678", "sip_address": "10.0.0.1", "preset": name}, status(201)).
				json()["data"].(map[string]any)
			h.delete(fmt.Sprintf("%s/%d", trunksAt, id(made)), status(200))
		}
		h.post(trunksAt, map[string]any{"phone_number": "+493012345678", "preset": "fritzbox"}, status(422)).fails("sip_address")
	})
}
