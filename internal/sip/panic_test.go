package sip

import (
	"errors"
	"testing"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
)

// brittle is a person whose listening panics.
type brittle struct{ *phone }

func (brittle) Hear(audio.Frame) { panic("planted") }

// A panic in the sound of one call ends that call, whose far end hears of it. Another call goes on, and what its owner is told has
// the panic.
func TestPanic(t *testing.T) {
	a := newAnswerer(1000)
	caller, _, trunk := pair(t, "udp", a)
	dial := func(p audio.Peer) (audio.Leg, chan error) {
		l, err := caller.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- l.Run(soon(t), p) }()
		return l, over
	}
	good := newPhone(440)
	well, ended := dial(good)
	theirs := a.next(t)
	theirs.phone.hears(t, 440)
	_, broke := dial(brittle{newPhone(440)})
	their := a.next(t)
	if err := <-broke; !errors.Is(err, parley.ProviderFailure) || !crash.Is(err) {
		t.Errorf("ended with %v", err)
	}
	their.ends(t, parley.CustomerHangup)
	good.hears(t, 1000)
	well.Hangup()
	if err := <-ended; !errors.Is(err, parley.AssistantHangup) {
		t.Errorf("the other ended with %v", err)
	}
	theirs.ends(t, parley.CustomerHangup)
}
