package sip

import (
	"net/netip"
	"testing"

	"parley/internal/audio"
)

// TestEarlyHeard: a peer that wants to hear the sound before an answer hears it, and the peer that gets the call
// afterwards hears what comes then.
func TestEarlyHeard(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]string{"answered": "200 OK", "refused": "486 Busy Here"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := newFar(t), start(t, Config{})
			before, after := newPhone(700), newPhone(0)
			rates := make(chan audio.Rate, 9)
			out := make(chan dialled, 1)
			go func() {
				l, err := s.Dial(soon(t), Dialling{Trunk: f.trunk(), To: "+15550001111", From: "+15550002222",
					Early: func(r audio.Rate) audio.Peer { rates <- r; return before }})
				if err != nil {
					out <- dialled{err: err}
					return
				}
				out <- dialled{leg: run(l, after)}
			}()
			m := f.take("INVITE")
			d, err := parseSDP([]byte(bodyOf(m)))
			if err != nil {
				t.Fatal(err)
			}
			to := netip.AddrPortFrom(d.streams[0].addr, uint16(d.streams[0].port))
			f.reply(m, "180 Ringing", "")
			f.reply(m, "183 Session Progress", sdp(f.rtp.addr()))
			hush := f.rtp.talk(to, 440, 1)
			before.hears(t, 440)
			if r := get(t, rates); r != audio.Narrow {
				t.Errorf("at %d Hz", r)
			}
			f.reply(m, "183 Session Progress", sdp(f.rtp.addr()))
			if p, _ := f.rtp.listen(hang); p == nil || audio.Level(audio.DecodeULaw(nil, p.Payload)) > -60 {
				t.Error("nothing opens the way through a NAT, or the listener is heard")
			}
			hush()
			f.reply(m, status, sdp(f.rtp.addr()))
			f.take("ACK")
			l := get(t, out)
			if status != "200 OK" {
				if codeOf(l.err) != "486" {
					t.Error(l.err)
				}
				return
			}
			before.mu.Lock()
			heard := before.ticks
			before.mu.Unlock()
			hush = f.rtp.talk(to, 1000, 1)
			after.hears(t, 1000)
			hush()
			before.mu.Lock()
			if before.ticks != heard {
				t.Error("the former listener hears the call")
			}
			before.mu.Unlock()
			if len(rates) > 0 {
				t.Error("it began twice")
			}
			l.leg.stop(errDone)
			f.reply(f.take("BYE"), "200 OK", "")
			l.leg.ends(t, errDone)
		})
	}
}

// TestEarlyIgnored: nobody hears what a trunk says before its answer where its setting is so.
func TestEarlyIgnored(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	trunk := f.trunk()
	trunk.NoEarly = true
	out, p, rang := make(chan dialled, 1), newPhone(0), make(chan bool, 1)
	go func() {
		l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222",
			Ringing: func() { rang <- true }, Early: func(audio.Rate) audio.Peer { t.Error("somebody hears it"); return newPhone(0) }})
		if err != nil {
			out <- dialled{err: err}
			return
		}
		out <- dialled{leg: run(l, p)}
	}()
	m := f.take("INVITE")
	d, err := parseSDP([]byte(bodyOf(m)))
	if err != nil {
		t.Fatal(err)
	}
	f.reply(m, "183 Session Progress", sdp(f.rtp.addr()))
	get(t, rang) // it has been looked at
	hush := f.rtp.talk(netip.AddrPortFrom(d.streams[0].addr, uint16(d.streams[0].port)), 440, 1)
	defer hush()
	f.reply(m, "200 OK", sdp(f.rtp.addr()))
	f.take("ACK")
	l := get(t, out)
	p.hears(t, 440)
	l.leg.stop(errDone)
	f.reply(f.take("BYE"), "200 OK", "")
	l.leg.ends(t, errDone)
}
