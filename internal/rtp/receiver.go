package rtp

import (
	"time"

	"parley/internal/audio"
)

// Receiver takes the audio of packets as they arrive and passes it on twice: at once, in frames, with losses concealed,
// to listeners that must be quick; and evenly and in order, from a jitter buffer, to whoever pulls it. Its owner
// decodes the payloads.
type Receiver struct {
	rate    int
	clock   int // of the timestamps, Hz
	jitter  *audio.Jitter
	conceal *audio.Conceal
	hear    func(audio.Frame)

	// The stream as it is heard at once.
	began  bool
	seq    uint16 // the newest, and its timestamp
	ts     uint32
	ssrc   uint32
	seen   uint64 // of the 64 packets before seq: what came
	frame  audio.Frame
	filled int
	order  order
}

// NewReceiver makes a receiver that calls hear with frames as they arrive, from within Put.
func NewReceiver(rate audio.Rate, clock int, hear func(audio.Frame)) *Receiver {
	return &Receiver{rate: int(rate), clock: clock, jitter: audio.NewJitter(rate, clock),
		conceal: audio.NewConceal(rate), hear: hear,
		frame: make(audio.Frame, rate.FrameSize())}
}

// maxBridge is how long a loss is concealed for the immediate listener, to keep it in time.
const maxBridge = 120 * time.Millisecond

// Of reports whether a source is the one being heard.
func (r *Receiver) Of(ssrc uint32) bool { return r.began && ssrc == r.ssrc }

// Twice notes a packet, and reports whether it is a duplicate among the last 64. Decoding it again would upset the
// decoder.
func (r *Receiver) Twice(seq uint16, ssrc uint32) bool {
	if !r.Of(ssrc) {
		return false
	}
	behind := r.seq - seq
	if behind == 0 {
		return true
	}
	if behind > 64 {
		return false
	}
	bit := uint64(1) << (behind - 1)
	again := r.seen&bit != 0
	r.seen |= bit
	return again
}

// Put takes the audio of a packet that arrived at a moment, counted from any fixed one. Packets are heard at once, and
// not at all if their place was concealed meanwhile. But once packets have come out of order, those behind a missing one
// wait for it for a moment.
func (r *Receiver) Put(at time.Duration, seq uint16, ts, ssrc uint32, pcm []int16) {
	r.jitter.Put(at, seq, ts, ssrc, pcm)
	ahead := seq - r.seq
	switch {
	case !r.Of(ssrc):
		for len(r.order.held) > 0 { // of the former source
			i, _ := r.order.first(r.seq)
			r.next(i)
		}
	case ahead <= 1:
		r.order.inOrder()
	case ahead > 1<<15:
		r.order.late(at)
	case ahead > maxAhead:
	case r.order.hold(at, seq, ts, pcm):
		r.release(at)
		return
	default:
		r.order.jumped = at
	}
	r.put(seq, ts, ssrc, pcm)
	r.release(at)
}

// release has those heard that need not wait any longer.
func (r *Receiver) release(at time.Duration) {
	for o := &r.order; len(o.held) > 0; {
		i, since := o.first(r.seq)
		if ahead := o.held[i].seq - r.seq; ahead > 1 && ahead <= maxAhead && at-since < o.patience && len(o.held) < cap(o.held) {
			return
		}
		r.next(i)
	}
}

// next has a packet heard that has waited.
func (r *Receiver) next(i int) {
	w := &r.order.held[i]
	switch ahead := w.seq - r.seq; {
	case ahead == 0 || ahead > maxAhead: // it came twice, or the stream has gone elsewhere
	case ahead > 1:
		r.order.jumped = w.at
		fallthrough
	default:
		r.put(w.seq, w.ts, r.ssrc, w.pcm[:w.size])
	}
	r.order.drop(i)
}

// put has a packet heard.
func (r *Receiver) put(seq uint16, ts, ssrc uint32, pcm []int16) {
	switch ahead := seq - r.seq; {
	case !r.Of(ssrc) || ahead == 0 || ahead > 1<<15 && ahead < 1<<16-64: // a new stream
		r.began, r.ssrc, r.seen, r.filled = true, ssrc, 0, 0
	case ahead > 1<<15:
		return // late
	default:
		r.seen = r.seen<<ahead | 1<<(ahead-1)
		r.bridge(ts-r.ts, int(ahead))
	}
	r.seq, r.ts = seq, ts
	r.conceal.Good(pcm)
	r.cut(pcm)
}

// Pull fills a frame with what is to be heard at a moment of Put's clock.
func (r *Receiver) Pull(at time.Duration, f audio.Frame) { r.jitter.Pull(at, f) }

// bridge conceals the loss of the packets before this one, which together last this many ticks.
func (r *Receiver) bridge(ticks uint32, ahead int) {
	most := r.clock * int(maxBridge/time.Millisecond) / 1000
	if ahead < 2 || int64(ticks) > 8*int64(most) {
		return
	}
	lost := int(ticks) / ahead * (ahead - 1) // packets last equally long
	if lost > most {
		return
	}
	missing := lost * r.rate / r.clock
	var gap [audio.MaxFrame]int16
	for missing > 0 {
		n := min(missing, len(gap))
		r.conceal.Lost(gap[:n])
		r.cut(gap[:n])
		missing -= n
	}
}

// cut makes frames of what arrived.
func (r *Receiver) cut(pcm []int16) {
	for len(pcm) > 0 {
		n := copy(r.frame[r.filled:], pcm)
		pcm = pcm[n:]
		if r.filled += n; r.filled < len(r.frame) {
			return
		}
		r.filled = 0
		r.hear(r.frame)
	}
}
