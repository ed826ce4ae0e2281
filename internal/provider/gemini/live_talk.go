package gemini

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
)

// realtime is what the customer's side does.
type realtime struct {
	Input struct {
		Start *struct{} `json:"activityStart,omitempty"`
		End   *struct{} `json:"activityEnd,omitempty"`
	} `json:"realtimeInput"`
}

// What is told in notes: the customer's side of the conversation, in brackets.
const (
	heardNothing = "[The customer heard nothing of your last answer, and knows nothing of it.]"
	heardPart    = "[The customer interrupted your last answer. They heard only this of it, and know nothing of the rest: “%s”]"
	resultNote   = "[You called %s. The result: %s]"
	answerNote   = "[The customer is speaking to you, and waits for your answer. Say something.]"
	wordsNote    = "[Answer in words now, without calling anything.]"
	refusedCall  = "Nothing may be called in this answer. Answer in words."
)

// Write implements ai.RealtimeSession.
func (s *live) Write(pcm []int16) {
	if !s.uttering {
		s.mu.Lock()
		s.begin()
		s.mu.Unlock()
	}
	s.box.Sound(pcm)
}

// begin begins an utterance. It is the same activity as the one before if nothing was said in between. The lock is held.
func (s *live) begin() {
	s.uttering = true
	s.heard.begin()
	if s.activity {
		return
	}
	s.activity = true
	s.abandon(s.owed)
	s.flush()
	var m realtime
	m.Input.Start = &struct{}{}
	s.change()
	s.box.Send(m)
}

// End implements ai.RealtimeSession.
func (s *live) End() {
	s.mu.Lock()
	if !s.uttering {
		s.begin() // of nothing
	}
	s.uttering = false
	s.heard.end(time.Now())
	s.mu.Unlock()
	s.box.Ring()
}

// Forget implements ai.RealtimeSession. The sound stays where it is: it is heard before what is said next.
func (s *live) Forget(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard.forget(n)
}

// Add implements ai.RealtimeSession. Calls can't be put into the conversation, so they are told in a note.
func (s *live) Add(n int, messages ...ai.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &answer{n: n, made: true, told: true}
	s.answers[n] = a
	for _, m := range messages {
		switch {
		case m.Role == ai.ToolRole:
			s.note(fmt.Sprintf(resultNote, s.told[m.CallID], m.Text))
			continue
		case strings.TrimSpace(m.Text) == "":
		case m.Role == ai.Assistant:
			a.added = append(a.added, s.add("model", m.Text))
		default:
			a.added = append(a.added, s.add("user", m.Text))
		}
		for _, c := range m.Calls {
			s.told[c.ID] = c.Name
		}
	}
	s.settle()
}

// add puts a text among those that the server is told next. The lock is held.
func (s *live) add(role, text string) *added {
	if !s.begun && role == "model" {
		s.begun = true
		s.add("user", opening)
	}
	s.begun = true
	t := &added{content: content{role, []part{{Text: text}}}}
	s.pending = append(s.pending, t)
	return t
}

func (s *live) note(text string) { s.add("user", text) }

// settle tells the server the texts that are due, unless that would interrupt a reply, or mix them with speech. The
// lock is held.
func (s *live) settle() {
	if s.active == nil && !s.activity && len(s.owed)+len(s.results) == 0 {
		s.flush()
	}
}

// flush does so in any case.
func (s *live) flush() {
	var m clientContent
	if m.Content.Turns = s.due(); len(m.Content.Turns) > 0 {
		s.change()
		s.box.Send(m)
	}
}

// due takes the texts that the server was not told.
func (s *live) due() (list []content) {
	for _, t := range s.pending {
		if t.sent = true; t.content.Parts[0].Text != "" {
			list = append(list, t.content)
		}
	}
	s.pending = nil
	return list
}

// Respond implements ai.RealtimeSession.
func (s *live) Respond(n int, instruction string, words bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &answer{n: n, instruction: instruction, words: words}
	s.answers[n] = a
	s.waiting = append(s.waiting, a)
	s.next()
}

// readOut is what a session that reads is set up with. All that a session says enters its conversation, so the one that
// holds the call can't read.
const readOut = "You are a voice that reads texts out. Say each message exactly as it is written, word for word, in its own language: add nothing, leave nothing out, and answer nothing that it asks."

// Say implements ai.RealtimeSession.
func (s *live) Say(n int, text string) { s.Respond(n, text, false) }

// next asks for the next response, if none is being made. The lock is held.
func (s *live) next() {
	if s.active != nil || len(s.waiting) == 0 {
		return
	}
	a := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.active = a
	note := a.instruction
	if a.words && len(s.setup.Tools) > 0 {
		note = strings.TrimSpace(note + "\n" + wordsNote)
	}
	s.change()
	if len(s.results) > 0 {
		s.answerCalls(a, note)
		s.turns = append(s.turns, a)
		return
	}
	s.turns = append(s.turns, a)
	if note != "" {
		s.note(note)
	}
	if s.activity && !s.uttering {
		s.flush()
		s.activity = false
		s.heard.answered(time.Now())
		var m realtime
		m.Input.End = &struct{}{}
		s.box.Ask(m)
		return
	}
	var m clientContent
	m.Content.Turns, m.Content.Complete = s.due(), true
	if k := len(m.Content.Turns); k == 0 || m.Content.Turns[k-1].Role != "user" {
		text := closing
		if !s.begun {
			text = opening
		}
		m.Content.Turns = append(m.Content.Turns, content{"user", []part{{Text: text}}})
	}
	s.begun = true
	if s.activity { // what is being said has to wait
		s.box.Hurry(m, true)
		return
	}
	s.box.Ask(m)
}

// answerCalls tells the results of calls, on which the reply goes on. The lock is held.
func (s *live) answerCalls(a *answer, note string) {
	for _, id := range s.owed { // nobody knows
		r := response{ID: id, Name: s.calls[id]}
		r.Response.Output = "no result"
		s.results = append(s.results, r)
	}
	if note != "" {
		last := &s.results[len(s.results)-1]
		last.Response.Output = map[string]any{"result": last.Response.Output, "note": note}
	}
	var m toolResponse
	m.Response.Functions, s.results, s.owed = s.results, nil, nil
	// The turn that had the calls goes on, whether or not it was reported complete.
	a.ghost = slices.ContainsFunc(s.turns, func(t *answer) bool { return t.made })
	s.turns = slices.DeleteFunc(s.turns, func(t *answer) bool { return t.made })
	s.box.Ask(m)
}

// Result implements ai.RealtimeSession.
func (s *live) Result(callID, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.owed, callID)
	if i < 0 { // the server gave it up when the customer spoke
		s.note(fmt.Sprintf(resultNote, s.names.Own(s.calls[callID]), result))
		s.settle()
		return
	}
	s.owed = slices.Delete(s.owed, i, i+1)
	r := response{ID: callID, Name: s.calls[callID]}
	r.Response.Output = result
	s.results = append(s.results, r)
}

// abandon gives up calls: the server waits for their results no longer. Those that are there are told in notes. The
// lock is held.
func (s *live) abandon(ids []string) {
	for _, id := range slices.Clone(ids) {
		s.owed = slices.DeleteFunc(s.owed, func(o string) bool { return o == id })
	}
	if len(s.owed) > 0 {
		return
	}
	for _, r := range s.results {
		s.note(fmt.Sprintf(resultNote, s.names.Own(r.Name), r.Response.Output))
	}
	s.results = nil
}

// Cut implements ai.RealtimeSession. A reply that is being made ends with the note, which stands before what the
// customer says into it.
func (s *live) Cut(n int, heard time.Duration, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[n]
	switch {
	case a == nil, a.cut:
		return
	}
	a.cut = true
	switch {
	case slices.Contains(s.waiting, a): // nobody was asked
		s.waiting = slices.DeleteFunc(s.waiting, func(w *answer) bool { return w == a })
		a.made, a.told = true, true
		return
	case s.setup.Reads || a.shorten(text):
	case a.added != nil && a.added[0].content.Role == "user": // what the customer's side did stays
	case text == "":
		s.note(heardNothing)
	default:
		s.note(fmt.Sprintf(heardPart, text))
	}
	if s.active != a {
		s.settle()
		return
	}
	if !s.setup.Reads {
		var m clientContent
		m.Content.Turns = s.due()
		s.change()
		s.box.Hurry(m, false)
	}
	s.active = nil
	s.box.Release()
	s.next()
}

// shorten makes a text what was heard of it, if it was not sent yet.
func (a *answer) shorten(text string) bool {
	for _, t := range a.added {
		if t.sent {
			return false
		}
		t.content.Parts[0].Text, text = text, ""
	}
	return a.added != nil
}
