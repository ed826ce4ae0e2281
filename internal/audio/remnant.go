package audio

import "math"

// remnant says how much of an echo remains behind its filter: the tail of a room that the filter is too short for, what a
// loudspeaker distorts, and what the filter has not learned yet. In each band that is a share of what the filter takes for
// the echo, or took lately, as a tail dies away. The share is learned from what remains when it is least, so that the far
// end's own voice hardly changes it.
type remnant struct {
	edges [restBands + 1]int
	echo  [restBands]float32 // power of the echo, which dies away
	share [restBands]float32 // of it that remains
}

const (
	restBands = 16
	restBegin = 0.25  // the share of a filter that has learned nothing
	maxRest   = 0.4   // and the most that it, or what usually remains, ever is
	restFall  = 0.2   // how fast it follows when less remains,
	restRise  = 1.015 // and when more does: 3 dB a second
	restFade  = 0.6   // of the echo, from frame to frame: 55 dB in half a second
	restOver  = 8     // times the least that remains, the usual is
)

// newRemnant is for spectra of n samples.
func newRemnant(n int) *remnant {
	r := &remnant{}
	for b := range r.edges { // wider and wider
		r.edges[b] = int(math.Round(float64(n/2+1) * math.Pow(float64(b)/restBands, 1.7)))
	}
	for b := range r.share {
		r.share[b] = restBegin
	}
	return r
}

// add adds the power of a spectrum to that of each band.
func (r *remnant) add(to *[restBands]float32, spectrum []complex64) {
	for b := range to {
		for _, v := range spectrum[r.edges[b]:r.edges[b+1]] {
			to[b] += power(v)
		}
	}
}

// weigh takes the spectra of what remains of a frame and of its echo, of which so much is in the frame. rest is what
// usually remains of such an echo, and near is how much more there is.
func (r *remnant) weigh(err, echo []complex64, part float32) (near, rest float32) {
	var lefts, came [restBands]float32
	r.add(&lefts, err)
	r.add(&came, echo)
	for b, left := range lefts {
		r.echo[b] = max(part*came[b], restFade*r.echo[b])
		usual := min(restOver*r.share[b], maxRest) * r.echo[b]
		near, rest = near+max(left-usual, 0), rest+min(usual, left)
		if r.echo[b] < echoSilence {
			continue
		}
		if now := left / r.echo[b]; now < r.share[b] {
			r.share[b] += restFall * (now - r.share[b])
		} else {
			r.share[b] = min(r.share[b]*restRise, maxRest)
		}
	}
	return near, rest
}
