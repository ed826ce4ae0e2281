package preset

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/form"
	"parley/internal/parley"
)

// TestFile: each preset has an id that trunks may name, settings that a trunk takes, and a source for what it says.
func TestFile(t *testing.T) {
	field, _ := reflect.TypeFor[parley.TrunkManners]().FieldByName("Preset")
	names := strings.Split(field.Tag.Get("enum"), ",")
	var ids []string
	kinds := ""
	mark := regexp.MustCompile(`\[([0-9]+)\]`)
	for _, p := range All() {
		ids = append(ids, p.ID)
		kinds += p.Kind[:1]
		var in parley.TrunkInput
		form.Defaults(&in)
		sent := tree(p.Settings)
		if wrong := form.Bind(sent, &in, false); len(wrong) > 0 {
			t.Errorf("%s: settings: %v", p.ID, wrong.Err())
		}
		if got := tree(in.Trunk); func() bool {
			for name, v := range sent {
				if !reflect.DeepEqual(got[name], v) {
					return true
				}
			}
			return false
		}() {
			t.Errorf("%s: a trunk makes something else of %v", p.ID, sent)
		}
		for _, name := range p.Needs {
			if _, is := usual[name]; !is {
				t.Errorf("%s needs %s, which is no field of a trunk", p.ID, name)
			}
		}
		if p.Settings.SIPAddress == nil && !slices.Contains(p.Needs, "sip_address") || len(p.NotLooked) == 0 {
			t.Errorf("%s: an address, or that it is needed, and what was not looked up must be there", p.ID)
		}
		used := map[int]bool{}
		texts := slices.Concat(p.There, p.Here, p.Ports)
		for _, r := range p.Refusals {
			texts = append(texts, r.Means)
		}
		for _, text := range texts {
			for _, m := range mark.FindAllStringSubmatch(text, -1) {
				n, _ := strconv.Atoi(m[1])
				used[n] = true
			}
		}
		for i, s := range p.Sources {
			if _, err := time.Parse(time.DateOnly, s.Read); err != nil || !strings.HasPrefix(s.URL, "https://") || s.Title == "" || !used[i+1] {
				t.Errorf("%s: source %d is not whole, or nothing is from it", p.ID, i+1)
			}
			delete(used, i+1)
		}
		if len(used) > 0 || len(p.Sources) == 0 && len(texts) > 0 {
			t.Errorf("%s: sources that there are not: %v", p.ID, used)
		}
	}
	if !strings.HasPrefix(strings.TrimLeft(kinds, "c"), "s") || strings.Contains(strings.TrimLeft(kinds, "c"), "c") {
		t.Errorf("carriers come first, then systems: %s", kinds)
	}
	slices.Sort(ids)
	slices.Sort(names)
	if !slices.Equal(ids, names) {
		t.Errorf("the file has %v, and trunks may name %v", ids, names)
	}
}

// TestFill: what a user says, now or before, goes before what the preset has.
func TestFill(t *testing.T) {
	fresh := func() *parley.Trunk {
		var in parley.TrunkInput
		form.Defaults(&in)
		return &in.Trunk
	}
	after := func(id string, change func(*parley.Trunk)) *parley.Trunk {
		in := parley.TrunkInput{Trunk: *fresh()}
		sent := Fill(map[string]any{"preset": id, "sip_username": "u", "sip_password": "p"}, &in.Trunk)
		if wrong := form.Bind(sent, &in, false); len(wrong) > 0 {
			t.Fatal(wrong.Err())
		}
		change(&in.Trunk)
		return &in.Trunk
	}
	as := func(*parley.Trunk) {}
	login := map[string]any{"sip_username": "u", "sip_password": "p"}
	for name, c := range map[string]struct {
		sent  map[string]any
		trunk *parley.Trunk
		want  string // what is added
	}{
		"nothing":           {map[string]any{}, fresh(), "map[]"},
		"no preset":         {map[string]any{"preset": nil}, fresh(), "map[]"},
		"an unknown one":    {map[string]any{"preset": "unheard of"}, fresh(), "map[]"},
		"one without facts": {map[string]any{"preset": "fritzbox"}, fresh(), "map[]"},
		"all of it": {with(login, "preset", "sipgate"), fresh(),
			"map[country_code:DE from_user:username identity_header:ppi privacy:id register:true sip_address:sipconnect.sipgate.de " +
				"sip_calling_format:e164]"},
		"no registration without a password": {map[string]any{"preset": "telnyx"}, fresh(), "map[sip_address:sip.telnyx.com]"},
		"nor with an empty one": {map[string]any{"preset": "telnyx", "sip_username": "u", "sip_password": ""}, fresh(),
			"map[sip_address:sip.telnyx.com]"},
		"what is sent wins": {with(login, "preset", "telnyx", "sip_address", "sip.telnyx.eu", "register", false), fresh(), "map[]"},
		"what is cleared wins": {map[string]any{"preset": "sipgate", "from_user": nil, "sip_address": "x", "country_code": "DE", "privacy": "id",
			"identity_header": "pai"}, fresh(), "map[sip_calling_format:e164]"},
		"no addresses to call from": {map[string]any{"preset": "twilio", "sip_address": "x.pstn.twilio.com"}, fresh(), "map[]"},
		"addresses to call from": {map[string]any{"preset": "twilio", "allowed_inbound_ips": []any{"192.0.2.1"}}, fresh(),
			"map[inbound_authorization_type:ip]"},
		"the same again": {map[string]any{"preset": "sipgate"}, after("sipgate", func(t *parley.Trunk) { t.FromUser = "number" }), "map[]"},
		"what was said before wins": {map[string]any{"preset": "teams"},
			after("twilio", func(t *parley.Trunk) { t.SIPAddress, t.Transport = "sbc.example.com", "tcp" }),
			"map[codecs:[G722 PCMU PCMA] srtp:required]"},
		"another one": {map[string]any{"preset": "teams"}, after("sipgate", as),
			"map[codecs:[G722 PCMU PCMA] country_code: from_user:number identity_header:pai privacy:anonymous register:false " +
				"sip_calling_format:+e164 srtp:required transport:tls]"},
		"the address of another one": {map[string]any{"preset": "telnyx"}, after("ovh", func(t *parley.Trunk) { t.Sealed = []byte("x") }),
			"map[called_number_from:[] codecs:[] country_code: sip_address:sip.telnyx.com]"},
	} {
		before := fmt.Sprint(c.sent)
		got := Fill(c.sent, c.trunk)
		if fmt.Sprint(c.sent) != before {
			t.Errorf("%s: what was sent was changed", name)
		}
		added := maps.Clone(got)
		maps.DeleteFunc(added, func(k string, _ any) bool { _, said := c.sent[k]; return said })
		if fmt.Sprint(added) != c.want {
			t.Errorf("%s: added %v, want %s", name, added, c.want)
		}
	}
	if got := Offer(map[string]any{"preset": "telnyx"}, fresh()); got["register"] != true {
		t.Errorf("a form is offered %v", got)
	}
}

func with(m map[string]any, more ...any) map[string]any {
	m = maps.Clone(m)
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

func TestHints(t *testing.T) {
	named := func(id string, change func(*parley.Trunk)) *parley.Trunk {
		var in parley.TrunkInput
		form.Defaults(&in)
		in.Preset, in.SIPAddress = &id, "sip.example.com"
		change(&in.Trunk)
		return &in.Trunk
	}
	for name, c := range map[string]struct {
		trunk *parley.Trunk
		want  []string
	}{
		"none":     {&parley.Trunk{}, nil},
		"as it is": {named("exotel", func(t *parley.Trunk) { t.Transport = "tcp" }), nil},
		"otherwise": {named("exotel", func(t *parley.Trunk) { t.Transport, t.Register = "udp", true }), []string{
			"register is on, and Exotel SIP Trunking is known to want off.", "transport is udp, and Exotel SIP Trunking is known to want tcp."}},
		"what is needed": {named("teams", func(t *parley.Trunk) { t.Transport, t.SRTP = "tls", "required" }), []string{
			"contact_domain is empty, and Microsoft Teams, Direct Routing needs it."}},
	} {
		if got := Hints(c.trunk); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestMeans(t *testing.T) {
	named := func(id string) *parley.Trunk { return &parley.Trunk{TrunkManners: parley.TrunkManners{Preset: &id}} }
	for _, c := range []struct {
		trunk  *parley.Trunk
		status int
		want   string
	}{
		{&parley.Trunk{}, 403, "identity_header"}, {&parley.Trunk{}, 484, "sip_calling_format"}, {&parley.Trunk{}, 486, ""},
		{&parley.Trunk{}, 0, ""},
		{named("telekom"), 488, "1TR119"}, {named("telekom"), 404, "sip_calling_format"}, {named("cisco"), 401, "Digest"},
		{named("twilio"), 407, "sip_password"}} {
		got := Means(c.trunk, c.status)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.ContainsAny(got, "[]") {
			t.Errorf("%d: %q", c.status, got)
		}
	}
}
