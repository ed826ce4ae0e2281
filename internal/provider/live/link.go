// Package live is what sessions with models that hear and speak have in common, whatever the protocol of their vendor: the connection,
// and what is told of it (Link), utterances and replies. Decided is a session with a model that decides by itself when it speaks, Asked
// one with a model that answers when it is asked to. A vendor is the protocol under one of them.
package live

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/provider/wire"
)

// Link is the connection of a session, with what is on its way in both directions. Take, Passes, Last and Handle are called under the lock.
type Link struct {
	sync.Mutex // of the whole session
	Box        wire.Outbox
	Tally      *ai.Tally // of the call

	Take    func(raw []byte) error // handles a message of the server's; an error ends the session
	Passes  func(now time.Time)    // does what time brings
	Last    func()                 // is called when the server has ended the session; or nil
	Goodbye any                    // the message that ends the session, upon which the server closes it; or nil
	// Handle names the session as it is now, for Open to go on with it over another connection; "" while that can't be. nil: it never can.
	Handle func() string
	Open   func(ctx context.Context, handle string) (*wire.Conn, error)

	ctx    context.Context
	cancel context.CancelFunc
	out    chan ai.RealtimeEvent
	unread chan struct{} // nothing is read any more
	done   chan struct{}
	bell   chan struct{}       // there are events to be told
	events []*ai.RealtimeEvent // that nobody was told yet
	conn   *wire.Conn          // that is read
	next   *wire.Conn          // that is read after it
	ends   time.Time           // the connection, by itself; zero where nothing is known
	warn   time.Time           // when the user is told so
	warned bool
}

const (
	connectTime = 10 * time.Second
	pingTime    = 20 * time.Second
	moveTime    = 3 * time.Second // for another connection; meanwhile what is said waits
	byeTime     = time.Second     // for the server's end of a session, after the goodbye
	tick        = 50 * time.Millisecond
)

// Dial opens a WebSocket below a vendor's base URL, sends what starts a session (nil: nothing does), and reads until the server has
// accepted it. A server that is silent meanwhile has stalled. The error is an *ai.Error, unless ctx has ended: then it is
// context.Cause(ctx).
func Dial(ctx context.Context, base, path string, query url.Values, sign func(http.Header), start any,
	accepted func(conn *wire.Conn, raw []byte) (bool, error)) (*wire.Conn, error) {
	address, err := wire.Address(base, path, query)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	header := http.Header{}
	sign(header)
	conn, err := wire.Dial(ctx, address, wire.Options{Header: header, Ping: pingTime})
	if err != nil {
		return nil, err
	}
	err = conn.Within(ctx, connectTime, func() (err error) {
		if start != nil {
			err = conn.Send(start)
		}
		for ok := false; !ok && err == nil; {
			var raw []byte
			if raw, _, err = conn.Receive(); err == nil {
				ok, err = accepted(conn, raw)
			}
		}
		return err
	})
	if err != nil {
		conn.Leave()
		return nil, err
	}
	return conn, nil
}

// Serve starts a session over a connection. It lasts until ctx or the connection ends.
func (l *Link) Serve(ctx context.Context, conn *wire.Conn) {
	l.ctx, l.cancel = context.WithCancel(ctx)
	l.conn, l.out, l.bell = conn, make(chan ai.RealtimeEvent), make(chan struct{}, 1)
	l.unread, l.done = make(chan struct{}), make(chan struct{})
	l.Box.Resume(conn)
	go l.run()
}

// Events implements ai.RealtimeSession.
func (l *Link) Events() <-chan ai.RealtimeEvent { return l.out }

// Close implements ai.RealtimeSession.
func (l *Link) Close() {
	l.cancel()
	for range l.out { // nobody reads it any more
	}
	<-l.done
}

// Ends notes when the connection ends by itself. Unless the session has moved to another one by then, the user is told at a time before
// it. The lock is held, or nobody has the session yet.
func (l *Link) Ends(at time.Time, before time.Duration) {
	l.ends = at
	l.warn = at.Add(-min(before, time.Until(at)/2))
}

// Tell has an event told, in order, as soon as somebody listens. The lock is held.
func (l *Link) Tell(e ai.RealtimeEvent) {
	l.events = append(l.events, &e)
	l.ring()
}

func (l *Link) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// untell takes back an event, if nobody was told. The lock is held.
func (l *Link) untell(e *ai.RealtimeEvent) {
	if i := slices.Index(l.events, e); i >= 0 {
		l.events = slices.Delete(l.events, i, i+1)
		l.ring()
	}
}

// untold are the events of a kind that nobody was told yet. The lock is held.
func (l *Link) untold(kind ai.RealtimeKind) (list []*ai.RealtimeEvent) {
	for _, e := range l.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// pass tells events until the session ends.
func (l *Link) pass() {
	for {
		var out chan ai.RealtimeEvent // nothing is sent while there is nothing to tell
		e := &ai.RealtimeEvent{}
		l.Lock()
		if len(l.events) > 0 {
			out, e = l.out, l.events[0]
		}
		l.Unlock()
		select {
		case out <- *e:
			l.Lock()
			l.untell(e)
			l.Unlock()
		case <-l.bell:
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *Link) run() {
	defer close(l.done)
	defer close(l.out)
	stop := context.AfterFunc(l.ctx, l.leave)
	var wg sync.WaitGroup
	for _, f := range []func(){func() { l.Box.Run(l.ctx) }, l.pass, l.keep} {
		crash.Go(&wg, f, func(err error) { // the session ends as if the vendor had ended it
			slog.Error("a session with a realtime model panicked", "error", err)
			for _, c := range l.conns() {
				c.Close()
			}
		})
	}
	var err error
	for conn := l.conn; conn != nil; conn = l.moved() {
		err = crash.Run(func() error { return l.read(conn) })
		conn.Leave()
	}
	close(l.unread)
	ended := l.ctx.Err() != nil
	l.cancel()
	stop()
	wg.Wait()
	if ended {
		return
	}
	for _, e := range l.left() {
		l.out <- *e
	}
	l.out <- ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: ai.TheModel.Of(err)}
}

// left takes what is still to be told of a session that the server has ended.
func (l *Link) left() []*ai.RealtimeEvent {
	l.Lock()
	defer l.Unlock()
	if l.Last != nil {
		if err := crash.Run(func() error { l.Last(); return nil }); err != nil {
			slog.Error("the end of a session with a realtime model panicked", "error", err)
		}
	}
	events := l.events
	l.events = nil
	return events
}

// read takes what the server sends until the connection ends; the error says why it did.
func (l *Link) read(conn *wire.Conn) error {
	for {
		raw, _, err := conn.Receive()
		if err != nil {
			return err
		}
		if err := l.take(raw); err != nil {
			return err
		}
	}
}

// take unlocks the session even if the vendor's part panics, which ends the session.
func (l *Link) take(raw []byte) error {
	l.Lock()
	defer l.Unlock()
	return l.Take(raw)
}

// keep does what time brings until the session ends.
func (l *Link) keep() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			if l.due(now) {
				l.move()
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// due does what time brings, and reports whether the session moves now.
func (l *Link) due(now time.Time) bool {
	l.Lock()
	defer l.Unlock()
	l.Passes(now)
	return l.leaving(now)
}

// leaving reports whether the session moves now, as its connection is going to end. One that can't be moved in time says that it ends.
// The lock is held.
func (l *Link) leaving(now time.Time) bool {
	switch {
	case l.ends.IsZero(), l.warned:
		return false
	case l.Handle != nil && l.Handle() != "":
		return true
	case !now.Before(l.warn):
		l.expire()
	}
	return false
}

func (l *Link) expire() {
	l.warned = true
	l.Tell(ai.RealtimeEvent{Kind: ai.RealtimeExpiring, Remaining: max(0, time.Until(l.ends))})
}

// move takes the session to another connection. Whatever is said meanwhile waits for it.
func (l *Link) move() {
	l.Box.Hold()
	handle, conn := l.current()
	if handle == "" { // something was said just now
		l.Box.Resume(conn)
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, moveTime)
	defer cancel()
	next, err := l.Open(ctx, handle)
	l.Lock()
	ended := l.ctx.Err() != nil || l.conn == nil
	switch {
	case ended:
	case err != nil:
		l.expire()
	default:
		l.next, l.ends, l.warned = next, time.Time{}, false
	}
	l.Unlock()
	switch {
	case err != nil:
		l.Box.Resume(conn)
	case ended:
		next.Leave()
	default:
		l.Box.Resume(next)
		conn.Leave()
	}
}

// current is the connection that is read, and the session's handle.
func (l *Link) current() (string, *wire.Conn) {
	l.Lock()
	defer l.Unlock()
	return l.Handle(), l.conn
}

// moved is the connection that the session has moved to, nil where it hasn't. It is called at the end of the other.
func (l *Link) moved() *wire.Conn {
	l.Lock()
	defer l.Unlock()
	l.conn, l.next = l.next, nil
	return l.conn
}

// conns are the connections that are open.
func (l *Link) conns() []*wire.Conn {
	l.Lock()
	defer l.Unlock()
	return slices.DeleteFunc([]*wire.Conn{l.conn, l.next}, func(c *wire.Conn) bool { return c == nil })
}

// leave says goodbye on the connections that are open, waits up to a second for the server to close each, and closes them.
func (l *Link) leave() {
	for _, c := range l.conns() {
		if l.Goodbye != nil && c.Send(l.Goodbye) == nil {
			select {
			case <-l.unread:
			case <-time.After(byeTime):
			}
		}
		c.Leave()
	}
}

// Read reads a message of a server's, as JSON.
func Read(raw []byte, message any) error {
	if err := json.Unmarshal(raw, message); err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("%w: %.100q", err, raw)}
	}
	return nil
}

// PCM decodes sound that came as base64: G.711 where the rate is 8 kHz, else PCM of 16 bits.
func PCM(delta string, rate audio.Rate) ([]int16, error) {
	raw, err := base64.StdEncoding.DecodeString(delta)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	if rate == audio.Narrow {
		return audio.DecodeULaw(make([]int16, 0, len(raw)), raw), nil
	}
	return wire.Samples(raw), nil
}
