package rtp

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Pace measures how punctually a process sends the sound of all its calls, and says when it has more of them than it can
// hold well. Clocks report to it; a nil one counts nothing and is never behind.
type Pace struct {
	most time.Duration // how late a frame may be sent

	frames, late atomic.Int64 // since the beginning
	behind       atomic.Bool
}

const (
	paceEvery  = time.Second
	paceFrames = 50 // fewer in a second say nothing: less than one call
	paceShare  = 100
	paceBad    = 3 // seconds in a row after which the process is behind
	paceGood   = 5 // seconds in a row after which it is no longer
)

// NewPace counts frames that are sent later than most after they are due; nil for a most of 0.
func NewPace(most time.Duration) *Pace {
	if most <= 0 {
		return nil
	}
	return &Pace{most: most}
}

// took counts a frame that was sent so long after it was due. It allocates nothing.
func (p *Pace) took(after time.Duration) {
	if p == nil {
		return
	}
	p.frames.Add(1)
	if after > p.most {
		p.late.Add(1)
	}
}

// Behind reports whether more than one frame in a hundred has been late in each of the last seconds: a new call would take
// from those that are under way.
func (p *Pace) Behind() bool { return p != nil && p.behind.Load() }

// Counts returns how many frames were sent since the beginning, and how many of them were late.
func (p *Pace) Counts() (frames, late int64) {
	if p == nil {
		return 0, 0
	}
	late = p.late.Load() // before the frames: each late one is among them
	return p.frames.Load(), late
}

// Run judges the pace each second until ctx ends.
func (p *Pace) Run(ctx context.Context) error {
	if p == nil {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	var frames, late int64
	bad, good := 0, 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		f, l := p.Counts()
		all, tardy := f-frames, l-late
		frames, late = f, l
		if all >= paceFrames && tardy*paceShare > all {
			bad, good = bad+1, 0
		} else {
			bad, good = 0, good+1
		}
		switch {
		case bad == paceBad && !p.behind.Swap(true):
			slog.Warn("new calls are refused: this server sends the sound of its calls too late", "late_frames", tardy, "of", all, "limit", p.most)
		case good == paceGood && p.behind.Swap(false):
			slog.Info("new calls are taken again: sound is sent in time")
		}
	}
}
