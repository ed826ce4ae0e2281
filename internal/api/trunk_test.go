package api_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

const trunksAt = "/user/phone-numbers/sip-trunks"

func trunkBody() map[string]any {
	return map[string]any{"name": "PBX", "phone_number": "+493012345678", "sip_address": "192.168.1.10:5070",
		"sip_username": "parley", "sip_password": " s3cret pass "}
}

// trunk makes a trunk with a number.
func (h *harness) trunk(number string) map[string]any {
	h.Helper()
	return h.post(trunksAt, with(trunkBody(), map[string]any{"phone_number": number}), status(201)).json()["data"].(map[string]any)
}

// Numbers of a trunk are read as they are dialled in its country, and any of them may become its main one.
func TestTrunkNumbersInNationalForm(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.post(trunksAt, with(trunkBody(), map[string]any{"phone_number": "030 901820", "country_code": "DE",
			"numbers": []any{"030 901821", "0049 30 901822", "004930901830-004930901839"}}), status(201)).json()["data"].(map[string]any)
		if got := fmt.Sprintln(made["phone_number"], made["numbers"]); got !=
			"+4930901820 [+4930901821 +4930901822 +4930901830-+4930901839]\n" {
			t.Errorf("numbers %s", got)
		}
		at := fmt.Sprintf("%s/%d", trunksAt, id(made))
		swapped := h.put(at, map[string]any{"phone_number": "+4930901821", "numbers": []any{"+4930901820"}}, status(200)).
			json()["data"].(map[string]any)
		if got := fmt.Sprintln(swapped["phone_number"], swapped["numbers"]); got != "+4930901821 [+4930901820]\n" {
			t.Errorf("swapped %s", got)
		}
		if rows := h.get("/user/phone-numbers/all", status(200)).rows(); len(rows) != 2 {
			t.Errorf("owned: %v", rows)
		}
		h.put(at, map[string]any{"country_code": "AT"}, status(200))
		for _, row := range h.get("/user/phone-numbers/all").rows() {
			if row["phone_number"] == "+4930901821" && row["country_code"] != "AT" {
				t.Errorf("its number: %v", row)
			}
		}
		var many []any
		for i := range 101 {
			many = append(many, fmt.Sprintf("+49309019%03d", i))
		}
		h.put(at, map[string]any{"numbers": many}, status(200))
	})
}

func TestTrunkLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.get(trunksAt, status(200)).is(`{"data":[]}`)
		made := h.post(trunksAt, trunkBody(), status(201)).json()
		trunk := made["data"].(map[string]any)
		want := []string{"allowed_inbound_ips", "auth_username", "called_number_from", "caller_name", "codecs", "contact_domain", "country_code",
			"created_at", "early_media", "from_domain",
			"from_user", "hide_caller_id", "id", "identity_header", "inbound_authorization_type", "inbound_hosts", "name", "nickname", "numbers",
			"options", "outbound_proxy", "phone_number", "phone_number_id", "prefix", "preset", "privacy", "register", "registered", "rtp_source",
			"secret_set", "sign_calls", "sip_address", "sip_calling_format", "sip_headers", "sip_trunk_type", "sip_username", "srtp", "tls_ca",
			"transport", "updated_at", "user_phone"}
		if made["message"] != "SIP trunk created successfully" || !slices.Equal(keys(trunk), want) {
			t.Errorf("made %v", made)
		}
		for k, v := range map[string]string{"transport": "udp", "srtp": "off", "register": "false",
			"registered": "false", "inbound_authorization_type": "auth",
			"allowed_inbound_ips": "[]", "outbound_proxy": "<nil>", "phone_number": "+493012345678",
			"sip_address": "192.168.1.10:5070", "sip_username": "parley", "nickname": "<nil>", "sip_trunk_type": "number", "numbers": "[]",
			"country_code": "DE", "sip_calling_format": "+e164", "prefix": "", "from_user": "number", "from_domain": "<nil>",
			"contact_domain": "<nil>", "user_phone": "false", "identity_header": "pai", "called_number_from": "[]", "inbound_hosts": "[]",
			"rtp_source": "<nil>", "options": "true", "preset": "<nil>", "privacy": "anonymous", "auth_username": "", "early_media": "play",
			"caller_name": "", "sign_calls": "false"} {
			if got := fmt.Sprint(trunk[k]); got != v {
				t.Errorf("%s is %s, want %s", k, got, v)
			}
		}
		at := fmt.Sprintf("%s/%d", trunksAt, id(trunk))
		if got := h.get(at, status(200)).json()["data"]; fmt.Sprint(got) != fmt.Sprint(trunk) {
			t.Errorf("GET answers %v", got)
		}
		// Its number is one of the user's own numbers, and can be given to inbound assistants too.
		row := h.get("/user/phone-numbers/all", status(200)).rows()[0]
		if row["type"] != "sip" || row["type_label"] != "SIP" || row["country_code"] != "DE" ||
			row["sms_capable"] != false || fmt.Sprint(row["id"]) != fmt.Sprint(trunk["phone_number_id"]) {
			t.Errorf("its number: %v", row)
		}
		h.get("/user/phone-numbers", status(200)).is(`[]`)
		a := h.assistant(map[string]any{"phone_number_id": id(row)})
		// On the whole server no other trunk can have the number.
		other := h.stranger()
		for _, who := range []*harness{h, other} {
			if got := who.post(trunksAt, trunkBody(),
				status(409)).json()["error"]; got != "The phone number +493012345678 is owned already." {
				t.Errorf("taken: %v", got)
			}
		}
		second := h.post(trunksAt, with(trunkBody(), map[string]any{"phone_number": "+493012345679"}),
			status(201)).json()["data"].(map[string]any)
		secondAt := fmt.Sprintf("%s/%d", trunksAt, id(second))
		h.put(secondAt, map[string]any{"phone_number": "+493012345678"}, status(409))
		rented := h.buy("US", true)
		h.put(secondAt, map[string]any{"phone_number": rented["phone_number"]}, status(409))
		if list := h.get(trunksAt, status(200)).rows(); len(list) != 2 || id(list[0]) != id(second) {
			t.Errorf("not newest first: %v", list)
		}
		// PUT changes the fields that are sent; sending back what GET returned changes nothing.
		whole := h.get(at).json()["data"]
		if got := h.put(at, whole, status(200)).json(); got["message"] != "SIP trunk updated successfully" {
			t.Errorf("message %v", got["message"])
		}
		changed := h.put(at, map[string]any{"transport": "tcp", "srtp": "optional", "register": true,
			"allowed_inbound_ips": []string{"10.0.0.0/8", "::1"}, "outbound_proxy": "proxy.lan",
			"phone_number": "+49 30 12345670"}, status(200)).json()["data"].(map[string]any)
		if changed["sip_username"] != "parley" || changed["phone_number"] != "+493012345670" ||
			fmt.Sprint(changed["phone_number_id"]) != fmt.Sprint(trunk["phone_number_id"]) {
			t.Errorf("changed to %v", changed)
		}
		h.post(trunksAt, with(trunkBody(), nil), status(201)) // the old number is free again
		// Registration needs the password, which stays until it is cleared.
		h.put(at, nil, raw(`{"sip_password":null}`), status(422)).says("sip_password",
			"The sip_password field is required when register is true.")
		h.put(at, nil, raw(`{"sip_password":"","sip_username":""}`), status(422)).fails("sip_password", "sip_username")
		h.put(at, nil, raw(`{"sip_password":null,"register":false}`), status(200))
		h.put(at, nil, raw(`{"register":true}`), status(422)).fails("sip_password")

		got := h.post(at+"/check", nil, status(200)).json()
		if got["registered"] != false || got["options_ms"] != nil ||
			!strings.Contains(got["error"].(string), "not running") || len(got) != 3 {
			t.Errorf("check: %v", got)
		}
		for _, path := range []string{at, trunksAt + "/99999", trunksAt + "/x"} {
			for _, method := range []string{"GET", "PUT", "DELETE"} {
				other.do(method, path, nil, status(404)).is(`{"error":"SIP trunk not found"}`)
			}
			other.post(path+"/check", nil, status(404)).is(`{"error":"SIP trunk not found"}`)
			other.post(path+"/test-call", map[string]any{"phone_number": "+12025550100"}, status(404)).is(`{"error":"SIP trunk not found"}`)
		}
		h.put(at, map[string]any{"codecs": []string{"PCMA", "OPUS"}}, status(422)).fails("codecs.1")
		h.put(at, map[string]any{"codecs": []string{"PCMA", "PCMA"}}, status(422)).fails("codecs.1")
		if got := h.put(at, map[string]any{"codecs": []string{"PCMA", "G722"}}, status(200)).
			json()["data"].(map[string]any)["codecs"]; fmt.Sprint(got) != "[PCMA G722]" {
			t.Errorf("codecs %v", got)
		}
		h.post(at+"/test-call", map[string]any{"phone_number": "+12025550100"}, status(403))
		h.delete(at, status(200)).is(`{"message":"SIP trunk deleted successfully"}`)
		h.get(at, status(404))
		if got := h.get(fmt.Sprintf("/user/assistant/%d", a)).json()["phone_number_id"]; got != nil {
			t.Errorf("the assistant keeps the number %v", got)
		}
		// Deleting the number deletes the trunk.
		h.delete(fmt.Sprintf("/user/phone-numbers/%v", second["phone_number_id"]), status(200))
		h.get(secondAt, status(404))
	})
}

// The password is stored encrypted and appears in no answer.
func TestTrunkPassword(t *testing.T) {
	o := storetest.Options(t, "sqlite", rules)
	db := storetest.Open(t, o)
	h := open(t, db, nil)
	made := h.post(trunksAt, trunkBody(), status(201))
	at := fmt.Sprintf("%s/%d", trunksAt, id(made.json()["data"].(map[string]any)))
	for _, a := range []*answer{made, h.get(at), h.get(trunksAt), h.put(at, map[string]any{"name": "x"}, status(200))} {
		if bytes.Contains(a.body, []byte("s3cret")) || bytes.Contains(a.body, []byte("password")) {
			t.Errorf("answered %s", a.body)
		}
	}
	trunk, err := db.Trunk(t.Context(), h.user.ID, id(made.json()["data"].(map[string]any)))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := db.TrunkPassword(trunk); err != nil || plain != " s3cret pass " { // spaces are part of it
		t.Errorf("the password is %q: %v", plain, err)
	}
	copyTo := t.TempDir() + "/copy.db"
	if err := db.Backup(t.Context(), copyTo); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(copyTo); err != nil || bytes.Contains(text, []byte("s3cret")) {
		t.Errorf("the password stands in the database: %v", err)
	}
}

var trunkKinds = map[string]string{"name": "string", "phone_number": "string", "sip_address": "string",
	"sip_username": "string", "sip_password": "string", "transport": "string",
	"srtp": "string", "tls_ca": "string", "register": "bool", "inbound_authorization_type": "string", "allowed_inbound_ips": "array",
	"nickname": "string", "prefix": "string", "user_phone": "bool", "numbers": "array"}

func TestTrunkRules(t *testing.T) {
	h := lite(t, nil)
	at := fmt.Sprintf("%s/%d", trunksAt, id(h.post(trunksAt,
		with(trunkBody(), map[string]any{"phone_number": "+493012345600"}),
		status(201)).json()["data"].(map[string]any)))
	for field, kind := range trunkKinds {
		for _, v := range wrong[kind] {
			body := encode(with(trunkBody(), map[string]any{field: nil}))
			body = body[:len(body)-1] + `,"` + field + `":` + v + `}`
			h.post(trunksAt, nil, raw(body), status(422)).says(field, "The "+field+" field "+mustBe[kind])
			h.put(at, nil, raw(`{"`+field+`":`+v+`}`), status(422)).says(field, "The "+field+" field "+mustBe[kind])
		}
	}
	h.post(trunksAt, nil, status(422)).fails("phone_number", "sip_address")
	bad := map[string][]any{
		"name":         {strings.Repeat("x", 256)},
		"phone_number": {"", "12345", "030 1234567", "+4930", "hello"},
		"sip_address": {"", "a b", "http://x", "host:0", "host:65536", "host:x", "host:", ":5060",
			"-x", "1.2.3", "1.2.3.4.5", "256.1.1.1", "[::1", "[1.2.3.4]:5060", "0.0.0.0", "fe80::1%eth0", "x/y",
			"sip:x@y", strings.Repeat("a", 64) + ".de"},
		"sip_username":               {"a b", "a\"b", "<x>", strings.Repeat("x", 256)},
		"sip_password":               {strings.Repeat("x", 256), "a\x00b"},
		"transport":                  {"", "sctp", "UDP"},
		"tls_ca":                     {"no certificate", strings.Repeat("x", 70000)},
		"srtp":                       {"", "on"},
		"inbound_authorization_type": {"", "none"},
		"outbound_proxy":             {"a b", "host:99999"},
	}
	for field, values := range bad {
		for _, v := range values {
			if a := h.post(trunksAt, with(trunkBody(), map[string]any{field: v})); a.status != 422 {
				t.Errorf("%s %q answered %d", field, v, a.status)
			} else {
				a.fails(field)
			}
		}
	}
	h.post(trunksAt, with(trunkBody(), map[string]any{"allowed_inbound_ips": []any{"10.0.0.1", "x", 5,
		"10.0.0.0/33", "fe80::1%1"}}), status(422)).fails("allowed_inbound_ips.2")
	h.post(trunksAt, with(trunkBody(), map[string]any{"allowed_inbound_ips": []any{"10.0.0.1", "x", "10.0.0.0/33",
		"fe80::1%1"}}), status(422)).fails("allowed_inbound_ips.1", "allowed_inbound_ips.2", "allowed_inbound_ips.3")
	h.post(trunksAt, with(trunkBody(), map[string]any{"inbound_authorization_type": "ip"}),
		status(422)).says("allowed_inbound_ips", "The allowed_inbound_ips field is required when inbound_authorization_type is ip.")
	h.post(trunksAt, with(trunkBody(), map[string]any{"register": true, "sip_username": nil, "sip_password": nil}),
		status(422)).fails("sip_username", "sip_password")
	good := []map[string]any{
		{"sip_address": "pbx.lan"}, {"sip_address": "10.0.0.1"}, {"sip_address": "[2001:db8::1]:5061"},
		{"sip_address": "2001:db8::1"}, {"sip_address": "localhost:5080"},
		{"sip_address": "sip.example.com.", "transport": "tcp"},
		{"sip_username": nil, "sip_password": nil, "inbound_authorization_type": "ip",
			"allowed_inbound_ips": []string{"127.0.0.1"}},
		{"outbound_proxy": ""}, {"sip_username": "alice@example.com"}, {"name": strings.Repeat("😀", 255)},
		{"register": true, "srtp": "optional"},
	}
	for i, change := range good {
		change["phone_number"] = fmt.Sprintf("+4930123457%02d", i)
		h.post(trunksAt, with(trunkBody(), change), status(201))
	}
	if n := len(h.get(trunksAt).rows()); n != len(good)+1 {
		t.Errorf("%d trunks", n)
	}
	if !parley.ValidHostPort("::1") {
		t.Error("an IPv6 address is no host")
	}
}

// The calls that were refused over a trunk are its owner's to read, with those of no other trunk.
func TestTrunkRefusals(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.post(trunksAt, trunkBody(), status(201)).json()["data"].(map[string]any)
		at := fmt.Sprintf("%s/%d/refusals", trunksAt, id(made))
		h.get(at, status(200)).is(`{"data":[]}`)
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.KeepRefusals(ctx, []parley.TrunkRefusal{{TrunkID: id(made), At: 1_000, Status: 488, Reason: "No codec.", Known: true,
				Place: "192.0.2.1", Caller: "+12025550177", Transport: "udp", Peer: "192.0.2.1:5060", Text: "INVITE sip:x SIP/2.0"}})
		})
		row := h.get(at, status(200)).rows()[0]
		if want := []string{"at", "from_trunk", "id", "peer", "reason", "status", "text", "transport"}; !slices.Equal(keys(row), want) {
			t.Errorf("it has %v", keys(row))
		}
		if fmt.Sprintln(row["status"], row["reason"], row["peer"], row["from_trunk"],
			row["text"]) != "488 No codec. 192.0.2.1:5060 true INVITE sip:x SIP/2.0\n" {
			t.Errorf("it is %v", row)
		}
		h.stranger().get(at, status(404)).is(`{"error":"SIP trunk not found"}`)
		h.delete(fmt.Sprintf("/user/customers/%s", "+12025550177"), status(200))
		h.get(at, status(200)).is(`{"data":[]}`)
	})
}
