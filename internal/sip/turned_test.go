package sip

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/icholy/digest"

	"parley/internal/parley"
)

// turnedAway collects what a server tells of refused calls.
type turnedAway chan parley.TrunkRefusal

func (c turnedAway) refused(_ context.Context, list []parley.TrunkRefusal) {
	for _, r := range list {
		c <- r
	}
}

func (c turnedAway) next(t testing.TB) parley.TrunkRefusal {
	t.Helper()
	select {
	case r := <-c:
		return r
	case <-time.After(2 * hang):
		t.Fatal("no refused call was told")
		return parley.TrunkRefusal{}
	}
}

// TestTurned: each refused call is told to the trunk that it belongs to, with the reason and the message without secrets.
func TestTurned(t *testing.T) {
	t.Parallel()
	a, told := newAnswerer(0), make(turnedAway, 64)
	byIP := Trunk{ID: 1, Owner: 7, Number: "+15550001111", ByIP: true, Allowed: loopback, SRTP: "required"}
	other := netip.MustParsePrefix("127.0.0.2/32")
	byPassword := Trunk{ID: 2, Owner: 8, Number: "+15550002222", Username: "bob", Password: "right", Allowed: []netip.Prefix{other}}
	s := prepare(t, Config{Answer: a.answer, Refused: told.refused, Trunks: fixed(byIP, byPassword)})
	s.turned.challengeFor = time.Hour // however slow the machine is
	launch(t, s)
	uri := func(number string) string { return "sip:" + number + "@" + s.Addr().String() }
	w, far := newWire(t, "127.0.0.1"), newWire(t, "127.0.0.2")
	invite := func(w *wire, number, callID, body string, headers ...string) string {
		w.send(s.Addr(), w.message("INVITE", uri(number), "<"+uri(number)+">", callID, 1, body, headers...))
		return w.finalOf(callID, 1)
	}
	expect := func(name string, trunk int64, code int, known bool, peer *wire, reason, text string) {
		t.Helper()
		r := told.next(t)
		if r.TrunkID != trunk || r.Status != code || r.Known != known || r.Peer != peer.addr().String() || r.Transport != "udp" ||
			!strings.Contains(r.Reason, reason) || !strings.HasPrefix(r.Text, "INVITE sip:") || !strings.Contains(r.Text, text) {
			t.Errorf("%s: %+v", name, r)
		}
		if strings.Contains(r.Text, "response=") || strings.Contains(r.Text, "inline:abc") {
			t.Errorf("%s: a secret is told: %s", name, r.Text)
		}
	}
	invite(w, "+15550009999", "unknown", sdp(w.addr()))
	expect("another number", 1, 404, true, w, "+15550009999", "Call-ID: unknown")
	invite(w, "+15550001111", "plain", sdp(w.addr(), "a=crypto:9 NONE inline:abc"))
	expect("not encrypted", 1, 488, true, w, "must be encrypted", "Call-ID: plain")
	w.send(s.Addr(),
		strings.Replace(w.message("INVITE", uri("+15550001111"), "<"+uri("+15550001111")+">", "unread", 1, ""), "1 INVITE", "1 BYE", 1))
	expect("not readable", 1, 400, true, w, "CSeq names another method", "Call-ID: unread")
	w.send(s.Addr(),
		strings.Replace(w.message("INVITE", uri("+15550001111"), "<"+uri("+15550001111")+">", "long", 1, ""), "CSeq: 1", "CSeq: x", 1))
	expect("a header that is not readable", 1, 400, true, w, "CSeq", "Call-ID: long")
	invite(w, "+15550001111", "extension", sdp(w.addr()), "Require: martian")
	expect("an extension", 1, 420, true, w, "martian", "Call-ID: extension")

	// A challenge is told only if no password follows.
	c, err := digest.ParseChallenge(field(invite(far, "+15550002222", "right", sdp(far.addr())), "WWW-Authenticate"))
	if err != nil {
		t.Fatal(err)
	}
	login := func(password string) string {
		credentials, err := digest.Digest(c,
			digest.Options{Method: "INVITE", URI: uri("+15550002222"), Username: "bob", Password: password, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		return "Authorization: " + credentials.String()
	}
	far.send(s.Addr(), far.message("INVITE", uri("+15550002222"), "<"+uri("+15550002222")+">", "right", 2, sdp(far.addr()), login("right")))
	if got := finalIn(far.finalOf("right", 2)); got != "200" {
		t.Fatalf("the right password got %s", got)
	}
	a.next(t).stop(errDone)
	invite(far, "+15550002222", "wrong", sdp(far.addr()), login("wrong"))
	expect("a wrong password", 2, 403, false, far, "password was wrong", "Authorization: [hidden]")
	invite(far, "+15550002222", "none", sdp(far.addr()))
	s.turned.mu.Lock()
	s.turned.challengeFor = 0
	s.turned.mu.Unlock()
	expect("no password", 2, 401, false, far, "sent none", "Call-ID: none")
	if len(told) > 0 {
		t.Errorf("told besides: %+v", <-told)
	}
}

// TestTurnedCaller: who called is noted as a call over the trunk would have it, so that it is erased with the customer, and
// nothing of what is told is refused by a database.
func TestTurnedCaller(t *testing.T) {
	t.Parallel()
	told := make(turnedAway, 64)
	s := start(t, Config{Refused: told.refused, Trunks: fixed(
		Trunk{ID: 1, Owner: 7, Number: "+4930901820", Country: "DE", ByIP: true, Allowed: loopback},
		Trunk{ID: 2, Owner: 7, Number: "+15550002222", ByIP: true, Allowed: loopback})})
	w := newWire(t, "127.0.0.1")
	long := strings.Repeat("x", 1000)
	for i, c := range []struct {
		from, header, de, us string
	}{{"030901821", "X-None: 1", "+4930901821", "030901821"},
		{"anonymous", "P-Asserted-Identity: <sip:+493012345678@h>\r\nPrivacy: id", "+493012345678", "+493012345678"},
		{"200", "Remote-Party-ID: <sip:030901822@h>;party=calling", "+4930901822", "030901822"},
		{"%00a%ffb", "X-None: 1", "ab", "ab"},
		{long, "X-None: 1", long[:maxOfCaller-3] + "…", long[:maxOfCaller-3] + "…"}} {
		uri := "sip:+155500099%0099@" + s.Addr().String()
		m := w.message("INVITE", uri, "<"+uri+">", fmt.Sprint(i), 1, "", c.header)
		w.send(s.Addr(), strings.Replace(m, "From: "+field(m, "From"), "From: <sip:"+c.from+"@h>;tag=a", 1))
		w.finalOf(fmt.Sprint(i), 1)
		for _, want := range []string{c.de, c.us} {
			r := told.next(t)
			if r.Caller != want {
				t.Errorf("%s over trunk %d: %q, want %q", c.from, r.TrunkID, r.Caller, want)
			}
			if all := r.Caller + r.Reason + r.Text; strings.Contains(all, "\x00") || !utf8.ValidString(all) {
				t.Errorf("%s: told %q", c.from, all)
			}
		}
	}
}

// TestTurnedShared: what an address alone tells belongs to its trunks if they are one account's, and to nobody otherwise.
func TestTurnedShared(t *testing.T) {
	t.Parallel()
	for _, owner := range []int64{7, 8} {
		told := make(turnedAway, 64)
		trunks := []Trunk{{ID: 1, Owner: 7, Number: "+15550001111", ByIP: true, Allowed: loopback, Codecs: nil},
			{ID: 2, Owner: owner, Number: "+15550002222", ByIP: true, Allowed: loopback, SRTP: "required"}}
		s := start(t, Config{Answer: newAnswerer(0).answer, Refused: told.refused, Trunks: fixed(trunks...)})
		w := newWire(t, "127.0.0.1")
		for i, number := range []string{"+15550009999", "+15550002222"} {
			uri := "sip:" + number + "@" + s.Addr().String()
			w.send(s.Addr(), w.message("INVITE", uri, "<"+uri+">", fmt.Sprint(i), 1, sdp(w.addr())))
			w.finalOf(fmt.Sprint(i), 1)
		}
		var got []int64
		for r := told.next(t); ; r = told.next(t) {
			got = append(got, r.TrunkID)
			if r.Status == 488 {
				break
			}
		}
		want := "[2]"
		if owner == 7 {
			want = "[1 2 2]"
		}
		if fmt.Sprint(got) != want {
			t.Errorf("account %d beside 7: told %v, want %s", owner, got, want)
		}
	}
	at, elsewhere := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	own := Trunk{ID: 1, Owner: 7, Number: "+15550001111", Address: "192.0.2.9"}
	for name, c := range map[string]struct {
		beside Trunk
		want   int
	}{
		"the carrier, by its networks": {Trunk{ByIP: true, Allowed: at}, 0},
		"the carrier, by a password":   {Trunk{Username: "u", Password: "p", Allowed: at}, 0},
		"the carrier, by its address":  {Trunk{Address: "192.0.2.9:5060"}, 0},
		"the carrier, by its name":     {Trunk{Address: "trunk.test"}, 0},
		"the carrier elsewhere":        {Trunk{ByIP: true, Allowed: elsewhere, Address: "198.51.100.1"}, 1},
		"another's password":           {Trunk{ID: 2, Owner: 8, Number: "+15550002222", Username: "u", Password: "p"}, 0},
		"another's password, elsewhere": {Trunk{ID: 2, Owner: 8, Number: "+15550002222", Username: "u", Password: "p", Allowed: elsewhere},
			1},
		"another's name, not registered":    {Trunk{ID: 2, Owner: 8, Number: "+15550002222", Address: "trunk.test"}, 0},
		"another's proxy, not registered":   {Trunk{ID: 2, Owner: 8, Number: "+15550002222", Address: "198.51.100.1", Proxy: "trunk.test"}, 0},
		"another's name, leading elsewhere": {Trunk{ID: 2, Owner: 8, Number: "+15550002222", Address: "other.test"}, 1},
		"one's own password":                {Trunk{ID: 2, Owner: 7, Number: "+15550002222", Username: "u", Password: "p"}, 1},
		"one's own name":                    {Trunk{ID: 2, Owner: 7, Number: "+15550002222", Address: "trunk.test"}, 2},
	} {
		s := New(Config{})
		leads := func(to string) hostEntry {
			return hostEntry{found: []netip.Prefix{netip.MustParsePrefix(to)}, asked: time.Now()}
		}
		s.hosts.at = map[hostName]hostEntry{{"trunk.test", overUDP}: leads("192.0.2.9/32"), {"other.test", overUDP}: leads("198.51.100.1/32")}
		s.reindex(s.withHosts([]Trunk{own, c.beside}))
		if got := s.index.Load().of(netip.MustParseAddr("192.0.2.9")); len(got) != c.want {
			t.Errorf("%s: told to %d trunks, want %d", name, len(got), c.want)
		}
	}
}

// TestTurnedFlood: neither one stranger nor many keep a trunk's own addresses, another trunk or another stranger out, and a
// repetition is told once.
func TestTurnedFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTurned()
		refusal := func(trunk int64, known bool, place string) []parley.TrunkRefusal {
			return []parley.TrunkRefusal{{TrunkID: trunk, Known: known, Place: place}}
		}
		flood := func() {
			for i := range 5000 {
				l.add(fmt.Sprint("one", i), refusal(1, false, "192.0.2.1"))
			}
		}
		flood()
		for range 3 {
			l.add("again", refusal(1, false, "192.0.2.2"))
		}
		l.add("own", refusal(1, true, "198.51.100.1"))
		for i := range 5000 {
			l.ask(fmt.Sprint("asked", i), refusal(1, false, "192.0.2.1"))
		}
		l.ask("own asked", refusal(1, true, "198.51.100.1"))
		l.ask("answered", refusal(1, true, "198.51.100.1"))
		l.answered("answered")
		count := func() map[string]int {
			n := map[string]int{}
			for _, r := range l.due(time.Now()) {
				n[fmt.Sprint(r.TrunkID, " ", r.Known, " ", r.Place)]++
			}
			return n
		}
		if got := fmt.Sprint(count()); got != fmt.Sprintf("map[1 false 192.0.2.1:%d 1 false 192.0.2.2:1 1 true 198.51.100.1:1]",
			parley.MaxRefusalsOfPlace) {
			t.Errorf("told %s", got)
		}
		time.Sleep(l.challengeFor)
		l.add("other", refusal(2, false, "192.0.2.1"))
		if got := fmt.Sprint(count()); got != "map[1 true 198.51.100.1:1 2 false 192.0.2.1:1]" {
			t.Errorf("later %s", got)
		}
		for i := range 100_000 { // from as many addresses
			l.add(fmt.Sprint("many", i), refusal(int64(i%1000), false, fmt.Sprintf("10.%d.%d.1", i>>8&255, i&255)))
		}
		l.add("own again", refusal(3, true, "198.51.100.1"))
		all := count()
		if all["3 true 198.51.100.1"] != 1 || len(all) > 60 || len(l.gates) > maxGates+1 || len(l.told) > 100 {
			t.Errorf("%d told, %d gates, %d remembered", len(all), len(l.gates), len(l.told))
		}
		if l.due(time.Now().Add(time.Hour)); len(l.told) > 0 || len(l.asked) > 0 || len(l.waiting) > 0 {
			t.Errorf("%d, %d and %d are kept for ever", len(l.told), len(l.asked), len(l.waiting))
		}
	})
}
