package simulator

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
)

// What far ends say.
const greeting = "You have reached my voice mail. I am not available. Please leave a message after the tone."

var talk = []string{"Hello?", "Yes, that's right.", "Could you tell me more?", "Thank you, goodbye."}

const (
	// of silence before the person answers: longer than an assistant pauses between sentences
	manners    = 800 * time.Millisecond
	talkedOver = 3 * time.Second        // the same, where the other spoke at the same time and went silent
	pickUp     = 200 * time.Millisecond // from the answer to the first word
	putDown    = time.Second            // from the goodbye to the hang-up, so that it is still heard as a turn
	stay       = 2 * time.Minute        // nobody talks longer, whatever the other does
	recorded   = 30 * time.Second       // how long a message may be
	patience   = 5 * time.Second        // of silence before the voicemail hangs up
	beepGap    = 400 * time.Millisecond // between greeting and beep
	beepTime   = 500 * time.Millisecond
	redirect   = 300 * time.Millisecond // until a transfer is taken on
)

// leg is the far end of one call after its answer. Its Run plays and listens in the goroutine that calls it.
type leg struct {
	texts       []string
	sounds      [][]int16
	live        func(*line) error
	transferred atomic.Bool
}

// Rate implements audio.Leg.
func (l *leg) Rate() audio.Rate { return rate }

// Dial implements audio.Leg: the keys are taken, and nobody listens to them.
func (l *leg) Dial(digits string) error {
	if !audio.ValidKeys(digits) {
		return fmt.Errorf("dial %q: only 0-9, *, # and A-D are keys", digits)
	}
	return nil
}

// Hangup implements audio.Leg: one that doesn't run takes nothing, and who runs it ends it by its context.
func (l *leg) Hangup() {}

// Transfer has the far end call elsewhere, as a telephone does that is sent there, and hang up here. Numbers that are
// busy or don't answer are those of Dial.
func (l *leg) Transfer(ctx context.Context, to string) error {
	if err := sleep(ctx, redirect); err != nil {
		return err
	}
	if err := transfer(to); err != nil {
		return err
	}
	l.transferred.Store(true)
	return nil
}

// Run implements audio.Leg.
func (l *leg) Run(ctx context.Context, p audio.Peer) error {
	n := newLine(ctx, l, p)
	defer n.clock.Stop()
	return n.live(n)
}

// line is a leg that is running. Its methods that take time tick as long as they do, and fail when the call is over.
type line struct {
	*leg
	ctx     context.Context
	peer    audio.Peer
	clock   *rtp.Clock
	elapsed time.Duration
	in, out [audio.MaxFrame]int16

	vad    *audio.VAD
	peak   float64       // dBFS of the loudest that was heard lately
	voiced time.Duration // that was heard since our last words began
	quiet  time.Duration // since it was heard
}

func newLine(ctx context.Context, l *leg, p audio.Peer) *line {
	return &line{leg: l, ctx: ctx, peer: p, clock: rtp.NewClock(time.Now()), vad: audio.NewVAD(rate), peak: -60}
}

// person says hello, lets the other finish each time, answers three times, and hangs up.
func (n *line) person() error {
	if err := n.wait(pickUp); err != nil {
		return err
	}
	for i, sound := range n.sounds {
		if i > 0 {
			if err := n.listen(); err != nil {
				return err
			}
		}
		if err := n.say(sound); err != nil {
			return err
		}
	}
	if err := n.wait(putDown); err != nil {
		return err
	}
	return parley.CustomerHangup
}

// mailbox plays its greeting and its beep, and records until nobody speaks any more.
func (n *line) mailbox() error {
	if err := n.wait(pickUp); err != nil {
		return err
	}
	if err := n.say(n.sounds[0]); err != nil {
		return err
	}
	if err := n.wait(beepGap); err != nil {
		return err
	}
	if err := n.say(beep); err != nil {
		return err
	}
	n.quiet = 0
	for end := n.elapsed + recorded; n.elapsed < end && n.quiet < patience; {
		if err := n.tick(); err != nil {
			return err
		}
	}
	return parley.CustomerHangup
}

// wait is silent for d.
func (n *line) wait(d time.Duration) error {
	for end := n.elapsed + d; n.elapsed < end; {
		if err := n.tick(); err != nil {
			return err
		}
	}
	return nil
}

// say plays a sound to its end, whoever else speaks.
func (n *line) say(pcm []int16) error {
	n.voiced, n.quiet = 0, 0
	for len(pcm) > 0 {
		pcm = pcm[copy(n.in[:], pcm):]
		err := n.tick()
		clear(n.in[:])
		if err != nil {
			return err
		}
	}
	return nil
}

// listen is silent until the other has spoken and finished. What they said while we spoke was perhaps cut short by
// it: they get time to go on.
func (n *line) listen() error {
	const spoken = 100 * time.Millisecond
	before := n.voiced
	n.voiced = 0
	for (n.voiced < spoken || n.quiet < manners) && (before < spoken || n.quiet < talkedOver) {
		if err := n.tick(); err != nil {
			return err
		}
	}
	return nil
}

// tick waits for the next 20 ms and exchanges them: in for what the other says.
func (n *line) tick() error {
	if !n.clock.Wait(n.ctx.Done()) {
		return context.Cause(n.ctx)
	}
	n.clock.Due()
	if n.elapsed >= stay || n.transferred.Load() {
		return parley.CustomerHangup
	}
	n.elapsed += audio.FrameTime
	n.peer.Hear(n.in[:])
	if !n.peer.Tick(n.in[:], n.out[:]) {
		clear(n.out[:])
	}
	n.hear()
	return nil
}

// hear notes whether the other speaks. Ambient sound behind a voice is no speech, whatever it sounds like: what is 14
// dB below the loudest does not count.
func (n *line) hear() {
	_, voiced := n.vad.Detect(n.out[:])
	level := audio.Level(n.out[:])
	n.peak = max(level, n.peak-0.02) // 1 dB a second
	if voiced && level > n.peak-14 {
		n.voiced += audio.FrameTime
		n.quiet = 0
	} else {
		n.quiet += audio.FrameTime
	}
}
