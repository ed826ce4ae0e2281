package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/egress"
	"parley/internal/mcp"
)

// patience only guards against hangs.
const patience = 60 * time.Second

func open(t *testing.T) *mcp.Client {
	t.Helper()
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	c := mcp.New(guard)
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

type words struct {
	Text string `json:"text"`
}

// shop is an MCP server by the SDK, and what it was asked.
type shop struct {
	*httptest.Server
	began, cancelled chan struct{}
	mu               sync.Mutex
	sessions         []string
}

func (s *shop) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions)
}

func newShop(t *testing.T, opts *sdk.StreamableHTTPOptions) *shop {
	t.Helper()
	s := &shop{began: make(chan struct{}, 1), cancelled: make(chan struct{})}
	srv := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	closed := false
	sdk.AddTool(srv, &sdk.Tool{Name: "echo", Title: "Echo", Description: "Says it again.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
		})
	sdk.AddTool(srv, &sdk.Tool{Name: "break", Annotations: &sdk.ToolAnnotations{DestructiveHint: &closed}},
		func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
			return nil, nil, errors.New("it is broken")
		})
	sdk.AddTool(srv, &sdk.Tool{Name: "wait"}, func(ctx context.Context, req *sdk.CallToolRequest, _ words) (*sdk.CallToolResult, any, error) {
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "p", Progress: 1})
		s.began <- struct{}{}
		<-ctx.Done()
		close(s.cancelled)
		return nil, nil, ctx.Err()
	})
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, opts)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if id := r.Header.Get("Mcp-Session-Id"); id != "" && !slices.Contains(s.sessions, id) {
			s.sessions = append(s.sessions, id)
		}
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Its tools are listed with what they say of themselves, and called; a conversation keeps its session, another has its own.
func TestServer(t *testing.T) {
	for name, opts := range map[string]*sdk.StreamableHTTPOptions{"events": nil, "JSON": {JSONResponse: true},
		"stateless": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			s, c, ctx := newShop(t, opts), open(t), within(t)
			list, more, err := c.List(ctx, mcp.Server{URL: s.URL})
			if err != nil || more || len(list) != 3 {
				t.Fatalf("%v %v %v", list, more, err)
			}
			if e := list[1]; e.Name != "echo" || e.Title != "Echo" || !e.ReadOnly || e.Destructive || !strings.Contains(string(e.Schema), `"text"`) {
				t.Errorf("echo: %+v", e)
			}
			if b, w := list[0], list[2]; b.ReadOnly || b.Destructive || w.ReadOnly || !w.Destructive {
				t.Errorf("break %+v, wait %+v", b, w)
			}
			before := len(s.seen())
			for _, of := range []string{"a", "a", "b"} {
				got, err := c.Call(ctx, of, mcp.Server{URL: s.URL}, "echo", map[string]any{"text": "hé " + of})
				if err != nil || got.Text != "hé "+of || got.Failed {
					t.Errorf("%s: %+v %v", of, got, err)
				}
			}
			if n := len(s.seen()) - before; name != "stateless" && n != 2 {
				t.Errorf("two conversations had %d sessions", n)
			}
			if got, err := c.Call(ctx, "a", mcp.Server{URL: s.URL}, "break", map[string]any{"text": ""}); err != nil || !got.Failed ||
				got.Text != "it is broken" {
				t.Errorf("%+v %v", got, err)
			}
			if _, err := c.Call(ctx, "a", mcp.Server{URL: s.URL}, "none", nil); err == nil ||
				!strings.Contains(err.Error(), `the server answers: unknown tool`) {
				t.Errorf("of no tool: %v", err)
			}
		})
	}
}

// A call that is given up is cancelled at the server, and its session goes on.
func TestCancel(t *testing.T) {
	s, c := newShop(t, nil), open(t)
	ctx, cancel := context.WithCancel(within(t))
	failed := make(chan error)
	go func() {
		_, err := c.Call(ctx, "a", mcp.Server{URL: s.URL}, "wait", map[string]any{"text": ""})
		failed <- err
	}()
	<-s.began
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	select {
	case <-s.cancelled:
	case <-time.After(patience):
		t.Fatal("the server was not told")
	}
	before := s.seen()
	if got, err := c.Call(within(t), "a", mcp.Server{URL: s.URL}, "echo", map[string]any{"text": "on"}); err != nil || got.Text != "on" {
		t.Errorf("%+v %v", got, err)
	}
	if after := s.seen(); len(after) != len(before) {
		t.Errorf("sessions %v, then %v", before, after)
	}
}

// A session that the server has forgotten is begun anew once, also where the server says so with another status.
func TestForgottenSession(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"404": func(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) },
		"404 in JSON": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"400": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, ctx := newShop(t, nil), open(t), within(t)
			var old atomic.Value // the session that is forgotten
			var refused atomic.Int32
			old.Store("")
			handler := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if id := r.Header.Get("Mcp-Session-Id"); id != "" && (id == old.Load() || old.Load() == "all") && r.Method == http.MethodPost {
					refused.Add(1)
					answer(w)
					return
				}
				handler.ServeHTTP(w, r)
			})
			call := func() (mcp.Result, error) {
				return c.Call(ctx, "a", mcp.Server{URL: s.URL}, "echo", map[string]any{"text": "here"})
			}
			if _, err := call(); err != nil {
				t.Fatal(err)
			}
			old.Store(s.seen()[0])
			if got, err := call(); err != nil || got.Text != "here" || refused.Load() != 1 {
				t.Errorf("%+v %v, refused %d times", got, err, refused.Load())
			}
			if n := len(s.seen()); n != 2 {
				t.Errorf("%d sessions", n)
			}
			old.Store("all")
			if _, err := call(); err == nil || refused.Load() > 4 {
				t.Errorf("a server that forgets each session: %v, refused %d times", err, refused.Load())
			}
		})
	}
}

// What a server answers that is down, slow or wrong is told in words, without its address.
func TestMisbehaviour(t *testing.T) {
	big := strings.Repeat("x", 5<<20)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
			"the server answers with HTTP status 500 Internal Server Error"},
		"404": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) },
			"the server answers with HTTP status 404 Not Found"},
		"401": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
			"the server wants other credentials (HTTP status 401 Unauthorized)"},
		"web": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hi</html>") },
			"the server's answer is not one of the MCP protocol"},
		"garbage": {typed("application/json", "{"), "the server's answer is not one of the MCP protocol"},
		"another": {typed("application/json", `{"jsonrpc":"2.0","id":1,"result":7}`), "the server's answer is not one of the MCP protocol"},
		"nothing": {typed("text/event-stream", ""), "the server's answer is not one of the MCP protocol"},
		"events":  {typed("text/event-stream", "data: nonsense\n\n"), "the server's answer is not one of the MCP protocol"},
		"huge":    {typed("application/json", `{"jsonrpc":"2.0","id":1,"result":"`+big+`"}`), "the server's answer is larger than 4 MB"},
		"flood": {typed("text/event-stream",
			strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n", 80_000)),
			"the server sends too many messages before its answer"},
		"refuses": {func(w http.ResponseWriter, r *http.Request) {
			var call struct{ ID json.RawMessage }
			_ = json.NewDecoder(r.Body).Decode(&call)
			typed("application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"out of order"}}`, call.ID))(w, r)
		}, "the server answers: out of order"},
		"version": {typed("application/json",
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`),
			"the server's answer is not one of the MCP protocol"},
		"breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "500")
			_, _ = io.WriteString(w, `{"jsonrpc"`)
			panic(http.ErrAbortHandler)
		}, "the connection broke off"},
		"private": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://10.1.2.3/mcp")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "the address is private, and only public addresses may be reached (the operator of this server can allow it with " +
			"PARLEY_EGRESS_ALLOW)"},
		"elsewhere": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/mcp")
			w.WriteHeader(http.StatusFound)
		}, "would turn it into a GET"},
	} {
		t.Run(name, func(t *testing.T) {
			far := httptest.NewServer(c.answer)
			defer far.Close()
			client, ctx := open(t), within(t)
			for range 2 { // a bad answer leaves nothing behind
				if _, _, err := client.List(ctx, mcp.Server{URL: far.URL}); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("list: %v", err)
				}
				_, err := client.Call(ctx, "a", mcp.Server{URL: far.URL}, "x", nil)
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "127.0.0.1") {
					t.Errorf("call: %v", err)
				}
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, _, err := open(t).List(within(t), mcp.Server{URL: gone.URL}); err == nil ||
		err.Error() != "the server does not accept connections there" {
		t.Errorf("of nobody: %v", err)
	}
	if _, _, err := open(t).List(within(t), mcp.Server{URL: "http://10.1.2.3/"}); err == nil ||
		!strings.Contains(err.Error(), "only public addresses") {
		t.Errorf("of a private address: %v", err)
	}
}

func typed(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

// A server that hangs is waited for as long as the context says; so is one whose answer never ends.
func TestHang(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"silent": func(http.ResponseWriter) {},
		"with a session": func(w http.ResponseWriter) {
			w.Header().Set("Mcp-Session-Id", "s")
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
		},
		"drips": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": hello\n\n")
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				begin(w)
				<-r.Context().Done()
			}))
			defer far.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := open(t).Call(ctx, "a", mcp.Server{URL: far.URL}, "x", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Headers go to the server and to nobody that it redirects to.
func TestHeaders(t *testing.T) {
	s := newShop(t, nil)
	var atHome, away atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		away.Store(r.Header.Clone())
		s.Config.Handler.ServeHTTP(w, r)
	}))
	defer other.Close()
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		atHome.Store(r.Header.Clone())
		w.Header().Set("Location", other.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer home.Close()
	srv := mcp.Server{URL: home.URL, Headers: http.Header{"X-Key": {"s3cret"}, "Accept": {"text/plain"}}}
	if _, _, err := open(t).List(within(t), srv); err != nil && away.Load() == nil {
		t.Fatal(err)
	}
	if h, _ := atHome.Load().(http.Header); h.Get("X-Key") != "s3cret" || !strings.Contains(h.Get("Accept"), "text/event-stream") ||
		h.Get("User-Agent") != "Parley/1" {
		t.Errorf("the server gets %v", h)
	}
	if h, _ := away.Load().(http.Header); h == nil || h.Get("X-Key") != "" {
		t.Errorf("another server gets %v", h)
	}
}

// What is no text is named, and structured content is there once.
func TestResult(t *testing.T) {
	size := int64(9)
	png := []byte{1, 2, 3}
	for name, c := range map[string]struct {
		result sdk.CallToolResult
		want   string
	}{
		"nothing":    {sdk.CallToolResult{Content: []sdk.Content{}}, ""},
		"texts":      {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "a"}, &sdk.TextContent{Text: "b"}}}, "a\n\nb"},
		"structured": {sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"n": 1}}, `{"n":1}`},
		"both": {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{ "n": 1 }`}}, StructuredContent: map[string]any{"n": 1}},
			`{ "n": 1 }`},
		"each": {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "one"}}, StructuredContent: map[string]any{"n": 1}},
			"one\n\n" + `{"n":1}`},
		"image": {sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: png}}},
			"[An image (image/png, 3 bytes), which can't be shown.]"},
		"sound": {sdk.CallToolResult{Content: []sdk.Content{&sdk.AudioContent{MIMEType: "audio/wav", Data: png}}},
			"[A sound (audio/wav, 3 bytes), which can't be played.]"},
		"link": {sdk.CallToolResult{Content: []sdk.Content{&sdk.ResourceLink{URI: "file:///a", Name: "A", MIMEType: "text/plain", Size: &size}}},
			"[A file that was not read: file:///a; A; text/plain; 9 bytes]"},
		"text file": {
			sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", Text: "hello"}}}},
			"[The file file:///a:]\nhello"},
		"other file": {
			sdk.CallToolResult{
				Content: []sdk.Content{
					&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", MIMEType: "application/zip", Blob: png}}}},
			"[The file file:///a (application/zip, 3 bytes), which is no text and can't be shown.]"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := sdk.NewServer(&sdk.Implementation{Name: "x", Version: "1"}, nil)
			srv.AddTool(&sdk.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return &c.result, nil })
			far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
			defer far.Close()
			if got, err := open(t).Call(within(t), "", mcp.Server{URL: far.URL}, "x", nil); err != nil || got.Text != c.want {
				t.Errorf("%q %v", got.Text, err)
			}
		})
	}
}

// A server with more tools than are listed says so; pages are read one by one, and a list without an end has one.
func TestLongList(t *testing.T) {
	srv := sdk.NewServer(&sdk.Implementation{Name: "x", Version: "1"}, &sdk.ServerOptions{PageSize: 30})
	for i := range 300 {
		srv.AddTool(&sdk.Tool{Name: fmt.Sprintf("t%03d", i), InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return nil, nil })
	}
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	defer far.Close()
	list, more, err := open(t).List(within(t), mcp.Server{URL: far.URL})
	if err != nil || !more || len(list) != 200 || list[199].Name != "t199" {
		t.Errorf("%d tools, more %v, %v", len(list), more, err)
	}
}

// authority gives tokens to the client desk with the secret s3cret, and guards a shop with them.
type authority struct {
	*httptest.Server
	mu       sync.Mutex
	tokens   int
	valid    string
	asked    []string
	metadata string // "" as it should be
}

func newAuthority(t *testing.T) *authority {
	a := &authority{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		typed("application/json", fmt.Sprintf(`{"issuer":%q,"token_endpoint":%q}`, a.URL+a.metadata, a.URL+"/token"))(w, nil)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_ = r.ParseForm()
		a.asked = append(a.asked, r.Form.Get("grant_type")+" "+r.Form.Get("scope")+" "+r.Form.Get("resource"))
		if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("desk:s3cret")); r.Header.Get("Authorization") != want {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		a.tokens++
		a.valid = fmt.Sprintf("token-%d", a.tokens)
		typed("application/json", fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, a.valid))(w, nil)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// guard lets those in who have the latest token, and tells others where to get one.
func (a *authority) guard(s *shop, told bool) {
	handler := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/oauth-protected-resource" {
			typed("application/json", fmt.Sprintf(`{"resource":%q,"authorization_servers":[%q],"scopes_supported":["shop"]}`, s.URL, a.URL))(w, r)
			return
		}
		a.mu.Lock()
		valid := a.valid != "" && r.Header.Get("Authorization") == "Bearer "+a.valid
		a.mu.Unlock()
		if valid {
			handler.ServeHTTP(w, r)
			return
		}
		if told {
			w.Header().Set("WWW-Authenticate",
				fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource", scope="orders"`, s.URL))
		}
		http.Error(w, "no", http.StatusUnauthorized)
	})
}

// A token is had where the server says, or where the owner says, once for all sessions, and again when it is refused.
func TestOAuth(t *testing.T) {
	for name, c := range map[string]struct {
		told, url  bool
		scope      string
		wantScopes string
	}{
		"told":       {told: true, wantScopes: "orders"},
		"found":      {wantScopes: "shop"},
		"own scope":  {told: true, scope: "a b", wantScopes: "a b"},
		"given":      {url: true},
		"given both": {url: true, scope: "a", wantScopes: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			a, s, client, ctx := newAuthority(t), newShop(t, nil), open(t), within(t)
			a.guard(s, c.told)
			srv := mcp.Server{URL: s.URL, OAuth: mcp.OAuth{ClientID: "desk", Secret: "s3cret", Scope: c.scope}}
			if c.url {
				srv.OAuth.TokenURL = a.URL + "/token"
			}
			for _, of := range []string{"a", "b"} {
				if got, err := client.Call(ctx, of, srv, "echo", map[string]any{"text": "in"}); err != nil || got.Text != "in" {
					t.Fatalf("%+v %v", got, err)
				}
			}
			want := "client_credentials " + c.wantScopes + " " + s.URL
			if a.tokens != 1 || a.asked[0] != want {
				t.Errorf("%d tokens, asked %q, not %q", a.tokens, a.asked, want)
			}
			a.mu.Lock()
			a.valid = "another" // it is revoked
			a.mu.Unlock()
			if got, err := client.Call(ctx, "a", srv, "echo", map[string]any{"text": "again"}); err != nil || got.Text != "again" || a.tokens != 2 {
				t.Errorf("%+v %v, %d tokens", got, err, a.tokens)
			}
		})
	}
}

// What keeps a token from being had is told in words, and no secret.
func TestOAuthRefusals(t *testing.T) {
	a, s := newAuthority(t), newShop(t, nil)
	a.guard(s, true)
	silent := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	defer silent.Close()
	another := newAuthority(t)
	another.metadata = "/other"
	guarded := newShop(t, nil)
	another.guard(guarded, true)
	for name, c := range map[string]struct {
		srv  mcp.Server
		want string
	}{
		"secret": {mcp.Server{URL: s.URL, OAuth: mcp.OAuth{ClientID: "desk", Secret: "wrong-s3cret"}},
			`the token server refuses the client's credentials ("invalid_client")`},
		"unknown": {mcp.Server{URL: silent.URL, OAuth: mcp.OAuth{ClientID: "desk", Secret: "x"}},
			"the server wants a token and doesn't say who gives one: enter the token URL"},
		"another": {mcp.Server{URL: guarded.URL, OAuth: mcp.OAuth{ClientID: "desk", Secret: "x"}},
			"the authorization server can't be used: its metadata is another's; enter the token URL"},
		"private": {mcp.Server{URL: s.URL, OAuth: mcp.OAuth{ClientID: "desk", Secret: "x", TokenURL: "http://10.1.2.3/token"}},
			"no token could be had: the address is private"},
		"useless": {mcp.Server{URL: silent.URL, OAuth: mcp.OAuth{ClientID: "desk", Secret: "s3cret", TokenURL: a.URL + "/token"}},
			"the server wants other credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := open(t).List(within(t), c.srv)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v", err)
			}
		})
	}
}
