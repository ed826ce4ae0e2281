package deepgram

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/provider/wire"
)

const (
	// The server accepts 20 flushes per line in 60 s. Its clock differs from ours.
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

// line is an open socket for speaking. One goroutine reads from it, one message at a time.
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

// read passes every message to the line's current user, and tells the pool when the connection is lost.
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

// take reports that the last message has been handled.
func (l *line) take() {
	select {
	case l.taken <- struct{}{}:
	case <-l.gone:
	}
}

// left is how many more flushes the server accepts now.
func (l *line) left(now time.Time) int {
	l.flushes = slices.DeleteFunc(l.flushes, func(at time.Time) bool { return now.Sub(at) > flushTime })
	return maxFlushes - len(l.flushes)
}

// say sends a text to be spoken.
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

// warned is the server's latest warning, which is added to errors.
func (l *line) warned() string {
	if l == nil || l.warning == "" {
		return ""
	}
	return " (it warned: " + l.warning + ")"
}

// pool keeps open lines between replies.
type pool struct {
	client *client

	mu      sync.Mutex
	closed  bool
	kept    []*line // the latest last
	running sync.WaitGroup
}

// get returns a line for a kind of speech: a kept one or a new one.
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
	crash.Go(&p.running, func() { l.receive(p) }, crash.Log("the reading of a voice of Deepgram's"))
	return l, nil
}

// put keeps an idle line for later.
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

// lose removes a broken line from the pool.
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

// clear cancels the speech that was requested on a line, and keeps the line.
func (p *pool) clear(l *line, flushes int) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		crash.Go(&p.running, func() {
			if l.clear() {
				l.stale += flushes
				p.put(l)
			} else {
				p.drop(l)
			}
		}, crash.Log("the clearing of a voice of Deepgram's"))
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

// close closes the idle lines and waits for the others.
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
