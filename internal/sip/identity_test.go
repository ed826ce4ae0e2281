package sip

import (
	"reflect"
	"strings"
	"testing"

	"parley/internal/parley"
)

// TestIdentity: who calls, from where and by way of whom, as different trunks express it.
func TestIdentity(t *testing.T) {
	t.Parallel()
	trunk := &Trunk{ID: 1, Number: "+4930901820"}
	for name, c := range map[string]struct {
		stranger bool // from a softphone
		from     string
		headers  []string
		who      string
		want     parley.CallSignalling
	}{
		"from":     {from: `"Ana \"A\" Li" <sip:+493012345678@h>`, who: "+493012345678", want: parley.CallSignalling{CallerName: `Ana "A" Li`}},
		"in short": {from: "<sip:030901821@h>", who: "+4930901821"},
		"asserted": {from: `"PBX" <sip:100@h>`, headers: []string{`P-Asserted-Identity: "Li, Ana" <sip:+493012345678@h>, <tel:+493012345678>`},
			who: "+493012345678", want: parley.CallSignalling{CallerName: "Li, Ana"}},
		"tel": {from: `Ana <sip:100@h>`, headers: []string{"P-Asserted-Identity: <tel:+493012345678>"}, who: "+493012345678",
			want: parley.CallSignalling{CallerName: "Ana"}},
		"softphone": {stranger: true, from: "<sip:me@h>",
			headers: []string{"P-Asserted-Identity: <sip:+493012345678@h>", "Diversion: <sip:+493099999999@h>"}, who: "me"},
		"RPID": {from: "<sip:100@h>", headers: []string{`Remote-Party-ID: "Ana" <sip:+493012345678@h>;party=calling;privacy=off;screen=yes`},
			who: "+493012345678", want: parley.CallSignalling{CallerName: "Ana"}},
		"called": {from: "<sip:100@h>", headers: []string{"Remote-Party-ID: <sip:+493012345678@h>;party=called"}, who: "100"},
		"full": {from: "<sip:100@h>", headers: []string{"Remote-Party-ID: <sip:+493012345678@h>;party=calling;privacy=full"},
			want: parley.CallSignalling{Withheld: true}},
		"anonymous": {from: `"Anonymous" <sip:anonymous@anonymous.invalid>`, want: parley.CallSignalling{Withheld: true}},
		"and asserted": {from: "<sip:anonymous@h>", headers: []string{"P-Asserted-Identity: <sip:+493012345678@h>"},
			want: parley.CallSignalling{Withheld: true}},
		"private":     {from: "<sip:+493012345678@h>", headers: []string{"Privacy: header; ID"}, want: parley.CallSignalling{Withheld: true}},
		"not private": {from: "<sip:+493012345678@h>", headers: []string{"Privacy: none"}, who: "+493012345678"},
		"unknown":     {from: "<sip:unavailable@h>"},
		"diverted": {from: "<sip:200@h>", who: "200",
			headers: []string{`Diversion: "Desk, 2" <sip:+493011111111@h>;reason=no-answer;counter=1, <sip:030901822@h>;reason="user-busy"`,
				"Diversion: <sip:+493033333333@h>;privacy=full;reason=unconditional"},
			want: parley.CallSignalling{
				Diversions: []parley.Diversion{{PhoneNumber: "+493011111111", Reason: "no-answer"}, {PhoneNumber: "+4930901822", Reason: "user-busy"},
					{Reason: "unconditional"}}}},
		"history": {from: "<sip:200@h>", who: "200",
			headers: []string{`History-Info: <sip:+493011111111@h?Reason=SIP%3Bcause%3D486%3Btext%3D%22Busy%22>;index=1`,
				"History-Info: <sip:+493022222222@h>;index=1.1, <sip:+4930901820@h;cause=408>;index=1.1.1"},
			want: parley.CallSignalling{
				Diversions: []parley.Diversion{{PhoneNumber: "+493022222222", Reason: "no-answer"},
					{PhoneNumber: "+493011111111", Reason: "user-busy"}}}},
		"not sent on": {from: "<sip:200@h>", who: "200", headers: []string{"History-Info: <sip:+4930901820@h>;index=1"}},
		"unreadable": {from: "<sip:200@h>", who: "200",
			headers: []string{"Diversion: <<>", `P-Asserted-Identity: "`, "History-Info: ,,,", "Remote-Party-ID: x"}},
		"headers": {from: "<sip:200@h>", who: "200",
			headers: []string{"X-Order-Id:  4711 ", "x-note: a\tb", "X-Bad(): 1", "Y-Other: 2", "X-Long: " + strings.Repeat("x", 1025)},
			want:    parley.CallSignalling{Headers: map[string]string{"X-Order-Id": "4711", "x-note": "a b"}}},
	} {
		text := "INVITE sip:+4930901820@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKa\r\nFrom: " + c.from +
			";tag=a\r\nTo: <sip:+4930901820@127.0.0.1>\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n" + strings.Join(append(c.headers, "", ""), "\r\n")
		req := requestOf(t, text)
		in := &Invite{req: req, Trunk: trunk}
		if c.stranger {
			in.Trunk = nil
		}
		in.identify()
		if c.want.Headers == nil {
			c.want.Headers = map[string]string{}
		}
		if in.From != c.who || !reflect.DeepEqual(in.Signalling, c.want) {
			t.Errorf("%s: %q, %+v; want %q, %+v", name, in.From, in.Signalling, c.who, c.want)
		}
	}
}

// TestExtensionsBounded: the number of headers that a call brings is limited.
func TestExtensionsBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 100 {
		b.WriteString("X-" + string(rune('a'+i%26)) + token(4) + ": x\r\nDiversion: <sip:+4930901" + token(3) + "@h>\r\n")
	}
	req := requestOf(t, "INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKa\r\nFrom: <sip:a@b>;tag=a\r\nTo: <sip:a@b>\r\n"+
		"Call-ID: a\r\nCSeq: 1 INVITE\r\n"+b.String()+"\r\n")
	in := &Invite{req: req, Trunk: &Trunk{}}
	in.identify()
	if n, m := len(in.Signalling.Headers), len(in.Signalling.Diversions); n != parley.MaxSIPHeaders || m != maxDiversions {
		t.Errorf("%d headers, %d diversions", n, m)
	}
}

// TestLongInvite: an INVITE that would not fit into a packet uses short header names.
func TestLongInvite(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	for _, long := range []bool{false, true} {
		d := Dialling{Trunk: f.trunk(), To: "+15550001111", From: "+15550002222", Headers: map[string]string{}}
		if long {
			d.Headers["X-Long"] = strings.Repeat("x", 700)
		}
		out := make(chan error, 1)
		go func() { _, err := s.Dial(soon(t), d); out <- err }()
		m := f.take("INVITE")
		if req := requestOf(t, m); req.CallID() == nil || req.From() == nil || req.Via() == nil ||
			(field(m, "i") != "") != long || (field(m, "Call-ID") == "") != long {
			t.Errorf("long %v:\n%s", long, m)
		}
		f.reply(spelled(m), "486 Busy Here", "")
		if err := get(t, out); codeOf(err) != "486" {
			t.Error(err)
		}
		f.take("ACK")
	}
}

// TestDressed: a call with a hidden caller says so, identifies itself to the trunk, and has the headers that it should
// have.
func TestDressed(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	out := make(chan error, 1)
	go func() {
		_, err := s.Dial(soon(t), Dialling{Trunk: f.trunk(), To: "+15550001111", From: "+15550002222", Withheld: true,
			Headers: map[string]string{"X-Order-Id": "4711", "X-Evil": "a\r\nVia: b", "Via": "SIP/2.0/UDP x"}})
		out <- err
	}()
	m := f.take("INVITE")
	head, _, _ := strings.Cut(m, "\r\n\r\n")
	for name, want := range map[string]string{"P-Asserted-Identity": "<sip:+15550002222@127.0.0.1>", "Privacy": "id", "X-Order-Id": "4711",
		"X-Evil": "a  Via: b"} {
		if got := field(m, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if from := field(m, "From"); !strings.HasPrefix(from, "<sip:anonymous@anonymous.invalid>;tag=") || strings.Count(head, "\r\nVia:") != 1 ||
		strings.Contains(field(m, "Contact"), "15550002222") {
		t.Errorf("the INVITE says\n%s", head)
	}
	f.reply(m, "603 Decline", "")
	if err := get(t, out); codeOf(err) != "603" {
		t.Error(err)
	}
}
