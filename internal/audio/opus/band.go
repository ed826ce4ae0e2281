package opus

import (
	"math"
	"math/bits"
)

// shapes writes the shapes of bands (section 4.3.4).
type shapes struct {
	c      *coder
	left   int // eighths of bits that the band may still use
	band   int
	pulses [maxWide]int32
	other  [maxWide]float32
}

// write writes the shape of each band, x being their bins, each band of length 1. A transient frame's bins are those of
// its short transforms in turn.
func (s *shapes) write(c *coder, x []float32, a *allocation, transient bool, total int) {
	s.c = c
	balance := a.balance
	for i := range bands {
		tell := c.tellEighths()
		if i > 0 {
			balance -= tell
		}
		s.band, s.left = i, total-tell-1
		b := 0
		if i < a.coded {
			b = max(0, min(16383, s.left+1, a.shape[i]+balance/min(3, a.coded-i)))
		}
		blocks := 1
		band := x[edges[i]<<logShorts : edges[i+1]<<logShorts]
		if transient {
			blocks = shorts
			s.inTurn(band)
		}
		s.part(band, b, blocks, logShorts)
		balance += a.shape[i] + tell
	}
}

// inTurn puts the bins of each short transform together.
func (s *shapes) inTurn(x []float32) {
	n := len(x) / shorts
	for i := range shorts {
		for j := range n {
			s.other[i*n+j] = x[j*shorts+i]
		}
	}
	copy(x, s.other[:len(x)])
}

// part writes a band or a part of one: split in two where there are too many bits for one, otherwise by pulses.
func (s *shapes) part(x []float32, b, blocks, level int) {
	n := len(x)
	if c := costs[n]; level >= 0 && b > c[len(c)-1]+12 && n > 2 {
		s.split(x, b, blocks, level-1)
		return
	}
	place := placeFor(n, b)
	s.left -= cost(n, place)
	for s.left < 0 && place > 0 {
		s.left += cost(n, place)
		place--
		s.left -= cost(n, place)
	}
	if place == 0 {
		return
	}
	s.vector(x, pulsesOf(place), blocks)
}

func (s *shapes) vector(x []float32, k, blocks int) {
	turn(x, blocks, k)
	pulses := s.pulses[:len(x)]
	place(x, k, pulses)
	all, _ := vectors(len(x), k)
	s.c.number(index(pulses), all)
}

// split writes how the energy is divided between the two halves, and then these.
func (s *shapes) split(x []float32, b, before, level int) {
	n := len(x) / 2
	first, second := x[:n], x[n:]
	blocks := (before + 1) >> 1
	began := s.c.tellEighths()
	theta := s.angle(first, second, b, before, level)
	used := s.c.tellEighths() - began
	b -= used
	delta := -16384
	switch theta {
	case 0:
	case 16384:
		delta = 16384
	default:
		delta = mul((n-1)<<7, logTan(cosine(16384-theta), cosine(theta)))
	}
	if before > 1 && theta&0x3fff != 0 {
		if theta > 8192 { // the rest of a sound that began before
			delta -= delta >> (4 - level)
		} else {
			delta = min(0, delta+n<<eighth>>(5-level))
		}
	}
	one := max(0, min(b, (b-delta)/2))
	two := b - one
	s.left -= used
	left := s.left
	if one >= two {
		s.part(first, one, blocks, level)
		if spare := one - (left - s.left); spare > 3<<eighth && theta != 0 {
			two += spare - 3<<eighth
		}
		s.part(second, two, blocks, level)
		return
	}
	s.part(second, two, blocks, level)
	if spare := two - (left - s.left); spare > 3<<eighth && theta != 16384 {
		one += spare - 3<<eighth
	}
	s.part(first, one, blocks, level)
}

// angle writes the angle whose tangent is the second half's length by the first's, in 1/16384 of a right angle.
func (s *shapes) angle(first, second []float32, b, before, level int) int {
	n := len(first)
	limit := logWidths[s.band] + level<<eighth
	parts := angles(n, b, limit>>1-thetaOffset, limit)
	if parts == 1 {
		return 0
	}
	theta := int(math.Floor(0.5 + 16384*2/math.Pi*math.Atan2(length(second), length(first))))
	which := (theta*parts + 8192) >> 14
	if before > 1 && which > 0 && which < parts { // a half that would get no bits anyway is left out
		theta = which * 16384 / parts
		switch delta := mul((n-1)<<7, logTan(cosine(16384-theta), cosine(theta))); {
		case delta > b:
			which = parts
		case delta < -b:
			which = 0
		}
	}
	if before > 1 {
		s.c.number(uint32(which), uint32(parts+1))
	} else { // those in the middle are likelier
		h := parts>>1 + 1
		size, low := which+1, which*(which+1)>>1
		if which > parts>>1 {
			size = parts + 1 - which
			low = h*h - size*(size+1)>>1
		}
		s.c.symbol(uint32(low), uint32(low+size), uint32(h*h))
	}
	return which * 16384 / parts
}

// angles is how many angles there are between two halves of n bins.
func angles(n, b, offset, limit int) int {
	each := (b + (2*n-1)*offset) / (2*n - 1)
	each = min(each, b-limit-4<<eighth, 8<<eighth)
	if each < 1<<eighth>>1 {
		return 1
	}
	powers := [8]int{16384, 17866, 19483, 21247, 23170, 25267, 27554, 30048} // of 2, by eighths
	return (powers[each&7]>>(14-each>>3) + 1) >> 1 << 1
}

func length(x []float32) float64 {
	sum := 1e-15
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// These are computed as the format says, bit by bit.

func mul(a, b int) int { return (16384 + int(int16(a))*int(int16(b))) >> 15 }

// cosine of an angle in 1/16384 of a right angle, in 1/32768.
func cosine(x int) int {
	x = (4096 + x*x) >> 13
	return 1 + (32767 - x) + mul(x, -7651+mul(x, 8277+mul(-626, x)))
}

// logTan is the logarithm of the tangent, in 1/2048.
func logTan(sin, cos int) int {
	ls, lc := bits.Len(uint(sin)), bits.Len(uint(cos))
	sin <<= 15 - ls
	cos <<= 15 - lc
	return (ls-lc)<<11 + mul(sin, mul(sin, -2597)+7932) - mul(cos, mul(cos, -2597)+7932)
}
