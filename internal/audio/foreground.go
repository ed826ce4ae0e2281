package audio

import (
	"math"
	"time"
)

// Foreground tells the customer from voices behind them, by nothing but how loud they are. How loud the customer is, it learns
// from what is said while the assistant waits for an answer; before that, everybody is the customer. A sound none of whose
// frames comes within 11 dB of that is somebody else's.
//
// It may be the customer all the same, who has moved away from the telephone or has given it to somebody else. So who
// speaks so faintly for two seconds, or in two turns in a row, while the assistant waits and nobody louder speaks, is the
// customer from then on.
type Foreground struct {
	level   float64    // of the customer, as energy per sample; 0: not known
	own     bool       // the present sound is the customer's
	loudest [3]float64 // frames of it since then, while the assistant waits, the loudest first,
	voiced  int        // and how many there were
	away    int        // frames since one as loud as the customer
	behind  int        // voiced frames of others since then, in the present sound
	waits   bool       // the assistant waits
	heard   bool       // and the customer has spoken meanwhile
	faint   int        // voiced frames of others, in the turns since the customer has spoken
}

const (
	foregroundShare = 0.0794 // of the energy: 11 dB
	// a sound that is shorter says little about how loud somebody is
	minForeground = int(240 * time.Millisecond / FrameTime)
	// so long after a loud frame the sound is the customer's: the ends of words are faint
	foregroundHang = int(400 * time.Millisecond / FrameTime)
	// so much of what the customer says may be faint before its first vowel; a little more
	foregroundBegin = int(240 * time.Millisecond / FrameTime)
	maxForeground   = int(2 * time.Second / FrameTime)
)

// Hear takes a frame: its energy per sample, and what a detector says of it. waits says that the assistant waits for an
// answer. other reports that the frame is not the customer's; far, that it can't be the beginning of their sentence either.
func (g *Foreground) Hear(energy float64, speech, voiced, waits bool) (other, far bool) {
	if waits != g.waits {
		g.turn(waits)
	}
	if !speech {
		g.learn()
		g.away, g.behind = foregroundHang, 0
		return false, false
	}
	switch g.away++; {
	case voiced && energy >= g.least():
		g.own, g.away, g.behind, g.faint, g.heard = true, 0, 0, 0, true
	case voiced && g.away > foregroundHang:
		if g.behind++; waits {
			g.faint++
		}
	}
	if voiced && waits && g.own {
		g.collect(energy)
	}
	if g.faint > maxForeground {
		*g = Foreground{waits: true, heard: true}
	}
	return g.away > foregroundHang, g.behind > foregroundBegin
}

// least is the energy of the customer's loudest frames at least. In their first turn, and where they are fainter in this one,
// what was heard of it says that.
func (g *Foreground) least() float64 {
	level := g.level
	if now := g.loudest[len(g.loudest)-1]; g.voiced >= minForeground && (level == 0 || now < level) {
		level = now
	}
	return level * foregroundShare
}

// turn begins or ends a wait for an answer. Who was alone in it, and is faint, is the customer if they speak in the next.
func (g *Foreground) turn(waits bool) {
	g.learn()
	switch g.waits = waits; {
	case waits:
		g.heard = false
	case g.heard:
		g.faint = 0
	case g.faint >= minForeground:
		g.faint = maxForeground
	}
}

func (g *Foreground) collect(energy float64) {
	g.voiced++
	for i, e := range g.loudest {
		if energy > e {
			g.loudest[i], energy = energy, e
		}
	}
}

// learn ends a sound, or what the customer says of it. What is louder or fainter than before counts half, in dB: somebody may shout once.
func (g *Foreground) learn() {
	e, long := g.loudest[len(g.loudest)-1], g.voiced >= minForeground
	g.loudest, g.voiced, g.own = [3]float64{}, 0, false
	switch {
	case !long:
	case g.level == 0:
		g.level = e
	default:
		g.level = math.Sqrt(g.level * e)
	}
}
