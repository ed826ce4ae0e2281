package sip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
	"github.com/icholy/digest"

	"parley/internal/parley"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	own := Trunk{ID: 3, Number: "+15550001111", Username: "bob", Password: "right"}
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			a := newAnswerer(1000)
			callee := start(t, Config{Answer: a.answer, Trunks: fixed(own)})
			caller := start(t, Config{})
			dial := func(password string) (*running, error) {
				l, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: callee.Addr().String(),
					Transport: transport, Username: "bob", Password: password}, To: "+15550001111",
					From: "+15550002222"})
				if err != nil {
					return nil, err
				}
				return run(l, newPhone(440)), nil
			}
			r, err := dial("right")
			if err != nil {
				t.Fatal(err)
			}
			in := a.next(t)
			if in.in.Trunk.ID != 3 {
				t.Errorf("trunk %+v", in.in.Trunk)
			}
			r.phone.hears(t, 1000)
			in.phone.hears(t, 440)
			in.stop(errDone)
			r.ends(t, parley.CustomerHangup)
			if _, err := dial("wrong"); codeOf(err) != "403" {
				t.Errorf("a wrong password: %v", err)
			}
			if _, err := dial(""); codeOf(err) != "401" || !errors.Is(err, errNoLogin) {
				t.Errorf("no password: %v", err)
			}
		})
	}
}

// TestPasswordTriedOnce asks for a password again and again: it is sent once for each realm, and once more if the
// nonce was old.
func TestPasswordTriedOnce(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	out := f.dial(soon(t), s, newPhone(0))
	m := f.take("INVITE")
	f.reply(m, "407 Proxy Authentication Required", "",
		`Proxy-Authenticate: Digest realm="proxy", nonce="a", qop="auth, auth-int", algorithm=md5`)
	f.take("ACK")
	m = f.take("INVITE")
	if field(m, "CSeq") != "2 INVITE" {
		t.Errorf("CSeq: %s", field(m, "CSeq"))
	}
	proves(t, m, "Proxy-Authorization", "alice", "secret")
	f.reply(m, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="carrier", nonce="b"`)
	f.take("ACK")
	m = f.take("INVITE")
	proves(t, m, "Authorization", "alice", "secret")
	proves(t, m, "Proxy-Authorization", "alice", "secret")
	f.reply(m, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="carrier", nonce="c", stale=true`)
	f.take("ACK")
	m = f.take("INVITE")
	proves(t, m, "Authorization", "alice", "secret")
	f.reply(m, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="carrier", nonce="d"`)
	f.take("ACK")
	if d := get(t, out); codeOf(d.err) != "401" || !errors.Is(d.err, errPassword) {
		t.Errorf("got %v", d.err)
	}
}

// hashed returns a function that opens a body to be hashed.
func hashed(body string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
}

// proves checks a request's credentials.
func proves(t testing.TB, m, header, username, password string) {
	t.Helper()
	proved(t, m, field(m, header), username, password)
}

// proved checks credentials of a request.
func proved(t testing.TB, m, value, username, password string) *digest.Credentials {
	t.Helper()
	c, err := digest.ParseCredentials(value)
	if err != nil {
		t.Fatalf("%q: %v\n%s", value, err, m)
	}
	method, rest, _ := strings.Cut(m, " ")
	uri, _, _ := strings.Cut(rest, " ")
	chal := digest.Challenge{Realm: c.Realm, Nonce: c.Nonce, Algorithm: c.Algorithm}
	if c.QOP != "" {
		chal.QOP = []string{c.QOP}
	}
	want, err := digest.Digest(&chal, digest.Options{Method: method, URI: uri, GetBody: hashed(bodyOf(m)), Username: username,
		Password: password, Count: c.Nc, Cnonce: c.Cnonce})
	if err != nil || want.Response != c.Response || c.URI != uri || c.Username != username {
		t.Errorf("it proves nothing: %s", value)
	}
	return c
}

// TestReplay eavesdrops a call's credentials and reuses them.
func TestReplay(t *testing.T) {
	t.Parallel()
	own := Trunk{ID: 3, Number: "+15550001111", Username: "bob", Password: "right"}
	a := newAnswerer(0)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(own)})
	w := newWire(t, "127.0.0.1")
	uri := "sip:+15550001111@" + s.Addr().String()
	invite := func(w *wire, callID string, seq int, headers ...string) string {
		w.send(s.Addr(), w.message("INVITE", uri, "<"+uri+">", callID, seq, sdp(w.addr()), headers...))
		return w.finalOf(callID, seq)
	}
	login := func(challenge string, count int) string {
		c, err := digest.ParseChallenge(challenge)
		if err != nil {
			t.Fatal(err)
		}
		cred, err := digest.Digest(c, digest.Options{Method: "INVITE", URI: uri, Username: "bob", Password: "right",
			Count: count})
		if err != nil {
			t.Fatal(err)
		}
		return "Authorization: " + cred.String()
	}
	refused := invite(w, "one", 1)
	if !strings.HasPrefix(refused, "SIP/2.0 401") {
		t.Fatal(refused)
	}
	credentials := login(field(refused, "WWW-Authenticate"), 1)
	if res := invite(w, "one", 2, credentials); !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Fatal(res)
	}
	in := a.next(t)
	for name, from := range map[string]*wire{"the same": w, "another": newWire(t, "127.0.0.2")} {
		res := invite(from, "two-"+name, 1, credentials)
		if !strings.HasPrefix(res, "SIP/2.0 401") || !strings.Contains(field(res, "WWW-Authenticate"), "stale=true") {
			t.Errorf("credentials used again from %s address: %s", name, res)
		}
	}
	if res := invite(w, "three", 1, login(field(refused, "WWW-Authenticate"), 2)); !strings.HasPrefix(res,
		"SIP/2.0 200") {
		t.Errorf("the same nonce with the next count: %s", res)
	}
	in.stop(errDone)
	old := digest.Challenge{Realm: realm, Nonce: s.digest.nonce(netip.MustParseAddr("127.0.0.1"),
		time.Now().Add(-time.Hour)), Algorithm: "MD5", QOP: []string{"auth"}}
	if res := invite(w, "four", 1, login(old.String(), 1)); !strings.HasPrefix(res, "SIP/2.0 401") {
		t.Errorf("an old nonce: %s", res)
	}
	// A client that guesses passwords is soon ignored.
	guesser := newWire(t, "127.0.0.3")
	for i := range maxFailures {
		c, err := digest.ParseChallenge(field(invite(guesser, fmt.Sprint("guess", i), 1), "WWW-Authenticate"))
		if err != nil {
			t.Fatal(err)
		}
		cred, err := digest.Digest(c, digest.Options{Method: "INVITE", URI: uri, Username: "bob",
			Password: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		if res := invite(guesser, fmt.Sprint("guess", i), 2, "Authorization: "+
			cred.String()); !strings.HasPrefix(res, "SIP/2.0 403") {
			t.Errorf("guess %d: %s", i, res)
		}
	}
	guesser.send(s.Addr(), guesser.message("INVITE", uri, "<"+uri+">", "again", 1, sdp(w.addr())))
	if m := guesser.receive(300 * time.Millisecond); m != "" {
		t.Errorf("after %d wrong passwords still an answer: %s", maxFailures, m)
	}
}

// TestStrangers sends what scanners send: nothing comes back, over UDP or TCP, and no call is made.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for name, trunks := range map[string][]Trunk{
		"no trunks": nil,
		"known by address": {{ID: 1, Number: "+15550001111", Address: "10.0.0.1", ByIP: true,
			Allowed: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
		"by password": {{ID: 1, Number: "+15550001111", Address: "10.0.0.1", Username: "bob", Password: "right"}},
		"password, placed": {{ID: 1, Number: "+15550001111", Address: "10.0.0.1", Username: "bob",
			Password: "right", Allowed: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			s := start(t, Config{Softphone: true, Trunks: fixed(trunks...),
				Answer: func(context.Context, *Invite) { calls.Add(1) }})
			w := newWire(t, "127.0.0.2")
			uri := "sip:100@" + s.Addr().String()
			number := uri
			if name == "password, placed" {
				number = "sip:+15550001111@" + s.Addr().String()
			}
			for _, m := range []string{
				w.message("INVITE", number, "<"+number+">", "a", 1, sdp(w.addr())),
				w.message("INVITE", "sip:1@"+s.Addr().String(), "<"+uri+">", "a2", 1, sdp(w.addr())),
				w.message("OPTIONS", uri, "<"+uri+">", "b", 1, ""),
				w.message("REGISTER", uri, "<"+uri+">", "c", 1, ""),
				w.message("BYE", uri, "<"+uri+">;tag=x", "d", 1, ""),
				w.message("INVITE", uri, "<"+uri+">;tag=x", "e", 1, sdp(w.addr())),
				w.message("CANCEL", uri, "<"+uri+">", "a", 1, ""),
				w.message("SUBSCRIBE", uri, "<"+uri+">", "f", 1, ""),
				w.message("NONSENSE", uri, "<"+uri+">", "g", 1, ""),
				strings.Replace(w.message("OPTIONS", uri, "<"+uri+">", "h", 1, ""), "SIP/2.0\r\n", "SIP/7.0\r\n", 1),
				strings.Replace(w.message("OPTIONS", uri, "<"+uri+">", "i", 1, ""), "CSeq", "X-CSeq", 1),
				"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKx\r\nCSeq: 1 INVITE\r\nFrom: <sip:a@b>;tag=a\r\nTo: <sip:a@b>;tag=b\r\n" +
					"Call-ID: x\r\nContent-Length: 0\r\n\r\n",
				"OPTIONS", "\r\n\r\n", "\x00\x01\x02", strings.Repeat("A", 20000),
			} {
				w.send(s.Addr(), m)
			}
			if m := w.receive(200 * time.Millisecond); m != "" {
				t.Errorf("an answer:\n%s", m)
			}
			if calls.Load() != 0 {
				t.Errorf("%d calls", calls.Load())
			}
			if n := s.firewall.turned(); n < 14 {
				t.Errorf("only %d were counted", n)
			}
		})
	}
	t.Run("TCP", func(t *testing.T) {
		t.Parallel()
		trunk := Trunk{ID: 1, Number: "+15550001111", Username: "bob", Password: "right"}
		s := start(t, Config{Trunks: fixed(trunk)})
		c := newWire(t, "127.0.0.2")
		text := c.message("OPTIONS", "sip:x@y", "<sip:x@y>", "tcp", 1, "") + "\r\n\r\n" +
			c.message("INVITE", "sip:x@y", "<sip:x@y>", "tcp2", 1, "")
		if got := byTCP(t, "127.0.0.2", s.Addr(), text, 200*time.Millisecond); got != "" {
			t.Errorf("an answer: %s", got)
		}
		if got := byTCP(t, "127.0.0.2", s.Addr(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n", hang); got != "" {
			t.Errorf("an answer: %s", got)
		}
	})
}

func TestSoftphone(t *testing.T) {
	t.Parallel()
	a := newAnswerer(1000)
	s := start(t, Config{Softphone: true, Answer: a.answer})
	w := newWire(t, "127.0.0.1")
	uri := "sip:42@" + s.Addr().String()
	w.send(s.Addr(), w.message("REGISTER", "sip:"+s.Addr().String(), "<"+uri+">", "reg", 1, "", "Expires: 600"))
	if m := w.final(); !strings.HasPrefix(m, "SIP/2.0 200") || field(m, "Contact") != "<sip:wire@"+
		w.addr().String()+">;expires=600" {
		t.Errorf("REGISTER: %s", m)
	}
	w.send(s.Addr(), w.message("OPTIONS", uri, "<"+uri+">", "opt", 1, ""))
	if m := w.final(); !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Errorf("OPTIONS: %s", m)
	}
	caller := start(t, Config{})
	l, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: s.Addr().String()}, To: "42", From: "me"})
	if err != nil {
		t.Fatal(err)
	}
	r := run(l, newPhone(440))
	in := a.next(t)
	if in.in.Trunk != nil || in.in.AssistantID != 42 || in.in.From != "me" {
		t.Errorf("%+v", in.in)
	}
	in.phone.hears(t, 440)
	r.hangUp(t)
	if _, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: s.Addr().String()}, To: "bob",
		From: "me"}); codeOf(err) != "404" {
		t.Errorf("no assistant: %v", err)
	}
	// When it is off, it does not exist for anybody.
	off := start(t, Config{Answer: a.answer})
	w.send(off.Addr(), w.message("INVITE", "sip:42@"+off.Addr().String(), "<"+uri+">", "off", 1, sdp(w.addr())))
	if m := w.receive(200 * time.Millisecond); m != "" {
		t.Errorf("an answer: %s", m)
	}
}

// registrar is a wire that accepts registrations.
func TestRegister(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	trunk := f.trunk()
	trunk.Register = true
	var trunks atomic.Pointer[[]Trunk]
	trunks.Store(&[]Trunk{trunk})
	a := newAnswerer(0)
	s := prepare(t, Config{Answer: a.answer, Trunks: func(context.Context) ([]Trunk, error) {
		return *trunks.Load(),
			nil
	}})
	stop := launch(t, s)
	registered := func(want bool) {
		t.Helper()
		for give := time.Now().Add(hang); s.Registered(1) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(give) {
				t.Fatalf("registered is not %v", want)
			}
		}
	}
	m := f.take("REGISTER")
	if !strings.HasPrefix(m, "REGISTER sip:"+f.addr().String()+" SIP/2.0") ||
		!strings.HasPrefix(field(m, "From"), "<sip:alice@127.0.0.1>") || field(m, "To") != "<sip:alice@127.0.0.1>" {
		t.Errorf("REGISTER:\n%s", m)
	}
	if s.Registered(1) {
		t.Error("registered before the answer")
	}
	f.reply(m, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"`)
	m = f.take("REGISTER")
	proves(t, m, "Authorization", "alice", "secret")
	f.reply(m, "423 Interval Too Brief", "", "Min-Expires: 7200")
	m = f.take("REGISTER")
	if field(m, "Expires") != "7200" {
		t.Errorf("Expires: %s", field(m, "Expires"))
	}
	contact, _, _ := strings.Cut(field(m, "Contact"), ";")
	f.reply(m, "200 OK", "", "Contact: <sip:other@192.0.2.1>;expires=10", "Contact: "+contact+";expires=7200")
	registered(true)
	if h, err := s.Check(soon(t), Trunk{ID: 1, Address: "127.0.0.1:1", Transport: "tcp"}); err == nil || !h.Registered {
		t.Errorf("%+v, %v", h, err)
	}

	// A call from the registrar comes through our registration; a call from elsewhere must prove the password.
	uri := strings.Trim(contact, "<>")
	deadline := time.Now().Add(hang)
	for len(s.index.Load().homes) == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	f.send(s.Addr(), f.message("INVITE", uri, "<"+uri+">", "in", 1, sdp(f.addr())))
	res := f.final()
	if !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Errorf("from the registrar: %s", res)
	}
	f.send(s.Addr(), f.message("ACK", uri, field(res, "To"), "in", 1, ""))
	in := a.next(t)
	if in.in.Trunk.ID != 1 || in.in.To != "+15550002222" {
		t.Errorf("%+v", in.in)
	}
	other := newWire(t, "127.0.0.1")
	number := "sip:+15550002222@" + s.Addr().String()
	other.send(s.Addr(), other.message("INVITE", number, "<"+number+">", "in2", 1, sdp(f.addr())))
	if res := other.final(); !strings.HasPrefix(res, "SIP/2.0 401") {
		t.Errorf("from elsewhere: %s", res)
	}
	in.stop(errDone)
	f.reply(f.take("BYE"), "200 OK", "")

	// After a change we register anew, and remove the old registration first.
	changed := trunk
	changed.Password = "other"
	trunks.Store(&[]Trunk{changed})
	s.Refresh()
	gone, anew := "", ""
	for gone == "" || anew == "" {
		if m := f.take("REGISTER"); field(m, "Expires") == "0" {
			gone = m
			f.reply(m, "200 OK", "")
		} else if anew = m; true {
			f.reply(m, "403 Forbidden", "")
		}
	}
	registered(false)
	there := answers(t).String()
	for give := time.Now().Add(hang); ; {
		_, err := s.Check(soon(t), Trunk{ID: 1, Register: true, Address: there})
		if err != nil && strings.Contains(err.Error(), "password") {
			break
		}
		if time.Now().After(give) {
			t.Fatalf("check: %v", err)
		}
	}
	stop()
}

// answers returns an address that answers OPTIONS.
func answers(t testing.TB) netip.AddrPort {
	return start(t, Config{Softphone: true}).Addr()
}

func TestUnregisterAtStop(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	trunk := f.trunk()
	trunk.Register = true
	s := prepare(t, Config{Trunks: fixed(trunk)})
	stop := launch(t, s)
	f.reply(f.take("REGISTER"), "200 OK", "", "Expires: 60")
	for give := time.Now().Add(hang); !s.Registered(1) && time.Now().Before(give); {
		time.Sleep(time.Millisecond)
	}
	go stop()
	for {
		m := f.take("REGISTER")
		f.reply(m, "200 OK", "")
		if field(m, "Expires") == "0" {
			break
		}
	}
	stop()
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s, patient := prepare(t, Config{}), start(t, Config{})
	s.asking = time.Second
	launch(t, s)
	if h, err := patient.Check(soon(t), Trunk{Address: answers(t).String()}); err != nil || h.OptionsMS < 1 || h.Registered {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := patient.Check(soon(t), Trunk{Address: answers(t).String(), Transport: "tcp"}); err != nil ||
		h.OptionsMS < 1 {
		t.Errorf("TCP: %+v, %v", h, err)
	}
	silent := newWire(t, "127.0.0.1")
	if _, err := s.Check(soon(t), Trunk{Address: silent.addr().String()}); err == nil ||
		!strings.Contains(err.Error(), "no answer from "+silent.addr().String()+" within 1s") {
		t.Errorf("silent: %v", err)
	}
	// An unknown name, a closed port, and a port where another protocol is spoken all look like silence, and take
	// equally long.
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for c, err := other.Accept(); err == nil; c, err = other.Accept() {
			_, _ = c.Write([]byte("220 mail.example.com ESMTP\r\n"))
			c.Close()
		}
	}()
	for what, trunk := range map[string]Trunk{
		"a closed port":           {Number: "+1", Address: "127.0.0.1:1", Transport: "tcp"},
		"a closed port, over UDP": {Number: "+1", Address: "127.0.0.1:1"},
		"something else":          {Number: "+1", Address: other.Addr().String(), Transport: "tcp"},
		"no name":                 {Number: "+1", Address: "nobody.invalid:5060"},
	} {
		began := time.Now()
		_, err := s.Check(soon(t), trunk)
		transport := strings.ToUpper(trunk.Transport)
		if transport == "" {
			transport = "UDP"
		}
		if want := "no answer from " + trunk.Address + " within 1s: check the address and the transport (" +
			transport + "), and that it lets this server in"; fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
		if took := time.Since(began); took < time.Second {
			t.Errorf("%s is told from silence by its %s", what, took)
		}
	}
	f := newFar(t)
	got := make(chan error, 1)
	go func() {
		_, err := patient.Check(soon(t), f.trunk())
		got <- err
	}()
	for range 2 {
		f.reply(f.take("OPTIONS"), "401 Unauthorized", "", `WWW-Authenticate: Digest realm="r", nonce="n"`)
	}
	if err := get(t, got); err == nil || !strings.Contains(err.Error(), "password was refused") {
		t.Errorf("a wrong password: %v", err)
	}
	if _, err := New(Config{Listen: "off"}).Check(soon(t), f.trunk()); err == nil ||
		!strings.Contains(err.Error(), "PARLEY_SIP_LISTEN") {
		t.Errorf("off: %v", err)
	}
}

// TestRegisterOverTCP loses the connection of its registration: without a new one no call would come in.
func TestRegisterOverTCP(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := start(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Address: l.Addr().String(),
		Transport: "tcp", Username: "alice", Password: "secret", Register: true})})
	for range 2 {
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(hang))
		c, err := l.Accept()
		if err != nil {
			t.Fatalf("nobody registers: %v", err)
		}
		_ = c.SetReadDeadline(time.Now().Add(hang))
		buf := make([]byte, 8192)
		n, err := c.Read(buf)
		if err != nil || !strings.HasPrefix(string(buf[:n]), "REGISTER ") {
			t.Fatalf("%q, %v", buf[:n], err)
		}
		m := string(buf[:n])
		lines := []string{"SIP/2.0 200 OK"}
		for _, name := range []string{"Via", "From", "Call-ID", "CSeq"} {
			lines = append(lines, name+": "+field(m, name))
		}
		lines = append(lines, "To: "+field(m, "To")+";tag=far", "Expires: 3600", "Content-Length: 0", "", "")
		if _, err := c.Write([]byte(strings.Join(lines, "\r\n"))); err != nil {
			t.Fatal(err)
		}
		for give := time.Now().Add(hang); !s.Registered(1) && time.Now().Before(give); {
			time.Sleep(time.Millisecond)
		}
		c.Close()
	}
}

func TestNextHop(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Listen: "0.0.0.0:0"})
	source := netip.MustParseAddrPort("203.0.113.5:7777")
	for _, c := range []struct{ contact, route, source, want string }{
		{"sip:x@198.51.100.1:5070", "", "", "198.51.100.1:5070"},
		{"sip:x@198.51.100.1", "", "", "198.51.100.1:5060"},
		{"sip:x@198.51.100.1:5070", "sip:198.51.100.9:5080;lr", "", "198.51.100.9:5080"},
		{"sip:x@192.168.1.5:5070", "", "", "203.0.113.5:7777"}, // written behind a NAT
		{"sip:x@0.0.0.0:5070", "", "", "203.0.113.5:7777"},
		{"sip:x@192.168.1.5:5070", "", "10.0.0.5:7777", "192.168.1.5:5070"}, // on the same internal network as we are
	} {
		d := dialog{server: s, hop: hop{addr: source}}
		if c.source != "" {
			d.hop.addr = netip.MustParseAddrPort(c.source)
		}
		if err := sipgo.ParseUri(c.contact, &d.target); err != nil {
			t.Fatal(err)
		}
		if c.route != "" {
			d.route = make([]sipgo.Uri, 1)
			if err := sipgo.ParseUri(c.route, &d.route[0]); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.next(soon(t)).addr.String(); got != c.want {
			t.Errorf("contact %s, route %q: %s, want %s", c.contact, c.route, got, c.want)
		}
	}
}

// A contact that stays the same is kept while a trunk's settings change: no goodbye ends what the next registration has begun. Another
// user is another registration, and the former one says goodbye.
func TestContactStays(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	trunk := f.trunk()
	trunk.Register = true
	var trunks atomic.Pointer[[]Trunk]
	trunks.Store(&[]Trunk{trunk})
	s := start(t, Config{Contact: func(trunk int64) string { return fmt.Sprintf("pcontact%d", trunk) },
		Trunks: func(context.Context) ([]Trunk, error) { return *trunks.Load(), nil }})
	m := f.take("REGISTER")
	f.reply(m, "200 OK", "", "Expires: 3600")
	for give := time.Now().Add(hang); !s.Registered(1) && time.Now().Before(give); {
		time.Sleep(time.Millisecond)
	}
	if !strings.Contains(field(m, "Contact"), "<sip:pcontact1@") {
		t.Errorf("Contact %s", field(m, "Contact"))
	}
	changed := trunk
	changed.Name = "Bakery"
	trunks.Store(&[]Trunk{changed})
	s.Refresh()
	anew := f.take("REGISTER")
	if !s.Registered(1) {
		t.Error("it counts as not registered meanwhile")
	}
	f.reply(anew, "200 OK", "", "Expires: 3600")
	before, _, _ := strings.Cut(field(m, "Contact"), ">")
	if now, _, _ := strings.Cut(field(anew, "Contact"), ">"); now != before || field(anew, "Expires") == "0" {
		t.Errorf("after a change of the name: Contact %s, before %s", field(anew, "Contact"), before)
	}
	another := changed
	another.Username = "bob"
	trunks.Store(&[]Trunk{another})
	s.Refresh()
	said := map[string]string{}
	for len(said) < 2 {
		m := f.take("REGISTER")
		f.reply(m, "200 OK", "", "Expires: 3600")
		if field(m, "Call-ID") == field(anew, "Call-ID") == (field(m, "Expires") != "0") {
			t.Errorf("a goodbye of the first registration, or none of the second:\n%s", m)
		}
		user, _, _ := strings.Cut(strings.TrimPrefix(field(m, "To"), "<sip:"), "@")
		said[user] = field(m, "Expires")
	}
	if said["alice"] != "0" || said["bob"] == "0" {
		t.Errorf("after a change of the user: %v", said)
	}
}
