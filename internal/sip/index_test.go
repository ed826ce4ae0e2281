package sip

import (
	"fmt"
	"net/netip"
	"testing"

	sipgo "github.com/emiago/sipgo/sip"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"+4930901820", "", "+4930901820"}, {"004930901820", "", "+4930901820"}, {"4930901820", "", "+4930901820"},
		{"+49 (30) 90-18.20", "", "+4930901820"},
		{"030901820", "+4930123456", "+4930901820"}, {"4930901820", "+4930123456", "+4930901820"},
		{"2125550123", "+12125550100", "+12125550123"},
		{"12125550123", "+12125550100", "+12125550123"}, {"+15550001111", "+15550001111", "+15550001111"},
		{"15550001111", "+15550001111", "+15550001111"},
		{"100", "+4930123456", "100"}, {"bob", "", "bob"}, {"", "", ""}, {"anonymous", "+4930123456", "anonymous"},
	} {
		if got := number(c[0], c[1]); got != c[2] {
			t.Errorf("%q in the country of %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	net10 := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	byIP := Trunk{ID: 1, Number: "+4930901820", ByIP: true, Allowed: net10}
	sibling := Trunk{ID: 2, Number: "+4930901821", ByIP: true, Allowed: net10}
	secret := Trunk{ID: 3, Number: "+4930901822", Username: "bob", Password: "x"}
	placed := Trunk{ID: 4, Number: "+4930901823", Username: "eve", Password: "x", Allowed: net10}
	toothless := Trunk{ID: 5, Number: "+4930901824"}
	carrier := Trunk{ID: 0, ByIP: true, Allowed: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	home := Trunk{ID: 6, Number: "+4930901826", Username: "reg", Password: "x", Register: true}
	// A thief's trunk: the carrier's addresses, a username that is another user's number, and a number that is another
	// user's as dialled in another country.
	thief := Trunk{ID: 7, Number: "+4312025550101", Username: "+12025550101", Password: "x", ByIP: true,
		Allowed: carrier.Allowed}
	asker := Trunk{ID: 8, Number: "+492025550102", Username: "+12025550102", Password: "x"}
	ingress := Trunk{ID: 9, Number: "+4312025550103", Username: "+12025550103", Password: "x", Register: true}
	squatter := Trunk{ID: 10, Number: "+4930901828", Username: "17", Password: "x", ByIP: true, Allowed: net10}
	named := Trunk{ID: 11, Number: "+4930901829", Username: "18", Password: "x"}
	first := Trunk{ID: 12, Number: "+4930901830", Username: "first", Password: "x"}
	later := Trunk{ID: 13, Number: "+39030901830", ByIP: true, Allowed: net10}
	all := []Trunk{thief, asker, ingress, squatter, named, byIP, sibling, secret, placed, toothless, carrier, home,
		first, later}
	for name, c := range map[string]struct {
		from, uri, to, caller string
		local                 bool
		trunk                 int64 // -1 for none
		try                   []int64
		number                string
		assistant             int64
		refuse                int
	}{
		"by address and number": {from: "10.1.1.1:5060", uri: "sip:+4930901820@x", trunk: 1,
			number: "+4930901820"},
		"of two by number": {from: "10.1.1.1:5060", uri: "sip:030901821@x", trunk: 2, number: "+4930901821"},
		"number in To": {from: "10.1.1.1:5060", uri: "sip:s@x", to: "sip:4930901821@x;user=phone",
			trunk: 2, number: "+4930901821"},
		"number with parameters": {from: "10.1.1.1:5060", uri: "sip:+4930901820;npdi@x", trunk: 1,
			number: "+4930901820"},
		"tel": {from: "10.1.1.1:5060", uri: "tel:+4930901820", trunk: 1, number: "+4930901820"},
		"escaped": {from: "10.1.1.1:5060", uri: "sip:%2B4930901820@x", trunk: 1,
			number: "+4930901820"},
		"known, number unknown":   {from: "10.1.1.1:5060", uri: "sip:+4930999999@x", trunk: -1, refuse: 404},
		"stranger to that number": {from: "203.0.113.1:5060", uri: "sip:+4930901820@x", trunk: -1},
		"password":                {from: "203.0.113.1:5060", uri: "sip:+4930901822@x", trunk: -1, try: []int64{3}},
		"password, by user name":  {from: "203.0.113.1:5060", uri: "sip:bob@x", trunk: -1, try: []int64{3}},
		"password, by caller": {from: "203.0.113.1:5060", uri: "sip:s@x", caller: "bob", trunk: -1,
			try: []int64{3}},
		"password, from elsewhere": {from: "203.0.113.1:5060", uri: "sip:+4930901823@x", trunk: -1},
		"password, from its place": {from: "10.1.1.1:5060", uri: "sip:+4930901823@x", trunk: -1, try: []int64{4}},
		"nothing to prove by":      {from: "203.0.113.1:5060", uri: "sip:+4930901824@x", trunk: -1},
		"carrier": {from: "192.0.2.7:5060", uri: "sip:+4930111111@x", trunk: 0,
			number: "+4930111111"},
		"carrier, own trunk's number": {from: "192.0.2.7:5060", uri: "sip:+4930901822@x", trunk: -1, try: []int64{3}},
		"registrar": {from: "198.51.100.1:5060", uri: "sip:+4930901826@x", trunk: 6,
			number: "+4930901826"},
		"registrar, by our contact": {from: "198.51.100.1:5070", uri: "sip:tok@x", trunk: 6, number: "+4930901826"},
		"registrar, another port": {from: "198.51.100.1:5070", uri: "sip:+4930901826@x", trunk: -1,
			try: []int64{6}},
		"our contact, from elsewhere": {from: "203.0.113.1:5060", uri: "sip:tok@x", trunk: -1},
		"softphone":                   {from: "127.0.0.1:5060", uri: "sip:17@x", local: true, trunk: -1, assistant: 17},
		"softphone, no assistant":     {from: "127.0.0.1:5060", uri: "sip:bob2@x", local: true, trunk: -1, refuse: 404},
		"softphone, own number": {from: "127.0.0.1:5060", uri: "sip:+4930901822@x", local: true, trunk: -1,
			try: []int64{3}},
		"a number as a name": {from: "192.0.2.7:5060", uri: "sip:+12025550101@x", trunk: 0,
			number: "+12025550101"},
		"a number that looks alike": {from: "192.0.2.7:5060", uri: "sip:12025550101@x", trunk: 0,
			number: "+12025550101"},
		"a name with a password": {from: "192.0.2.7:5060", uri: "sip:+12025550102@x", trunk: 0,
			number: "+12025550102"},
		"registered at the carrier": {from: "192.0.2.7:5080", uri: "sip:12025550103@x", trunk: 0,
			number: "+12025550103"},
		"another number in To": {from: "192.0.2.7:5060", uri: "sip:+12025550101@x",
			to: "sip:+4312025550101@x", trunk: 0, number: "+12025550101"},
		"in short, the older one": {from: "10.1.1.1:5060", uri: "sip:030901830@x", trunk: -1, try: []int64{12}},
		"in full, the later one": {from: "10.1.1.1:5060", uri: "sip:+39030901830@x", trunk: 13,
			number: "+39030901830"},
		"a name, by address": {from: "10.1.1.1:5060", uri: "sip:17@x", trunk: -1, refuse: 404},
		"softphone, a name":  {from: "127.0.0.1:5060", uri: "sip:18@x", local: true, trunk: -1, assistant: 18},
		"no softphone":       {from: "127.0.0.1:5060", uri: "sip:17@x", trunk: -1},
	} {
		t.Run(name, func(t *testing.T) {
			x := newIndex(all)
			x.homes[6], x.tokens["tok"] = netip.MustParseAddrPort("198.51.100.1:5060"), 6
			x.homes[9] = netip.MustParseAddrPort("192.0.2.7:5080")
			if c.to == "" {
				c.to = c.uri
			}
			if c.caller == "" {
				c.caller = "someone"
			}
			m := fmt.Sprintf("INVITE %s SIP/2.0\r\nTo: <%s>\r\nFrom: <sip:%s@y>;tag=1\r\n\r\n", c.uri, c.to, c.caller)
			req, err := sipgo.ParseMessage([]byte(m))
			if err != nil {
				t.Fatal(err)
			}
			v := x.route(req.(*sipgo.Request), netip.MustParseAddrPort(c.from), c.local)
			var try []int64
			for _, t := range v.try {
				try = append(try, t.ID)
			}
			id := int64(-1)
			if v.trunk != nil {
				id = v.trunk.ID
			}
			if id != c.trunk || fmt.Sprint(try) != fmt.Sprint(c.try) || v.assistant != c.assistant ||
				v.refuse != c.refuse || id >= 0 && v.to != c.number {
				t.Errorf("trunk %d, try %v, to %s, assistant %d, refuse %d", id, try, v.to, v.assistant, v.refuse)
			}
		})
	}
	// Another trunk's own address is known, but that alone does not let a call in.
	if x := newIndex(all); x.known(netip.MustParseAddr("203.0.113.1")) ||
		!x.known(netip.MustParseAddr("10.9.9.9")) || !x.open(netip.MustParseAddr("203.0.113.1")) {
		t.Error("who is known")
	}
}

// TestJudgeCarrierByPassword: the addresses of a carrier that authenticates with a password are unknown, so a trunk's
// addresses may be among them.
func TestJudgeCarrierByPassword(t *testing.T) {
	t.Parallel()
	thief := Trunk{ID: 7, Number: "+4312025550101", ByIP: true,
		Allowed: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	x := newIndex([]Trunk{thief, {ID: 0, Username: "carrier", Password: "x"}})
	for user, want := range map[string]int64{"12025550101": 0, "+12025550101": 0, "+4312025550101": 7,
		"012025550101": 7} {
		req, err := sipgo.ParseMessage(fmt.Appendf(nil,
			"INVITE sip:%s@x SIP/2.0\r\nTo: <sip:%s@x>\r\nFrom: <sip:someone@y>;tag=1\r\n\r\n", user, user))
		if err != nil {
			t.Fatal(err)
		}
		v := x.route(req.(*sipgo.Request), netip.MustParseAddrPort("192.0.2.7:5060"), false)
		switch {
		case want == 0 && (v.trunk != nil || len(v.try) != 1 || v.try[0].ID != 0):
			t.Errorf("%s: trunk %v, try %v: the carrier isn't asked for its password", user, v.trunk, v.try)
		case want != 0 && (v.trunk == nil || v.trunk.ID != want):
			t.Errorf("%s: trunk %v, try %v, want %d", user, v.trunk, v.try, want)
		}
	}
}

func TestDoor(t *testing.T) {
	t.Parallel()
	d := newFirewall()
	one := netip.MustParseAddr("203.0.113.1")
	n := 0
	for range 1000 {
		if d.knock(one, false) {
			n++
		}
	}
	if n < strangerBurst || n > strangerBurst+strangerRate {
		t.Errorf("%d of a stranger's 1000 messages were looked at", n)
	}
	n = 0
	for i := range 20000 { // forged addresses
		if d.knock(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), false) {
			n++
		}
	}
	if n > 2*strangersBurst || len(d.visitors) > maxVisitors {
		t.Errorf("%d of 20000 strangers were looked at, %d are remembered", n, len(d.visitors))
	}
	if !d.knock(netip.MustParseAddr("192.0.2.1"), true) {
		t.Error("strangers keep a friend out")
	}
	for range maxFailures {
		d.failed(one)
	}
	if !d.banned(one) || d.banned(netip.MustParseAddr("192.0.2.1")) {
		t.Error("who is banned")
	}
}

// TestDoorByTrunk: a flood over one trunk leaves room for another trunk's calls, and for the answers to them.
func TestDoorByTrunk(t *testing.T) {
	t.Parallel()
	d := newFirewall()
	begun, answered := 0, 0
	for range 10_000 {
		ok, answer := d.begin(7)
		if ok {
			begun++
		}
		if answer {
			answered++
		}
	}
	if begun < trunkBurst || begun > trunkBurst+trunkRate || answered > 2*trunkRate {
		t.Errorf("%d calls of a flood of 10,000 began, %d were answered", begun, answered)
	}
	for range 100 {
		if ok, _ := d.begin(8); !ok {
			t.Fatal("another trunk's call may not begin")
		}
	}
	d.keep(newIndex([]Trunk{{ID: 8, Number: "+15550001111"}}))
	if d.gates[7] != nil || d.gates[8] == nil {
		t.Error("gates are kept for trunks that are gone, or not for those that are there")
	}
}

// TestDoorNetwork: an attacker with a whole network of addresses can't guess more passwords than one with a single
// address.
func TestDoorNetwork(t *testing.T) {
	t.Parallel()
	d := newFirewall()
	n := 0
	for i := range 1000 {
		a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(i >> 8), 15: byte(i)})
		if d.knock(a, false) {
			n++
		}
		if d.failed(a); i == maxFailures && !d.banned(netip.MustParseAddr("2001:db8::ffff")) {
			t.Error("the network is not banned")
		}
	}
	if n < strangerBurst || n > strangerBurst+strangerRate || d.banned(netip.MustParseAddr("2001:db8:0:1::1")) {
		t.Errorf("%d of a network's 1000 messages were looked at", n)
	}
}
