package audio

// The bounds of what waits in a link, in frames.
const (
	linkStart = 2 // when it begins to be pulled: one for that, and one for a clock that is late
	maxLink   = 4 // one more, and two are skipped
)

// link carries the sound of one leg to another of the same rate: it is put by one clock and pulled by another.
// Between two pulls there may be none, one or some puts, and the clocks may drift: what is missing is concealed, what
// is too much is skipped, and the seam blended.
type link struct {
	ring    []int16
	at, n   int // the first sample that waits, and how many do
	flowing bool
	skipped bool
	conceal *Conceal
}

func newLink(r Rate) link {
	return link{ring: make([]int16, maxLink*r.FrameSize()), conceal: NewConceal(r)}
}

func (l *link) put(f Frame) {
	if l.n == len(l.ring) {
		l.at, l.n, l.skipped = (l.at+2*len(f))%len(l.ring), l.n-2*len(f), true
	}
	end := (l.at + l.n) % len(l.ring)
	copy(l.ring[end:], f)
	l.n += len(f)
}

// pull fills a frame. It says whether there is sound in it that came or was concealed.
func (l *link) pull(f Frame) bool {
	if l.n < len(f) || !l.flowing && l.n < linkStart*len(f) {
		l.flowing = false
		l.conceal.Lost(f)
		return !l.conceal.Silent()
	}
	if l.skipped && l.flowing {
		l.conceal.Seam()
	}
	l.flowing, l.skipped = true, false
	copy(f, l.ring[l.at:])
	l.at, l.n = (l.at+len(f))%len(l.ring), l.n-len(f)
	l.conceal.Good(f)
	return true
}

// voice is what a leg says, at each rate at which somebody hears it.
type voice struct {
	rate  Rate
	now   Frame // of this tick
	other *Resampler
	frame []int16 // the same at the other rate
}

// serve readies the voice for a listener at a rate.
func (v *voice) serve(r Rate) {
	if r != v.rate && v.other == nil {
		v.other, v.frame = newResampler(int(v.rate), int(r)), make([]int16, 0, r.FrameSize())
	}
}

// say takes the frame that is said now.
func (v *voice) say(f Frame) {
	v.now = f
	if v.other != nil {
		v.frame = v.other.Resample(v.frame[:0], f)
	}
}

// at is that frame at a rate.
func (v *voice) at(r Rate) Frame {
	if r == v.rate {
		return v.now
	}
	return v.frame
}
