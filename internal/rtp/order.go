package rtp

import "time"

const (
	maxAhead    = 16                     // packets that a missing one may be behind
	maxPatience = 120 * time.Millisecond // for which it is waited
	lateFor     = 500 * time.Millisecond // what is later tells nothing
	calmAfter   = 500                    // packets in order, after which nobody waits any more
	maxHeld     = 480                    // samples of a packet that can wait: 30 ms at 16 kHz
	maxWaiting  = 8                      // packets
)

// order puts packets in order that are heard at once. Nobody waits until a packet has come late; then those behind a
// missing one wait for about as long as it was late. A network that only loses packets makes nobody wait.
type order struct {
	held     []waiting     // none until somebody has to wait
	jumped   time.Duration // when a packet was heard before one that is missing
	patience time.Duration // 0: nobody waits
	calm     int           // packets since one came out of order
}

// waiting is a packet that waits for one before it.
type waiting struct {
	seq  uint16
	ts   uint32
	at   time.Duration
	size int
	pcm  [maxHeld]int16
}

// late notes that a packet came after its place was passed.
func (o *order) late(at time.Duration) {
	if by := at - o.jumped; by < lateFor {
		o.patience = min(max(o.patience, by+10*time.Millisecond), maxPatience)
		o.calm = 0
	}
	if o.held == nil {
		o.held = make([]waiting, 0, maxWaiting)
	}
}

// inOrder notes a packet that came in its turn: one for which others waited shows that waiting is worth it.
func (o *order) inOrder() {
	if o.calm++; len(o.held) > 0 {
		o.calm = 0
	}
	if o.calm > calmAfter {
		o.patience = 0
	}
}

// hold keeps a packet, if it should wait.
func (o *order) hold(at time.Duration, seq uint16, ts uint32, pcm []int16) bool {
	if o.patience == 0 || len(pcm) > maxHeld || len(o.held) == cap(o.held) {
		return false
	}
	for i := range o.held {
		if o.held[i].seq == seq {
			return true
		}
	}
	o.held = o.held[:len(o.held)+1]
	w := &o.held[len(o.held)-1]
	w.seq, w.ts, w.at, w.size = seq, ts, at, copy(w.pcm[:], pcm)
	return true
}

// first is the packet that waits and comes next after one, and since when any of them waits.
func (o *order) first(after uint16) (i int, since time.Duration) {
	since = o.held[0].at
	for k := range o.held {
		if o.held[k].seq-after < o.held[i].seq-after {
			i = k
		}
		since = min(since, o.held[k].at)
	}
	return i, since
}

// drop takes a packet from those that wait.
func (o *order) drop(i int) {
	last := len(o.held) - 1
	o.held[i], o.held = o.held[last], o.held[:last]
}
