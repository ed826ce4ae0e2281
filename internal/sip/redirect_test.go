package sip

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// sentOn starts a call that a trunk redirects.
func (f *far) sentOn(t testing.TB, s *Server, trunk Trunk, may func(string) error) <-chan dialled {
	t.Helper()
	out := make(chan dialled, 1)
	go func() {
		l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+4930123456", From: "+4930111111", May: may})
		if err != nil {
			out <- dialled{err: err}
			return
		}
		out <- dialled{leg: run(l, newPhone(1000))}
	}()
	return out
}

func (f *far) contact(user string, q string) string {
	return fmt.Sprintf("Contact: <sip:%s@%s>%s", user, f.addr(), q)
}

// moved redirects an INVITE to other places.
func (f *far) moved(req string, contacts ...string) {
	f.t.Helper()
	res := "SIP/2.0 302 Moved Temporarily"
	for _, name := range []string{"Via", "From", "To", "Call-ID", "CSeq"} {
		res += "\r\n" + name + ": " + field(req, name)
		if name == "To" {
			res += ";tag=far"
		}
	}
	f.send(f.from, res+"\r\n"+strings.Join(contacts, "\r\n")+"\r\nContent-Length: 0\r\n\r\n")
}

// TestRedirect follows a trunk's redirects, the most preferred place first, and never twice to the same place.
func TestRedirect(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	one, two, three := newFar(t), newFar(t), newFar(t)
	trunk := f.trunk()
	trunk.Number = "+4930111111"
	asked := make(chan string, 16)
	out := f.sentOn(t, s, trunk, func(to string) error { asked <- to; return nil })
	m := f.take("INVITE")
	f.moved(m, one.contact("anna", ";q=0.2"), two.contact("030765432", ";q=0.7"), three.contact("+4930222222", ""),
		"Contact: <mailto:anna@example.com>;q=0.9", f.contact("+4930123456", ";q=0.1"))
	f.take("ACK")

	m3 := three.take("INVITE")
	if !strings.HasPrefix(m3, "INVITE sip:+4930222222@"+three.addr().String()+" ") || field(m3, "To") != field(m, "To") ||
		field(m3, "Call-ID") != field(m, "Call-ID") || field(m3, "CSeq") != "2 INVITE" {
		t.Errorf("sent on:\n%s", m3)
	}
	three.reply(m3, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="x", nonce="n"`) // it may ask, but does not get the password
	three.take("ACK")
	three.none("INVITE")
	m2 := two.take("INVITE")
	if field(m2, "Authorization") != "" || !strings.HasPrefix(m2, "INVITE sip:030765432@") {
		t.Errorf("sent on:\n%s", m2)
	}
	two.moved(m2, two.contact("030765432", ""), three.contact("+4930222222", "")) // back to where the call was before
	two.take("ACK")
	m1 := one.take("INVITE")
	one.reply(m1, "200 OK", sdp(one.rtp.addr()))
	one.take("ACK")
	d := get(t, out)
	if d.err != nil {
		t.Fatal(d.err)
	}
	if p, _ := one.rtp.listen(hang); p == nil {
		t.Error("no sound")
	}
	d.leg.stop(errDone)
	one.reply(one.take("BYE"), "200 OK", "")
	d.leg.ends(t, errDone)
	want := []string{"+4930222222", "+4930765432", "sip:anna@" + one.addr().String(), "+4930123456"}
	for _, w := range want {
		if got := get(t, asked); got != w {
			t.Errorf("the rules were asked about %s, want %s", got, w)
		}
	}
}

// TestRedirectBarred redirects calls to where they may not go, or round and round.
func TestRedirectBarred(t *testing.T) {
	t.Parallel()
	barred := errors.New("calls to premium numbers are not allowed on this server")
	for name, c := range map[string]struct {
		number, contact string
		may             func(string) error
		says            string
	}{
		"by the rules":       {"+4930111111", "<sip:+4990012345678@HOST>", func(string) error { return barred }, "premium numbers"},
		"without rules":      {"+4930111111", "<sip:+4930222222@HOST>", nil, "not sent on"},
		"carrier, another":   {"", "<sip:+4930222222@HOST>", func(string) error { return nil }, "stay with the one"},
		"no telephone":       {"+4930111111", "<http://example.com/>", func(string) error { return nil }, "no telephone"},
		"out of our network": {"+4930111111", "<sip:+4930222222@192.0.2.7>", func(string) error { return nil }, ""},
		"at this server":     {"+4930111111", "<sip:+4930222222@SELF>", func(string) error { return nil }, ""},
		"another transport":  {"+4930111111", "<sip:+4930222222@HOST;transport=sctp>", func(string) error { return nil }, "sctp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := newFar(t), start(t, Config{})
			trunk := f.trunk()
			trunk.Number = c.number
			other := newFar(t)
			out := f.sentOn(t, s, trunk, c.may)
			f.moved(f.take("INVITE"), "Contact: "+strings.NewReplacer("HOST", other.addr().String(), "SELF", s.Addr().String()).Replace(c.contact))
			f.take("ACK")
			d := get(t, out)
			var told *why
			if codeOf(d.err) != "302" || !errors.Is(d.err, parley.Unreachable) {
				t.Errorf("got %v", d.err)
			}
			if errors.As(d.err, &told) != (c.says != "") || told != nil && !strings.Contains(told.Explain(), c.says) {
				t.Errorf("it says %v, want %q", told, c.says)
			}
			if m := other.receive(20 * time.Millisecond); m != "" {
				t.Errorf("it went there:\n%s", m)
			}
		})
	}
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		f, s := newFar(t), start(t, Config{})
		trunk := f.trunk()
		trunk.Number = "+4930111111"
		out := f.sentOn(t, s, trunk, func(string) error { return nil })
		for i := range maxPlaces + 1 {
			f.moved(f.take("INVITE"), f.contact(fmt.Sprint("next", i), ""))
			f.take("ACK")
		}
		if d := get(t, out); codeOf(d.err) != "302" {
			t.Errorf("got %v", d.err)
		}
	})
}

// TestRedirectSameNumber follows the carrier to another place for the same number.
func TestRedirectSameNumber(t *testing.T) {
	t.Parallel()
	f, s, other := newFar(t), start(t, Config{}), newFar(t)
	trunk := f.trunk()
	trunk.Number = ""
	out := f.sentOn(t, s, trunk, func(string) error { return nil })
	f.moved(f.take("INVITE"), other.contact("4930123456", ""))
	f.take("ACK")
	other.reply(other.take("INVITE"), "603 Decline", "")
	other.take("ACK")
	if d := get(t, out); codeOf(d.err) != "603" {
		t.Errorf("got %v", d.err)
	}
}

// TestRedirectAsksAgain: a trunk that asks for a password, and redirects the call to another of its own names, asks
// for it again. That does not mean that it refused the password.
func TestRedirectAsksAgain(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	trunk := f.trunk()
	trunk.Number, trunk.Username, trunk.Password = "+4930111111", "bob", "right"
	out := f.sentOn(t, s, trunk, func(string) error { return nil })
	for i, nonce := range []string{"first", "second"} {
		m := f.take("INVITE")
		if field(m, "Proxy-Authorization") != "" {
			t.Errorf("place %d is shown a proof that is for another one:\n%s", i, m)
		}
		f.reply(m, "407 Proxy Authentication Required", "", fmt.Sprintf(`Proxy-Authenticate: Digest realm="x", nonce=%q`, nonce))
		f.take("ACK")
		m = f.take("INVITE")
		if !strings.Contains(field(m, "Proxy-Authorization"), nonce) {
			t.Errorf("place %d: no proof:\n%s", i, m)
		}
		if i == 0 {
			f.moved(m, f.contact("+4930222222", ""))
		} else {
			f.reply(m, "200 OK", sdp(f.rtp.addr()))
		}
		f.take("ACK")
	}
	got := <-out
	if got.err != nil {
		t.Fatal(got.err)
	}
	got.leg.hangUp(t)
	f.reply(f.take("BYE"), "200 OK", "")
}
