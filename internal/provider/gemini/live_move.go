package gemini

import (
	"context"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

// resumption is how a session goes on over another connection: a connection lasts for about ten minutes, and the
// server says a while before its end that it is going to close it.
type resumption struct {
	line      *wire.Conn // that is read
	successor *wire.Conn // that is read next
	handle    string     // of the session as it is now; "" while something happens that it doesn't hold yet
	until     time.Time  // the end of the connection; zero where nothing was said
	notice    time.Duration
	failed    bool // the user was told that the session ends
}

const (
	moveTime  = 3 * time.Second  // for another connection; meanwhile what is said waits
	tellAhead = 20 * time.Second // before its end a session that could not be moved says so
)

// change notes that the conversation is about to be another one than that of the handle. The lock is held.
func (s *live) change() { s.handle = "" }

// leave notes when the connection ends. The lock is held.
func (s *live) leave(left string) {
	d, err := time.ParseDuration(left)
	if err != nil || d < 0 {
		d = 0
	}
	s.until, s.notice = time.Now().Add(d), d
}

// leaving reports whether the session can be moved now: in a pause, with nothing on its way. One that finds none in
// time, or can't be moved, says that it is going to end. The lock is held.
func (s *live) leaving(now time.Time, tell func(ai.RealtimeEvent)) (moves bool) {
	if s.until.IsZero() || s.failed {
		return false
	}
	quiet := s.active == nil && len(s.waiting)+len(s.turns)+len(s.owed)+len(s.results)+len(s.pending) == 0 &&
		!s.activity && len(s.heard.open) == 0
	switch {
	case quiet && s.handle != "" && !s.box.Unsent():
		return true
	case now.After(s.until.Add(-min(tellAhead, s.notice/2))):
		s.fail(tell)
	}
	return false
}

// fail says that the session is going to end.
func (s *live) fail(tell func(ai.RealtimeEvent)) {
	s.failed = true
	tell(ai.RealtimeEvent{Kind: ai.RealtimeExpiring, Remaining: max(0, time.Until(s.until))})
}

// move takes the session to another connection. Whatever is said meanwhile waits for it.
func (s *live) move() {
	s.box.Hold()
	s.mu.Lock()
	handle, line := s.handle, s.line
	s.mu.Unlock()
	if handle == "" { // something was said just now
		s.box.Resume(line)
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, moveTime)
	defer cancel()
	conn, err := s.open(ctx, handle)
	if err != nil {
		s.box.Resume(line)
		_ = s.happen(func(tell func(ai.RealtimeEvent)) error {
			s.fail(tell)
			return nil
		})
		return
	}
	s.mu.Lock()
	ended := s.ctx.Err() != nil || s.line == nil
	if !ended {
		s.successor, s.until = conn, time.Time{}
	}
	s.mu.Unlock()
	if ended {
		conn.Leave()
		return
	}
	s.box.Resume(conn)
	line.Leave()
}

// moved is the connection that the session has moved to, nil where it hasn't. It is called at the end of the other.
func (s *live) moved() *wire.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line, s.successor = s.successor, nil
	return s.line
}

// conns are the connections that are open.
func (s *live) conns() (list []*wire.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range []*wire.Conn{s.line, s.successor} {
		if c != nil {
			list = append(list, c)
		}
	}
	return list
}
