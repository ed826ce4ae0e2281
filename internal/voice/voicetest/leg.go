package voicetest

import (
	"context"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
)

// Rate is the sample rate of a Leg's frames.
const Rate = audio.Narrow

// Leg is a telephone held by a script. It ticks every 20 ms of whatever time there is: within synctest, fake time. The
// customer's speech is frames that carry the number of an utterance; the Voice identifies what they hear.
type Leg struct {
	Voice *Voice

	mu      sync.Mutex
	start   time.Time
	lines   [][]int16 // frames that the customer is going to say
	dialled string
	hung    chan struct{}
	reason  error
	heard   []Heard
	audible bool
	faded   bool
	voiced  time.Duration // when the customer was last heard
	began   time.Duration // and since when
	silent  time.Duration // since when the assistant is
	ended   bool
	held    bool
	gaps    int // sentences that didn't go on where they stopped
	peer    audio.Peer
}

// Heard is a sentence that the customer hears, as far as they hear it.
type Heard struct {
	Text     string
	From, To time.Duration // its first and last frame
	Frames   int
	Whole    int // frames that the whole sentence has
}

// NewLeg is a telephone that was just answered.
func NewLeg(v *Voice) *Leg { return &Leg{Voice: v, hung: make(chan struct{})} }

// Rate implements audio.Leg.
func (l *Leg) Rate() audio.Rate { return Rate }

// Dial implements audio.Leg.
func (l *Leg) Dial(digits string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialled += digits
	return nil
}

// Hangup implements audio.Leg: whoever runs the leg ends it by its context.
func (l *Leg) Hangup() {}

// hold has the customer put the call on hold, or resume it: while on hold nothing is heard, said or ticked.
func (l *Leg) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
}

// Run implements audio.Leg.
func (l *Leg) Run(ctx context.Context, p audio.Peer) error {
	l.mu.Lock()
	l.start = time.Now()
	l.peer = p
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = true
	}()
	tick := time.NewTicker(audio.FrameTime)
	defer tick.Stop()
	out, quiet := make([]int16, Rate.FrameSize()), make([]int16, Rate.FrameSize())
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.hung:
			return l.reason
		}
		l.mu.Lock()
		if l.held {
			l.mu.Unlock()
			continue
		}
		in := quiet
		at := time.Since(l.start)
		if len(l.lines) > 0 {
			in, l.lines = l.lines[0], l.lines[1:]
			if in[0] != 0 {
				if at-l.voiced > 200*time.Millisecond || l.began == 0 {
					l.began = at
				}
				l.voiced = at
			}
		}
		l.mu.Unlock()
		// A packet comes a little before the clock's tick, so that on fake time its consequences are done by then.
		p.Hear(in)
		time.Sleep(time.Millisecond)
		sound := p.Tick(in, out)
		l.mu.Lock()
		l.take(at, out, sound)
		l.mu.Unlock()
	}
}

// take notes what a pulled frame holds.
func (l *Leg) take(at time.Duration, out []int16, sound bool) {
	last := out[len(out)-1]
	text, whole := l.Voice.text(last)
	l.faded = sound && text == ""
	was := l.audible
	l.audible = sound && text != ""
	if !l.audible {
		if was {
			l.silent = at
		}
		return
	}
	if n := len(l.heard); n > 0 && l.heard[n-1].Text == text && int(out[mark]) == l.heard[n-1].Frames {
		l.heard[n-1].Frames++
		l.heard[n-1].To = at
		return
	}
	if out[mark] != 0 {
		l.gaps++
	}
	l.heard = append(l.heard, Heard{Text: text, From: at, To: at, Frames: 1, Whole: whole})
}

// say has the customer say frames, after those that are already queued.
func (l *Leg) say(frames ...[]int16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, frames...)
}

// press has the customer press a key.
func (l *Leg) press(key byte) {
	l.mu.Lock()
	p := l.peer
	l.mu.Unlock()
	if p != nil {
		p.Digit(key)
	}
}

// hangUp ends the call from the far end.
func (l *Leg) hangUp(reason parley.EndedReason) {
	l.reason = reason
	close(l.hung)
}

// state is what the customer notices now.
type state struct {
	at, voiced, began, silent time.Duration
	audible, talking          bool
	heard                     []Heard
	dialled                   string
}

func (l *Leg) state() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := state{voiced: l.voiced, began: l.began, silent: l.silent, audible: l.audible, talking: len(l.lines) > 0,
		dialled: l.dialled}
	if !l.start.IsZero() {
		s.at = time.Since(l.start)
	}
	s.heard = append(s.heard, l.heard...)
	return s
}
