package rtp

import "math"

// comfort makes the noise that the far end tells of in place of sound when nobody speaks there (RFC 3389): at its
// level, but without its color.
type comfort struct{ seed uint32 }

// fill appends n samples; level is how far below full scale the noise is, in dB.
func (c *comfort) fill(pcm []int16, n int, level byte) []int16 {
	peak := float64(math.MaxInt16) * math.Pow(10, -float64(level&0x7f)/20) * math.Sqrt(3) // of what is evenly distributed
	peak = min(peak, math.MaxInt16)
	for range n {
		c.seed = c.seed*1664525 + 1013904223
		pcm = append(pcm, int16(peak*(float64(c.seed)/(1<<31)-1)))
	}
	return pcm
}
