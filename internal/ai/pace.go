package ai

import (
	"fmt"
	"time"
)

// Pace judges how fast a vendor's answer comes, by the time for which it is waited for: a slow reader is not held against
// the vendor. Without it a vendor that drips, a letter a second, would hold a turn and its memory for as long as it likes.
type Pace struct {
	Least  int           // of what is to come in each Window
	What   string        // in words, for the error
	Window time.Duration // of waiting

	from  time.Time
	idle  time.Duration // waited since the last window was good
	got   int           // since then
	begun bool          // something has come: the time before that is others' to judge
}

// Wait begins to wait.
func (p *Pace) Wait() { p.from = time.Now() }

// Hold ends the waiting.
func (p *Pace) Hold() {
	if !p.from.IsZero() {
		p.idle, p.from = p.idle+time.Since(p.from), time.Time{}
	}
}

// Forget begins anew: nothing was waited for.
func (p *Pace) Forget() { p.got, p.idle, p.begun, p.from = 0, 0, false, time.Time{} }

// Came ends the waiting: n came. The error says that it is too little.
func (p *Pace) Came(n int) error {
	p.Hold()
	p.got += n
	switch {
	case p.got >= p.Least || !p.begun:
		p.begun = p.begun || n > 0
		p.got, p.idle = 0, 0
	case p.idle >= p.Window:
		return &Error{Kind: Stalled, Err: fmt.Errorf("the vendor drips: %d %s in %v", p.got, p.What, p.idle.Round(time.Second))}
	}
	return nil
}
