package opus

import "math"

// energies are those of the bands, as powers of two less the means: what is known of them, and what the last steps left
// over.
type energies struct {
	known [bands]float32
	rest  [bands]float32
}

// none is the energy of silence.
const none = -28

// coarse writes the bands' energies in steps of 6 dB, as differences from what the former frame and the band below let
// expect (section 4.3.2.1); alone leaves the former frame out.
func (e *energies) coarse(c *coder, want *[bands]float32, alone bool) {
	again, fade, model := float32(energyAgain), float32(energyFade), &steps[0]
	if alone {
		again, fade, model = 0, intraFade, &steps[1]
	}
	c.bit(alone, 3)
	fall := min(16, float32(len(c.data))/8) // the most that an energy falls in a frame
	below := float32(0)
	for i, x := range want {
		before := max(-9, e.known[i])
		f := x - again*before - below
		n := int(math.Floor(float64(f) + 0.5))
		if least := max(none, e.known[i]) - fall; n < 0 && x < least {
			n = min(n+int(least-x), 0)
		}
		left := c.left()
		if spare := left - 3*(bands-i); i > 0 && spare < 30 {
			if spare < 24 {
				n = min(n, 1)
			}
			if spare < 16 {
				n = max(n, -1)
			}
		}
		switch {
		case left >= 15:
			n = c.step(n, model[i][0]<<7, model[i][1]<<6)
		case left >= 2:
			n = min(max(n, -1), 1)
			which := 2 * n
			if n < 0 {
				which = 1
			}
			c.choose(which, smallStep, 2)
		case left >= 1:
			n = max(min(n, 0), -1)
			c.bit(n < 0, 1)
		default:
			n = -1
		}
		q := float32(n)
		e.rest[i] = f - q
		e.known[i] = again*before + below + q
		below += q - fade*q
	}
}

// fine writes what the steps left over, with as many bits as each band was given.
func (e *energies) fine(c *coder, given *[bands]int) {
	for i, n := range given {
		if n <= 0 {
			continue
		}
		all := 1 << n
		q := min(max(int(math.Floor(float64(e.rest[i]+0.5)*float64(all))), 0), all-1)
		c.bits(uint32(q), n)
		e.found(i, (float32(q)+0.5)/float32(all)-0.5)
	}
}

// last writes the bits that are left of the frame: one each, first for the bands where it counts more.
func (e *energies) last(c *coder, given *[bands]int, later *[bands]bool) {
	left := c.left()
	for _, turn := range []bool{false, true} {
		for i, n := range given {
			if left < 1 {
				return
			}
			if n >= maxFine || later[i] != turn {
				continue
			}
			q := float32(0)
			if e.rest[i] >= 0 {
				q = 1
			}
			c.bits(uint32(q), 1)
			e.found(i, (q-0.5)/float32(int(2)<<n))
			left--
		}
	}
}

func (e *energies) found(i int, by float32) {
	e.known[i] += by
	e.rest[i] -= by
}
