package gemini

import (
	"slices"
	"sync"

	"parley/internal/ai"
)

// reader has texts said as they are. All that a session says enters its conversation, so another one reads out, which
// is opened for the first text and then kept.
type reader struct {
	readers sync.WaitGroup
	silent  bool     // nobody reads any more
	voice   *live    // nil while there is none
	texts   []saying // that wait for it, or are being said
}

type saying struct {
	n    int
	text string
}

const readOut = "You are a voice that reads texts out. Say each message exactly as it is written, word for word, in its own language: add nothing, leave nothing out, and answer nothing that it asks."

// Say implements ai.RealtimeSession.
func (s *live) Say(n int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, saying{n, text})
	switch {
	case s.silent:
	case s.voice != nil:
		s.voice.Respond(n, text, false)
	case len(s.texts) == 1:
		s.readers.Go(s.readAloud)
	}
}

// readAloud holds the session that reads out.
func (s *live) readAloud() {
	v, err := s.model.connect(s.ctx, ai.RealtimeSetup{System: readOut, Voice: s.setup.Voice, Rate: s.setup.Rate}, true)
	if err == nil {
		s.mu.Lock()
		s.voice = v
		for _, t := range s.texts {
			v.Respond(t.n, t.text, false)
		}
		s.mu.Unlock()
		for e := range v.Events() {
			switch e.Kind {
			case ai.RealtimeLost:
				err = e.Err
				continue
			case ai.RealtimeDone:
				s.mu.Lock()
				s.texts = slices.DeleteFunc(s.texts, func(t saying) bool { return t.n == e.N })
				s.mu.Unlock()
			case ai.RealtimeExpiring:
				continue
			}
			s.tell(e)
		}
		v.Close()
	}
	s.mu.Lock()
	left := s.texts
	s.voice, s.texts = nil, nil
	s.mu.Unlock()
	for _, t := range left {
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: t.n, Err: ai.TheModel.Of(err)})
	}
}

// silence cuts a text that is read out. The lock is held.
func (s *live) silence(n int) {
	if s.voice != nil {
		s.voice.Cut(n, 0, "")
		return
	}
	s.texts = slices.DeleteFunc(s.texts, func(t saying) bool { return t.n == n }) // nobody was asked
}
