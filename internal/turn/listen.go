package turn

import (
	"slices"
	"strings"

	"parley/internal/lang"
	"parley/internal/parley"
)

// The customer's side of the turn machine.

// voice takes the detector's verdict on a frame.
func (m *Machine) voice(e Event) {
	m.amd.voice(m.now, e.Speech && e.Voiced)
	if !e.Speech || !e.Voiced {
		if m.open && e.Speech { // the first frames of a pause
			m.turn[m.latest()].cadence = e.Cadence
		}
		return
	}
	m.last = m.now
	if m.open {
		m.turn[m.latest()].last = m.now
	} else {
		m.openUp()
	}
	if e.Sure {
		m.turn[m.latest()].sure = true
		if r := m.reply; r != nil && (e.Silences || r.tentative()) && m.holds(r) {
			m.hold(r)
		}
	}
}

// openUp begins an utterance.
func (m *Machine) openUp() {
	m.open = true
	m.turn = append(m.turn, segment{n: m.next, from: max(m.now-onsetTime, 0), last: m.now, told: m.now})
	m.act(Action{Kind: OpenRecognizer, N: m.next})
	m.next++
}

// holds reports whether speech that begins now silences the reply.
func (m *Machine) holds(r *reply) bool {
	switch {
	case r.held || r.deaf || r.firm || m.mailbox.on || m.far.on || m.manner.Decides:
		return false
	case r.phase != audible && r.purpose != Greeting:
		return true // the customer goes on with what it answers
	}
	return m.manner.Interruptible
}

func (m *Machine) hold(r *reply)   { m.become(r, r.phase, true) }
func (m *Machine) resume(r *reply) { m.become(r, r.phase, false) }

// become changes what keeps a reply silent, and pauses or resumes the playout where that makes a difference.
func (m *Machine) become(r *reply, p phase, held bool) {
	was := r.quiet()
	r.phase, r.held = p, held
	switch now := r.quiet(); {
	case now && !was:
		m.act(Action{Kind: Hold})
	case was && !now:
		m.act(Action{Kind: Resume})
	}
}

// latest is the index of the newest utterance, -1 if there is none.
func (m *Machine) latest() int {
	for i := len(m.turn) - 1; i >= 0; i-- {
		if !m.turn[i].keypad {
			return i
		}
	}
	return -1
}

// shut ends the current utterance.
func (m *Machine) shut() {
	i := m.latest()
	m.open = false
	m.turn[i].closed = m.now
	m.act(Action{Kind: CloseRecognizer})
	m.prune(i)
}

// heard takes what the recognizer understood.
func (m *Machine) heard(e Event) {
	i := slices.IndexFunc(m.turn, func(s segment) bool { return !s.keypad && s.n == e.N })
	text := strings.Join(strings.Fields(e.Text), " ")
	if i >= 0 && m.phantom(&m.turn[i], text, e.NoSpeech) {
		text = ""
	}
	m.amd.words(e.N, text, m.manner.Language)
	if i < 0 {
		m.late(e.N, text, e.Final && !e.Failed)
	}
	if i < 0 || m.turn[i].final {
		if e.Final && text != "" {
			m.corrected(e.N, text)
		}
		return
	}
	s := &m.turn[i]
	if text != "" {
		if text != s.text {
			s.text, s.told = text, m.now
		}
		m.streams = m.streams || !e.Final && (!m.manner.Sound || m.open && i == m.latest())
		if !e.Final && lang.IsNod(text, m.manner.Language) {
			s.nod = text
		}
		m.asked, m.quietAt = 0, max(m.quietAt, s.last)
	}
	if open := m.open && i == m.latest(); !e.Failed && (!e.Final || open) {
		return
	}
	s.final, s.lost = true, e.Failed
	if !e.Failed {
		s.text = text
		s.unclear = text == "" && m.unclear(s)
	}
	m.prune(i)
}

// lose gives up the texts of utterances before n: the recognizer that heard them is gone.
func (m *Machine) lose(n int) {
	for _, s := range slices.Clone(m.turn) {
		if !s.keypad && s.n < n && !s.final {
			m.heard(Event{Kind: Text, N: s.n, Final: true, Failed: true})
		}
	}
}

// prune drops a segment that came to nothing: a noise.
func (m *Machine) prune(i int) {
	s := &m.turn[i]
	open := m.open && i == m.latest()
	if s.final && s.text == "" && !open && !s.unclear && (!s.lost || s.last-s.from < lostFloor) {
		m.forget(s)
		m.turn = slices.Delete(m.turn, i, i+1)
	}
}

// hear ends what is due: an utterance after a short silence, keys after a longer one, and the wait for a text that
// doesn't come.
func (m *Machine) hear() {
	if m.open {
		s := &m.turn[m.latest()]
		switch {
		case m.now-s.last >= segmentSilence:
			m.drones = false
			if r := m.reply; r != nil {
				r.deaf = false
			}
			m.shut()
		case m.streams && m.now-s.told >= droneTime, m.now-s.from >= longest:
			m.drones = true
			m.shut()
		}
	}
	for i := range m.turn {
		s := &m.turn[i]
		switch {
		case s.final || m.open && i == m.latest():
		case s.keypad:
			s.final = m.now-s.last >= keypadTime ||
				m.told.of(m.all.of(m.turn, false), false, m.findTold) == lang.ToldWhole
		case s.text != "" && m.now-max(s.closed, s.told) >= patienceTime: // a slow recognizer that still tells more is waited for
			s.final = true
		case m.now-s.closed >= lostTime:
			s.final, s.lost = true, s.text == ""
		}
	}
}

// unanswered is what has not been answered yet, and whether the customer is speaking. A noise that doesn't stop is
// neither.
func (m *Machine) unanswered() (turn []segment, speaking bool) {
	if n := len(m.turn); m.open && m.drones && m.latest() == n-1 && m.turn[n-1].text == "" {
		return m.turn[:n-1], false
	}
	return m.turn, m.open
}

// listen takes the turn once it has ended.
func (m *Machine) listen() {
	turn, speaking := m.unanswered()
	if speaking || len(turn) == 0 || slices.ContainsFunc(turn, func(s segment) bool { return !s.final && !m.spoke(&s) }) {
		return
	}
	text := m.all.of(turn, false)
	lastly := turn[len(turn)-1]
	early := !m.isOver(text, &lastly)
	if early && !(m.greeted && m.promising(text, &lastly)) {
		return
	}
	turn, m.turn = slices.Clone(turn), slices.Delete(m.turn, 0, len(turn))
	if text == "" && !m.manner.Sound { // lost
		if !slices.ContainsFunc(turn, func(s segment) bool { return s.unclear }) { // the recognizer has lost it
			m.missed++
		}
		if m.missed >= maxMissed {
			m.end(parley.ProviderFailure)
			return
		}
		m.begin(Apology, nil)
		m.say(Apology)
		return
	}
	m.missed = 0
	r := m.begin(Answer, turn)
	a := Action{Kind: Think, Reply: r.id, Purpose: Answer, Text: text, From: turn[0].from, Last: lastly.last,
		Said: m.said(turn), Heard: heard(turn), Digits: m.digits(text)}
	if m.greeted {
		r.thinking, a.Early = true, early
		if early {
			m.become(r, prepared, false)
		}
		m.act(a)
		return
	}
	m.greeted = true // they spoke first, and are greeted now
	if lang.IsGreeting(text, m.manner.Language, false) {
		r.purpose, r.taken = Greeting, nil
		m.act(Action{Kind: Note, Text: text, From: a.From, Said: a.Said, Heard: a.Heard})
	} else {
		r.thinking, r.preface = true, true
		m.act(a)
	}
	m.say(Greeting)
}

// digits is the number that was told, where one was asked for and the text doesn't have it plainly.
func (m *Machine) digits(text string) string {
	if m.asks.Kind != lang.NumberForm || m.lacks(text) {
		return ""
	}
	digits, _ := lang.Digits(text, m.manner.Language)
	if len(digits) < 3 || digits == text {
		return ""
	}
	return digits
}

// commit lets an early reply be heard once the turn that it answers has ended.
func (m *Machine) commit(r *reply) {
	turn, speaking := m.unanswered()
	unheard := slices.ContainsFunc(turn, func(s segment) bool { return !s.queued })
	if r.phase != prepared || speaking || unheard || !m.isOver(m.all.of(r.taken, false), &r.taken[len(r.taken)-1]) {
		return
	}
	r.at, r.progress = m.now, m.now
	m.act(Action{Kind: Commit, Reply: r.id})
	m.become(r, begun, r.held)
}

// cuttable reports whether the customer may cut the reply off.
func (m *Machine) cuttable(r *reply) bool {
	return m.manner.Interruptible && !r.firm && !r.tentative()
}

// asking reports whether a question is being asked: the end of the reply.
func (r *reply) asking() bool {
	return r.phase == audible && r.question && !r.thinking && r.spoken-r.played <= 1
}

// rejoin gives up a reply of which nothing was heard: its turn goes on.
func (m *Machine) rejoin(r *reply) {
	taken := r.taken
	m.stop(true)
	m.turn = append(taken, m.turn...)
}
