package speech

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/provider/wire"
)

const (
	lookTime = 15 * time.Second // between looks at a socket
	overTime = 15 * time.Second // a context that was given up and lasts for so long spoils its socket
	maxWaits = 16 << 20         // octets of sound that may wait to be heard, of one context
)

// pool is the open sockets of a voice. Its lock guards them and their contexts, and nothing is called under it.
type pool struct {
	voice *Voice
	wg    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	lines  map[string][]*line // by their sort
}

// line is an open socket. One goroutine reads it; another checks that it is alive, and closes it.
type line struct {
	pool *pool
	sort string
	conn *wire.Conn
	done chan struct{} // it is closed

	// guarded by the pool's lock
	channels map[string]*channel
	err      error // why it is closed
	heard    time.Time
	idle     time.Time
}

// channel is a context.
type channel struct {
	line *line
	id   string
	wake chan struct{}

	// guarded by the pool's lock
	waits   []Event
	size    int
	over    bool
	dropped time.Time // nobody listens since then
}

// open opens a context on a socket that has room, or on a new one. warm reports whether the socket was open before.
func (p *pool) open(ctx context.Context, as ai.Speech) (c *channel, warm bool, err error) {
	sort, err := p.voice.tongue.Line(as)
	if err != nil {
		return nil, false, err
	}
	c = &channel{id: rand.Text(), wake: make(chan struct{}, 1)}
	p.mu.Lock()
	for _, l := range p.lines[sort] {
		if len(l.channels) < p.voice.manners.Contexts && !l.spoilt(time.Now()) {
			l.add(c)
			p.mu.Unlock()
			return c, true, nil
		}
	}
	p.mu.Unlock()
	conn, err := p.voice.tongue.Dial(ctx, as)
	if ctx.Err() != nil {
		if err == nil {
			conn.Close()
		}
		return nil, false, context.Cause(ctx)
	}
	if err != nil {
		return nil, false, err
	}
	l := &line{pool: p, sort: sort, conn: conn, done: make(chan struct{}), channels: map[string]*channel{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return nil, false, &ai.Error{Kind: ai.Unreachable, Err: errClosed}
	}
	l.add(c)
	p.lines[sort] = append(p.lines[sort], l)
	crashed := func(err error) { l.fail(&ai.Error{Kind: ai.Malformed, Err: err}) }
	crash.Go(&p.wg, l.read, crashed)
	crash.Go(&p.wg, l.watch, crashed)
	return c, false, nil
}

var (
	errClosed  = errors.New("the vendor was closed")
	errIdle    = errors.New("nobody spoke on it")
	errEndless = fmt.Errorf("more than %d octets of sound wait to be heard", maxWaits)
)

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	var all []*line
	for _, lines := range p.lines {
		all = append(all, lines...)
	}
	p.mu.Unlock()
	for _, l := range all {
		l.fail(&ai.Error{Kind: ai.Unreachable, Err: errClosed})
	}
	p.wg.Wait()
}

// spoilt reports whether abandoned contexts are still open: then nobody can tell what the vendor does with the next
// ones.
func (l *line) spoilt(now time.Time) bool {
	for _, c := range l.channels {
		if !c.dropped.IsZero() && now.Sub(c.dropped) > overTime {
			return true
		}
	}
	return false
}

func (l *line) add(c *channel) {
	c.line = l
	l.channels[c.id] = c
}

// send sends messages. Its error is an *ai.Error: the socket is closed then.
func (l *line) send(messages []any) error {
	for _, m := range messages {
		if err := l.conn.Send(m); err != nil {
			l.fail(l.failure(err))
			l.pool.mu.Lock()
			defer l.pool.mu.Unlock()
			return l.err // the first reason is the better one
		}
	}
	return nil
}

// failure is the reason why a socket broke, in the vendor's own words if there are any.
func (l *line) failure(err error) error {
	if _, reason := wire.CloseOf(err); reason != "" {
		if kind := l.pool.voice.tongue.Closed(reason); kind != "" {
			return &ai.Error{Kind: kind, Err: err}
		}
	}
	if ai.KindOf(err) == "" { // it was closed here
		return &ai.Error{Kind: ai.Interrupted, Err: err}
	}
	return err
}

// read distributes messages to their contexts.
func (l *line) read() {
	for {
		raw, _, err := l.conn.Receive()
		if err != nil {
			l.fail(l.failure(err))
			return
		}
		e, err := l.pool.voice.tongue.Read(raw)
		if err != nil {
			l.fail(&ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("%w in a message of %d octets", err, len(raw))})
			return
		}
		if e.Context == "" && e.Err != nil { // it closes the socket with the same reason
			l.fail(e.Err)
			return
		}
		l.deliver(e)
	}
}

func (l *line) deliver(e Event) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.heard = time.Now()
	c := l.channels[e.Context]
	if c == nil { // of a context that is long over
		return
	}
	if e.Over || e.Err != nil {
		delete(l.channels, c.id)
		c.over = true
		if len(l.channels) == 0 {
			l.idle = time.Now()
		}
	}
	if !c.dropped.IsZero() {
		return
	}
	if c.size += len(e.Sound); c.size > maxWaits {
		e = Event{Err: &ai.Error{Kind: ai.Malformed, Err: errEndless}}
	}
	c.waits = append(c.waits, e)
	c.notify()
}

func (c *channel) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// fail closes the socket. Its contexts get the reason, and no new ones are opened on it.
func (l *line) fail(err error) {
	p := l.pool
	p.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
		close(l.done)
		p.lines[l.sort] = slices.DeleteFunc(p.lines[l.sort], func(o *line) bool { return o == l })
		if len(p.lines[l.sort]) == 0 {
			delete(p.lines, l.sort)
		}
		for _, c := range l.channels {
			c.over = true
			c.notify()
		}
	}
	p.mu.Unlock()
	if first {
		l.conn.Close()
	}
}

// stalled closes the socket if none of its contexts receives anything.
func (l *line) stalled(err error) {
	l.pool.mu.Lock()
	alive := time.Since(l.heard) < l.pool.voice.stall/2
	l.pool.mu.Unlock()
	if !alive {
		l.fail(err)
	}
}

// watch looks from time to time whether the socket is still wanted. Pings see to it that it is alive.
func (l *line) watch() {
	t := time.NewTicker(lookTime)
	defer t.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-t.C:
		}
		now := time.Now()
		l.pool.mu.Lock()
		live := 0
		for _, c := range l.channels {
			if c.dropped.IsZero() {
				live++
			}
		}
		unwanted := live == 0 && (l.spoilt(now) || len(l.channels) == 0 && now.Sub(l.idle) > l.pool.voice.manners.Idle)
		l.pool.mu.Unlock()
		if unwanted {
			if bye := l.pool.voice.manners.Bye; bye != nil {
				_ = l.send([]any{bye})
			}
			l.fail(&ai.Error{Kind: ai.Interrupted, Err: errIdle})
			return
		}
	}
}

// next is the oldest event that waits. The error is the socket's, when all has been taken.
func (c *channel) next() (e Event, ok bool, err error) {
	c.line.pool.mu.Lock()
	defer c.line.pool.mu.Unlock()
	if len(c.waits) == 0 {
		return Event{}, false, c.line.err
	}
	e = c.waits[0]
	c.waits[0] = Event{}
	c.waits = c.waits[1:]
	c.size -= len(e.Sound)
	return e, true, nil
}

// live says whether the vendor still has the context.
func (c *channel) live() bool {
	c.line.pool.mu.Lock()
	defer c.line.pool.mu.Unlock()
	return !c.over
}

// drop notes that nobody listens any more. The context keeps its place until it is over.
func (c *channel) drop() {
	c.line.pool.mu.Lock()
	defer c.line.pool.mu.Unlock()
	c.dropped, c.waits = time.Now(), nil
}
