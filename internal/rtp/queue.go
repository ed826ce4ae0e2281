package rtp

import (
	"time"

	pion "github.com/pion/rtp"
)

// Queue hands packets over in the order in which they were made: some decoders (Opus) need it. A packet that overtook up
// to three others waits for them, until the first tick that is half a frame's time later. Nothing allocates.
type Queue struct {
	take    func(data []byte, at time.Duration)
	began   bool
	ssrc    uint32
	seq     uint16        // whose turn it was last
	early   [4]early      // packets that overtook others, by the last bits of their sequence numbers
	waiting int           // how many they are
	first   time.Duration // when the first of them came
}

// early is a packet that overtook others.
type early struct {
	at   time.Duration
	size int // 0: none
	data [maxPacket]byte
}

// NewQueue makes a queue that calls take with packets in their turn, and when they came, from within Put and Due.
func NewQueue(take func(data []byte, at time.Duration)) *Queue { return &Queue{take: take} }

// Put takes a packet whose header this is.
func (q *Queue) Put(h *pion.Header, data []byte, at time.Duration) {
	seq := h.SequenceNumber
	if !q.began || h.SSRC != q.ssrc {
		for i := range q.early {
			q.early[i].size = 0
		}
		q.began, q.ssrc, q.waiting = true, h.SSRC, 0
		q.let(seq, data, at)
		return
	}
	switch ahead := seq - q.seq; {
	case ahead == 0 || ahead > 1<<15 && ahead < 1<<16-maxOrder: // twice, or a stream that begins anew
		if ahead != 0 {
			q.let(seq, data, at)
		}
	case ahead > 1<<15: // its place is taken
	case ahead == 1:
		q.let(seq, data, at)
		q.follow()
	case ahead > 4 || len(data) > maxPacket:
		q.release()
		q.let(seq, data, at)
	default:
		if e := &q.early[seq%4]; e.size == 0 {
			if q.waiting == 0 {
				q.first = at
			}
			q.waiting++
			e.at, e.size = at, copy(e.data[:], data)
		}
	}
}

// Waiting is how many packets wait.
func (q *Queue) Waiting() int { return q.waiting }

// Due hands over what has waited long enough: what is missing won't come.
func (q *Queue) Due(at time.Duration) {
	if q.waiting > 0 && at-q.first >= frameTime/2 {
		q.release()
	}
}

func (q *Queue) let(seq uint16, data []byte, at time.Duration) {
	q.seq = seq
	q.take(data, at)
}

// follow takes what waited for the packet that was taken last.
func (q *Queue) follow() {
	for q.waiting > 0 && q.early[(q.seq+1)%4].size > 0 {
		q.next(q.seq + 1)
	}
}

// release takes all that waits.
func (q *Queue) release() {
	for from, ahead := q.seq, uint16(2); q.waiting > 0 && ahead <= 4; ahead++ {
		if seq := from + ahead; q.early[seq%4].size > 0 {
			q.next(seq)
		}
	}
}

// next takes a packet that has waited.
func (q *Queue) next(seq uint16) {
	e := &q.early[seq%4]
	size := e.size
	e.size = 0
	q.waiting--
	q.let(seq, e.data[:size], e.at)
}
