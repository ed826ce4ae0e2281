package turn

import "slices"

// Others than the customer may take part in a call. A person who speaks in the assistant's place relieves it: it
// listens, and goes on when they hand the call back. Whoever talks with both invites it to reply.

// hushed ends what the assistant says or waits for.
func (m *Machine) hushed() {
	if m.collect.on {
		m.collected(false)
	}
	if r := m.reply; r != nil && r.drained() {
		m.reply = nil
		m.act(Action{Kind: Finish, Reply: r.id})
	} else if r != nil {
		m.stop(false)
	}
	m.amd.active, m.mailbox.on, m.far = false, false, far{}
}

// relieve leaves the conversation to a person for a while. Who has been spoken to needs no greeting any more.
func (m *Machine) relieve() {
	m.hushed()
	m.relieved, m.greeted, m.bid = true, true, Answer
}

// back has the assistant go on, with a reply of its own: the customer waits for somebody to speak.
func (m *Machine) back() {
	if !m.relieved {
		return
	}
	m.relieved, m.bid = false, Return
	m.asked, m.quietAt = 0, m.now
}

// takeDown puts a turn that has ended into the transcript.
func (m *Machine) takeDown() {
	m.asked, m.quietAt = 0, m.now
	turn, speaking := m.unanswered()
	if speaking || len(turn) == 0 || slices.ContainsFunc(turn, func(s segment) bool { return !s.final && !m.spoke(&s) }) ||
		!m.isOver(m.all.of(turn, false), &turn[len(turn)-1]) {
		return
	}
	rest := slices.Clone(m.turn[len(turn):])
	m.turn = m.turn[:len(turn)]
	m.note()
	m.turn = append(make([]segment, 0, 8), rest...)
}

// overrule stops a reply because somebody else begins to speak.
func (m *Machine) overrule() {
	if r := m.reply; r != nil && (m.cuttable(r) || r.tentative()) {
		m.stop(false)
	}
}

// invite begins a reply that is due although the customer has said nothing; the answer to what they say would do as
// well.
func (m *Machine) invite() {
	if turn, speaking := m.unanswered(); m.bid == Answer || speaking || len(turn) > 0 {
		return
	}
	purpose := m.bid
	r := m.begin(purpose, nil)
	r.thinking = true
	m.act(Action{Kind: Think, Reply: r.id, Purpose: purpose})
}
