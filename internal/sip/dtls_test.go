package sip

import (
	"errors"
	"strings"
	"testing"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
)

// TestDTLS: both ends find keys by themselves, for a call and for whoever takes its place, and nobody falls back to sound
// in the clear.
func TestDTLS(t *testing.T) {
	t.Parallel()
	for _, theirs := range []string{"optional", "required", "dtls"} {
		t.Run(theirs, func(t *testing.T) {
			t.Parallel()
			a := newAnswerer(1000)
			callee := start(t,
				Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback, SRTP: theirs})})
			caller := start(t, Config{})
			trunk := Trunk{ID: 7, Number: "+15550002222", Address: callee.Addr().String(), SRTP: "dtls"}
			l, err := caller.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
			if err != nil {
				t.Fatal(err)
			}
			out, in := run(l, newPhone(440)), a.next(t)
			out.phone.hears(t, 1000)
			in.phone.hears(t, 440)
			for _, l := range []audio.Leg{out.leg, in.leg} {
				st := &l.(*leg).state
				st.Lock()
				mux := st.agreed.Mux
				st.Unlock()
				if s := l.(*leg).Stats(); s.Suite.Size() == 0 || !mux {
					t.Errorf("%+v, RTCP on the same port: %v", s, mux)
				}
			}
			// A change of nothing keeps the keys.
			if res, err := out.leg.(*leg).reoffer(soon(t), func(*sipgo.Request) {}); err != nil || !res.IsSuccess() {
				t.Error(err)
			}
			before := in.phone.count()
			in.phone.await(t, "it hears on", func() bool { return in.phone.ticks > before+50 })
			in.phone.hears(t, 440)
			out.hangUp(t)
			in.ends(t, parley.CustomerHangup)
		})
	}
}

// TestDTLSFails: who shows another certificate than the one that was named is hung up on at once, and the trunk's owner is
// told why.
func TestDTLSFails(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	callee := start(t,
		Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback, SRTP: "dtls"})})
	caller := prepare(t, Config{})
	identity, err := rtp.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	named := *caller.identity
	named.Print = identity.Print
	caller.identity = &named
	launch(t, caller)
	trunk := Trunk{ID: 7, Number: "+15550002222", Address: callee.Addr().String(), SRTP: "dtls"}
	l, err := caller.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
	if err != nil {
		t.Fatal(err)
	}
	out, in := run(l, newPhone(440)), a.next(t)
	told := ""
	for _, one := range []*running{out, in.running} {
		err := get(t, one.over)
		if !errors.Is(err, parley.MediaTimeout) && !errors.Is(err, parley.CustomerHangup) {
			t.Error(err)
		}
		told += parley.Explanation(err)
	}
	if !strings.Contains(told, "DTLS-SRTP") { // the other one may be hung up on before it knows
		t.Errorf("the owners are told %q", told)
	}
}

func (p *phone) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticks
}

// TestDTLSAlone: a trunk that asks for DTLS takes nothing else, either way.
func TestDTLSAlone(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	trunk := f.trunk()
	trunk.SRTP = "dtls"
	out := make(chan error, 1)
	go func() {
		_, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
		out <- err
	}()
	m := f.take("INVITE")
	if strings.Contains(m, "a=crypto") || !strings.Contains(m, " UDP/TLS/RTP/SAVP ") || !strings.Contains(m, "a=setup:actpass\r\n") ||
		!strings.Contains(m, "a=fingerprint:sha-256 ") || !strings.Contains(m, "a=rtcp-mux\r\n") {
		t.Errorf("the offer:\n%s", m)
	}
	f.reply(m, "200 OK", sdp(f.rtp.addr()))
	f.take("ACK")
	f.reply(f.take("BYE"), "200 OK", "")
	if err := get(t, out); err == nil || !strings.Contains(parley.Explanation(err), "DTLS-SRTP") {
		t.Error(err)
	}

	a := newAnswerer(0)
	s = start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback, SRTP: "dtls"})})
	w := newWire(t, "127.0.0.1")
	c := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	for _, rest := range [][]string{nil, {"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"}} {
		c.callID, c.to, c.seq = token(20), "", 1
		if res := c.ask("INVITE", sdp(c.rtp.addr(), rest...)); !strings.HasPrefix(res, "SIP/2.0 488") {
			t.Errorf("%v: %s", rest, res)
		}
	}
}

// TestFingerprints is which handshakes a description asks for.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	const print = "4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB:3E:5D:49:6B:19:E5:7C:AB:3E:5D:49:6B"
	for text, want := range map[string]*rtp.DTLS{
		"a=fingerprint:sha-256 " + print + "\r\na=setup:actpass\r\nm=audio 4 UDP/TLS/RTP/SAVP 0\r\n": {Hash: "sha-256",
			Print: print, Active: true},
		"m=audio 4 UDP/TLS/RTP/SAVPF 0\r\na=setup:active\r\na=fingerprint:SHA-256 " + strings.ToLower(print) +
			"\r\n": {Hash: "sha-256", Print: print},
		"m=audio 4 RTP/SAVPF 0\r\na=setup:passive\r\na=fingerprint:sha-256 " + print + "\r\n": {Hash: "sha-256",
			Print: print, Active: true},
		"m=audio 4 UDP/TLS/RTP/SAVP 0\r\na=setup:actpass\r\n":                                         nil,
		"m=audio 4 UDP/TLS/RTP/SAVP 0\r\na=setup:holdconn\r\na=fingerprint:sha-256 " + print + "\r\n": nil,
		"m=audio 4 UDP/TLS/RTP/SAVP 0\r\na=fingerprint:md5 00:11\r\na=setup:actpass\r\n":              nil,
		"m=audio 4 UDP/TLS/RTP/SAVP 0\r\na=fingerprint:sha-1 00:11\r\na=fingerprint:sha-256 " + print +
			"\r\na=setup:actpass\r\n": {Hash: "sha-256", Print: print, Active: true},
		"m=audio 4 UDP/TLS/RTP/SAVP 0\r\na=fingerprint:sha-256 x\r\nX: y\r\n": nil,
	} {
		d, err := parseSDP([]byte("v=0\r\nc=IN IP4 192.0.2.1\r\n" + text))
		if err != nil {
			if want != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		c, ok := d.audio(0, nil, srtpDTLS)
		if ok != (want != nil) || ok && *c.dtls != *want {
			t.Errorf("%q: %+v", text, c.dtls)
		}
		if _, off := d.audio(0, nil, srtpOff); off {
			t.Errorf("%q: it is taken where sound is not encrypted", text)
		}
	}
}
