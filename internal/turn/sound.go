package turn

import (
	"slices"
)

// What differs when replies are made from the sound of the customer's speech, whose text comes later or not at all.

// said is what the segments say, including those whose text is still awaited.
func (m *Machine) said(segments []segment) []Said {
	if !m.manner.Sound {
		return nil
	}
	var out []Said
	for _, s := range segments {
		n := s.n
		if s.keypad {
			n = -1
		}
		out = append(out, Said{N: n, Text: s.text, Final: s.final || s.keypad})
	}
	return out
}

// heard are the numbers of the utterances among segments.
func heard(segments []segment) (list []int) {
	for i := range segments {
		if !segments[i].keypad {
			list = append(list, segments[i].n)
		}
	}
	return list
}

// forget reports that an utterance was not one after all.
func (m *Machine) forget(s *segment) {
	if m.manner.Sound && !s.keypad {
		m.act(Action{Kind: Forget, N: s.n})
	}
}

// spoke reports whether an utterance can be answered before its text is known. A short one may be a noise, so its text
// is awaited, but not for long. The same applies until someone was greeted: it may be the word with which people pick
// up a call.
func (m *Machine) spoke(s *segment) bool {
	size := s.last - s.from + frameTime
	switch {
	case !m.manner.Sound || s.keypad:
		return false
	case m.now-s.closed >= holdTime:
		return s.text != "" || size >= lostFloor
	}
	return m.greeted && (s.text != "" || size >= soundTime)
}

// late takes the text of an utterance that is already being answered: if nothing was said at all, the answer is given
// up as long as nobody has heard any of it.
func (m *Machine) late(n int, text string, final bool) {
	r := m.reply
	if r == nil || !m.manner.Sound {
		return
	}
	i := slices.IndexFunc(r.taken, func(s segment) bool { return !s.keypad && s.n == n })
	if i < 0 || r.taken[i].final {
		return
	}
	if s := &r.taken[i]; text != "" || final {
		s.text, s.final = text, final
	}
	nothing := !slices.ContainsFunc(r.taken, func(s segment) bool { return !s.final || s.text != "" })
	if nothing && r.tentative() {
		for i := range r.taken {
			m.forget(&r.taken[i])
		}
		m.stop(true)
	}
}
