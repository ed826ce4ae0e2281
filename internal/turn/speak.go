package turn

import (
	"slices"

	"parley/internal/lang"
	"parley/internal/parley"
)

// The assistant's side of the turn machine.

// begin creates a reply.
func (m *Machine) begin(w Purpose, taken []segment) *reply {
	m.ids++
	if w == Answer || w == m.bid {
		m.bid = Answer
	}
	for i := range taken {
		taken[i].queued = false
	}
	m.reply = &reply{id: m.ids, purpose: w, phase: begun, taken: taken, at: m.now, progress: m.now, silent: m.now,
		deaf: m.drones && (m.open || m.now-m.last <= 2*frameTime)}
	return m.reply
}

// say adds a fixed sentence to the reply.
func (m *Machine) say(w Purpose) {
	m.reply.spoken++
	m.act(Action{Kind: Say, Reply: m.reply.id, Purpose: w})
}

// greet says the initial message.
func (m *Machine) greet() {
	if !m.greeted {
		m.greeted = true
		r := m.begin(Greeting, nil)
		m.inquire(r, m.manner.Initial)
		m.say(Greeting)
	}
}

// ofReply takes events of a reply. Events of any reply but the current one are refused: it was cut off.
func (m *Machine) ofReply(e Event) {
	r := m.reply
	if r == nil || r.id != e.Reply {
		return
	}
	r.progress = m.now
	switch e.Kind {
	case Sentence:
		if !r.thinking || r.purpose == Chosen { // no menu wants to hear it
			return
		}
		r.spoken++
		m.inquire(r, e.Text)
		m.act(Action{Kind: Speak, Reply: r.id, Text: e.Text})
	case Spoken:
		r.spoken++
	case Thought:
		if e.Text != "" {
			m.inquire(r, e.Text)
		}
		m.thought(r, e.Failed)
	case Sounded:
		if r.phase == begun { // what is prepared is silent
			r.phase = audible
		}
	case Played:
		r.played = min(r.played+1, r.spoken)
		r.silent = m.now
	case ToolBegan:
		r.tools++
	case ToolEnded:
		r.tools = max(r.tools-1, 0)
	case Await:
		r.await = true
	case Collect:
		m.gather(r, e)
	case Leave:
		r.leave = e.Reason
	case Firm:
		r.firm = e.Final || r.hand != nil // nothing undoes a handover
		if r.firm {
			m.resume(r)
		}
	case Handed:
		r.hand = e.Manner
	}
}

// inquire notes what a sentence of a reply asks, and what for.
func (m *Machine) inquire(r *reply, text string) {
	r.question = lang.Asks(text)
	if f := lang.Asked(text, m.manner.Language); f != (lang.Form{}) {
		r.asks = f
	}
}

// thought marks the end of thinking.
func (m *Machine) thought(r *reply, failed bool) {
	if !r.thinking {
		return
	}
	r.thinking = false
	if !failed {
		m.failures = 0
		return
	}
	m.failures++
	r.failed = true
	m.act(Action{Kind: GiveUp, Reply: r.id})
	if r.purpose == Chosen {
		return // the menu is waited for
	}
	if r.purpose == Screened && m.manner.Initial != "" {
		m.say(Greeting)
		return
	}
	if m.failures >= maxFailures {
		r.leave = parley.ProviderFailure
	}
	if r.purpose == Reengagement && r.leave == "" {
		m.say(StillThere)
		return
	}
	m.say(Failure)
}

// drive advances the reply.
func (m *Machine) drive() {
	r := m.reply
	m.commit(r)
	if r.thinking && r.tools == 0 && m.now-r.progress >= stallTime && r.drained() {
		m.thought(r, true)
	}
	m.cover(r)
	if r.await && r.drained() {
		r.await = false
		m.act(Action{Kind: Drained, Reply: r.id})
	}
	if c := &m.collect; c.on && c.id == r.id {
		switch {
		case c.since == 0 && r.drained():
			c.since = max(m.now, 1)
		case c.since > 0 && m.now-c.since >= c.wait:
			m.collected(false)
		}
	}
	if !r.thinking && r.phase != prepared && r.drained() {
		m.finish(r)
	}
}

// cover bridges a wait with a sentence.
func (m *Machine) cover(r *reply) {
	if m.manner.Decides || !r.thinking || r.quiet() || m.open || !r.drained() || r.await || m.collect.on || r.firm {
		return
	}
	switch {
	case r.tools > 0 && r.spoken == 0 && m.now-r.progress >= coverTime:
		m.say(Moment)
	case r.tools > 0 && r.spoken > 0 && m.now-max(r.silent, r.progress) >= coverAgain && r.covered < 3:
		m.say(StillOn)
	case r.tools == 0 && r.spoken == 0 && m.manner.Fillers && r.purpose == Answer && m.now-r.at >= fillerTime:
		m.say(Filler)
	default:
		return
	}
	r.covered++
}

// stop cuts the reply off.
func (m *Machine) stop(join bool) {
	r := m.reply
	if m.collect.on {
		m.collected(false)
	}
	m.reply = nil
	if !join {
		m.awaits(r.asks)
	} else if r.failed { // nobody has noticed
		m.failures--
	}
	m.act(Action{Kind: Cut, Reply: r.id, Join: join, Over: m.over})
	if r.preface && r.phase != audible {
		m.greeted = false
	}
	m.quietAt = m.now
	for i := range m.turn {
		m.turn[i].queued = false
	}
}

// finish ends a reply that was played to its end.
func (m *Machine) finish(r *reply) {
	m.reply = nil
	m.resume(r)
	if m.collect.on {
		m.collected(false)
	}
	m.awaits(r.asks)
	m.act(Action{Kind: Finish, Reply: r.id})
	m.quietAt = m.now
	switch {
	case r.leave != "":
		m.end(r.leave)
	case r.purpose == Voicemail:
		m.end(parley.Voicemail)
	case r.hand != nil:
		m.enter(r.hand)
	}
}

// enter lets another assistant take over.
func (m *Machine) enter(next *Manner) {
	limit := m.manner.MaxDuration // the call's, whoever speaks
	m.manner = *next
	m.manner.MaxDuration = limit
	m.act(Action{Kind: Enter})
	if m.greeted = m.manner.Initial == ""; !m.greeted {
		m.greet()
		return
	}
	r := m.begin(Entrance, nil)
	r.thinking = true
	m.act(Action{Kind: Think, Reply: r.id, Purpose: Entrance})
}

// silence asks whether anybody is there when nobody speaks, and ends the call when it has asked twice without an answer. While a tool
// runs in the background it says that it is still on it. An assistant that waits for the customer to speak first greets in place of the
// first question.
func (m *Machine) silence() {
	limit, quiet := m.manner.Reengage, m.now-m.quietAt
	if m.asked == 0 {
		limit = m.manner.MaxSilence
	}
	turn, speaking := m.unanswered()
	if m.manner.Decides { // it has left unanswered what was said
		turn, quiet = nil, m.now-max(m.quietAt, m.last)
	}
	switch {
	case speaking || len(turn) > 0 || quiet < limit:
		return
	case m.async > 0 && m.greeted: // the customer waits, and not the assistant
		m.begin(StillOn, nil)
		m.say(StillOn)
		return
	case m.asked == maxAsked:
		m.end(parley.MaxSilence)
		return
	}
	m.asked++
	if m.manner.Decides {
		if m.open {
			m.shut()
		}
		m.note()
	}
	if !m.greeted {
		m.greet()
		return
	}
	r := m.begin(Reengagement, nil)
	if m.manner.Prompted {
		r.thinking = true
		m.act(Action{Kind: Think, Reply: r.id, Purpose: Reengagement, From: m.quietAt, Last: m.now})
		return
	}
	m.say(StillThere)
}

// spoken begins a reply for what a model has begun to say by itself: it answers whatever the customer has said. A fixed sentence gives way
// to it; a goodbye doesn't.
func (m *Machine) spoken() {
	if r := m.reply; r != nil {
		if r.thinking || r.leave != "" || r.hand != nil || r.firm || m.mailbox.on {
			return
		}
		if r.drained() {
			m.finish(r)
		} else {
			m.stop(false)
		}
	}
	if m.amd.open() || m.far.on || m.relieved {
		return
	}
	if m.open {
		m.shut()
	}
	m.greeted, m.missed = true, 0
	turn := slices.Clone(m.turn)
	m.turn = m.turn[:0]
	a := Action{Kind: Think, Purpose: Invited}
	if len(turn) > 0 {
		text := said(turn)
		a = Action{Kind: Think, Purpose: Answer, Text: text, From: turn[0].from, Last: turn[len(turn)-1].last, Said: m.said(turn),
			Heard: heard(turn), Digits: m.digits(text)}
	}
	r := m.begin(a.Purpose, turn)
	r.thinking, a.Reply = true, r.id
	m.act(a)
}
