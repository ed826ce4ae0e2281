package chat

import (
	"context"
	"sync"
	"time"

	"parley/internal/agent"
	"parley/internal/assistant"
	"parley/internal/parley"
)

// Answer is what a message got.
type Answer struct {
	AIOff   bool // no reply is wanted: a person has taken over
	Message *parley.Message
}

// Piece is a part of a reply as it forms: text, a tool's finished call, or a call that the reader is to run.
type Piece struct {
	Text string
	Call *parley.FunctionCall
	Ask  *assistant.ClientCall
}

// Waiter follows the reply to one message. The reply never waits for its reader: pieces are kept until they are read,
// and a reply is of bounded length.
type Waiter struct {
	leave  func()
	client *assistant.Client // nil: the reader runs no tools

	mu     sync.Mutex
	pieces []Piece
	answer Answer
	err    error
	ended  bool
	left   bool          // nobody reads any more
	news   chan struct{} // has a token when something is new
}

// newWaiter is a Waiter whose reader runs the tools of these names.
func newWaiter(tools []string) *Waiter {
	w := &Waiter{news: make(chan struct{}, 1)}
	if len(tools) > 0 {
		w.client = assistant.NewClient(tools, w.ask)
	}
	return w
}

// ask has the reader run a tool; false when it has left.
func (w *Waiter) ask(call assistant.ClientCall) (reads bool) {
	w.change(func() {
		if reads = !w.left && !w.ended; reads {
			w.pieces = append(w.pieces, Piece{Ask: &call})
		}
	})
	return reads
}

// Next waits for the next pieces. done is true with the last of them: then Answer or err is the outcome.
func (w *Waiter) Next(ctx context.Context) (pieces []Piece, done bool, answer Answer, err error) {
	for {
		w.mu.Lock()
		pieces, w.pieces = w.pieces, nil
		ended := w.ended
		answer, err = w.answer, w.err
		w.mu.Unlock()
		if len(pieces) > 0 || ended {
			return pieces, ended, answer, err
		}
		select {
		case <-w.news:
		case <-ctx.Done():
			return nil, true, Answer{}, context.Cause(ctx)
		}
	}
}

// Wait waits for the whole reply.
func (w *Waiter) Wait(ctx context.Context) (Answer, error) {
	for {
		if _, done, answer, err := w.Next(ctx); done {
			return answer, err
		}
	}
}

// Leave says that nobody reads any more; the reply goes on without. Tools that the reader was asked to run may still be answered.
func (w *Waiter) Leave() {
	w.change(func() { w.left = true })
	if w.client.Asked() {
		time.AfterFunc(parley.MaxToolWait*time.Second, w.leave)
		return
	}
	w.leave()
}

func (w *Waiter) change(fn func()) {
	w.mu.Lock()
	fn()
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// over reports whether nobody waits for the reply any more.
func (w *Waiter) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended || w.left
}

func (w *Waiter) finish(a Answer, err error) {
	w.change(func() {
		if !w.ended {
			w.ended, w.answer, w.err = true, a, err
			if a.AIOff { // a person took over while it formed: what was not read yet is not said any more
				w.pieces = nil
			}
		}
	})
}

// sink passes a turn's reply on to who waits for it, if anybody does, until the turn is ended.
type sink struct {
	ctx context.Context
	w   *Waiter
}

func (s sink) open() bool { return s.w != nil && s.ctx.Err() == nil }

func (s sink) Text(delta string) {
	if s.open() {
		s.w.change(func() { s.w.pieces = append(s.w.pieces, Piece{Text: delta}) })
	}
}

func (s sink) ToolStarted(agent.ToolCall) {}

func (s sink) ToolFinished(c agent.ToolCall) {
	if s.open() {
		s.w.change(func() {
			s.w.pieces = append(s.w.pieces, Piece{Call: &parley.FunctionCall{Name: c.Name, Arguments: c.Arguments,
				Result: c.Result}})
		})
	}
}
