package sip

import (
	"net/netip"
	"strings"
	"testing"

	"parley/internal/stir"
	"parley/internal/stir/stirtest"
)

// proofs are what calls are signed and verified with in a test.
type proofs struct {
	*stirtest.Authority
	server   *stirtest.Server
	url      string
	signer   *stir.Signer
	verifier *stir.Verifier
}

func newProofs(t testing.TB) *proofs {
	t.Helper()
	p := &proofs{Authority: stirtest.New(t), server: stirtest.Serve(t)}
	issued := p.Issue(nil)
	p.url = p.server.Put("/cert.pem", issued.Chain)
	var err error
	if p.signer, err = stir.NewSigner(p.url, issued.KeyPEM()); err != nil {
		t.Fatal(err)
	}
	p.verifier = stir.NewVerifier(p.server.Client(), p.Pool(), 0)
	t.Cleanup(p.verifier.Close)
	return p
}

func (p *proofs) sign(t testing.TB, s stir.Statement) string {
	t.Helper()
	text, err := p.signer.Sign(s)
	if err != nil || text == "" {
		t.Fatalf("%q, %v", text, err)
	}
	return text
}

// TestVerified: an incoming call's Identity is verified before anybody answers it, and its flaw is told to who calls.
func TestVerified(t *testing.T) {
	t.Parallel()
	p := newProofs(t)
	a := newAnswerer(0)
	byPassword := Trunk{ID: 2, Number: "+15550002222", Address: "127.0.0.9", Username: "alice", Password: "secret"}
	s := start(t,
		Config{Answer: a.answer, Verifier: p.verifier,
			Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Country: "US", Address: "127.0.0.1", ByIP: true, Allowed: loopback}, byPassword)})
	statement := stir.Statement{From: "+15550009999", To: "+15550001111", Attest: "A", Origin: "1"}
	good := p.sign(t, statement)
	of := func(change func(*stir.Statement)) string {
		st := statement
		change(&st)
		return p.sign(t, st)
	}
	stranger := *p.signer
	stranger.URL = p.server.Put("/other.pem", p.Issue(nil).Chain)
	wrong, err := stranger.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	gone := *p.signer
	gone.URL = p.server.URL + "/gone.pem"
	away, err := gone.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want, reason string
		headers            []string
	}{
		{"nothing", "none", "", nil},
		{"good", "verified A", "", []string{"Identity: " + good}},
		{"replayed", "failed: it was signed for another call before: it is replayed", "438", []string{"Identity: " + good}},
		{"compact name, folded", "verified B", "",
			[]string{"y: " + strings.Replace(of(func(s *stir.Statement) { s.Attest = "B" }), ".", ".\r\n ", 1)}},
		{"asserted", "verified A", "",
			[]string{"P-Asserted-Identity: <tel:+15550008888>", "Identity: " + of(func(s *stir.Statement) { s.From = "+15550008888" })}},
		{"not who is asserted", "failed: it was signed for another caller than the one who is shown", "438",
			[]string{"P-Asserted-Identity: <tel:+15550008888>", "Identity: " + of(func(*stir.Statement) {})}},
		{"hidden", "verified A", "",
			[]string{"P-Asserted-Identity: <tel:+15550008888>", "Privacy: id",
				"Identity: " + of(func(s *stir.Statement) { s.From = "+15550008888" })}},
		{"another caller", "failed: it was signed for another caller than the one who is shown", "438",
			[]string{"Identity: " + of(func(s *stir.Statement) { s.From = "+15550009998" })}},
		{"another number", "failed: it was signed for a call to another number", "438",
			[]string{"Identity: " + of(func(s *stir.Statement) { s.To = "+15550001112" })}},
		{"wrong", "failed: the signature is wrong", "438", []string{"Identity: " + wrong}},
		{"unreadable", "failed: it has no info", "438", []string{"Identity: x"}},
		{"name", "verified A", "", []string{"Identity: " + of(func(s *stir.Statement) { s.Name = "Ana Ltd" })}},
		{"carrier", "carrier: verified B", "",
			[]string{"P-Asserted-Identity: <sip:+15550009999;verstat=TN-Validation-Passed-B@127.0.0.1;user=phone>"}},
		{"carrier, of the address", "carrier: failed: the carrier could not verify the caller", "",
			[]string{"P-Asserted-Identity: <sip:+15550009999@127.0.0.1;verstat=TN-Validation-Failed>"}},
		{"Twilio", "carrier: verified C", "", []string{"X-Twilio-VerStat: TN-Validation-Passed-C"}},
		{"we know better", "failed: the signature is wrong", "438", []string{"Identity: " + wrong, "X-Twilio-VerStat: TN-Validation-Passed-A"}},
		{"the carrier knows better", "carrier: verified A", "", []string{"Identity: " + away, "X-Twilio-VerStat: TN-Validation-Passed-A"}},
	} {
		w := newWire(t, "127.0.0.1")
		id, to := token(20), "sip:+15550001111@"+s.Addr().String()
		w.send(s.Addr(), w.message("INVITE", to, "<"+to+">", id, 1, sdp(newWire(t, "127.0.0.1").addr()), c.headers...))
		res := w.final()
		if reason := field(res, "Reason"); !strings.HasPrefix(res, "SIP/2.0 200") || (reason == "") != (c.reason == "") ||
			!strings.HasPrefix(reason, "STIR;cause="+c.reason) && c.reason != "" {
			t.Fatalf("%s: %s", c.name, res)
		}
		w.send(s.Addr(), w.message("ACK", to, field(res, "To"), id, 1, ""))
		call := a.next(t)
		got := call.in.Signalling.Verification
		if got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if name := call.in.Signalling.CallerName; name != map[string]string{"name": "Ana Ltd"}[c.name] {
			t.Errorf("%s: the caller is called %q", c.name, name)
		}
		call.hangUp(t)
	}
}

// TestCarrierElsewhere: what a carrier says is read from the trunk's own provider alone, not from whoever knows a password.
func TestCarrierElsewhere(t *testing.T) {
	t.Parallel()
	s := prepare(t, Config{Trunks: fixed()})
	own := &Trunk{ID: 1, Number: "+15550001111", Address: "192.0.2.1", ByIP: true, Allowed: loopback}
	password := &Trunk{ID: 2, Number: "+15550001112", Address: "192.0.2.1", Username: "alice", Password: "secret", Allowed: loopback}
	launch(t, s)
	for name, c := range map[string]struct {
		trunk *Trunk
		from  string
		want  string
	}{"provider": {own, "127.0.0.1", "carrier: verified A"}, "elsewhere": {own, "127.0.0.2", "none"},
		"by password": {password, "127.0.0.1", "none"}} {
		in := &Invite{server: s, Trunk: c.trunk, from: netip.MustParseAddr(c.from),
			req: requestOf(t, "INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKa\r\n"+
				"From: <sip:a@b>;tag=a\r\nTo: <sip:a@b>\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\nX-Twilio-VerStat: TN-Validation-Passed-A\r\n\r\n")}
		in.verify()
		if got := in.Signalling.Verification; got.String() != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSigned: a call over a trunk that wants it is signed with its name, at each try anew, and the far end can verify it.
func TestSigned(t *testing.T) {
	t.Parallel()
	p := newProofs(t)
	s := start(t, Config{Signer: p.signer})
	for name, c := range map[string]struct {
		attest       string
		off, without bool
		withheld     bool
	}{"A": {attest: "A"}, "B": {attest: "B"}, "A, withheld": {attest: "A", withheld: true},
		"the trunk does not want it": {attest: "A", off: true}, "no attestation": {without: true}} {
		f := newFar(t)
		trunk := f.trunk()
		trunk.Sign, trunk.Name = !c.off, "Ana Ltd, sales"
		out := make(chan error, 1)
		go func() {
			_, err := s.Dial(soon(t),
				Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222", Attest: c.attest, Origin: "7", Withheld: c.withheld})
			out <- err
		}()
		first := f.take("INVITE")
		f.reply(spelled(first), "401 Unauthorized", "", `WWW-Authenticate: Digest realm="x", nonce="n", algorithm=MD5`)
		second := f.take("INVITE")
		for field(second, "CSeq") == field(first, "CSeq") { // sent again before it was answered
			second = f.take("INVITE")
		}
		var got []string
		for _, m := range []string{first, second} {
			value := field(m, "Identity")
			if value == "" {
				continue
			}
			got = append(got, value)
			v := p.verifier.Verify(t.Context(),
				stir.Call{ID: field(spelled(m), "Call-ID"), From: "+15550002222", To: []string{"+15550001111"}, Identities: []string{value}})
			shown := map[string]string{"A": "Ana Ltd, sales"}[c.attest] // nobody has checked whose the others are
			if c.withheld {
				shown = ""
			}
			if v.String() != "verified "+c.attest || v.CallerName != shown || field(m, "Date") == "" {
				t.Errorf("%s: %+v", name, v)
			}
		}
		if signed := !c.off && !c.without; len(got) != map[bool]int{true: 2}[signed] || signed && got[0] == got[1] {
			t.Errorf("%s: %d signatures", name, len(got))
		}
		if from := field(spelled(second), "From"); strings.HasPrefix(from, `"Ana Ltd, sales" <sip:`) == c.withheld {
			t.Errorf("%s: from %s", name, from)
		}
		if who := field(second, "P-Asserted-Identity"); strings.HasPrefix(who, `"Ana Ltd, sales" <sip:`) == c.withheld {
			t.Errorf("%s: asserted as %s", name, who)
		}
		f.reply(spelled(second), "486 Busy Here", "")
		if err := get(t, out); codeOf(err) != "486" {
			t.Error(err)
		}
	}
}
