package turn

import (
	"slices"
	"time"
)

// Somebody else in the customer's room, or a television, whose sound tells that it is not the customer.

// besideTime is how much is heard, at most, until that is told: what is longer, and is told only then, began as the
// customer's.
const besideTime = 1500 * time.Millisecond

// beside takes a frame of such a sound: it is silence. What was heard of it until that was told was no utterance.
func (m *Machine) beside() {
	if !m.open {
		return
	}
	i := m.latest()
	if s := &m.turn[i]; s.last-s.from >= besideTime {
		return // the customer has spoken, and somebody else goes on: the utterance is over after the usual silence
	}
	m.open, m.drones = false, false
	m.act(Action{Kind: CloseEar})
	m.forget(&m.turn[i])
	m.turn = slices.Delete(m.turn, i, i+1)
}
