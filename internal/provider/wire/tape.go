package wire

import (
	"encoding/binary"
	"sync"
	"time"

	"parley/internal/audio"
)

const (
	// tapeTime is how far a vendor may lag behind the speaker: what does not fit is lost.
	tapeTime = 20 * time.Second
	// maxUtterance is how much of an utterance is sent; what is said beyond that is not heard.
	maxUtterance = 60 * time.Second
)

// tape holds audio between the listener, who never waits and never allocates, and the sender.
type tape struct {
	piece int           // samples that are sent at once
	limit int           // of an utterance; 0: none
	wake  chan struct{} // there is something to be sent

	mu            sync.Mutex
	ring          []int16
	written, read int64 // samples
	said          int   // samples of the present utterance
	lost          int   // of them, samples that did not fit
	ends          []tapeEnd
}

type tapeEnd struct {
	at   int64 // of written
	lost int
}

func newTape(rate audio.Rate, piece time.Duration, continuous bool) *tape {
	of := func(d time.Duration) int { return int(d * time.Duration(rate) / time.Second) }
	t := &tape{piece: of(piece), limit: of(maxUtterance), wake: make(chan struct{}, 1),
		ring: make([]int16, of(tapeTime)), ends: make([]tapeEnd, 0, 16)}
	if continuous {
		t.limit = 0
	}
	return t
}

func (t *tape) write(pcm []int16) {
	t.mu.Lock()
	if t.limit > 0 {
		pcm = pcm[:min(len(pcm), max(0, t.limit-t.said))]
	}
	t.said += len(pcm)
	if free := len(t.ring) - int(t.written-t.read); len(pcm) > free {
		t.lost += len(pcm) - free
		pcm = pcm[:free]
	}
	at := int(t.written % int64(len(t.ring)))
	n := copy(t.ring[at:], pcm)
	copy(t.ring, pcm[n:])
	t.written += int64(len(pcm))
	enough := int(t.written-t.read) >= t.piece
	t.mu.Unlock()
	if enough {
		t.nudge()
	}
}

func (t *tape) end() {
	t.mu.Lock()
	t.ends = append(t.ends, tapeEnd{t.written, t.lost})
	t.said, t.lost = 0, 0
	t.mu.Unlock()
	t.nudge()
}

// ending says whether an utterance has ended that was not sent to its end.
func (t *tape) ending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ends) > 0
}

func (t *tape) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// next appends the next piece to dst, as samples of 16 bits, the lower octet first; end is not nil when an utterance
// ends with it, maybe without any more sound. more says that there was either.
func (t *tape) next(dst []byte) (raw []byte, end *tapeEnd, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have := int(t.written - t.read)
	if len(t.ends) > 0 {
		have = int(t.ends[0].at - t.read)
	} else if have < t.piece {
		return dst, nil, false
	}
	n := min(have, t.piece)
	for range n {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(t.ring[t.read%int64(len(t.ring))]))
		t.read++
	}
	if n == have && len(t.ends) > 0 {
		last := t.ends[0]
		t.ends = t.ends[:copy(t.ends, t.ends[1:])]
		return dst, &last, true
	}
	return dst, nil, true
}
