package sip

import (
	"testing"

	"parley/internal/audio"
	"parley/internal/parley"
)

// pair starts two servers; the first calls the second over a trunk that is recognized by its address.
func pair(t testing.TB, transport string, a *answerer) (caller, callee *Server, trunk Trunk) {
	callee = start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback})})
	caller = start(t, Config{})
	return caller, callee, Trunk{ID: 7, Number: "+15550002222", Address: callee.Addr().String(), Transport: transport}
}

func TestCall(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			a := newAnswerer(1000)
			a.ring = make(chan struct{})
			caller, _, trunk := pair(t, transport, a)
			l, err := caller.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222",
				Ringing: func() { close(a.ring) }})
			if err != nil {
				t.Fatal(err)
			}
			if l.Rate() != audio.Wide {
				t.Errorf("rate %d", l.Rate())
			}
			out := run(l, newPhone(440))
			in := a.next(t)
			if in.in.From != "+15550002222" || in.in.To != "+15550001111" || in.in.Trunk.ID != 1 {
				t.Errorf("from %s to %s over %+v", in.in.From, in.in.To, in.in.Trunk)
			}
			out.phone.hears(t, 1000)
			in.phone.hears(t, 440)
			if err := out.leg.Dial("12#"); err != nil {
				t.Error(err)
			}
			in.phone.await(t, "keys came", func() bool { return in.phone.keys == "12#" })
			out.phone.hears(t, 1000)
			out.hangUp(t)
			in.ends(t, parley.CustomerHangup)
		})
	}
}
