package turn

import (
	"math"
	"time"

	"parley/internal/lang"
)

// Manner is how an assistant behaves in a call, in the turn machine's terms.
type Manner struct {
	Language      string
	Interruptible bool
	MinWords      int
	Confirm       time.Duration // so much speech cuts a reply off
	Endpoint      time.Duration // so much silence ends a turn
	Smart         bool          // what was said moves it

	Initial     string // the initial message, "" for none
	Wait        bool   // for the customer to speak first
	Reengage    time.Duration
	Prompted    bool // the model is told how to re-engage
	MaxSilence  time.Duration
	MaxDuration time.Duration
	Fillers     bool
	Speculate   bool // replies are begun before the turn has ended, without an ear that says when
	Sound       bool // what was said is answered by its sound: nobody waits for the text of what can't be a noise

	Outbound     bool
	EndOnMachine bool
	Message      bool   // there is one for a voicemail
	Keys         bool   // it may press keys in a menu
	Goal         string // where to
}

// Endpointing is how much silence after the last voiced sample ends a turn, given endpoint_sensitivity.
func Endpointing(sensitivity float64) time.Duration {
	return millis(200 + 1000/(1+3*max(sensitivity, 0)))
}

// Confirmation is how much speech cuts a reply off, given interrupt_sensitivity.
func Confirmation(sensitivity float64) time.Duration {
	return millis(100 + 600/(1+4*max(sensitivity, 0)))
}

func millis(ms float64) time.Duration { return time.Duration(math.Round(ms)) * time.Millisecond }

// The bounds of endpointing, depending on what was said.
const (
	shortest = 200 * time.Millisecond
	slowest  = 2000 * time.Millisecond
)

// pause is how much silence ends a turn whose text so far is this.
func (m *Manner) pause(text string) time.Duration {
	if !m.Smart {
		return m.Endpoint
	}
	factor := 1.0
	switch lang.Completeness(text, m.Language) {
	case lang.Finished:
		factor = 0.5
	case lang.Unfinished:
		factor = 2.5
	}
	return min(max(time.Duration(float64(m.Endpoint)*factor), shortest), slowest)
}
