package sip

import (
	"testing"

	"parley/internal/parley"
)

// TestIPv6: a call over IPv6, its signalling and its sound, by each transport.
func TestIPv6(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			a := newAnswerer(1000)
			callee := start(t, Config{Listen: "[::1]:0", Softphone: true, Answer: a.answer})
			caller := start(t, Config{Listen: "[::1]:0"})
			l, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: callee.Addr().String(), Transport: transport}, To: "42", From: "me"})
			if err != nil {
				t.Fatal(err)
			}
			r := run(l, newPhone(440))
			in := a.next(t)
			r.phone.hears(t, 1000)
			in.phone.hears(t, 440)
			in.stop(errDone)
			r.ends(t, parley.CustomerHangup)
		})
	}
}
