package turn

import (
	"slices"
	"time"

	"parley/internal/lang"
)

const (
	nodStory  = 6 * time.Second        // of speech without an answer are a long story
	nodPause  = 300 * time.Millisecond // of silence, in which somebody who listens says so
	nodLatest = 600 * time.Millisecond // after which it would come into the next words
	nodGoesOn = 0.3                    // how likely a turn may be over at most that certainly goes on: after a question it is likelier
)

// nod says a word of listening in a pause of a long story: where the customer will go on, and tells no number or name,
// which is dictated rather than told. It changes nothing about the turn.
func (m *Machine) nod() {
	turn, speaking := m.unanswered()
	if !m.manner.Nods || m.reply != nil || m.over || speaking || len(turn) == 0 || m.asks != (lang.Form{}) {
		return
	}
	lastly := &turn[len(turn)-1]
	quiet := m.now - lastly.last
	if quiet < nodPause || quiet > nodLatest || m.now-max(turn[0].from, m.nodded) < nodStory ||
		slices.ContainsFunc(turn, func(s segment) bool { return s.keypad || s.text == "" }) {
		return
	}
	text := m.all.of(turn, false)
	if m.likely(text, lastly) > nodGoesOn {
		return
	}
	m.nodded = m.now
	m.act(Action{Kind: Nod})
}
