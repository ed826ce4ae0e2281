package manifest_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// authority is a certificate, as trunks have one.
var authority = sync.OnceValue(func() string {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
})

// trunk makes a trunk of a number, or with an extension.
func (r *random) trunk(i int, number string) {
	b := object{"phone_number": number, "sip_address": pick(r, "192.0.2.7", "sip.example.com:5080", "[2001:db8::1]:5061")}
	if r.some(3) {
		b["phone_number"], b["sip_trunk_type"] = pick(r, "101", "102", "desk.1"), "extension"
	}
	if r.some(2) {
		b["sip_username"], b["sip_password"], b["register"] = pick(r, "alice", "u@example.com"), r.secret(), r.some(2)
	} else {
		b["inbound_authorization_type"], b["allowed_inbound_ips"] = "ip", []string{"192.0.2.7", "198.51.100.0/24"}
	}
	r.maybe(b, "name", func() any { return r.name() })
	r.maybe(b, "nickname", func() any { return r.words(40) })
	r.maybe(b, "numbers", func() any {
		first := r.prefix + strconv.Itoa(20+10*i)
		return pick(r, []string{first}, []string{first + "-" + r.prefix + strconv.Itoa(22+10*i), r.prefix + strconv.Itoa(25+10*i)})
	})
	r.maybe(b, "sip_headers", func() any { return object{"X-Token": r.secret(), "X-Tenant": "{{tenant}}", "X-Empty": ""} })
	r.maybe(b, "codecs", func() any { return few(r, []string{"G722", "PCMU", "PCMA", "opus"}, 4) })
	r.maybe(b, "outbound_proxy", func() any { return pick[any](r, true, false, "proxy.example.com:5070") })
	r.maybe(b, "called_number_from", func() any { return few(r, []string{"request_uri", "to", "p-called-party-id", "diversion"}, 4) })
	for field, values := range map[string][]any{"transport": {"tcp", "tls"}, "srtp": {"optional", "dtls"}, "country_code": {"DE", "US"},
		"sip_calling_format": {"e164", "national"}, "prefix": {"0", "*9#"}, "from_user": {"username", "sales"},
		"from_domain":    {"pbx.example.com"},
		"contact_domain": {"sbc.example.com"}, "user_phone": {true}, "identity_header": {"ppi", "rpid", "none"},
		"inbound_hosts": {[]string{"sip.example.com"}},
		"rtp_source":    {"signalled", "any"}, "auth_username": {"4711-a"}, "early_media": {"ignore"}, "caller_name": {"Ana Ltd"},
		"sign_calls": {true}, "options": {false}, "preset": {"twilio", "3cx"}, "hide_caller_id": {true}, "tls_ca": {authority()}} {
		if b["sip_trunk_type"] == "extension" && field == "sip_calling_format" {
			continue // it needs a country, which an extension does not tell
		}
		r.maybe(b, field, func() any { return pick(r, values...) })
	}
	r.do("POST", "/user/phone-numbers/sip-trunks", b)
}

// readNumbers reads which numbers have come with the trunks.
func (r *random) readNumbers() {
	var list struct{ Data []struct{ ID int64 } }
	if err := json.Unmarshal(r.get("/user/phone-numbers/all"), &list); err != nil {
		r.Fatal(err)
	}
	for _, n := range list.Data {
		r.numberIDs = append(r.numberIDs, n.ID)
	}
}

// draft changes some fields of an assistant in its draft, which need not go together.
func (r *random) draft(id int64) {
	b, _ := r.anAssistant()
	if len(r.numberIDs) > 0 {
		r.maybe(b, "phone_number_id", func() any { return pick[any](r, r.numberIDs[0], nil) })
	}
	delete(b, "folder_id")
	delete(b, "label_ids")
	if r.some(2) { // what must go together changes together, or not at all
		for name := range b {
			if name == "mode" || strings.Contains(name, "language") || strings.Contains(name, "voice_id") || strings.Contains(name, "model_id") ||
				strings.Contains(name, "provider_id") {
				delete(b, name)
			}
		}
	}
	names := []string{}
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !r.some(3) && !(name == "mode" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids")) {
			delete(b, name)
		}
	}
	b["tools"] = []object{{"type": "end_call"},
		{"type": "assistant_transfer", "assistant_id": pick(r, r.ids...), "message_before_transfer": r.words(100)}}
	if r.some(2) {
		delete(b, "tools")
	}
	if r.some(2) {
		b["initial_message"] = ""
	}
	r.do("PUT", fmt.Sprintf("/user/assistants/%d/draft", id), b)
}
