package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/docs"
	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/blob"
	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/carrier/sandbox"
	"parley/internal/catalog"
	"parley/internal/channel/sms"
	"parley/internal/document"
	"parley/internal/event"
	"parley/internal/exam"
	"parley/internal/keyring"
	"parley/internal/knowledge"
	"parley/internal/mcpserver"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/search"
	"parley/internal/setup"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/web"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// house is an account on a server with the API and /mcp, on a real database.
type house struct {
	testing.TB
	db        *store.DB
	authority *auth.Authority
	url       string
	user      *parley.User
	token     string // an API key of the user's
}

func open(t testing.TB, change func(*api.Config, *mcpserver.Config)) *house {
	t.Helper()
	prices, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.SQLite(t, store.Rules{Plan: prices.Plan})
	h := &house{TB: t, db: db, authority: &auth.Authority{DB: db, SessionFor: time.Hour}}
	cat := catalog.New("https://voice.example.com", provider.All())
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
	rows, err := db.Models(t.Context())
	if err == nil {
		err = cat.SetModels(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keyring.Open(t.Context(), db, provider.All(), "", func(int64, string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	from := sandbox.New(sms.Outbox(db))
	c := api.Config{DB: db, Auth: h.authority, Catalog: cat, Prices: prices, Keys: keys,
		Assistants: &assistant.Studio{Stages: stage.New(), DB: db, Catalog: cat},
		Calls:      call.New(call.Config{DB: db}),
		Numbers:    number.New(number.Config{DB: db, Carrier: from, Prices: prices}),
		SMS:        &sms.Channel{DB: db, Carrier: from, Sandbox: true, Prices: prices},
		Knowledge:  &knowledge.Library{Index: search.Index{DB: db}, Blobs: blobs, Cut: document.Here},
		Campaigns:  campaign.New(campaign.Config{DB: db, Prices: prices, Blobs: blobs})}
	c.Exams = exam.New(exam.Config{DB: db, Assistants: c.Assistants, Hub: event.NewHub()})
	c.Setup = &setup.Setup{Keys: keys, Assistants: c.Assistants}
	m := mcpserver.Config{Version: "test", Docs: docs.Files}
	if change != nil {
		change(&c, &m)
	}
	m.API, m.Front = api.New(c), c.Front
	server := mcpserver.New(m)
	t.Cleanup(server.Stop)
	mux := http.NewServeMux()
	mux.Handle("/api/", m.API)
	mux.Handle("/", server)
	srv := httptest.NewServer(&web.Guard{Handler: mux})
	t.Cleanup(srv.Close)
	h.url = srv.URL
	h.user = storetest.User(t, db, 5*parley.USD)
	h.token = h.key(h.user, "")
	return h
}

func (h *house) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// key makes an API key, limited to a role where one is named.
func (h *house) key(u *parley.User, scope parley.Role) string {
	h.Helper()
	_, token, err := h.authority.MakeKey(h.Context(), &auth.Who{User: u, Key: &parley.Key{}}, &auth.KeyInput{Name: "test", Scope: scope})
	if err != nil {
		h.Fatal(err)
	}
	return token
}

// with is the house asked with another credential.
func (h *house) with(token string) *house {
	other := *h
	other.token = token
	return &other
}

// bearer adds a credential to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect is a session of the SDK's client.
func (h *house) connect() *sdk.ClientSession {
	h.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(h.Context(), &sdk.StreamableClientTransport{Endpoint: h.url + mcpserver.Path,
		HTTPClient: &http.Client{Transport: bearer(h.token)}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = s.Close() })
	return s
}

type object = map[string]any

// tool calls a tool, and returns its text and whether it failed.
func (h *house) tool(name string, args object) (text string, failed bool) {
	h.Helper()
	res, err := h.connect().CallTool(h.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		h.Fatalf("%s: %v", name, err)
	}
	if len(res.Content) != 1 {
		h.Fatalf("%s has %d contents", name, len(res.Content))
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

// must calls a tool that must not fail, and returns its JSON.
func (h *house) must(name string, args object) (out object) {
	h.Helper()
	text, failed := h.tool(name, args)
	if failed {
		h.Fatalf("%s failed: %s", name, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		h.Fatalf("%s: %v\n%s", name, err, text)
	}
	return out
}

// refused calls a tool that must fail, and returns why.
func (h *house) refused(name string, args object, words ...string) string {
	h.Helper()
	text, failed := h.tool(name, args)
	if !failed {
		h.Errorf("%s did not fail: %s", name, text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			h.Errorf("%s says %q, want %q in it", name, text, w)
		}
	}
	return text
}

// api asks the API, and returns its JSON.
func (h *house) api(method, path string, body any) (status int, out object) {
	h.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		h.Fatal(err)
	}
	r, err := http.NewRequestWithContext(h.Context(), method, h.url+"/api"+path, bytes.NewReader(text))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}
	_ = json.Unmarshal(raw, &out)
	return res.StatusCode, out
}

// post sends a request to /mcp as it is, and returns its answer.
func (h *house) post(body string, headers ...string) (status int, header http.Header, text string) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), "POST", h.url+mcpserver.Path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+h.token)
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}
	return res.StatusCode, res.Header, string(raw)
}
