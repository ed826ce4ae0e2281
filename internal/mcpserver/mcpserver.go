// Package mcpserver is the server's side of MCP (Model Context Protocol) at /mcp: the tools, prompts and resources with which a model
// works in an account. Each tool is an operation of the HTTP API, and runs through the API's own handlers in the caller's name.
package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/crash"
	"parley/internal/oauth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

// Path is where the server is.
const Path = "/mcp"

// maxBody is how long a request may be: a prompt of 100,000 characters fits, escaped.
const maxBody = 1 << 20

// Config is what the server works with.
type Config struct {
	API     *api.API
	Front   web.Front
	Docs    fs.FS  // the pages of the guide
	Version string // of this program
}

// Server is the handler of /mcp. It keeps nothing between requests, so any node may answer any of them.
type Server struct {
	Config
	sdk      *sdk.StreamableHTTPHandler
	ops      func() map[string]*operation
	stopping chan struct{} // closed when nobody is waited for any more
}

// New makes the server.
func New(c Config) *Server {
	s := &Server{Config: c, stopping: make(chan struct{})}
	s.ops = sync.OnceValue(s.readReference)
	// made when it is first asked for, as the reference is
	made := sync.OnceValue(s.newSDK)
	s.sdk = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return made() }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection:   true, // foreign judges it: a proxy on this machine passes on the host that its client named
		PropagateRequestCancellation: true, Logger: slog.New(slog.DiscardHandler)})
	return s
}

// Stop ends the waits of tools; their callers ask again. Call it once.
func (s *Server) Stop() { close(s.stopping) }

const instructions = `Parley hosts assistants that hold telephone calls and chats. You work in one account of it.
An assistant has a prompt, a voice, a model, a knowledgebase and tools. create_assistant needs no more than a name and a prompt.
Change a live assistant in its draft (update_draft), test the draft with simulated callers (create_test, run_tests), then publish it
(publish_draft). Calls cost money and reach people: place one (make_call) only when the user has asked for it and named the number.
Lists come in pages; next_page says how to go on. Texts that are cut say how to read the rest.`

func (s *Server) newSDK() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "parley", Title: "Parley", Version: s.Version},
		&sdk.ServerOptions{Instructions: instructions, PageSize: 100, // and no word of changes: it tells nobody of them
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{},
				Resources: &sdk.ResourceCapabilities{}},
			Logger: slog.New(slog.DiscardHandler)})
	// the SDK runs handlers in goroutines of its own: a panic there would end the process
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
			defer crash.Contain(func(e error) {
				slog.ErrorContext(ctx, "an MCP request panicked", "method", method, "request_id", web.RequestID(ctx), "error", e)
				res, err = nil, errors.New("internal error; quote the request id "+web.RequestID(ctx)+" when you report it")
			})
			if res, err = next(ctx, method, req); err != nil {
				return res, err
			}
			switch own := res.(type) { // the account's alone: no proxy may keep it for others
			case *sdk.ListResourcesResult:
				if own.CacheScope = "private"; own.NextCursor == "" {
					err = s.withOwn(ctx, own)
				}
			case *sdk.ReadResourceResult:
				own.CacheScope = "private"
			}
			return res, err
		}
	})
	for i := range tools {
		s.addTool(server, &tools[i])
	}
	addPrompts(server)
	s.addResources(server)
	return server
}

type callerKey struct{}

// caller is who asks, and from where.
type caller struct {
	*auth.Who
	from *http.Request
}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// ServeHTTP answers a request to /mcp.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = web.Name(w, r)
	defer web.Survive(func(err error) { s.fail(w, r, err) })
	if s.foreign(r) {
		s.fail(w, r, parley.Errorf(parley.Forbidden, "Requests from pages of other origins are not taken here."))
		return
	}
	who, err := s.API.Caller(w, r, parley.APIKey, parley.Session, parley.OAuthAccess)
	if err != nil {
		if errors.Is(err, auth.ErrUnauthenticated) {
			challenge := fmt.Sprintf("Bearer resource_metadata=%q", s.Front.Base(r)+oauth.ResourcePath+Path)
			if r.Header.Get("Authorization") != "" {
				challenge += `, error="invalid_token"`
			}
			w.Header().Set("WWW-Authenticate", challenge) // RFC 9728, section 5.1
		}
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if batch(r) {
		s.fail(w, r, parley.Errorf(parley.Refused, "A request holds one message: batches are not taken, as in the protocol since 2025-06-18."))
		return
	}
	s.sdk.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, &caller{who, r})))
}

// batch says whether a request's body is a list of messages: each of them would count as nothing, and all answers be kept at once.
func batch(r *http.Request) bool {
	body := bufio.NewReader(r.Body)
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	for range maxBody {
		switch b, err := body.Peek(1); {
		case err != nil:
			return false
		case !bytes.Contains([]byte(" \t\r\n"), b):
			return b[0] == '['
		}
		body.Discard(1)
	}
	return false
}

// foreign says whether a page of another origin sent the request. Programs send no Origin. A page whose host was made to lead to this
// machine (DNS rebinding) names the host that it came from: it is believed only where that is the public address, or a loopback one.
func (s *Server) foreign(r *http.Request) bool {
	sent := r.Header.Get("Origin")
	if sent == "" {
		return !s.named(r)
	}
	from := web.Origin(sent)
	if s.Front.PublicURL != "" && from == web.Origin(s.Front.PublicURL) {
		return false
	}
	u, err := url.Parse(from)
	return err != nil || from == "" || !loopback(u.Hostname()) || !s.Front.Own(r)
}

// named says whether a request that arrived on a loopback address names a host that leads there, or that a proxy may stand for.
func (s *Server) named(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || s.Front.PublicURL != "" || r.Header.Get("X-Forwarded-For") != "" {
		return true
	}
	local, err := netip.ParseAddrPort(at.String())
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return err != nil || !local.Addr().IsLoopback() || loopback(host)
}

// loopback says whether a host is this machine, seen from itself.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// fail answers a request that the protocol doesn't get to see.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	err = store.Told(err)
	e := web.Known(r, err, "Server error. Quote the X-Request-Id when you report it.")
	web.RetryAfter(w, err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(web.Status(e.Kind))
	_, _ = io.WriteString(w, compact(map[string]any{"message": e.Message})+"\n")
}
