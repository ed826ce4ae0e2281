// Package custom lets a program of somebody's own answer the turns of a conversation, over one WebSocket for each
// conversation or one request for each reply. The protocol is described in docs/endpoints.md.
package custom

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/provider/rest"
)

const (
	// Protocol is the version of the protocol that a session names.
	Protocol = 1

	maxMessage  = 256 << 10 // octets of a message of the program's
	maxReply    = 256 << 10 // octets of what it says in one reply
	maxCalls    = 32        // tool calls of one message
	maxSessions = 2000      // with one program
	idle        = 5 * time.Minute
	stall       = 30 * time.Second // that it may send nothing in the middle of a turn
	pingTime    = 15 * time.Second
	unread      = 64 // messages of a turn that wait to be read
)

// Client has the sessions with one program. It is safe for concurrent use.
type Client struct {
	server   ai.Server
	requests *rest.Client // nil: it has WebSockets

	mu      sync.Mutex
	open    map[string]*session // by the conversation
	closed  bool
	leaving sync.WaitGroup
}

// At opens a program without contacting it. The scheme of its URL is ws or wss where it has a WebSocket for each
// conversation, http or https where it has a request for each reply.
func At(s ai.Server) (*ai.Opened, error) {
	c := &Client{server: s, open: map[string]*session{}}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("%.200q is no URL of a program such as wss://example.com/parley", s.URL)
	case u.Scheme == "http" || u.Scheme == "https":
		c.requests = requests(s)
	case u.Scheme != "ws" && u.Scheme != "wss":
		return nil, errors.New("the URL of a program begins with wss://, ws://, https:// or http://")
	}
	return &ai.Opened{Model: func(string) ai.Model { return c }, Warm: c.Warm, Over: c.Over, Close: c.Close}, nil
}

// Over tells the program that a conversation is over, and ends its session.
func (c *Client) Over(of string) {
	c.mu.Lock()
	s := c.open[of]
	delete(c.open, of)
	c.mu.Unlock()
	if s != nil {
		c.end(s, "over")
	}
}

// Close ends all sessions.
func (c *Client) Close() {
	c.mu.Lock()
	all := c.open
	c.open, c.closed = map[string]*session{}, true
	c.mu.Unlock()
	for _, s := range all {
		c.end(s, "closing")
	}
	c.leaving.Wait()
}

// end says goodbye to the program, without waiting for it.
func (c *Client) end(s *session, why string) {
	leave := s.leave
	if c.requests != nil {
		leave = func(why string) { s.sayEnd(c.requests, why) }
	}
	crash.Go(&c.leaving, func() { leave(why) }, crash.Log("the end of a session with an endpoint"))
}

// take is the session of the context's conversation, which is begun where there is none; fresh says that it was connected now.
// leave gives it back.
func (c *Client) take(ctx context.Context) (s *session, fresh bool, err error) {
	party := ai.PartyOf(ctx)
	if party.Of == "" {
		s, err = c.begin(ctx, party)
		return s, true, err
	}
	c.mu.Lock()
	s = c.open[party.Of]
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, false, &ai.Error{Kind: ai.Interrupted, Err: errors.New("the endpoint was changed or removed")}
	case s == nil && len(c.open) >= maxSessions:
		c.mu.Unlock()
		return nil, false, &ai.Error{Kind: ai.RateLimited, Err: fmt.Errorf("there are %d conversations with the endpoint", maxSessions)}
	case s == nil:
		s = &session{ready: make(chan struct{}, 1)}
		c.open[party.Of] = s
	}
	s.rest()
	c.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	s.party = party
	if c.requests == nil && (s.conn == nil || s.broken()) {
		if err := s.dial(ctx, c.server, party); err != nil {
			<-s.ready
			c.mu.Lock()
			c.doze(party.Of, s)
			c.mu.Unlock()
			return nil, false, err
		}
		fresh = true
	}
	return s, fresh, nil
}

// begin is a session for one reply that belongs to no conversation.
func (c *Client) begin(ctx context.Context, party ai.Party) (*session, error) {
	s := &session{ready: make(chan struct{}, 1), party: party}
	s.ready <- struct{}{}
	if c.requests != nil {
		return s, nil
	}
	return s, s.dial(ctx, c.server, party)
}

// leave gives a session back.
func (c *Client) leave(ctx context.Context, s *session) {
	of := ai.PartyOf(ctx).Of
	<-s.ready
	if of == "" {
		c.end(s, "over")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doze(of, s)
}

// doze ends a session that nobody uses for a while. The caller holds mu.
func (c *Client) doze(of string, s *session) {
	if c.open[of] != s { // it was over meanwhile
		return
	}
	s.rest()
	s.sleep = time.AfterFunc(idle, func() {
		c.mu.Lock()
		mine := c.open[of] == s
		if mine {
			delete(c.open, of)
		}
		c.mu.Unlock()
		if mine {
			c.end(s, "idle")
		}
	})
}

// Warm begins the session of a context's conversation, so that its first turn need not wait for it. Nothing happens where
// that fails: the turn tries again, and says why. A program that has requests is not asked before there is something to ask.
func (c *Client) Warm(ctx context.Context) {
	if c.requests != nil {
		return
	}
	if s, _, err := c.take(ctx); err == nil {
		c.leave(ctx, s)
	}
}

// Generate implements ai.Model. The program knows the conversation: it is told what is new, beside the whole.
func (c *Client) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	if ctx.Err() != nil {
		return ai.Reply{}, context.Cause(ctx)
	}
	if req.Schema != nil {
		return ai.Reply{}, &ai.Error{Kind: ai.Config, Err: errors.New("an endpoint of the protocol parley fills in no schema")}
	}
	s, fresh, err := c.take(ctx)
	if err != nil {
		return ai.Reply{}, err
	}
	defer c.leave(ctx, s)
	if c.requests != nil {
		return s.request(ctx, c.requests, req, yield)
	}
	reply, err := s.reply(ctx, req, yield)
	if err == nil || fresh || !s.broken() || reply.Text != "" || len(reply.Calls) > 0 || ctx.Err() != nil {
		return reply, err
	}
	// It was gone since the last turn, as a program is that was started anew.
	if err := s.dial(ctx, c.server, ai.PartyOf(ctx)); err != nil {
		return reply, err
	}
	return s.reply(ctx, req, yield)
}
