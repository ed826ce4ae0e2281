package realtime

import (
	"errors"
	"time"

	"parley/internal/ai"
)

// eager is what it takes to talk to a server that answers at once what it heard, as xAI's does with its turn detection
// off: an utterance that is committed starts a reply, unless the empty buffer is cleared directly after it. A reply that
// is asked for before the server has confirmed the utterance doesn't know it; one that is asked for after another, with
// nothing said in between, is forgotten, unless the empty buffer is cleared before it. Sound that comes while a reply is
// made stops the reply without ending it. Replies have no tool_choice. None of this is in xAI's reference
// (https://docs.x.ai/voice-realtime.ws.json) but the commit and the clear; it was measured by others, of whom Pydantic
// AI's realtime client says most.
type eager struct {
	uttering bool      // an utterance is under way
	marks    bool      // the server gives replies the number that they were asked for with
	freed    time.Time // when what a reply had held back was let out
}

const (
	hearTime   = 4 * time.Second  // after which an utterance that was not transcribed counts as understood: it may be silence
	answerTime = 8 * time.Second  // after which a reply that was not begun counts as forgotten
	silentTime = 15 * time.Second // after which a reply of which nothing more came counts as broken off
	stopTime   = 4 * time.Second  // after which a reply that was cancelled counts as ended
)

// clearBuffer is the message that clears the server's buffer.
var clearBuffer = map[string]any{"type": "input_audio_buffer.clear"}

// speaks notes whether an utterance is under way.
func (s *session) speaks(now bool) {
	s.Lock()
	defer s.Unlock()
	if s.uttering = now; !now {
		s.next()
	}
}

// quiet reports whether a response can be asked for: the server knows everything that was said. The lock is held.
func (s *session) quiet() bool { return !s.dialect.Eager || len(s.committed) == 0 && !s.uttering }

// coax asks for a response. What the customer says meanwhile waits until the response is made. The lock is held.
func (s *session) coax(r *response) {
	r.due = time.Now().Add(answerTime)
	if !s.setup.Reads {
		s.Box.Send(clearBuffer)
	}
	if r.words && len(s.setup.Tools) > 0 {
		s.Box.Send(toolsAre([]any{}))
	}
	s.Box.Ask(r.create)
}

// relax undoes what coax did. The lock is held.
func (s *session) relax(r *response) {
	if !s.dialect.Eager {
		return
	}
	if r.words && len(s.setup.Tools) > 0 {
		s.Box.Send(toolsAre(s.tools()))
	}
	s.freed = time.Now()
	s.Box.Release()
}

func toolsAre(tools []any) any {
	return map[string]any{"type": "session.update", "session": map[string]any{"tools": tools}}
}

// passes settles what an eager server never answers, under the lock.
func (s *session) passes(now time.Time) {
	if s.dialect.Eager {
		s.overdue(now, s.Tell)
	}
}

// overdue does so, and tells what comes of it.
func (s *session) overdue(now time.Time, tell func(ai.RealtimeEvent)) {
	if r := s.active; r != nil {
		if now.After(r.due) {
			why := "the server began no reply"
			if r.id != "" {
				why = "the server did not end its reply"
			}
			if r.id != "" && !r.cut { // it keeps nothing of it either
				s.cancelled(r)
				r.lost = true
			}
			s.end(r, ai.Usage{}, &ai.Error{Kind: ai.Stalled, Err: errors.New(why)}, tell)
		}
		return // an utterance may wait for the end of the reply
	}
	if now.Sub(s.freed) < hearTime {
		return
	}
	for _, u := range s.said {
		if u.final || now.Sub(u.ended) < hearTime {
			continue
		}
		u.final = true
		tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: u.text, Final: true})
		if len(s.committed) > 0 && s.committed[0] == u {
			s.committed = s.committed[1:]
			s.next()
		}
	}
}
