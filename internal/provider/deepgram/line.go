package deepgram

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

const (
	// The server takes 20 flushes of a line in 60 s, and its clock is not ours.
	maxFlushes = 20
	flushTime  = 64 * time.Second

	maxIdle   = 32               // lines that are kept
	idleTime  = 45 * time.Second // for so long; the server's own patience is a minute
	maxAge    = 50 * time.Minute // a line is closed by the server after an hour
	clearTime = 2 * time.Second  // for what was called off to be cleared away
)

// kind is what a line is opened for.
type kind struct {
	voice, speed string
	rate         audio.Rate
}

// line is an open socket to speak on. It has a goroutine that reads, one message after the other as they are taken.
type line struct {
	kind
	conn   *wire.Conn
	in     chan message
	taken  chan struct{}
	gone   chan struct{} // it was dropped
	opened time.Time

	// of who has it
	kept     bool // it was idle before
	answered bool // something has come since it was got
	stale    int  // flushes that were cleared, and may be answered yet
	flushes  []time.Time
	warning  string

	idle *time.Timer // of the pool
}

type message struct {
	data []byte
	text bool
	err  error
}

// read hands every message to who has the line, and tells the pool when it is lost.
func (l *line) receive(p *pool) {
	for {
		var m message
		if m.data, m.text, m.err = l.conn.Receive(); m.err != nil {
			p.lose(l)
		}
		select {
		case l.in <- m:
		case <-l.gone:
			return
		}
		if m.err != nil {
			return
		}
		select {
		case <-l.taken:
		case <-l.gone:
			return
		}
	}
}

// take tells that the last message has been dealt with.
func (l *line) take() {
	select {
	case l.taken <- struct{}{}:
	case <-l.gone:
	}
}

// left is how many flushes the server takes yet.
func (l *line) left(now time.Time) int {
	l.flushes = slices.DeleteFunc(l.flushes, func(at time.Time) bool { return now.Sub(at) > flushTime })
	return maxFlushes - len(l.flushes)
}

// say has a text said.
func (l *line) say(text string) error {
	if err := l.conn.Send(speak{"Speak", text}); err != nil {
		return err
	}
	l.flushes = append(l.flushes, time.Now())
	return l.conn.Send(control{"Flush"})
}

type speak struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// warned is what the server warned of, for errors.
func (l *line) warned() string {
	if l == nil || l.warning == "" {
		return ""
	}
	return " (it warned: " + l.warning + ")"
}

// pool keeps lines between what is said on them.
type pool struct {
	client *client

	mu      sync.Mutex
	closed  bool
	kept    []*line // the latest last
	running sync.WaitGroup
}

// get is a line for a kind of speech: one that was kept, or a new one.
func (p *pool) get(ctx context.Context, as ai.Speech, fresh bool) (*line, error) {
	k := kindOf(as)
	p.mu.Lock()
	for i := len(p.kept) - 1; i >= 0 && !fresh; i-- {
		if l := p.kept[i]; l.kind == k && l.left(time.Now()) > 0 {
			p.kept = slices.Delete(p.kept, i, i+1)
			p.mu.Unlock()
			l.idle.Stop()
			l.kept, l.answered = true, false
			return l, nil
		}
	}
	p.mu.Unlock()
	conn, err := p.client.dial(ctx, "/v1/speak", k.question(), 0)
	if err != nil {
		return nil, err
	}
	l := &line{kind: k, conn: conn, in: make(chan message), taken: make(chan struct{}), gone: make(chan struct{}),
		opened: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return nil, &ai.Error{Kind: ai.Unreachable, Err: wire.ErrClosed}
	}
	p.running.Go(func() { l.receive(p) })
	return l, nil
}

// put keeps a line that nothing is said on.
func (p *pool) put(l *line) {
	p.mu.Lock()
	full := p.closed || time.Since(l.opened) > maxAge
	var oldest *line
	if !full {
		if len(p.kept) >= maxIdle {
			oldest, p.kept = p.kept[0], slices.Delete(p.kept, 0, 1)
		}
		p.kept = append(p.kept, l)
		l.idle = time.AfterFunc(idleTime, func() { p.lose(l) })
	}
	p.mu.Unlock()
	if full {
		p.drop(l)
	}
	if oldest != nil {
		oldest.idle.Stop()
		p.drop(oldest)
	}
}

// lose drops a line, if it is kept: nobody else will.
func (p *pool) lose(l *line) {
	p.mu.Lock()
	i := slices.Index(p.kept, l)
	if i >= 0 {
		p.kept = slices.Delete(p.kept, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		p.drop(l)
	}
}

// drop closes a line.
func (p *pool) drop(l *line) {
	close(l.gone)
	_ = l.conn.Send(control{"Close"})
	l.conn.Close()
}

// clear calls off what was sent on a line, so that no more is made of it, and keeps the line.
func (p *pool) clear(l *line, flushes int) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.running.Go(func() {
			if l.clear() {
				l.stale += flushes
				p.put(l)
			} else {
				p.drop(l)
			}
		})
	}
	p.mu.Unlock()
	if closed {
		p.drop(l)
	}
}

// clear says whether the line can be used again.
func (l *line) clear() bool {
	if l.conn.Send(control{"Clear"}) != nil {
		return false
	}
	guard := time.NewTimer(clearTime)
	defer guard.Stop()
	for {
		select {
		case m := <-l.in:
			if m.err != nil {
				return false
			}
			var n notice
			cleared := m.text && json.Unmarshal(m.data, &n) == nil && n.Type == "Cleared"
			l.take()
			if cleared {
				return true
			}
		case <-guard.C:
			return false
		}
	}
}

// close drops what is kept, and waits for what is left.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	kept := p.kept
	p.kept = nil
	p.mu.Unlock()
	for _, l := range kept {
		l.idle.Stop()
		p.drop(l)
	}
	p.running.Wait()
}
