package rtp

import "time"

// MOS is how people would judge a sound of which a share is lost, concealed as we do, and that is on its way for so
// long: 1 to 4.4, by the E-model of ITU-T G.107 with the values of G.711 and its concealment (G.113, appendix I), all
// else as by default. It is an estimate: nobody has listened.
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

// lostOf is how much of what was sent is lost.
func lostOf(lost, all int) float64 {
	if all <= 0 {
		return 0
	}
	return min(max(float64(lost)/float64(all), 0), 1)
}

// delay is how long sound is on its way to an ear: half of the way there and back, a packet, and what a jitter buffer
// needs.
func (s *Stats) delay(jitter time.Duration) time.Duration {
	return s.RoundTrip/2 + frameTime + 2*jitter
}

// Heard is how much of the far end's sound was lost, and how what came would be judged.
func (s *Stats) Heard() (lost, mos float64) {
	lost = lostOf(s.Lost, s.Received+s.Lost)
	return lost, MOS(lost, s.delay(s.Jitter))
}

// Said is that of ours, as the far end tells; it is false where it has told nothing.
func (s *Stats) Said() (lost, mos float64, told bool) {
	lost = lostOf(s.FarLost, s.Sent)
	return lost, MOS(lost, s.delay(s.FarJitter)), s.Reports > 0
}
