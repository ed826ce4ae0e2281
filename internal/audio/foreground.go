package audio

import "time"

// Foreground tells who speaks into the telephone from voices behind them, by nothing but how loud they are. How loud the
// customer is, the turns say that the assistant answers: from each it takes what its five loudest frames reach, and the
// fainter one of the last two counts, as somebody may have shouted once. Speech that stays 8.5 dB below that is in the
// background.
//
// It may be the customer all the same, who has moved away from the telephone, or has given it to somebody else. So what
// is faint is kept out only where the customer has just spoken, or while the assistant replies. When it waits for them,
// whoever speaks is listened to, and the answer to that makes theirs the new level. Nor is anybody kept out of a long
// reply for more than six seconds of speech.
type Foreground struct {
	turns   [2]float64 // the last turns' levels, as energy per sample; 0: not known
	loudest [5]float64 // frames of speech since the assistant was last heard, the loudest first
	voiced  int        // and how many there were
	away    int        // frames since speech as loud as the customer's
	kept    int        // frames of speech that were kept out since then
	faint   bool       // somebody faint speaks, and is listened to
}

const (
	foregroundShare = 0.141 // of the energy: 8.5 dB
	foregroundLeast = int(500 * time.Millisecond / FrameTime)
	// a word of the customer's own may be faint, and so are the ends of sentences
	foregroundHang = int(600 * time.Millisecond / FrameTime)
	// so long who has just spoken has the floor
	foregroundFloor = int(3 * time.Second / FrameTime)
	foregroundMost  = int(6 * time.Second / FrameTime)
)

// Spoken says that the assistant is heard: the customer's turn, if there was one, is over.
func (g *Foreground) Spoken() {
	g.faint = false
	if g.voiced < foregroundLeast {
		return // with what they say next it may be enough
	}
	g.turns[1], g.turns[0] = g.turns[0], g.loudest[len(g.loudest)-1]
	g.loudest, g.voiced = [5]float64{}, 0
}

// level is how loud the customer is, in their first turn by what they have said of it; 0 if nobody knows.
func (g *Foreground) level() float64 {
	switch {
	case g.turns[1] > 0:
		return min(g.turns[0], g.turns[1])
	case g.turns[0] > 0:
		return g.turns[0]
	case g.voiced >= foregroundLeast:
		return g.loudest[len(g.loudest)-1]
	}
	return 0
}

// Behind takes a frame with this energy per sample, and reports whether it is speech in the background. replies says
// that the assistant is about to reply, or does, and heard that it can be heard.
func (g *Foreground) Behind(energy float64, voiced, replies, heard bool) bool {
	if g.away++; !voiced {
		return false
	}
	level := g.level()
	if energy >= level*foregroundShare {
		g.away, g.kept, g.faint = 0, 0, false
	} else if g.away > foregroundHang && !g.faint {
		if replies || g.away < foregroundFloor {
			if g.kept++; g.kept < foregroundMost {
				return true
			}
			g.turns = [2]float64{} // nobody else has spoken since: it must be the customer
			g.away, g.kept = 0, 0
		}
		g.faint = true
	}
	if !heard {
		g.learn(energy)
	}
	return false
}

func (g *Foreground) learn(energy float64) {
	g.voiced++
	for i, e := range g.loudest {
		if energy > e {
			g.loudest[i], energy = energy, e
		}
	}
}
