package turn

import (
	"math"
	"strings"

	"parley/internal/lang"
)

// fewHeard is how many words say enough by themselves: a plain yes, a name. How such answers sound at their end is not
// known, and in scripts without spaces, where there are never more, pitch is part of the words.
const fewHeard = 3

// likely is how likely a turn is over that ends with this segment: by its words, and by how its voice sounded at the end.
// The voice can't change what the words of a text that clearly breaks off say, nor make another one break off. It doesn't
// count where a number or a name is told, whose groups all sound like ends, nor against an external detector, which may
// have heard it.
func (m *Machine) likely(text string, lastly *segment) float64 {
	over := m.overs.of(text, false, m.findOver)
	if lastly.cadence == 0 || over <= brokenOff || text == m.ruled || m.asks != (lang.Form{}) ||
		strings.Count(text, " ") < fewHeard {
		return over
	}
	odds := over / (1 - over) * math.Exp(float64(lastly.cadence))
	return max(odds/(1+odds), brokenOff)
}
