package wire

import (
	"slices"
	"testing"
)

// Writing sound allocates nothing: its buffers are reused.
func TestOutboxAllocatesNothing(t *testing.T) {
	var o Outbox
	frame := make([]int16, 160)
	send := func() { // five frames, then what Run does with them
		for range 5 {
			o.Sound(frame)
		}
		next, _, _ := o.pop()
		o.sent(next)
	}
	send()
	if n := testing.AllocsPerRun(100, send); n > 0 {
		t.Errorf("%v allocations in five frames", n)
	}
}

// Messages and sound keep their order. A message that asks for a reply holds back all but urgent ones, and nothing is
// sent while there is no connection.
func TestOutboxOrder(t *testing.T) {
	var o Outbox
	var got []string
	pop := func(want ...string) {
		t.Helper()
		got = nil
		for next, _, ok := o.pop(); ok; next, _, ok = o.pop() {
			if next.sound {
				got = append(got, "sound")
			} else {
				got = append(got, string(next.data))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q were sent, not %q", got, want)
		}
	}
	o.Send(1)
	o.Sound([]int16{1})
	o.Sound([]int16{2})
	o.Ask(2)
	o.Sound([]int16{3})
	o.Send(3)
	pop("1", "sound", "2")
	o.Hurry(4, false)
	pop("4")
	o.Release()
	o.Hold()
	pop()
	if !o.Unsent() {
		t.Error("nothing waits")
	}
	o.Resume(nil)
	pop("sound", "3")
	o.Hurry(5, true)
	o.Send(6)
	pop("5")
	o.Release()
	pop("6")
}

// A message that is released before it has left holds nothing back.
func TestOutboxReleasedEarly(t *testing.T) {
	var o Outbox
	o.Hold()
	o.Ask(1)
	o.Release()
	o.Resume(nil)
	o.Send(2)
	for _, want := range []string{"1", "2"} {
		if next, _, ok := o.pop(); !ok || string(next.data) != want {
			t.Errorf("%q was sent (%v), not %s", next.data, ok, want)
		}
	}
}
