// Package mcp uses the tools of MCP servers (Model Context Protocol) over streamable HTTP: it lists them and calls them,
// and turns what comes back, or fails to, into words for a model. Each conversation has a session of its own with a
// server, as servers keep state in them.
package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/crash"
	"parley/internal/egress"
	"parley/internal/parley"
)

const (
	maxAnswer    = 4 << 20 // bytes of one HTTP answer, with the events before it
	maxLines     = 5000    // of it, where it is events: each message costs work
	maxRedirects = 5
	maxListed    = 200 // tools of a server
	maxPages     = 20  // of such a list
	maxText      = 4 << 10
	maxName      = 128
	idle         = 5 * time.Minute // how long an unused session is kept
	maxIdle      = 256             // such sessions
	// Everybody speaks this version; servers that only speak a later one are asked for it.
	version = "2025-11-25"
)

// Server is an MCP server and how it is asked.
type Server struct {
	URL     string
	Headers http.Header // sent to it, and to nowhere that it redirects to
	OAuth   OAuth
}

// OAuth are client credentials (OAuth 2.1); without ClientID there are none.
type OAuth struct {
	ClientID, Secret string
	TokenURL         string // "": where the server's metadata says
	Scope            string
}

// Tool is one of a server's tools.
type Tool struct {
	Name, Title, Description string
	Schema                   json.RawMessage
	Annotations              parley.ToolAnnotations
	ReadOnly, Destructive    bool
}

// Client has the sessions with all servers. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	mu      sync.Mutex
	open    map[string]*session
	grants  map[string]*grant
	leaving sync.WaitGroup // sessions that are being ended
}

// New makes a client whose requests go out through the guard.
func New(g *egress.Guard) *Client {
	return &Client{http: g.Client(maxRedirects), open: map[string]*session{}, grants: map[string]*grant{}}
}

// Close ends all sessions.
func (c *Client) Close() {
	c.mu.Lock()
	for key, s := range c.open {
		delete(c.open, key)
		c.end(s)
	}
	c.mu.Unlock()
	c.leaving.Wait()
}

// List is a server's tools, 200 of them at most; more says that there are more. The error is in words.
func (c *Client) List(ctx context.Context, s Server) (list []Tool, more bool, err error) {
	err = c.in(ctx, "", s, func(ctx context.Context, cs *sdk.ClientSession) error {
		list, more = nil, false
		params := &sdk.ListToolsParams{}
		for page := 0; ; page++ {
			got, err := cs.ListTools(ctx, params)
			if err != nil {
				return err
			}
			for _, t := range got.Tools {
				if len(list) == maxListed {
					more = true
					return nil
				}
				if t != nil && t.Name != "" && len(t.Name) <= maxName {
					list = append(list, toolOf(t))
				}
			}
			if params.Cursor = got.NextCursor; params.Cursor == "" || page == maxPages {
				more = params.Cursor != ""
				return nil
			}
		}
	})
	return list, more, err
}

func toolOf(t *sdk.Tool) Tool {
	out := Tool{Name: t.Name, Title: short(t.Title), Description: short(t.Description), Destructive: true}
	out.Schema, _ = json.Marshal(t.InputSchema) // it was JSON
	if a := t.Annotations; a != nil {
		out.Annotations = annotations(a)
		out.ReadOnly = a.ReadOnlyHint
		out.Destructive = !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint)
		if out.Title == "" {
			out.Title = short(a.Title)
		}
	}
	return out
}

// annotations returns what a server says of a tool. It may leave a hint out: the SDK does not tell false from absent for two of them.
func annotations(a *sdk.ToolAnnotations) parley.ToolAnnotations {
	out := parley.ToolAnnotations{Title: short(a.Title), Destructive: a.DestructiveHint, OpenWorld: a.OpenWorldHint}
	if a.ReadOnlyHint {
		out.ReadOnly = &a.ReadOnlyHint
	}
	if a.IdempotentHint {
		out.Idempotent = &a.IdempotentHint
	}
	return out
}

// Call calls a tool once. Calls with the same of, a conversation, share a session; with "" each has its own. The error is
// in words, of a server that gave no answer; what a tool itself says is a Result also where it failed.
func (c *Client) Call(ctx context.Context, of string, s Server, name string, args map[string]any) (r Result, err error) {
	err = c.in(ctx, of, s, func(ctx context.Context, cs *sdk.ClientSession) error {
		got, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
		if err == nil {
			r = resultOf(got)
		}
		return err
	})
	return r, err
}

// in does something in a session. A session that the server has forgotten is begun anew, once.
func (c *Client) in(ctx context.Context, of string, s Server, do func(context.Context, *sdk.ClientSession) error) error {
	key := of
	if of != "" {
		key = of + s.key()
	}
	own := c.take(key)
	defer c.leave(key, own)
	for again := false; ; again = true {
		ctx, saw := watched(ctx)
		cs, known, err := own.connect(ctx, c, s)
		if err == nil {
			err = do(ctx, cs)
		}
		if err == nil {
			return nil
		}
		forgotten := known && saw.forgotten(cs, err)
		if cs != nil && (forgotten || broken(ctx, err)) {
			c.drop(own, cs)
		}
		if !forgotten || again || ctx.Err() != nil {
			return saw.explain(ctx, err)
		}
	}
}

// key tells servers, and who asks them, apart.
func (s Server) key() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("mcp: %v", err)) // texts and maps of them
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// session is one with a server. It is connected by its first user, and by who finds that it broke.
type session struct {
	turn chan struct{} // held by who connects it, and by who takes the connection away
	cs   *sdk.ClientSession

	busy int // users; with the time of the last, under the client's lock
	used time.Time
}

// take is the session of a key for one more user.
func (c *Client) take(key string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.open[key]
	if s == nil {
		s = &session{turn: make(chan struct{}, 1)}
		if key != "" {
			c.open[key] = s
		}
	}
	s.busy++
	return s
}

// leave gives a session back, and ends those that nobody has used for a while.
func (c *Client) leave(key string, s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.busy--
	s.used = time.Now()
	if key == "" {
		c.end(s)
	}
	for {
		oldest, free := "", 0
		for k, o := range c.open {
			if o.busy > 0 {
				continue
			}
			if free++; oldest == "" || o.used.Before(c.open[oldest].used) {
				oldest = k
			}
		}
		if free == 0 || free <= maxIdle && time.Since(c.open[oldest].used) < idle {
			return
		}
		c.end(c.open[oldest])
		delete(c.open, oldest)
	}
}

// end ends a session that nobody will use any more. Its server is told, and not waited for.
func (c *Client) end(s *session) {
	crash.Go(&c.leaving, func() {
		s.turn <- struct{}{}
		if s.cs != nil {
			_ = s.cs.Close() // it is over, whatever the server says
			s.cs = nil
		}
		<-s.turn
	}, crash.Log("the end of an MCP session"))
}

// drop takes a broken connection away.
func (c *Client) drop(s *session, cs *sdk.ClientSession) {
	s.turn <- struct{}{}
	mine := s.cs == cs
	if mine {
		s.cs = nil
	}
	<-s.turn
	if mine {
		crash.Go(&c.leaving, func() { _ = cs.Close() }, crash.Log("the end of an MCP session"))
	}
}

// connect is the session's connection; known says that it was there.
func (s *session) connect(ctx context.Context, c *Client, srv Server) (cs *sdk.ClientSession, known bool, err error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if s.cs != nil {
		return s.cs, true, nil
	}
	s.cs, err = c.begin(ctx, srv)
	return s.cs, false, err
}

// begin begins a session, and waits no longer than the context lasts: the SDK ends a session that fails to begin, which a
// server may delay.
func (c *Client) begin(ctx context.Context, srv Server) (*sdk.ClientSession, error) {
	type outcome struct {
		cs  *sdk.ClientSession
		err error
	}
	done := make(chan outcome)
	crash.Go(&c.leaving, func() {
		cs, err := c.dial(ctx, srv)
		select {
		case done <- outcome{cs, err}:
		case <-ctx.Done():
			if err == nil {
				_ = cs.Close() // nobody waits for it
			}
		}
	}, crash.Log("the beginning of an MCP session"))
	select {
	case o := <-done:
		return o.cs, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Client) dial(ctx context.Context, srv Server) (cs *sdk.ClientSession, err error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "parley", Version: "1"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	for _, v := range []string{version, ""} {
		cs, err = client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: c.door(srv),
			DisableStandaloneSSE: true, MaxRetries: 1, MaxEventSize: maxAnswer}, &sdk.ClientSessionOptions{ProtocolVersion: v})
		if err == nil {
			return cs, nil
		}
		if !spoke(err) {
			break
		}
	}
	return nil, err
}

// broken reports whether a connection is of no use after an error: the server gave no answer that can be understood.
func broken(ctx context.Context, err error) bool { return ctx.Err() == nil && !spoke(err) }

// spoke reports whether an error is the server's own answer.
func spoke(err error) bool { return answered(err) != nil }
