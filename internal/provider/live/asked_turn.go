package live

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

// Call is a call as a server tells it.
type Call struct {
	ID, Name string // on the wire
	Args     json.RawMessage
}

// made reports whether the server has no more of an answer.
func (a *answer) made() bool { return !a.overAt.IsZero() }

// head is the response that the server's content belongs to. Content after the end of one is the next one's, though the turn may not have
// been reported complete: that is done when it would have been played. The lock is held.
func (s *Asked) head(content bool) *answer {
	for content && len(s.turns) > 1 && s.turns[0].made() {
		s.finish(&s.turns[0].reply, nil)
		s.turns = s.turns[1:]
	}
	if len(s.turns) == 0 {
		return nil
	}
	return s.turns[0]
}

// Heard takes more of what the customer said, and what may still become other words; over says that an utterance has all of its text. The
// lock is held.
func (s *Asked) Heard(text, interim, language string, over bool) {
	if text == "" && interim == "" && !over {
		return
	}
	u := s.recognition.oldest()
	if u == nil || u.final && text == "" {
		return
	}
	s.recognition.take(u, text, interim, language, time.Now())
	if over && !u.final && u.n < s.recognition.ended {
		s.recognition.final(u)
	}
}

// Spoken takes the next sound of a response, PCM of 16 bits, in pieces of any length. The lock is held.
func (s *Asked) Spoken(raw []byte) {
	a := s.head(true)
	if a == nil || a.cut {
		return
	}
	if a.begun = true; s.Setup.Writes {
		return // somebody else speaks
	}
	raw = append(a.odd, raw...)
	a.odd = slices.Clone(raw[len(raw)&^1:])
	if pcm := wire.Samples(raw); len(pcm) > 0 {
		s.say(&a.reply, ai.RealtimeEvent{Kind: ai.RealtimeSound, PCM: s.resampler.Resample(make([]int16, 0, s.resampler.Size(len(pcm))+1), pcm)})
	}
}

// Said takes the next text of a response, written or of what is spoken. The lock is held.
func (s *Asked) Said(text string, written bool) {
	if text == "" {
		return
	}
	a := s.head(written || len(s.turns) > 0 && s.turns[0].told)
	if a != nil && !a.cut && !a.told {
		a.begun = true
		s.say(&a.reply, ai.RealtimeEvent{Kind: ai.RealtimeText, Text: text})
	}
}

// Called takes calls: with them the response is over, and goes on in another one with their results. The lock is held.
func (s *Asked) Called(list []Call) {
	if len(list) == 0 {
		return
	}
	a := s.head(true)
	if a == nil || a.made() {
		return // nobody is going to answer them: the server gives them up when the customer speaks
	}
	var calls []ai.ToolCall
	for _, c := range list {
		args := string(c.Args)
		if !strings.HasPrefix(args, "{") {
			args = "{}"
		}
		calls = append(calls, ai.ToolCall{ID: c.ID, Name: s.Names.Own(c.Name), Arguments: args})
	}
	if a.begun = true; a.words && !a.cut {
		s.refuse(a, calls)
		return
	}
	for _, c := range calls {
		s.calls[c.ID] = c
		if !s.activity && !a.cut { // else the server gives it up, as the customer speaks
			s.owed = append(s.owed, c.ID)
		}
		s.say(&a.reply, ai.RealtimeEvent{Kind: ai.RealtimeCall, Call: &c})
	}
	s.made(a)
	s.finish(&a.reply, nil)
}

// refuse answers calls that a response may not make.
func (s *Asked) refuse(a *answer, calls []ai.ToolCall) {
	if a.refused++; a.refused > maxRefused {
		s.made(a)
		s.finish(&a.reply, &ai.Error{Kind: ai.Malformed, Err: errors.New("the model calls where it is to answer in words")})
		return
	}
	var results []Result
	for _, c := range calls {
		results = append(results, Result{c, refusedCall})
	}
	s.handle = ""
	s.Box.Hurry(s.vendor.Results(results), true)
}

// Made notes that the server has no more of a response, though its turn is not complete. The lock is held.
func (s *Asked) Made() {
	if a := s.head(false); a != nil && (a.begun || !a.ghost) {
		s.made(a)
	}
}

// made notes that no more of a response comes; the next one may be asked for. The lock is held.
func (s *Asked) made(a *answer) {
	if a.made() {
		return
	}
	a.overAt = time.Now()
	if s.active != a {
		return
	}
	s.free()
	if len(s.waiting) > 0 {
		s.askNext()
	} else {
		s.settle()
	}
}

// Complete takes the end of a turn, for a reason; kinds are what reasons mean, "" for a good end. Others are refusals. The lock is held.
func (s *Asked) Complete(why string, kinds map[string]ai.Kind) {
	a := s.head(false)
	if a == nil {
		return
	}
	var err error
	if kind, known := kinds[why]; kind != "" || !known {
		err = &ai.Error{Kind: cmp.Or(kind, ai.Refused), Err: fmt.Errorf("the turn ended by %s", why)}
	}
	if a.ghost && !a.begun && !a.made() { // that of the calls which this one goes on from
		a.ghost = false
		return
	}
	s.turns = s.turns[1:]
	if !a.begun && !a.again && !a.cut && !a.told && !s.Setup.Reads && err == nil && (s.active == nil || s.active == a) {
		s.retry(a)
		return
	}
	s.made(a)
	s.finish(&a.reply, err)
}

// retry asks for a response once more: models may choose not to answer what they take for none of their business
// (https://ai.google.dev/gemini-api/docs/models/gemini-3.8-live, proactive audio), and nobody else hears the customer. The lock is held.
func (s *Asked) retry(a *answer) {
	a.again, a.overAt, a.ghost = true, time.Time{}, false
	a.instruction = strings.TrimSpace(a.instruction + "\n" + answerNote)
	s.waiting = slices.Insert(s.waiting, 0, a)
	s.free()
	s.askNext()
}

// Used notes the tokens of a response, all and those of sound; they may be counted after its end. The lock is held.
func (s *Asked) Used(vendor, model string, all, sound ai.Usage) {
	if all == (ai.Usage{}) {
		return
	}
	s.Tally.Spend(Use(vendor, model, all, sound))
	if a := s.head(false); a != nil && !a.told {
		a.usage = all
	} else {
		s.Tell(ai.RealtimeEvent{Kind: ai.RealtimeUsed, Usage: all})
	}
}

// Resumes notes by which handle another connection goes on with the session as it is now; "": by none. The lock is held.
func (s *Asked) Resumes(handle string) { s.handle = handle }

// named is the handle by which the session can move now: in a pause, with nothing on its way. The lock is held.
func (s *Asked) named() string {
	if s.active != nil || s.activity || len(s.waiting)+len(s.turns)+len(s.owed)+len(s.results)+len(s.pending) > 0 ||
		s.recognition.open() || s.Box.Unsent() {
		return ""
	}
	return s.handle
}

// passes settles what is due, under the lock.
func (s *Asked) passes(now time.Time) {
	s.recognition.settle(now)
	for _, a := range s.turns {
		if a.made() && (a.cut || now.Sub(a.overAt) >= lateTime) {
			s.finish(&a.reply, nil)
		}
	}
}
