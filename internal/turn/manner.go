package turn

import (
	"math"
	"time"
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
	Nods        bool // it says words of listening in a long story
	Speculate   bool // replies are begun before the turn has ended, without a recognizer that says when
	Sound       bool // what was said is answered by its sound: nobody waits for the text of what can't be a noise

	// Decides: the model decides by itself when it speaks, and falls silent when it is interrupted. Nothing is begun, held or cut off here
	// for what the customer says; what they have said is answered by what the model says next.
	Decides bool

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

// pauseRarity is the power of a pause's length by which pauses within a turn get rarer: one of twice the length is five
// times as rare (of those of people in calls 55.6 % are longer than 300 ms, 10 % than a second, 5 % than 1.6).
const pauseRarity = 2.45

// Pause is how much silence ends a turn that is over with this probability, where usually so much ends one. Cut-offs
// and waiting cost least together where the silence grows with the odds that more is to come, by the root that
// pauseRarity is. It is at most four times the usual one.
func Pause(usual time.Duration, over float64) time.Duration {
	factor := math.Pow((1-over)/over, 1/pauseRarity)
	wait := millis(float64(usual.Milliseconds()) * min(factor, 4))
	return min(max(wait, shortest), slowest)
}

// brokenOff is how likely a turn is over at most that clearly breaks off.
const brokenOff = 0.1

// patience is for how long more is waited for at most, the longer the less likely the turn is over: where it may break
// off, where it does ("my number is"), and where hardly anybody ends ("could you tell me when the").
var patience = []struct {
	over float64
	most time.Duration
}{{0.02, 8 * time.Second}, {brokenOff, 5 * time.Second}, {0.3, partTime}}

// Patience is how much silence ends a turn that is over with this probability. It is Pause, but those who don't seem to
// have finished are waited for as long as the odds say, within these bounds. That matters most where the usual silence
// is long; where it is 600 ms, nobody waits for more than 2 s unless it is twenty to one that more is to come.
func Patience(usual time.Duration, over float64) time.Duration {
	wait := Pause(usual, over)
	for _, p := range patience {
		if over < p.over {
			longer := float64(usual.Milliseconds()) * math.Pow((1-over)/over, 1/pauseRarity)
			return max(wait, millis(min(longer, float64(p.most.Milliseconds()))))
		}
	}
	return wait
}

// worthwhile is how likely it must be that the customer has finished for a reply to be begun before the turn has ended.
// At that, one reply in eight is begun in vain. Where they may go on it is begun later, as it gets likelier.
const worthwhile = 0.5

// Likely is how likely the customer has finished who has said something that is over with this probability, and has been
// quiet for so long since: the longer, the likelier, as pauses within a turn get rarer.
func Likely(over float64, quiet time.Duration) float64 {
	const known, share = 300 * time.Millisecond, 0.556 // of the pauses are longer
	pauses := min(share*math.Pow(float64(max(quiet, frameTime))/float64(known), 1-pauseRarity), 1)
	return over / (over + (1-over)*pauses)
}
