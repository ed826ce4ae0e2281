package rtp

import "time"

// MOS estimates how people would rate audio with this share of loss, concealed as we do it, and this delay: 1 to 4.4,
// by the E-model of ITU-T G.107 with the values of G.711 and its concealment (G.113, appendix I) and defaults for
// everything else. It is an estimate: nobody has listened.
func MOS(lost float64, delay time.Duration) float64 {
	const (
		best      = 93.2 // R of a call that nothing impairs
		robust    = 25.1 // Bpl of G.711 with concealment, per cent
		noticed   = 177.3
		perfectMS = 0.024
	)
	ms := float64(delay) / float64(time.Millisecond)
	r := best - perfectMS*ms
	if ms > noticed {
		r -= 0.11 * (ms - noticed)
	}
	percent := 100 * min(max(lost, 0), 1)
	r -= 95 * percent / (percent + robust)
	if r <= 0 {
		return 1
	}
	return 1 + 0.035*r + r*(r-60)*(100-r)*7e-6
}

// lostOf is the share of what was sent that is lost.
func lostOf(lost, all int) float64 {
	if all <= 0 {
		return 0
	}
	return min(max(float64(lost)/float64(all), 0), 1)
}

// delay is how long audio takes to reach the ear: half the round trip, a packet, and what a jitter buffer needs.
func (s *Stats) delay(jitter time.Duration) time.Duration {
	return s.RoundTrip/2 + frameTime + 2*jitter
}

// Heard is the share of the far end's audio that was lost, and the rating of what arrived.
func (s *Stats) Heard() (lost, mos float64) {
	lost = lostOf(s.Lost, s.Received+s.Lost)
	return lost, MOS(lost, s.delay(s.Jitter))
}

// Said is the same for our audio, as the far end reports it; it is false if the far end has reported nothing.
func (s *Stats) Said() (lost, mos float64, told bool) {
	lost = lostOf(s.FarLost, s.Sent)
	return lost, MOS(lost, s.delay(s.FarJitter)), s.Reports > 0
}
