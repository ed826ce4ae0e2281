package opus

import (
	"math"
	"math/bits"
)

const (
	maxWide   = 48  // bins in a band of ours
	maxPulses = 128 // in what is coded at once
	maxSizes  = 40  // numbers of pulses that the format has for a band
)

// ways[n][k] counts the ways to place k pulses on n bins, of which the first one has at least one, a positive one: the
// U(N, K) of RFC 6716, section 4.3.4.2. Those that don't fit in 32 bits are the largest number.
var ways = func() (u [maxWide + 1][maxPulses + 2]uint32) {
	for n := 1; n <= maxWide; n++ {
		for k := 1; k < len(u[n]); k++ {
			if n == 1 {
				u[n][k] = 1
				continue
			}
			u[n][k] = uint32(min(uint64(u[n-1][k])+uint64(u[n][k-1])+uint64(u[n-1][k-1]), math.MaxUint32))
		}
	}
	return u
}()

// vectors is in how many ways k pulses can be on n bins; false if there are too many for 32 bits.
func vectors(n, k int) (uint32, bool) {
	v := uint64(ways[n][k]) + uint64(ways[n][k+1])
	return uint32(v), v < 1<<32
}

// pulsesOf is the number of pulses that the format has in a place of its list.
func pulsesOf(place int) int {
	if place < 8 {
		return place
	}
	return (8 + place&7) << (place>>3 - 1)
}

// costs are what numbers of pulses on n bins cost, in 1/8 bits less one; costs[n][0] is none.
var costs = func() (all [maxWide + 1][]int) {
	for _, width := range []int{1, 2, 4, 6} {
		for n := width * shorts; n > 1; n /= 2 {
			if all[n] != nil {
				break
			}
			all[n] = []int{-1}
			for place := 1; place <= maxSizes; place++ {
				k := pulsesOf(place)
				if k > maxPulses {
					break
				}
				v, fits := vectors(n, k)
				if !fits {
					break
				}
				all[n] = append(all[n], logEighths(v)-1)
			}
			if n%2 == 1 {
				break
			}
		}
	}
	return all
}()

// logEighths is the logarithm to base 2 in eighths, as the format rounds it.
func logEighths(v uint32) int {
	l := bits.Len32(v)
	if v&(v-1) == 0 {
		return (l - 1) << eighth
	}
	if l > 16 {
		v = (v-1)>>(l-16) + 1
	} else {
		v <<= 16 - l
	}
	l = (l - 1) << eighth
	for i := eighth; i >= 0; i-- {
		b := v >> 16
		l += int(b) << i
		v = (v + b) >> b
		v = (v*v + 0x7fff) >> 15
	}
	if v > 0x8000 {
		l++
	}
	return l
}

// placeFor finds the number of pulses on n bins that costs about so many eighths of bits.
func placeFor(n, b int) int {
	c := costs[n]
	b--
	low, high := 0, len(c)-1
	for range 6 {
		mid := (low + high + 1) >> 1
		if c[mid] >= b {
			high = mid
		} else {
			low = mid
		}
	}
	if b-c[low] <= c[high]-b {
		return low
	}
	return high
}

// cost of a place of the list, in eighths of bits.
func cost(n, place int) int {
	if place == 0 {
		return 0
	}
	return costs[n][place] + 1
}

// place puts k pulses where x is largest, so that their direction is as near as can be to that of x.
func place(x []float32, k int, pulses []int32) {
	var size [maxWide]float32
	sum := float32(0)
	for i, v := range x {
		size[i] = max(v, -v)
		sum += size[i]
		pulses[i] = 0
	}
	if !(sum > 1e-15 && sum < 64) {
		size[0], sum = 1, 1
		for i := 1; i < len(x); i++ {
			size[i] = 0
		}
	}
	var xy, yy float32
	left := k
	if k > len(x)/2 { // most can be put at once, by rounding down
		one := (float32(k) + 0.8) / sum
		for i := range x {
			n := int32(one * size[i])
			pulses[i] = n
			left -= int(n)
			xy += size[i] * float32(n)
			yy += float32(n * n)
		}
	}
	for ; left < 0; left++ { // of a rounding
		for i := range x {
			if pulses[i] > 0 {
				yy -= float32(2*pulses[i] - 1)
				xy -= size[i]
				pulses[i]--
				break
			}
		}
	}
	for ; left > 0; left-- {
		best, bestXY, bestYY := 0, float32(-1), float32(1)
		for i := range x {
			nextXY := xy + size[i]
			nextXY *= nextXY
			nextYY := yy + float32(2*pulses[i]+1)
			if nextXY*bestYY > bestXY*nextYY {
				best, bestXY, bestYY = i, nextXY, nextYY
			}
		}
		xy += size[best]
		yy += float32(2*pulses[best] + 1)
		pulses[best]++
	}
	for i, v := range x {
		if v < 0 {
			pulses[i] = -pulses[i]
		}
	}
}

// index is the number of a placing among all with as many pulses on as many bins.
func index(pulses []int32) uint32 {
	var n uint32
	k := 0
	for i := len(pulses) - 1; i >= 0; i-- {
		rest := len(pulses) - i
		n += ways[rest][k]
		v := int(pulses[i])
		k += max(v, -v)
		if v < 0 {
			n += ways[rest][k+1]
		}
	}
	return n
}

// turn rotates the bins against each other, so that few pulses spread over their band (section 4.3.4.3).
func turn(x []float32, blocks, k int) {
	n := len(x)
	if 2*k >= n {
		return
	}
	gain := float64(n) / float64(n+10*k)
	sin, cos := math.Sincos(math.Pi / 4 * gain * gain)
	s, c := float32(sin), float32(cos)
	far := 0
	if n >= 8*blocks {
		for far = 1; (far*far+far)*blocks+blocks>>2 < n; far++ {
		}
	}
	n /= blocks
	for i := range blocks {
		part := x[i*n : (i+1)*n]
		turnBy(part, 1, c, -s)
		if far > 0 {
			turnBy(part, far, s, -c)
		}
	}
}

func turnBy(x []float32, by int, c, s float32) {
	for i := range len(x) - by {
		a, b := x[i], x[i+by]
		x[i+by], x[i] = c*b+s*a, c*a-s*b
	}
	for i := len(x) - 2*by - 1; i >= 0; i-- {
		a, b := x[i], x[i+by]
		x[i+by], x[i] = c*b+s*a, c*a-s*b
	}
}
