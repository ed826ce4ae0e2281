package rtp

import (
	"sync"
	"time"

	"parley/internal/audio"
)

// Teller makes a peer's calls for the goroutines of a leg: one at a time, in order, and under no lock. News that comes
// while another goroutine is in such a call is left to that one, so nobody waits for a peer.
//
// Its owner's lock guards all of it, and must be held for every method but Stop.
type Teller struct {
	mu   *sync.Mutex
	peer audio.Peer
	pull func(at time.Duration, missed int, in audio.Frame) bool
	push func(out audio.Frame, spoken bool)

	busy    bool // a goroutine is in calls
	stopped bool
	idle    sync.Cond // busy has become false

	queue, told []news // to be told, and being told; they change places
	due         bool   // a tick is
	at          time.Duration
	missed      int
	in, out     audio.Frame
}

// news is a frame that was heard, or a key that was pressed.
type news struct {
	key  byte // 0: a frame
	size int
	pcm  [audio.MaxFrame]int16
}

// How much may wait for a slow peer; anything beyond is lost to it. Keys still find room when frames don't.
const (
	maxFrames = 64
	maxNews   = 2 * maxFrames
)

// NewTeller makes a Teller that runs its owner's part of a tick under the lock: pull, which fills in what was heard, or
// returns false if the peer isn't ticked; and push, which takes what is to be said.
func NewTeller(mu *sync.Mutex, rate audio.Rate, p audio.Peer,
	pull func(at time.Duration, missed int, in audio.Frame) bool, push func(out audio.Frame, spoken bool)) *Teller {
	return &Teller{mu: mu, peer: p, pull: pull, push: push, idle: sync.Cond{L: mu},
		in: make(audio.Frame, rate.FrameSize()), out: make(audio.Frame, rate.FrameSize())}
}

// Hear takes a frame that was heard.
func (t *Teller) Hear(f audio.Frame) {
	if n := t.add(maxFrames); n != nil {
		n.key, n.size = 0, copy(n.pcm[:], f)
	}
}

// Digit takes a key that was pressed.
func (t *Teller) Digit(key byte) {
	if n := t.add(maxNews); n != nil {
		n.key = key
	}
}

func (t *Teller) add(most int) *news {
	n := len(t.queue)
	if n >= most || t.stopped {
		return nil
	}
	if n == cap(t.queue) {
		t.queue = append(t.queue, news{})
	} else {
		t.queue = t.queue[:n+1]
	}
	return &t.queue[n]
}

// Tick takes a frame that is due. If the one before is still due, that one is missed.
func (t *Teller) Tick(at time.Duration, missed int) {
	if t.due {
		missed += t.missed + 1
	}
	t.due, t.at, t.missed = !t.stopped, at, missed
}

// Tell passes the peer its news, and releases the owner's lock.
func (t *Teller) Tell() {
	if t.busy {
		t.mu.Unlock()
		return
	}
	t.busy = true
	defer func() { // also when the peer panics
		t.busy = false
		t.idle.Broadcast()
		t.mu.Unlock()
	}()
	for !t.stopped && (len(t.queue) > 0 || t.due) {
		ticks := false
		if t.due {
			t.due = false
			ticks = t.pull(t.at, t.missed, t.in)
		}
		if len(t.queue) > 0 {
			t.tell()
		}
		if ticks {
			t.push(t.out, t.tick())
		}
	}
}

// tell passes on the news, without the lock.
func (t *Teller) tell() {
	t.queue, t.told = t.told[:0], t.queue
	t.mu.Unlock()
	defer t.mu.Lock()
	for i := range t.told {
		if n := &t.told[i]; n.key != 0 {
			t.peer.Digit(n.key)
		} else {
			t.peer.Hear(n.pcm[:n.size])
		}
	}
}

// tick ticks the peer, without the lock.
func (t *Teller) tick() bool {
	t.mu.Unlock()
	defer t.mu.Lock()
	return t.peer.Tick(t.in, t.out)
}

// Stop returns when the peer will not be called any more. It takes the owner's lock itself.
func (t *Teller) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	for t.busy {
		t.idle.Wait()
	}
}
