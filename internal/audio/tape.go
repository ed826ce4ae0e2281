package audio

import (
	"sync"
	"time"
)

// Tape holds the sound of utterances between a listener, who never waits and never allocates, and one reader, who may
// lag behind. What does not fit is lost, and counted.
type Tape struct {
	piece int // samples that are read at once
	limit int // of an utterance; 0: none
	wake  chan struct{}

	mu            sync.Mutex
	ring          []int16
	written, read int // samples, since the tape was last empty
	said          int // samples of the present utterance
	lost          int // of them, samples that did not fit
	ends          []tapeEnd
}

type tapeEnd struct{ at, lost int }

// NewTape makes a Tape that holds so much sound, read in pieces. Of an utterance no more than limit is taken; 0: all.
func NewTape(rate Rate, holds, piece, limit time.Duration) *Tape {
	of := func(d time.Duration) int { return int(d * time.Duration(rate) / time.Second) }
	return &Tape{piece: of(piece), limit: of(limit), wake: make(chan struct{}, 1), ring: make([]int16, of(holds)),
		ends: make([]tapeEnd, 0, 16)}
}

// Write adds sound to the present utterance.
func (t *Tape) Write(pcm []int16) {
	t.mu.Lock()
	if t.limit > 0 {
		pcm = pcm[:min(len(pcm), max(0, t.limit-t.said))]
	}
	t.said += len(pcm)
	if t.read == t.written && len(t.ends) == 0 {
		t.read, t.written = 0, 0 // from the start again: of a reader who keeps up the memory behind is never touched
	}
	if free := len(t.ring) - (t.written - t.read); len(pcm) > free {
		t.lost += len(pcm) - free
		pcm = pcm[:free]
	}
	at := t.written % len(t.ring)
	n := copy(t.ring[at:], pcm)
	copy(t.ring, pcm[n:])
	t.written += len(pcm)
	enough := t.written-t.read >= t.piece
	t.mu.Unlock()
	if enough {
		t.nudge()
	}
}

// End ends the utterance.
func (t *Tape) End() {
	t.mu.Lock()
	t.ends = append(t.ends, tapeEnd{t.written, t.lost})
	t.said, t.lost = 0, 0
	t.mu.Unlock()
	t.nudge()
}

// Ending says whether an utterance has ended that was not read to its end.
func (t *Tape) Ending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ends) > 0
}

// Wake is sent to when there may be something to read.
func (t *Tape) Wake() <-chan struct{} { return t.wake }

func (t *Tape) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Piece is what Next reads.
type Piece struct {
	PCM  []int16
	End  bool // an utterance ends with it, maybe without any more sound
	Lost int  // of that utterance, samples that did not fit
}

// Next reads the next piece into dst, and says whether there is one.
func (t *Tape) Next(dst []int16) (p Piece, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have := t.written - t.read
	if len(t.ends) > 0 {
		have = t.ends[0].at - t.read
	} else if have < t.piece {
		return Piece{PCM: dst}, false
	}
	n := min(have, t.piece)
	at := t.read % len(t.ring)
	p.PCM = append(dst, t.ring[at:min(at+n, len(t.ring))]...)
	p.PCM = append(p.PCM, t.ring[:max(0, at+n-len(t.ring))]...)
	t.read += n
	if n == have && len(t.ends) > 0 {
		p.End, p.Lost = true, t.ends[0].lost
		t.ends = t.ends[:copy(t.ends, t.ends[1:])]
	}
	return p, true
}
