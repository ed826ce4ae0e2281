package voice

import (
	"strings"

	"parley"
)

// The assistant's side of the turn machine.

// begin makes a reply.
func (m *machine) begin(w what, taken []segment) *reply {
	m.ids++
	for i := range taken {
		taken[i].queued = false
	}
	m.reply = &reply{id: m.ids, what: w, taken: taken, at: m.now, progress: m.now, silent: m.now, deaf: m.open && m.drones}
	return m.reply
}

// say makes a fixed sentence a part of the reply.
func (m *machine) say(w what) {
	m.reply.spoken++
	m.act(action{kind: acSay, id: m.reply.id, what: w})
}

// greet says the initial message.
func (m *machine) greet() {
	if !m.greeted {
		m.greeted = true
		r := m.begin(theInitial, nil)
		r.question = asks(m.initial)
		m.say(theInitial)
	}
}

// ofReply takes what happens to a reply. What is told of another one than the present is refused: it was cut off.
func (m *machine) ofReply(e event) {
	r := m.reply
	if r == nil || r.id != e.id {
		return
	}
	r.progress = m.now
	switch e.kind {
	case evSentence:
		if !r.thinking {
			return
		}
		r.spoken++
		r.question = asks(e.text)
		m.act(action{kind: acSpeak, id: r.id, text: e.text})
	case evThought:
		m.thought(r, e.failed)
	case evSounded:
		r.sounded = true
	case evPlayed:
		r.played = min(r.played+1, r.spoken)
		r.silent = m.now
	case evToolBegan:
		r.tools++
	case evToolEnded:
		r.tools = max(r.tools-1, 0)
	case evAwait:
		r.await = true
	case evCollect:
		m.gather(r, e)
	case evLeave:
		r.leave = e.reason
	case evFirm:
		r.firm = e.final
		if r.firm {
			m.resume(r)
		}
	case evHanded:
		r.hand = e.manner
	}
}

// thought is the end of the thinking.
func (m *machine) thought(r *reply, failed bool) {
	if !r.thinking {
		return
	}
	r.thinking = false
	if !failed {
		m.failures = 0
		return
	}
	m.failures++
	m.act(action{kind: acGiveUp, id: r.id})
	if m.failures >= maxFailures {
		r.leave = parley.ProviderFailure
	}
	if r.what == aReengagement && r.leave == "" {
		m.say(stillThere)
		return
	}
	m.say(aFailure)
}

// drive moves the reply on.
func (m *machine) drive() {
	r := m.reply
	m.commit(r)
	if r.thinking && r.tools == 0 && m.now-r.progress >= stallTime && r.drained() {
		m.thought(r, true)
	}
	m.cover(r)
	if r.await && r.drained() {
		r.await = false
		m.act(action{kind: acDrained, id: r.id})
	}
	if c := &m.collect; c.on && c.id == r.id {
		switch {
		case c.since == 0 && r.drained():
			c.since = max(m.now, 1)
		case c.since > 0 && m.now-c.since >= c.wait:
			m.collected(false)
		}
	}
	if !r.thinking && !r.early && r.drained() {
		m.finish(r)
	}
}

// cover bridges a wait with a sentence.
func (m *machine) cover(r *reply) {
	if !r.thinking || r.quiet || m.open || !r.drained() || r.await || m.collect.on || r.firm {
		return
	}
	switch {
	case r.tools > 0 && r.spoken == 0 && m.now-r.progress >= coverTime:
		m.say(aMoment)
	case r.tools > 0 && r.spoken > 0 && m.now-max(r.silent, r.progress) >= coverAgain && r.covered < 3:
		m.say(stillOn)
	case r.tools == 0 && r.spoken == 0 && m.fillers && r.what == anAnswer && m.now-r.at >= fillerTime:
		m.say(aFiller)
	default:
		return
	}
	r.covered++
}

// stop cuts the reply off.
func (m *machine) stop(join bool) {
	r := m.reply
	if m.collect.on {
		m.collected(false)
	}
	m.reply = nil
	m.act(action{kind: acStop, id: r.id, join: join})
	if r.preface && !r.sounded {
		m.greeted = false
	}
	m.quietAt = m.now
	for i := range m.turn {
		m.turn[i].queued = false
	}
}

// finish is the end of a reply that was played to its end.
func (m *machine) finish(r *reply) {
	m.reply = nil
	m.resume(r)
	if m.collect.on {
		m.collected(false)
	}
	m.act(action{kind: acFinish, id: r.id})
	m.quietAt = m.now
	switch {
	case r.leave != "":
		m.end(r.leave)
	case r.what == theMailbox:
		m.end(parley.Voicemail)
	case r.hand != nil:
		m.enter(r.hand)
	}
}

// enter lets another assistant go on.
func (m *machine) enter(next *manner) {
	limit := m.maxDuration // the call's, whoever speaks
	m.manner = *next
	m.maxDuration = limit
	m.act(action{kind: acEnter})
	if m.greeted = m.initial == ""; !m.greeted {
		m.greet()
		return
	}
	r := m.begin(anEntrance, nil)
	r.thinking = true
	m.act(action{kind: acThink, id: r.id, what: anEntrance})
}

// silence asks whether anybody is there when nobody speaks, and ends the call when that was asked twice and nobody has answered. Who waits for
// the customer to speak first greets in place of asking for the first time.
func (m *machine) silence() {
	limit, quiet := m.reengage, m.now-m.quietAt
	if m.asked == 0 {
		limit = m.maxSilence
	}
	turn, speaking := m.unanswered()
	switch {
	case speaking || len(turn) > 0 || quiet < limit:
		return
	case m.asked == maxAsked:
		m.end(parley.MaxSilence)
		return
	}
	m.asked++
	if !m.greeted {
		m.greet()
		return
	}
	r := m.begin(aReengagement, nil)
	if m.prompted {
		r.thinking = true
		m.act(action{kind: acThink, id: r.id, what: aReengagement, from: m.quietAt, last: m.now})
		return
	}
	m.say(stillThere)
}

// asks says whether a text ends with a question.
func asks(text string) bool {
	text = strings.TrimRight(text, " \n\t\"'”’»)]*_")
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟")
}
