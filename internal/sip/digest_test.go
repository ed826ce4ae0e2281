package sip

import (
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/icholy/digest"

	"parley/internal/parley"
)

// fields returns the values of a header that may occur several times.
func fields(message, name string) (list []string) {
	for line := range strings.SplitSeq(message, "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(k, name) {
			list = append(list, strings.TrimSpace(v))
		}
	}
	return list
}

// TestChallenges answers the challenges of proxies and servers on a call's way.
func TestChallenges(t *testing.T) {
	t.Parallel()
	const asks, proxy = "401 Unauthorized", "407 Proxy Authentication Required"
	challenge := func(header, realm, nonce, rest string) string {
		return fmt.Sprintf(`%s: Digest realm="%s", nonce="%s"%s`, header, realm, nonce, rest)
	}
	www, via := "WWW-Authenticate", "Proxy-Authenticate"
	for name, c := range map[string]struct {
		status  string
		headers []string
		want    []string // "header realm nonce algorithm qop nc" of what is sent
	}{
		"the first of several algorithms": {asks, []string{challenge(www, "far", "1", `, algorithm=SHA-256, qop="auth"`),
			challenge(www, "far", "2", `, algorithm=MD5, qop="auth"`)}, []string{"Authorization far 1 SHA-256 auth 1"}},
		"the first that is known": {asks, []string{challenge(www, "far", "1", `, algorithm=SHA3-512`),
			challenge(www, "far", "2", `, algorithm=AKAv1-MD5`), challenge(www, "far", "3", `, algorithm=MD5`)},
			[]string{"Authorization far 3 MD5  0"}},
		"another scheme before it": {asks, []string{www + `: Bearer realm="far"`, challenge(www, "far", "1", "")},
			[]string{"Authorization far 1   0"}},
		"auth-int alone": {proxy, []string{challenge(via, "far", "1", `, algorithm=SHA-256, qop="auth-int"`)},
			[]string{"Proxy-Authorization far 1 SHA-256 auth-int 1"}},
		"auth rather than auth-int": {proxy, []string{challenge(via, "far", "1", `, qop="auth-int, AUTH"`)},
			[]string{"Proxy-Authorization far 1  auth 1"}},
		"several realms": {proxy, []string{challenge(via, "one", "1", `, qop="auth"`), challenge(via, "two", "2", `, qop="auth"`)},
			[]string{"Proxy-Authorization one 1  auth 1", "Proxy-Authorization two 2  auth 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := newFar(t), start(t, Config{})
			out := f.dial(soon(t), s, newPhone(0))
			m := f.take("INVITE")
			f.reply(m, c.status, "", c.headers...)
			f.take("ACK")
			m = f.take("INVITE")
			if got := sent(t, m); strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("sent %q, want %q", got, c.want)
			}
			f.reply(m, "200 OK", sdp(f.rtp.addr()))
			if got := fields(f.take("ACK"), "Proxy-Authorization"); c.status == proxy && len(got) != len(c.want) {
				t.Errorf("ACK with %q", got)
			}
			d := get(t, out)
			if d.err != nil {
				t.Fatal(d.err)
			}
			d.leg.stop(errDone)
			f.reply(f.take("BYE"), "200 OK", "")
			d.leg.ends(t, errDone)
		})
	}
}

// sent lists a request's credentials, each of which must be right.
func sent(t *testing.T, m string) (list []string) {
	t.Helper()
	for _, header := range []string{"Authorization", "Proxy-Authorization"} {
		for _, v := range fields(m, header) {
			c := proved(t, m, v, "alice", "secret")
			list = append(list, fmt.Sprint(header, " ", c.Realm, " ", c.Nonce, " ", c.Algorithm, " ", c.QOP, " ", c.Nc))
		}
	}
	return list
}

// TestChallengeChain is challenged by a proxy, then by the server behind it, then by the proxy because of an old
// nonce: each gets its own answer, which was not used before.
func TestChallengeChain(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	out := f.dial(soon(t), s, newPhone(0))
	ask := func(status, challenge string) {
		f.reply(f.take("INVITE"), status, "", challenge)
		f.take("ACK")
	}
	ask("407 Proxy Authentication Required", `Proxy-Authenticate: Digest realm="proxy", nonce="a", qop="auth"`)
	ask("401 Unauthorized", `WWW-Authenticate: Digest realm="carrier", nonce="b", qop="auth", algorithm=SHA-256`)
	ask("407 Proxy Authentication Required", `Proxy-Authenticate: Digest realm="proxy", nonce="c", qop="auth", stale=TRUE`)
	m := f.take("INVITE")
	want := "Authorization carrier b SHA-256 auth 2|Proxy-Authorization proxy c  auth 1"
	if got := strings.Join(sent(t, m), "|"); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	f.reply(m, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="carrier", nonce="d", qop="auth", algorithm=SHA-256`)
	f.take("ACK")
	if d := get(t, out); codeOf(d.err) != "401" || !errors.Is(d.err, errPassword) {
		t.Errorf("got %v", d.err)
	}
}

// TestCredentials calls with each way of proving the password that we offer.
func TestCredentials(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 3, Number: "+15550001111", Username: "bob", Password: "right"})})
	for name, c := range map[string]struct{ algorithm, qop, body, want string }{
		"MD5":                          {"MD5", "auth", "", "200"},
		"SHA-256":                      {"SHA-256", "auth", "", "200"},
		"SHA-256, the body too":        {"SHA-256", "auth-int", "", "200"},
		"MD5, the body too":            {"MD5", "auth-int", "", "200"},
		"the body too, but of another": {"SHA-256", "auth-int", "another", "403"},
		"without qop":                  {"MD5", "", "", "200"},
		"an algorithm not offered":     {"SHA-512-256", "auth", "", "401"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, "127.0.0.1")
			c0 := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
			body := sdp(c0.rtp.addr())
			refused := c0.ask("INVITE", body)
			offers := fields(refused, "WWW-Authenticate")
			if len(offers) != 2 || !strings.Contains(offers[0], "algorithm=MD5") || !strings.Contains(offers[1], "algorithm=SHA-256") {
				t.Fatalf("offered %q", offers)
			}
			challenge, err := digest.ParseChallenge(offers[0])
			if err != nil {
				t.Fatal(err)
			}
			challenge.Algorithm, challenge.QOP = c.algorithm, nil
			if c.qop != "" {
				challenge.QOP = []string{c.qop}
			}
			said := body
			if c.body != "" {
				said = c.body
			}
			credentials, err := digest.Digest(challenge, digest.Options{Method: "INVITE", URI: c0.number(), Username: "bob",
				Password: "right", GetBody: hashed(said)})
			if err != nil {
				t.Fatal(err)
			}
			c0.seq, c0.to = 2, ""
			res := c0.ask("INVITE", body, `Authorization: Digest realm="elsewhere", username="x", nonce="y", uri="z", response="0"`,
				"Authorization: "+credentials.String())
			if !strings.HasPrefix(res, "SIP/2.0 "+c.want) {
				t.Fatalf("%s: want %s", res, c.want)
			}
			if c.want == "200" {
				c0.ack("")
				in := a.next(t)
				c0.ask("BYE", "")
				in.ends(t, parley.CustomerHangup)
			}
		})
	}
}

// hashOf is the hash of an algorithm of RFC 7616.
func hashOf(algorithm string) func(string) string {
	if strings.HasPrefix(strings.ToUpper(algorithm), "SHA-256") {
		return func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	}
	return func(s string) string { return fmt.Sprintf("%x", md5.Sum([]byte(s))) }
}
