package turn

import (
	"slices"

	"parley/internal/lang"
)

// What a recognizer that finds turns says about the customer's. This comes on top of the detector's frames and the texts: the
// recognizer's word is enough to end a turn, and where it says nothing the rules of listen.go apply.

// found takes what a recognizer says about the turn.
func (m *Machine) found(e Event) {
	if e.Text != "" {
		m.heard(Event{Kind: Text, N: e.N, Text: e.Text})
	}
	m.says = e.Kind
	r := m.reply
	switch e.Kind {
	case Started:
		m.went = m.now
	case Resumed:
		m.went = m.now
		if r != nil && r.phase == prepared {
			m.rejoin(r) // nothing of it was heard
		}
	case Eager:
		if r == nil || r.tentative() {
			m.hasten(e.N, false)
		}
	case Ended:
		m.hasten(e.N, true)
		if r != nil && r.phase == prepared {
			for i := range r.taken {
				r.taken[i].ended = true
			}
		}
	}
}

// hasten treats what was said up to an utterance as complete; ended means that the turn is over, too. An utterance of
// which the recognizer has not understood anything yet stays open: the customer may have begun to speak again.
func (m *Machine) hasten(n int, ended bool) {
	sounds := m.now-m.last <= 2*frameTime
	for i := range m.turn {
		s := &m.turn[i]
		open := m.open && i == m.latest()
		if s.keypad || s.n > n || open && (s.text == "" || sounds && !ended) {
			continue
		}
		if open {
			m.drones = sounds // it is nothing that they say
			m.shut()
		}
		if s.text != "" && !s.final {
			s.final, s.hasty = true, true
		}
		s.ended = s.ended || ended
	}
}

// corrected takes the final text of an utterance that was answered early. A reply that was begun to a different text is
// given up, as long as the turn that it answers is not over.
func (m *Machine) corrected(n int, text string) {
	differs := func(s *segment) bool {
		if s.keypad || s.n != n || !s.hasty {
			return false
		}
		was := s.text
		s.hasty, s.text = false, text
		return !slices.Equal(lang.Tokens(was), lang.Tokens(text))
	}
	for i := range m.turn {
		differs(&m.turn[i])
	}
	r := m.reply
	if r == nil || r.phase != prepared {
		return
	}
	for i := range r.taken {
		if differs(&r.taken[i]) {
			m.rejoin(r)
			return
		}
	}
}

// isOver reports whether a turn with this text, ending with this segment, is over: by the word of the recognizer, or by the
// silence since.
func (m *Machine) isOver(text string, lastly *segment) bool {
	switch {
	case (lastly.keypad || lastly.ended) && !m.lacks(text):
		return true
	case m.says != Started && m.says != Resumed:
		return m.longEnough(text, lastly, m.now-lastly.last)
	}
	quiet := m.now - max(lastly.last, m.went) // they go on, it says
	if m.manner.Smart {
		return quiet >= slowest
	}
	return m.longEnough(text, lastly, quiet)
}

// promising reports whether a reply to this text, which ends with this segment, is worth beginning before the turn has
// ended: on the recognizer's word, or, if that is enabled, where we judge that the customer has finished rather than not.
func (m *Machine) promising(text string, lastly *segment) bool {
	switch {
	case text == "" || m.lacks(text):
		return false
	case m.says == Eager:
		return true
	case !m.manner.Speculate:
		return false
	case m.says == Resumed && m.last <= m.went:
		return false // they have not gone on yet
	}
	return Likely(m.likely(text, lastly), m.now-lastly.last) >= worthwhile
}
