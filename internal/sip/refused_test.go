package sip

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// TestRefusedBecause: what a refusal's headers say reaches the error, and whether encryption was offered.
func TestRefusedBecause(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	for name, c := range map[string]struct {
		status, srtp string
		headers      []string
		want         string
	}{
		"nothing": {"486 Busy Here", "", nil, ""},
		"a text": {"503 Service Unavailable", "", []string{`Reason: Q.850;cause=38;text="Network out of order"`},
			"Network out of order"},
		"a cause":          {"503 Service Unavailable", "", []string{"Reason: Q.850 ; cause = 38"}, "Q.850 cause 38"},
		"the status again": {"603 Decline", "", []string{"Reason: SIP;cause=603"}, ""},
		"where to complain": {"603 Network Blocked", "",
			[]string{`Reason: SIP;cause=603;text="v=analytics1;url=https://example.com/a;tel=+15550001"`},
			"v=analytics1;url=https://example.com/a;tel=+15550001"},
		"several, some twice": {"488 Not Acceptable Here", "dtls",
			[]string{`Reason: SIP;cause=488;text="a, \"b\"", Q.850;cause=88`, `Warning: 305 x "no codec", 399 y "no codec"`},
			`a, "b"; Q.850 cause 88; no codec`},
		"a card for complaints": {"608 Rejected", "", []string{"Call-Info: <https://example.com/card>;purpose=jwscard"},
			"complaints: https://example.com/card"},
		"too many": {"500 No", "", []string{`Warning: 1 a "1", 1 a "2", 1 a "3", 1 a "4", 1 a "5"`}, "1; 2; 3; 4"},
		"nonsense": {"500 No", "", []string{`Reason: ;;text`, "Warning: 1", "Call-Info: <"}, ""},
	} {
		f := newFar(t)
		trunk := f.trunk()
		trunk.SRTP = c.srtp
		out := make(chan error, 1)
		go func() {
			_, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
			out <- err
		}()
		f.reply(f.take("INVITE"), c.status, "", c.headers...)
		r, ok := errors.AsType[*Refused](get(t, out))
		if !ok || r.Because != c.want {
			t.Errorf("%s: %+v, want %q", name, r, c.want)
		}
		if ok && r.Secrecy != map[string]string{"": "off"}[c.srtp]+c.srtp {
			t.Errorf("%s: offered with srtp %q", name, r.Secrecy)
		}
	}
}

// TestUnfit: the Warning of a 488 tells encryption from codecs.
func TestUnfit(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort("192.0.2.1:4000")
	plain := sdp(at)
	savp := strings.Replace(sdp(at, "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"),
		"RTP/AVP", "RTP/SAVP", 1)
	strange := strings.Replace(plain, "RTP/AVP 0 101", "RTP/AVP 18 101", 1)
	for name, c := range map[string]struct {
		offer string
		srtp  secrecy
		want  string
	}{
		"plain, and encryption is required": {plain, srtpRequired, "srtp is required"},
		"plain, and DTLS is required":       {plain, srtpDTLS, "srtp is dtls"},
		"encrypted, and that is off":        {savp, srtpOff, "not encrypted here"},
		"a codec that nobody has":           {strange, srtpOff, "G.722, Opus or G.711"},
		"both":                              {strange, srtpRequired, "G.722, Opus or G.711"},
		"no sound":                          {strings.Replace(plain, "m=audio", "m=image", 1), srtpOff, "T.38"},
	} {
		if got := strings.Join(unfit(488, []byte(c.offer), c.srtp), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestLostSource: sound that comes from another address in mid-call is counted, and the end says so.
func TestLostSource(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := prepare(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	s.silent = time.Second
	launch(t, s)
	w := newWire(t, "127.0.0.1")
	c := w.call(s, "")
	in := a.next(t)
	c.rtp.say(c.media(), 440, 1, 10, 1)
	stranger := newWire(t, "127.0.0.2")
	stranger.talk(c.media(), 440, 2)
	var err error
	select {
	case err = <-in.over:
	case <-time.After(hang):
		t.Fatal("the call doesn't end")
	}
	if !errors.Is(err, parley.MediaTimeout) || !strings.Contains(parley.Explanation(err), stranger.addr().String()) ||
		!strings.Contains(parley.Explanation(err), "rtp_source") {
		t.Errorf("%v: %s", err, parley.Explanation(err))
	}
	if m := in.leg.(*leg).Media(); m == nil || m.Strangers == 0 || m.Stranger != stranger.addr().String() || m.Heard.Packets != 10 {
		t.Errorf("%+v", m)
	}
}
