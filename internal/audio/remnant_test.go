package audio

import "testing"

// TestRemnant: what remains of an echo at a steady share is soon known to be no voice, also just after the echo; a voice of
// the same loudness as the echo, in any band, is one.
func TestRemnant(t *testing.T) {
	const n = 512
	r := newRemnant(n)
	err, echo := make([]complex64, n/2+1), make([]complex64, n/2+1)
	fill := func(x []complex64, by float32, from, to int) {
		for k := from; k < to; k++ {
			x[k] = complex(by, 0)
		}
	}
	fill(echo, 10000, 0, len(echo))
	fill(err, 1000, 0, len(err)) // 20 dB below it
	var near, rest float32
	for range 100 {
		near, rest = r.weigh(err, echo, 1)
	}
	if near > 0.01*rest {
		t.Errorf("of a remnant %v is taken for a voice, %v for the remnant", near, rest)
	}
	clear(echo)
	if near, rest = r.weigh(err, echo, 1); near > 0.01*rest { // the tail
		t.Errorf("of a tail %v is taken for a voice, %v for the remnant", near, rest)
	}
	fill(echo, 10000, 0, len(echo))
	fill(err, 10000, 40, 80)
	if near, rest = r.weigh(err, echo, 1); near < 2*rest {
		t.Errorf("of a voice over a remnant %v is taken for one, %v for the remnant", near, rest)
	}
	for range 50 { // who speaks for a second is still heard
		near, rest = r.weigh(err, echo, 1)
	}
	if near < rest {
		t.Errorf("of a voice after a second %v is taken for one, %v for the remnant", near, rest)
	}
}
