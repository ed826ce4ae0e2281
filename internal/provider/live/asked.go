package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/rest"
	"parley/internal/provider/wire"
)

// Asker is the protocol of a vendor whose model answers when it is asked to. All but Open are called under the session's lock; Speech,
// Texts and Results make messages.
type Asker interface {
	Take(raw []byte) error                                       // handles a message of the server's; an error ends the session
	Open(ctx context.Context, handle string) (*wire.Conn, error) // opens a connection that goes on with a session
	Speech(begins bool) any                                      // the customer speaks, or has finished, which asks for a reply
	Texts(list []*Text, asks bool) any                           // texts of either side, and whether they ask for a reply
	Results(list []Result) any                                   // results of calls, upon which the reply goes on
}

// Text is a text on its way to the server; a later cut changes it as long as it is not sent.
type Text struct {
	Role ai.Role
	Text string
	sent bool
}

// Result is the result of a call: a text, or an object that has it.
type Result struct {
	Call   ai.ToolCall
	Output any
}

// Asked is a session with a model that answers as soon as it is told that the customer has finished, so it is told only when a response is
// asked for; until then everything that is said is one activity. What it was told can't be taken back: what the customer heard of a reply
// that was cut is told in a note. While a reply is made the outbox is shut: speech would interrupt the reply, and whether it is to do so is
// not the vendor's decision.
type Asked struct {
	Link
	vendor      Asker
	Setup       ai.RealtimeSetup
	Names       rest.Names // of the tools
	resampler   *audio.Resampler
	recognition recognition

	answers  map[int]*answer        // by their numbers
	waiting  []*answer              // asked for while another is made
	active   *answer                // is being made
	turns    []*answer              // what the server owes, in order: its content has no names
	begun    bool                   // something was put into the conversation
	activity bool                   // the server was told that the customer speaks, or is going to be
	pending  []*Text                // that the server has not been told yet
	owed     []string               // calls whose results the server waits for
	results  []Result               // that it has not been told yet
	calls    map[string]ai.ToolCall // by their ids, also those of other sessions
	handle   string                 // of the session as it is now; "" while something happens that it doesn't hold yet
}

// answer is something that the model was asked to say, or a text that was added.
type answer struct {
	reply
	instruction string
	words       bool    // nothing is called in it
	added       []*Text // it is a text
	begun       bool    // some of it has come
	again       bool    // it was empty, and is asked for once more
	refused     int     // calls that were refused
	odd         []byte  // half a sample
	ghost       bool    // goes on after calls, whose turn may be reported complete once more
}

const (
	answerNote  = "[The customer is speaking to you, and waits for your answer. Say something.]"
	wordsNote   = "[Answer in words now, without calling anything.]"
	refusedCall = "Nothing may be called in this answer. Answer in words."
	maxRefused  = 3
	// opening stands for the customer where the assistant speaks first, and closing where it spoke last: a conversation begins and ends
	// with the customer.
	opening = "(The conversation begins.)"
	closing = "(Go on.)"
	// readOut is the prompt of a session that reads.
	readOut = "You are a voice that reads texts out. Say each message exactly as it is written, word for word, in its own language: add " +
		"nothing, leave nothing out, and answer nothing that it asks."
	lateTime            = time.Second     // for the end of a turn after all of it was made, as it may be reported when it was played
	askedTranscriptTime = 5 * time.Second // after which an utterance has no text, from the model's being asked for its answer
)

// NewAsked is a session that is not served yet, with a vendor whose sound has a rate.
func NewAsked(ctx context.Context, vendor Asker, setup ai.RealtimeSetup, rate int) (*Asked, error) {
	resampler, err := audio.NewResampler(rate, int(setup.Rate))
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	if setup.Reads {
		setup.System, setup.Tools = readOut, nil
	}
	s := &Asked{vendor: vendor, Setup: setup, Names: rest.NewNames(setup.Tools), resampler: resampler, answers: map[int]*answer{},
		calls: map[string]ai.ToolCall{}}
	s.Tally, s.Take, s.Passes, s.Handle, s.Open = ai.TallyOf(ctx), vendor.Take, s.passes, s.named, vendor.Open
	s.recognition = recognition{tell: s.Tell, languages: append([]string{setup.Language}, setup.Others...)}
	return s, nil
}

// Write implements ai.RealtimeSession.
func (s *Asked) Write(pcm []int16) {
	s.hears()
	s.Box.Sound(pcm)
}

func (s *Asked) hears() {
	s.Lock()
	defer s.Unlock()
	s.begin()
}

// uttering reports whether an utterance is under way.
func (s *Asked) uttering() bool { return len(s.recognition.said) > s.recognition.ended }

// begin begins an utterance, unless one is under way. It is the same activity as the one before if nothing was said in between. The lock is
// held.
func (s *Asked) begin() {
	if s.uttering() {
		return
	}
	s.recognition.now()
	if s.activity {
		return
	}
	s.activity = true
	s.GaveUp(s.owed)
	s.flush()
	s.handle = ""
	s.Box.Send(s.vendor.Speech(true))
}

// End implements ai.RealtimeSession.
func (s *Asked) End() {
	s.Lock()
	defer s.Unlock()
	s.begin() // of nothing
	s.recognition.end()
	s.Box.Ring()
}

// Forget implements ai.RealtimeSession. The sound stays where it is: it is heard before what is said next.
func (s *Asked) Forget(n int) {
	s.Lock()
	defer s.Unlock()
	s.recognition.forget(n)
}

// Add implements ai.RealtimeSession. Calls can't be put into the conversation, so they are told in a note.
func (s *Asked) Add(n int, messages ...ai.Message) {
	s.Lock()
	defer s.Unlock()
	a := &answer{reply: reply{n: n, numbered: true, overAt: time.Now(), told: true}}
	s.answers[n] = a
	for _, m := range messages {
		switch {
		case m.Role == ai.ToolRole:
			s.note(resultOf(s.calls[m.CallID], m.Text))
			continue
		case strings.TrimSpace(m.Text) != "":
			a.added = append(a.added, s.add(m.Role, m.Text))
		}
		for _, c := range m.Calls {
			s.calls[c.ID] = c
		}
	}
	s.settle()
}

// add puts a text among those that the server is told next. The lock is held.
func (s *Asked) add(role ai.Role, text string) *Text {
	if !s.begun && role == ai.Assistant {
		s.pending = append(s.pending, &Text{Role: ai.User, Text: opening})
	}
	s.begun = true
	t := &Text{Role: role, Text: text}
	s.pending = append(s.pending, t)
	return t
}

func (s *Asked) note(text string) { s.add(ai.User, "["+text+"]") }

// settle tells the server the texts that are due, unless that would interrupt a reply, or mix them with speech. The lock is held.
func (s *Asked) settle() {
	if s.active == nil && !s.activity && len(s.owed)+len(s.results) == 0 {
		s.flush()
	}
}

// flush tells the server the texts that are due in any case.
func (s *Asked) flush() {
	if list := s.due(); len(list) > 0 {
		s.handle = ""
		s.Box.Send(s.vendor.Texts(list, false))
	}
}

// due takes the texts that the server was not told.
func (s *Asked) due() []*Text {
	list := slices.DeleteFunc(s.pending, func(t *Text) bool {
		t.sent = true
		return t.Text == ""
	})
	s.pending = nil
	return list
}

// asking are the texts that are due, up to one of the customer's, which asks for a reply.
func (s *Asked) asking() []*Text {
	list := s.due()
	if n := len(list); n > 0 && list[n-1].Role != ai.Assistant {
		return list
	}
	text := closing
	if !s.begun {
		s.begun, text = true, opening
	}
	return append(list, &Text{Role: ai.User, Text: text})
}

// Respond implements ai.RealtimeSession.
func (s *Asked) Respond(n int, instruction string, words bool) {
	s.Lock()
	defer s.Unlock()
	a := &answer{reply: reply{n: n, numbered: true}, instruction: instruction, words: words}
	s.answers[n] = a
	s.waiting = append(s.waiting, a)
	s.askNext()
}

// Say implements ai.RealtimeSession. All that a session says enters its conversation, so the one that holds the call can't read.
func (s *Asked) Say(n int, text string) { s.Respond(n, text, false) }

// askNext asks for the next response, if none is being made. The lock is held.
func (s *Asked) askNext() {
	if s.active != nil || len(s.waiting) == 0 {
		return
	}
	a := s.waiting[0]
	s.waiting, s.active, s.handle = s.waiting[1:], a, ""
	note := a.instruction
	if a.words && len(s.Setup.Tools) > 0 {
		note = strings.TrimSpace(note + "\n" + wordsNote)
	}
	if len(s.results) > 0 {
		s.goOn(a, note)
		return
	}
	s.turns = append(s.turns, a)
	if note != "" {
		s.add(ai.User, note)
	}
	switch {
	case s.activity && !s.uttering():
		s.flush()
		s.activity = false
		s.recognition.listens(time.Now().Add(askedTranscriptTime))
		s.Box.Ask(s.vendor.Speech(false))
	case s.activity: // what is being said has to wait
		s.Box.Hurry(s.vendor.Texts(s.asking(), true), true)
	default:
		s.Box.Ask(s.vendor.Texts(s.asking(), true))
	}
}

// goOn tells the results of calls, upon which the reply goes on as this response. The turn that had the calls goes on, whether or not it
// was reported complete. The lock is held.
func (s *Asked) goOn(a *answer, note string) {
	for _, id := range s.owed { // nobody knows
		s.results = append(s.results, Result{Call: s.calls[id], Output: "no result"})
	}
	if last := &s.results[len(s.results)-1]; note != "" {
		last.Output = map[string]any{"result": last.Output, "note": note}
	}
	s.Box.Ask(s.vendor.Results(s.results))
	s.results, s.owed = nil, nil
	had := len(s.turns)
	s.turns = slices.DeleteFunc(s.turns, func(t *answer) bool { return t.made() })
	a.ghost = len(s.turns) < had
	s.turns = append(s.turns, a)
}

// Result implements ai.RealtimeSession.
func (s *Asked) Result(callID, result string) {
	s.Lock()
	defer s.Unlock()
	i := slices.Index(s.owed, callID)
	if i < 0 { // the server gave it up when the customer spoke
		s.note(resultOf(s.calls[callID], result))
		s.settle()
		return
	}
	s.owed = slices.Delete(s.owed, i, i+1)
	s.results = append(s.results, Result{Call: s.calls[callID], Output: result})
}

// GaveUp notes that the server waits for the results of calls no longer. Those that are there are told in notes. The lock is held.
func (s *Asked) GaveUp(ids []string) {
	s.owed = slices.DeleteFunc(slices.Clone(s.owed), func(id string) bool { return slices.Contains(ids, id) })
	if len(s.owed) > 0 {
		return
	}
	for _, r := range s.results {
		s.note(resultOf(r.Call, fmt.Sprint(r.Output)))
	}
	s.results = nil
}

// Cut implements ai.RealtimeSession. A reply that is being made ends with the note, which stands before what the customer says into it.
func (s *Asked) Cut(n int, _ time.Duration, text string) {
	s.Lock()
	defer s.Unlock()
	a := s.answers[n]
	if a == nil || a.cut {
		return
	}
	a.cut = true
	switch {
	case slices.Contains(s.waiting, a): // nobody was asked
		s.waiting = slices.DeleteFunc(s.waiting, func(w *answer) bool { return w == a })
		a.told = true
		return
	case s.Setup.Reads || a.shorten(text):
	case a.added != nil && a.added[0].Role == ai.User: // what the customer's side did stays
	default:
		s.note(heardOnly(text))
	}
	if s.active != a {
		s.settle()
		return
	}
	if !s.Setup.Reads {
		s.handle = ""
		s.Box.Hurry(s.vendor.Texts(s.due(), false), false)
	}
	s.free()
	s.askNext()
}

// free lets the next response be asked for.
func (s *Asked) free() {
	s.active = nil
	s.Box.Release()
}

// shorten makes a text what was heard of it, if it was not sent yet.
func (a *answer) shorten(text string) bool {
	for _, t := range a.added {
		if t.sent {
			return false
		}
		t.Text, text = text, ""
	}
	return a.added != nil
}
