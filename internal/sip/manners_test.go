package sip

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestManners: what an INVITE says in each way of being talked to.
func TestManners(t *testing.T) {
	t.Parallel()
	const plain = "<sip:+4930901820@127.0.0.1>"
	for name, c := range map[string]struct {
		manners  Manners
		country  string
		from, to string // numbers; "": usual ones
		withheld bool
		uri      string // the user part of the Request-URI, with parameters
		caller   string // From, without its tag
		contact  string // the user and the host of Contact
		pai      string
		ppi      string
		rpid     string
	}{
		"usual": {uri: "+493012345678", caller: plain, pai: plain, contact: "+4930901820@127.0.0.1"},
		"no plus": {manners: Manners{Format: "e164"}, uri: "493012345678", caller: "<sip:4930901820@127.0.0.1>",
			pai: "<sip:4930901820@127.0.0.1>", contact: "4930901820@127.0.0.1"},
		"national": {manners: Manners{Format: "national"}, uri: "03012345678", caller: "<sip:030901820@127.0.0.1>",
			pai: "<sip:030901820@127.0.0.1>", contact: "030901820@127.0.0.1"},
		"abroad": {manners: Manners{Format: "national"}, to: "+12025550123", uri: "0012025550123", caller: "<sip:030901820@127.0.0.1>",
			pai: "<sip:030901820@127.0.0.1>", contact: "030901820@127.0.0.1"},
		"of another country": {manners: Manners{Format: "national"}, country: "US", uri: "011493012345678",
			caller: "<sip:0114930901820@127.0.0.1>", pai: "<sip:0114930901820@127.0.0.1>", contact: "0114930901820@127.0.0.1"},
		"prefix": {manners: Manners{Format: "national", Prefix: "0"}, uri: "003012345678", caller: "<sip:030901820@127.0.0.1>",
			pai: "<sip:030901820@127.0.0.1>", contact: "030901820@127.0.0.1"},
		"extension": {manners: Manners{Format: "national", Prefix: "0"}, to: "200", from: "100", uri: "200", caller: "<sip:100@127.0.0.1>",
			pai: "<sip:100@127.0.0.1>", contact: "100@127.0.0.1"},
		"login": {manners: Manners{FromUser: "username"}, uri: "+493012345678", caller: "<sip:alice@127.0.0.1>", pai: plain,
			contact: "+4930901820@127.0.0.1"},
		"fixed": {manners: Manners{FromUser: "4711-a"}, uri: "+493012345678", caller: "<sip:4711-a@127.0.0.1>", pai: plain,
			contact: "+4930901820@127.0.0.1"},
		"domains": {manners: Manners{FromDomain: "sip.example.com", ContactDomain: "sbc.example.com"}, uri: "+493012345678",
			caller: "<sip:+4930901820@sip.example.com>", pai: "<sip:+4930901820@sip.example.com>", contact: "+4930901820@sbc.example.com"},
		"phone": {manners: Manners{UserPhone: true}, uri: "+493012345678;user=phone", caller: "<sip:+4930901820@127.0.0.1;user=phone>",
			pai: "<sip:+4930901820@127.0.0.1;user=phone>", contact: "+4930901820@127.0.0.1"},
		"preferred": {manners: Manners{Identity: "ppi"}, uri: "+493012345678", caller: plain, ppi: plain, contact: "+4930901820@127.0.0.1"},
		"remote": {manners: Manners{Identity: "rpid"}, uri: "+493012345678", caller: plain, rpid: plain + ";party=calling;screen=yes;privacy=off",
			contact: "+4930901820@127.0.0.1"},
		"no identity": {manners: Manners{Identity: "none"}, uri: "+493012345678", caller: plain, contact: "+4930901820@127.0.0.1"},
		"hidden": {manners: Manners{Identity: "rpid", FromUser: "username"}, withheld: true, uri: "+493012345678",
			caller: "<sip:anonymous@anonymous.invalid>",
			rpid:   plain + ";party=calling;screen=yes;privacy=full", contact: "anonymous@127.0.0.1"},
		"hidden, From kept": {manners: Manners{Format: "e164", FromUser: "username", Identity: "ppi", Privacy: "id"}, withheld: true,
			uri: "493012345678", caller: "<sip:alice@127.0.0.1>", ppi: "<sip:4930901820@127.0.0.1>", contact: "4930901820@127.0.0.1"},
		"tech prefix": {manners: Manners{Format: "e164", Prefix: "4711#"}, uri: "4711%23493012345678", caller: "<sip:4930901820@127.0.0.1>",
			pai: "<sip:4930901820@127.0.0.1>", contact: "4930901820@127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := newFar(t), start(t, Config{})
			trunk := f.trunk()
			trunk.Number, trunk.Country, trunk.Manners = "+4930901820", c.country, c.manners
			d := Dialling{Trunk: trunk, To: "+493012345678", From: "+4930901820", Withheld: c.withheld}
			if c.to != "" {
				d.To = c.to
			}
			if c.from != "" {
				d.From = c.from
			}
			out := make(chan error, 1)
			go func() { _, err := s.Dial(soon(t), d); out <- err }()
			m := f.take("INVITE")
			user, params, _ := strings.Cut(c.uri, ";")
			if params != "" {
				params = ";" + params
			}
			if want := fmt.Sprintf("INVITE sip:%s@%s%s SIP/2.0\r\n", user, f.addr(), params); !strings.HasPrefix(m, want) {
				t.Errorf("it begins %q, want %q", strings.SplitN(m, "\r\n", 2)[0], want)
			}
			caller, _, _ := strings.Cut(field(m, "From"), ";tag=")
			for header, want := range map[string]string{"P-Asserted-Identity": c.pai, "P-Preferred-Identity": c.ppi, "Remote-Party-ID": c.rpid} {
				if got := field(m, header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			if hides := field(m, "Privacy"); hides == "id" != c.withheld {
				t.Errorf("Privacy: %q", hides)
			}
			if caller != c.caller || !strings.HasPrefix(field(m, "Contact"), "<sip:"+c.contact) {
				t.Errorf("From %q, Contact %q", caller, field(m, "Contact"))
			}
			f.reply(m, "486 Busy Here", "")
			if err := get(t, out); codeOf(err) != "486" {
				t.Error(err)
			}
			f.take("ACK")
		})
	}
}

// TestRegisterManners: a registration names the domains that the trunk wants.
func TestRegisterManners(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	trunk := f.trunk()
	trunk.Register, trunk.FromDomain, trunk.ContactDomain = true, "sip.example.com", "sbc.example.com"
	start(t, Config{Trunks: fixed(trunk)})
	m := f.take("REGISTER")
	if !strings.HasPrefix(field(m, "From"), "<sip:alice@sip.example.com>") ||
		!strings.HasPrefix(field(m, "To"), "<sip:alice@sip.example.com>") ||
		!strings.Contains(field(m, "Contact"), "@sbc.example.com:") || !strings.HasPrefix(m, "REGISTER sip:"+f.addr().String()+" ") {
		t.Errorf("it says\n%s", m)
	}
	f.reply(m, "403 Forbidden", "")
}

// TestSilent: a trunk that wants no OPTIONS gets none, and its check says so.
func TestSilent(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	trunk := f.trunk()
	trunk.Silent = true
	health, err := s.Check(soon(t), trunk)
	if err != nil || health.OptionsMS != 0 || len(health.Findings) != 1 || !strings.Contains(health.Findings[0].Text, "test call") {
		t.Errorf("%+v: %v", health, err)
	}
	if m := f.receive(200 * time.Millisecond); m != "" {
		t.Errorf("it was sent\n%s", m)
	}
	trunk.Register = true
	if _, err := s.Check(soon(t), trunk); err == nil {
		t.Error("a trunk that we are not registered with is well")
	}
}

// TestCalledNumber: which number of which trunk was called, by the parts of the INVITE that each trunk asks for.
func TestCalledNumber(t *testing.T) {
	t.Parallel()
	net10 := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	usual := Trunk{ID: 1, Number: "+4930901820", Further: []string{"+4930901821", "+4930901822"}, ByIP: true, Allowed: net10}
	byParty := Trunk{ID: 2, Number: "+4930901830", Further: []string{"+4930901831"}, ByIP: true, Allowed: net10,
		Manners: Manners{CalledFrom: []string{"p-called-party-id", "to"}}}
	diverted := Trunk{ID: 3, Number: "+4930901840", Further: []string{"+4930901841"}, ByIP: true, Allowed: net10,
		Manners: Manners{CalledFrom: []string{"diversion", "request_uri"}}}
	inside := Trunk{ID: 4, Number: "100", Extension: true, ByIP: true, Allowed: net10}
	phone := Trunk{ID: 5, Number: "100", Extension: true, Username: "bob", Password: "x"}
	home := Trunk{ID: 6, Number: "+4930901860", Further: []string{"+4930901861"}, Username: "reg", Password: "x", Register: true}
	abroad := Trunk{ID: 7, Number: "+4930901870", Country: "AT", ByIP: true, Allowed: net10, Manners: Manners{CalledFrom: []string{"to"}}}
	for name, c := range map[string]struct {
		from, uri, to string
		headers       []string
		trunk         int64 // -1: none
		try           int
		number        string
	}{
		"own":               {uri: "sip:+4930901820@x", trunk: 1, number: "+4930901820"},
		"further":           {uri: "sip:+4930901822@x", trunk: 1, number: "+4930901822"},
		"further, in short": {uri: "sip:030901821@x", trunk: 1, number: "+4930901821"},
		"in To":             {uri: "sip:s@x", to: "sip:+4930901821@x", trunk: 1, number: "+4930901821"},
		"not in a header that it does not ask for": {uri: "sip:s@x", headers: []string{"P-Called-Party-ID: <sip:+4930901821@x>"}, trunk: -1},
		"called party": {uri: "sip:s@x", headers: []string{"P-Called-Party-ID: <sip:+4930901831@x>"}, trunk: 2, number: "+4930901831"},
		"called party before To": {uri: "sip:+4930901830@x", to: "sip:+4930901830@x", headers: []string{"P-Called-Party-ID: <tel:+4930901831>"},
			trunk: 2, number: "+4930901831"},
		"no called party":        {uri: "sip:s@x", to: "sip:+4930901831@x", trunk: 2, number: "+4930901831"},
		"not by its Request-URI": {uri: "sip:+4930901831@x", to: "sip:s@x", trunk: -1},
		"diverted": {uri: "sip:+4930901840@x", headers: []string{"Diversion: <sip:+4930901841@x>;reason=unconditional, <sip:+4930901840@x>"},
			trunk: 3, number: "+4930901841"},
		"diverted by somebody else": {uri: "sip:+4930901840@x", headers: []string{"Diversion: <sip:+4930999999@x>"}, trunk: 3,
			number: "+4930901840"},
		"extension":                      {uri: "sip:100@x", trunk: 4, number: "100"},
		"extension, by password":         {from: "203.0.113.1:5060", uri: "sip:100@x", trunk: -1, try: 1},
		"over a registration":            {from: "198.51.100.1:5060", uri: "sip:tok@x", to: "sip:+4930901861@x", trunk: 6, number: "+4930901861"},
		"over a registration, nameless":  {from: "198.51.100.1:5060", uri: "sip:tok@x", to: "sip:reg@x", trunk: 6, number: "+4930901860"},
		"with 00":                        {uri: "sip:s@x", to: "sip:004930901870@x", trunk: 7, number: "+4930901870"},
		"in short, of another country":   {uri: "sip:s@x", to: "sip:030901870@x", trunk: -1},
		"a further number, from outside": {from: "203.0.113.1:5060", uri: "sip:+4930901822@x", trunk: -1},
	} {
		x := newIndex([]Trunk{usual, byParty, diverted, inside, phone, home, abroad})
		x.homes[6], x.tokens["tok"] = netip.MustParseAddrPort("198.51.100.1:5060"), 6
		if c.from == "" {
			c.from = "10.1.1.1:5060"
		}
		if c.to == "" {
			c.to = c.uri
		}
		text := fmt.Sprintf("INVITE %s SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKa\r\nTo: <%s>\r\nFrom: <sip:someone@y>;tag=1\r\n"+
			"Call-ID: a\r\nCSeq: 1 INVITE\r\n%s",
			c.uri, c.to, strings.Join(append(c.headers, "", ""), "\r\n"))
		v := x.route(requestOf(t, text), netip.MustParseAddrPort(c.from), false)
		id := int64(-1)
		if v.trunk != nil {
			id = v.trunk.ID
		}
		if id != c.trunk || id >= 0 && v.to != c.number || len(v.try) != c.try {
			t.Errorf("%s: trunk %d, to %s, %d to try", name, id, v.to, len(v.try))
		}
	}
	// Who has proved to be a trunk is called at what they name, too.
	x := newIndex([]Trunk{usual, phone})
	for uri, want := range map[string]string{"sip:030901822@x": "+4930901822", "sip:+4930901899@x": ""} {
		req := requestOf(t, "INVITE "+uri+" SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKa\r\nTo: <"+uri+
			">\r\nFrom: <sip:a@y>;tag=1\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\r\n")
		if got, ok := x.answers(x.byID[1], x.calledIn(req)); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", uri, got, ok)
		}
	}
}

// TestInboundHosts: calls are let in from where a name leads, from nowhere while it leads nowhere, and from where it led
// while it can't be looked up.
func TestInboundHosts(t *testing.T) {
	t.Parallel()
	caller := newWire(t, "127.0.0.1")
	s := prepare(t,
		Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Address: "192.0.2.1", ByIP: true, Hosts: []string{"trunk.test"}})})
	var there atomic.Bool
	names := zone(t, caller.addr())
	s.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if !there.Load() {
			return nil, net.ErrClosed
		}
		return names.Dial(ctx, network, address)
	}}
	s.hostAge = 10 * time.Millisecond
	launch(t, s)
	knows := func() bool { return s.index.Load().known(netip.MustParseAddr("127.0.0.1")) }
	if knows() {
		t.Error("it is known before its name leads anywhere")
	}
	there.Store(true)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for give := time.After(hang); !knows(); {
		s.Refresh()
		select {
		case <-tick.C:
		case <-give:
			t.Fatal("the name's address is not let in")
		}
	}
	to := "sip:+15550001111@" + s.Addr().String()
	caller.send(s.Addr(), caller.message("INVITE", to, "<"+to+">", "a", 1, sdp(caller.addr())))
	if got := caller.final(); !strings.HasPrefix(got, "SIP/2.0 480") { // nobody takes calls here
		t.Errorf("answered %q", got)
	}
	there.Store(false)
	s.lookUpHosts(map[hostName]bool{{"trunk.test", overUDP}: true})
	if got := s.withHosts([]Trunk{{ByIP: true, Hosts: []string{"trunk.test"}}}); len(got[0].Allowed) != 1 ||
		!got[0].allows(netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("let in are %v", got[0].Allowed)
	}
}

// TestSoundOfTrunk: whose sound is heard is the trunk's own rule, before the server's.
func TestSoundOfTrunk(t *testing.T) {
	t.Parallel()
	for _, server := range []bool{false, true} {
		s := New(Config{Loose: server})
		for rule, want := range map[string]bool{"": server, "any": true, "signalled": false} {
			l := &leg{}
			l.server, l.trunk = s, &Trunk{Manners: Manners{RTPSource: rule}}
			if l.loose() != want {
				t.Errorf("server %v, trunk %q: %v", server, rule, l.loose())
			}
		}
	}
}

// TestProviderAddresses: a call from any address to which the domain of a registered provider leads is let in, to each of the
// trunk's numbers, by whatever names it; from elsewhere the password is asked for.
func TestProviderAddresses(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	trunk := f.trunk()
	trunk.Register, trunk.Address = true, "trunk.test"
	trunk.Number, trunk.Further = "+4930901820", []string{"+4930901821", "+4930901822"}
	a := newAnswerer(0)
	s := prepare(t, Config{Answer: a.answer, Trunks: fixed(trunk)})
	s.resolver, s.hostAge = zone(t, f.addr()), 10*time.Millisecond
	launch(t, s)
	m := f.take("REGISTER")
	contact, _, _ := strings.Cut(strings.TrimPrefix(field(m, "Contact"), "<"), ">")
	f.reply(m, "200 OK", "", "Contact: <"+contact+">;expires=3600")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	knows := func() bool {
		x := s.index.Load()
		return len(x.homes) == 1 && x.byID[1] != nil && len(x.byID[1].provider) == 1
	}
	for give := time.After(hang); !knows(); {
		s.Refresh()
		select {
		case <-tick.C:
		case <-give:
			t.Fatal("the provider's address is not found")
		}
	}
	here := "@" + s.Addr().String()
	elsewhere, stranger := newWire(t, "127.0.0.1"), newWire(t, "127.0.0.2")
	for i, c := range []struct {
		from           *wire
		uri, to, third string // who is called by the Request-URI, To, P-Called-Party-ID
		number         string // "": the password is asked for
	}{
		{elsewhere, "sip:+4930901821" + here, "sip:+4930901821" + here, "", "+4930901821"},
		{elsewhere, contact, "sip:+4930901822" + here, "", "+4930901822"},
		{elsewhere, contact, "sip:030901821" + here, "", "+4930901821"},
		{elsewhere, contact, "sip:alice" + here, "", "+4930901820"},
		{elsewhere, contact, "sip:alice" + here, "<sip:+4930901822" + here + ">", "+4930901822"},
		{elsewhere, "sip:alice" + here, "sip:alice" + here, "<tel:+4930901821>", "+4930901821"},
		{f.wire, "sip:+4930901822" + here, "sip:+4930901822" + here, "", "+4930901822"},
		{f.wire, "sip:alice" + here, "sip:alice" + here, "", "+4930901820"},
		{stranger, "sip:+4930901821" + here, "sip:+4930901821" + here, "", ""},
		{stranger, "sip:alice" + here, "sip:alice" + here, "", ""},
	} {
		id := fmt.Sprintf("call%d", i)
		var headers []string
		if c.third != "" {
			headers = []string{"P-Called-Party-ID: " + c.third}
		}
		c.from.send(s.Addr(), c.from.message("INVITE", c.uri, "<"+c.to+">", id, 1, sdp(c.from.addr()), headers...))
		res := c.from.finalOf(id, 1)
		if c.number == "" {
			if !strings.HasPrefix(res, "SIP/2.0 401") {
				t.Errorf("%s, from a stranger: %s", c.uri, res)
			}
			continue
		}
		if !strings.HasPrefix(res, "SIP/2.0 200") {
			t.Errorf("%s, %s: %s", c.uri, c.to, res)
			continue
		}
		c.from.send(s.Addr(), c.from.message("ACK", c.uri, field(res, "To"), id, 1, ""))
		in := a.next(t)
		if in.in.Trunk.ID != 1 || in.in.To != c.number {
			t.Errorf("%s, %s, %s: for %s", c.uri, c.to, c.third, in.in.To)
		}
		in.stop(errDone)
	}
}

// TestNamedTwice: a user name that two trunks have lets nobody in without the password, also where one of them alone is
// registered there: it may be a stranger's.
func TestNamedTwice(t *testing.T) {
	t.Parallel()
	one := Trunk{ID: 1, Number: "+4930901820", Username: "alice", Password: "x"}
	two := Trunk{ID: 2, Number: "+4930901830", Username: "alice", Password: "y"}
	req := requestOf(t, "INVITE sip:alice@x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKa\r\nTo: <sip:alice@x>\r\n"+
		"From: <sip:a@y>;tag=1\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\r\n")
	home := netip.MustParseAddrPort("198.51.100.1:5060")
	for n, trunks := range [][]Trunk{{}, {one}, {one, two}} {
		x := newIndex(trunks)
		x.homes[1] = home
		if v := x.route(req, home, false); (v.trunk != nil) != (n == 1) || n == 2 && len(v.try) != 2 {
			t.Errorf("%d trunks: %+v", n, v)
		}
	}
}

// TestAuthName: a trunk with an authentication name proves the password with it, and is proved by it alone.
func TestAuthName(t *testing.T) {
	t.Parallel()
	own := Trunk{ID: 3, Number: "+15550001111", Username: "bob", Password: "right", Manners: Manners{AuthName: "4711-a"}}
	a := newAnswerer(0)
	callee, caller := start(t, Config{Answer: a.answer, Trunks: fixed(own)}), start(t, Config{})
	for _, c := range []struct{ username, authName, want string }{{"bob", "4711-a", ""}, {"4711-a", "", ""}, {"bob", "", "403"}} {
		l, err := caller.Dial(soon(t),
			Dialling{To: "+15550001111", From: "+15550002222", Trunk: Trunk{Address: callee.Addr().String(), Username: c.username,
				Password: "right", Manners: Manners{AuthName: c.authName, FromUser: "username"}}})
		if c.want != "" {
			if codeOf(err) != c.want {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		r, in := run(l, newPhone(0)), a.next(t)
		if user := in.leg.(*leg).remote.uri.User; user != c.username {
			t.Errorf("From names %s", user)
		}
		r.hangUp(t)
		in.ends(t, nil)
	}
}
