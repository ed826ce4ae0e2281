package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/internal/call"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestTelephoneSettings(t *testing.T) {
	good := Settings{SIPListen: "0.0.0.0:5060", RTPPorts: "10000-19999", Softphone: "on", TrunkNetworks: "24,48"}
	c, err := good.sipConfig()
	if err != nil || c.Ports != [2]int{10000, 19999} || !c.Softphone {
		t.Errorf("%+v: %v", c, err)
	}
	for says, change := range map[string]func(s *Settings){
		"PARLEY_SIP_TLS_LISTEN":       func(s *Settings) { s.SIPTLSListen = "5061" },
		"PARLEY_SIP_TLS_LISTEN needs": func(s *Settings) { s.SIPTLSListen = "127.0.0.1:0" },
		"PARLEY_SIP_TLS_CERT":         func(s *Settings) { s.SIPTLSCert, s.SIPTLSKey = "/nowhere", "/nowhere" },
		"PARLEY_SIP_SESSION":          func(s *Settings) { s.SIPSession = 60 },
		"PARLEY_SIP_LISTEN":           func(s *Settings) { s.SIPListen = "5060" },
		"PARLEY_RTP_PORTS":            func(s *Settings) { s.RTPPorts = "20000-10000" },
		`"10000" is not a range`:      func(s *Settings) { s.RTPPorts = "10000" },
		`"1-70000" is not a range`:    func(s *Settings) { s.RTPPorts = "1-70000" },
		"PARLEY_CARRIER_SIP_ADDRESS":  func(s *Settings) { s.CarrierSIPAddress = "sip:carrier" },
		"PARLEY_CARRIER_SIP_ALLOWED_IPS": func(s *Settings) {
			s.CarrierSIPAddress, s.CarrierSIPAllowedIPs = "carrier.example.com", []string{"carrier"}
		},
		"PARLEY_TRUNK_NETWORKS": func(s *Settings) { s.TrunkNetworks = "24" },
		"not a pair of prefix":  func(s *Settings) { s.TrunkNetworks = "33,48" },
		"nobody else can reach": func(s *Settings) { s.ExternalIP = netip.MustParseAddr("127.0.0.1") },
	} {
		s := good
		s.SIPListen = "127.0.0.1:0"
		change(&s)
		var text string
		for _, f := range checkTelephone(&s) {
			if f.state == "FAIL" {
				text += f.text
			}
		}
		if !strings.Contains(text, says) {
			t.Errorf("%q: the doctor says %q", says, text)
		}
	}
	off := Settings{SIPListen: "off", RTPPorts: "nonsense"}
	if found := checkTelephone(&off); len(found) != 1 || found[0].state != "note" {
		t.Errorf("off: %+v", found)
	}
}

func TestTrunkOfLine(t *testing.T) {
	p := &telephone{db: storetest.SQLite(t), rules: parley.TrunkRules{IPv4: 16, IPv6: 48}}
	proxy := parley.ProxyAddress("proxy.example.com:5070")
	row := &parley.Trunk{ID: 7, PhoneNumber: "+493012345678", SIPAddress: "10.0.0.5", SIPUsername: "u",
		Transport: "tls", TLSCA: "pem", SRTP: "optional", Register: true,
		InboundAuthorizationType: "ip", AllowedInboundIPs: []string{"10.0.0.5", "10.1.0.0/16", "::1", "0.0.0.0/0",
			"2000::/3"}, OutboundProxy: &proxy}
	p.db.SealPassword(row, "secret")
	got, err := p.trunk(row)
	if err != nil || got.ID != 7 || got.Number != "+493012345678" || got.Password != "secret" ||
		got.Proxy != string(proxy) || !got.ByIP || !got.Register || got.Transport != "tls" || got.CA != "pem" || got.SRTP != "optional" ||
		len(got.Allowed) != 3 || !got.Allowed[0].Contains(netip.MustParseAddr("10.0.0.5")) ||
		got.Allowed[0].Contains(netip.MustParseAddr("10.0.0.6")) {
		t.Errorf("%+v: %v", got, err)
	}
	domain, source := "sbc.example.com", "any"
	row.TrunkManners = parley.TrunkManners{SIPCallingFormat: "national", Prefix: "0", FromUser: "username", FromDomain: &domain,
		ContactDomain: &domain,
		UserPhone:     true, IdentityHeader: "ppi", Privacy: "id", AuthUsername: "a-7", EarlyMedia: "ignore", CallerName: "Ana", SignCalls: true,
		CalledNumberFrom: []string{"to"}, RTPSource: &source}
	if got, err := p.trunk(row); err != nil ||
		!reflect.DeepEqual(got.Manners, sip.Manners{Format: "national", Prefix: "0", FromUser: "username",
			FromDomain: domain, ContactDomain: domain, UserPhone: true, Identity: "ppi", Privacy: "id", AuthName: "a-7", NoEarly: true, Name: "Ana",
			Sign: true, CalledFrom: []string{"to"}, Silent: true, RTPSource: "any"}) {
		t.Errorf("%+v: %v", got.Manners, err)
	}
	row.Rented = true
	if _, err := p.trunk(row); err != errRented { //nolint:errorlint // it is our own
		t.Errorf("a trunk whose number somebody rents: %v", err)
	}
	row.Rented = false
}

// TestPresetHints: a check of a trunk, and the doctor, say what of it is otherwise than its carrier wants.
func TestPresetHints(t *testing.T) {
	db := storetest.SQLite(t)
	u := storetest.User(t, db, parley.USD)
	var in parley.TrunkInput
	form.Defaults(&in)
	name := "teams"
	in.PhoneNumber, in.SIPAddress, in.Preset, in.Transport = "+4930901820", "sbc.example.com", &name, "tls"
	if err := db.Write(t.Context(),
		func(ctx context.Context, tx *store.Tx) error { return tx.CreateTrunk(ctx, u.ID, &in.Trunk) }); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range checkPresets(t.Context(), &Settings{SIPTLSListen: "off"}, db) {
		fmt.Fprintln(&text, f.state, f.what, f.text)
	}
	for _, want := range []string{"note trunk 1 srtp is off, and Microsoft Teams", "contact_domain is empty", "set PARLEY_SIP_TLS_LISTEN",
		"docs/carriers/teams.md"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the doctor says\n%s\nwant %q", text.String(), want)
		}
	}
	if got := checkPresets(t.Context(), &Settings{SIPTLSListen: "0.0.0.0:5061"}, db); len(got) != 2 {
		t.Errorf("with TLS: %+v", got)
	}
	line := sip.New(sip.Config{Listen: "off"})
	p := &telephone{db: db, line: line}
	if h, _ := p.Check(t.Context(), &in.Trunk); len(h.Findings) != 2 || h.Findings[0].Topic != "preset" ||
		h.Findings[0].State != parley.FindingNote {
		t.Errorf("a check finds %+v", h.Findings)
	}
}

// TestRefusedCallIsKept: a call over a trunk that this program's line refuses is there for the trunk's owner to read.
func TestRefusedCallIsKept(t *testing.T) {
	db := storetest.SQLite(t)
	u := storetest.User(t, db, parley.USD)
	trunk := &parley.Trunk{Name: "PBX", PhoneNumber: "+4930901820", SIPAddress: "127.0.0.1:5999", Transport: "udp", SRTP: "off",
		InboundAuthorizationType: "ip", AllowedInboundIPs: []string{"127.0.0.1"}}
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.CreateTrunk(ctx, u.ID, trunk) }); err != nil {
		t.Fatal(err)
	}
	s := Settings{SecretKey: "sixteen-characters", SIPListen: "127.0.0.1:0", RTPPorts: "40000-40099", Softphone: "off", TrunkNetworks: "24,48",
		TrunkPrivate: "on"}
	p, err := s.telephone(db, nil, true, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- p.Run(ctx, func(context.Context, call.Arrival) {}) }()
	defer func() { stop(); <-over }()
	far, err := net.Dial("udp", p.line.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	var list []parley.TrunkRefusal
	for end := time.Now().Add(time.Minute); len(list) == 0 && time.Now().Before(end); {
		fmt.Fprintf(far, "INVITE sip:+4930555@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP %s;rport;branch=z9hG4bKa\r\n"+
			"From: <sip:+12025550177@127.0.0.1>;tag=a\r\n"+
			"To: <sip:+4930555@127.0.0.1>\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n", far.LocalAddr())
		_ = far.SetReadDeadline(time.Now().Add(time.Second)) // it may not know its trunks yet
		_, _ = far.Read(make([]byte, 2048))
		if list, err = db.TrunkRefusals(t.Context(), u.ID, trunk.ID); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 1 || list[0].Status != 404 || !list[0].Known || list[0].Caller != "+12025550177" ||
		!strings.Contains(list[0].Reason, "+4930555") || !strings.Contains(list[0].Text, "Call-ID: a") {
		t.Errorf("kept %+v", list)
	}
}
