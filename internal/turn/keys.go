package turn

import (
	"slices"
	"strings"
	"time"
)

// The customer's keys.

// digit takes a key.
func (m *Machine) digit(key byte) {
	m.asked, m.quietAt = 0, m.now
	if m.mailbox.on {
		return
	}
	if m.collect.on {
		m.press(key)
		return
	}
	if n := len(m.turn); n > 0 && m.turn[n-1].keypad && !m.turn[n-1].final {
		s := &m.turn[n-1]
		s.text, s.last = strings.TrimSuffix(s.text, "]")+" "+string(rune(key))+"]", m.now
	} else {
		m.turn = append(m.turn, segment{keypad: true, text: "[keypad: " + string(rune(key)) + "]", from: m.now,
			last: m.now})
	}
	s := &m.turn[len(m.turn)-1]
	s.final = key == '#' || len(s.text) > 2*MaxKeys
	switch r := m.reply; {
	case r == nil:
	case r.tentative():
		m.rejoin(r)
	case m.cuttable(r):
		m.stop(false)
	default:
		s.queued = true
	}
}

// Pressed lists the keys that the customer has pressed and no reply answers yet, as texts.
func (m *Machine) Pressed() (texts []string) {
	for _, s := range m.turn {
		if s.keypad {
			texts = append(texts, s.text)
		}
	}
	return texts
}

// collect is the state of collecting keys for a tool.
type collect struct {
	on    bool
	id    int // the reply that asked
	keys  []byte
	wait  time.Duration
	stop  byte
	since time.Duration // when the wait began; 0: the question is still being said
}

// gather begins to collect keys for a tool. Keys pressed since the reply began come first; the question is asked all
// the same, unless they complete the input.
func (m *Machine) gather(r *reply, e Event) {
	m.collect = collect{on: true, id: r.id, wait: e.Wait, stop: e.Key}
	early := ""
	m.turn = slices.DeleteFunc(m.turn, func(s segment) bool {
		if s.keypad {
			early += strings.TrimSuffix(strings.TrimPrefix(s.text, "[keypad: "), "]")
		}
		return s.keypad
	})
	for _, key := range []byte(strings.ReplaceAll(early, " ", "")) {
		if c := &m.collect; c.on && key != c.stop && len(c.keys) < MaxKeys-1 {
			c.keys = append(c.keys, key)
		} else {
			m.digit(key)
		}
	}
}

// press takes a key that is being collected.
func (m *Machine) press(key byte) {
	c := &m.collect
	if r := m.reply; r != nil && !r.drained() {
		m.act(Action{Kind: Flush, Reply: r.id}) // who presses has heard enough of the question
		r.played = r.spoken
	}
	if key == c.stop {
		m.collected(true)
		return
	}
	c.keys, c.since = append(c.keys, key), m.now
	if len(c.keys) >= MaxKeys {
		m.collected(true)
	}
}

func (m *Machine) collected(pressed bool) {
	c := m.collect
	m.collect = collect{}
	m.act(Action{Kind: Collected, Reply: c.id, Text: string(c.keys), Pressed: pressed})
}
