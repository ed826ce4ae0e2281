package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/internal/alert"
	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/blob"
	phone "parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/carrier/sandbox"
	"parley/internal/catalog"
	"parley/internal/channel/sms"
	"parley/internal/channel/whatsapp"
	"parley/internal/document"
	"parley/internal/egress"
	"parley/internal/endpoint"
	"parley/internal/event"
	"parley/internal/exam"
	"parley/internal/keyring"
	"parley/internal/knowledge"
	"parley/internal/mail"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/openai"
	"parley/internal/search"
	"parley/internal/setup"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/web"
)

// harness is a whole API on a real database, called over HTTP as a client would call it. Every answer is checked
// against the reference that the server itself publishes.
type harness struct {
	testing.TB
	api       *api.API
	db        *store.DB
	cat       *catalog.Catalog
	authority *auth.Authority
	url       string
	user      *parley.User
	token     string // an API key of the user's
	knowledge *knowledge.Library
	texts     *sms.Channel
	checker   *checker
}

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// rich is a catalogue with some of everything: voices of several providers, models of every kind.
func rich() *catalog.Catalog {
	another := deepgram.Declare(&deepgram.Settings{})
	another.Speakers[0].Configured = func() bool { return true }
	another.Listeners[0].Configured = another.Speakers[0].Configured
	return catalog.New("https://voice.example.com", provider.All(another, openai.Declare(&openai.Settings{APIKey: "k",
		ChatModel: richModels, RealtimeModel: []string{"gpt-realtime"}, TTSModel: "tts-1", STTModel: "whisper-1"})))
}

var richModels = []string{"gpt-4o", "gpt-4o-mini"}

// usual are the prices and plans of a server without a prices file.
func usual() *billing.Prices {
	prices, err := billing.ReadPrices("")
	if err != nil {
		panic(err)
	}
	return prices
}

// rules are those of a server with the usual plans.
var rules = store.Rules{Plan: usual().Plan}

// eachDB runs a test on each database.
func eachDB(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	storetest.Each(t, test, rules)
}

// eachPlanned is eachDB with plans that the test names.
func eachPlanned(t *testing.T, test func(t *testing.T, db *store.DB, plan func(*billing.Prices))) {
	t.Helper()
	prices := usual()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		test(t, db, func(p *billing.Prices) { prices = p })
	}, store.Rules{Plan: func(name string) parley.Plan { return prices.Plan(name) }})
}

// each runs a test in a house on each database.
func each(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	eachDB(t, func(t *testing.T, db *store.DB) { test(t, open(t, db, nil)) })
}

// lite is a house on SQLite, for tests in which the database does not matter.
func lite(t testing.TB, change func(*api.Config)) *harness {
	t.Helper()
	return open(t, storetest.SQLite(t, rules), change)
}

func open(t testing.TB, db *store.DB, change func(*api.Config)) *harness {
	t.Helper()
	h := &harness{TB: t, db: db, cat: rich(), authority: &auth.Authority{DB: db, SessionFor: 30 * 24 * time.Hour}}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, h.cat.Models()) })
	rows, err := db.Models(t.Context())
	if err == nil {
		err = h.cat.SetModels(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	prices := usual()
	from := sandbox.New(sms.Outbox(db))
	c := api.Config{DB: db, Auth: h.authority, Catalog: h.cat,
		Assistants: &assistant.Studio{Stages: stage.New(), DB: db, Catalog: h.cat}, Prices: prices, WhatsApp: &whatsapp.Channel{DB: db},
		Calls:   phone.New(phone.Config{DB: db}),
		Numbers: number.New(number.Config{DB: db, Carrier: from, Prices: prices}),
		SMS:     &sms.Channel{DB: db, Carrier: from, Sandbox: true, Prices: prices}}
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Knowledge = &knowledge.Library{Index: search.Index{DB: db}, Blobs: blobs, Cut: document.Here}
	if c.Keys, err = keyring.Open(t.Context(), db, provider.All(), "", func(int64, string) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Keys.Close)
	c.Endpoints = endpoint.New(db, egress.New(nil, netip.MustParsePrefix("127.0.0.0/8")), c.Keys.Providers, endpoint.Public,
		func(int64, string) {})
	t.Cleanup(c.Endpoints.Close)
	c.Assistants.Endpoints = c.Endpoints
	c.Alerts = alert.New(db, &mail.Sender{}, "")
	c.Exams = exam.New(exam.Config{DB: db, Assistants: c.Assistants, Hub: event.NewHub()})
	c.Campaigns = campaign.New(campaign.Config{DB: db, Prices: prices, Blobs: blobs})
	if change != nil {
		change(&c)
	}
	c.Setup = &setup.Setup{Keys: c.Keys, Assistants: c.Assistants}
	h.texts, h.knowledge = c.SMS, c.Knowledge
	h.api = api.New(c)
	srv := httptest.NewServer(&web.Guard{Handler: h.api})
	t.Cleanup(srv.Close)
	h.url = srv.URL
	h.user = storetest.User(t, db, 5*parley.USD)
	h.token = h.key(h.user, parley.APIKey)
	h.checker = h.reference()
	return h
}

// references check against the API's reference, one for each set of operations (some servers let people register): making it takes
// longer than most tests.
var references = struct {
	sync.Mutex
	of map[string]*checker
}{of: map[string]*checker{}}

func (h *harness) reference() *checker {
	h.Helper()
	references.Lock()
	defer references.Unlock()
	operations := fmt.Sprint(h.api.Operations())
	if references.of[operations] == nil {
		references.of[operations] = newChecker(h, h.get("/openapi.json", status(200)).body)
	}
	return references.of[operations]
}

func (h *harness) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// key makes a credential for a user.
func (h *harness) key(u *parley.User, kind parley.KeyKind) (token string) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) (err error) {
		_, token, err = h.authority.NewKey(ctx, tx, u.ID, kind, "test")
		return err
	})
	return token
}

// as is the house seen by another user.
func (h *harness) stranger() *harness {
	other := *h
	other.user = storetest.User(h.TB, h.db, 0)
	other.token = h.key(other.user, parley.APIKey)
	return &other
}

// in is the house reporting to a subtest.
func (h *harness) in(t testing.TB) *harness {
	other := *h
	other.TB = t
	return &other
}

// call is a request before it is sent, and what its answer must be.
type call struct {
	status int
	header http.Header
	raw    io.Reader
}

type option func(*call)

// status is the status that the answer must have. Without it any status but a 5xx will do.
func status(n int) option { return func(c *call) { c.status = n } }

// header sets a request header; an empty value leaves it out.
func header(name, value string) option { return func(c *call) { c.header.Set(name, value) } }

// raw is a body that json.Marshal would not write.
func raw(text string) option { return func(c *call) { c.raw = strings.NewReader(text) } }

// answer is what came back.
type answer struct {
	testing.TB
	status int
	header http.Header
	body   []byte
}

func (h *harness) get(path string, o ...option) *answer {
	h.Helper()
	return h.do("GET", path, nil, o...)
}
func (h *harness) delete(path string, o ...option) *answer {
	h.Helper()
	return h.do("DELETE", path, nil, o...)
}
func (h *harness) post(path string, body any, o ...option) *answer {
	h.Helper()
	return h.do("POST", path, body, o...)
}
func (h *harness) put(path string, body any, o ...option) *answer {
	h.Helper()
	return h.do("PUT", path, body, o...)
}

// do sends a request below /api with the house's credential and checks the answer against the reference.
func (h *harness) do(method, path string, body any, opts ...option) *answer {
	h.Helper()
	c := &call{header: http.Header{"Authorization": {"Bearer " + h.token}, "Content-Type": {"application/json"}}}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			h.Fatal(err)
		}
		c.raw = bytes.NewReader(text)
	}
	for _, o := range opts {
		o(c)
	}
	r, err := http.NewRequestWithContext(h.Context(), method, h.url+"/api"+path, c.raw)
	if err != nil {
		h.Fatal(err)
	}
	for name, values := range c.header {
		if values[0] != "" {
			r.Header[name] = values
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r) // no redirects
	if err != nil {
		h.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	a := &answer{TB: h.TB, status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		h.Fatal(err)
	}
	if c.status != 0 && a.status != c.status || c.status == 0 && a.status >= 500 {
		h.Errorf("%s %s answered %d, want %d: %.600s", method, path, a.status, c.status, a.body)
	}
	if !requestID.MatchString(res.Header.Get("X-Request-Id")) {
		h.Errorf("%s %s: X-Request-Id is %q", method, path, res.Header.Get("X-Request-Id"))
	}
	if h.checker != nil && method != "HEAD" && method != "OPTIONS" {
		if err := h.checker.check(method, r.URL.Path, a); err != nil {
			h.Errorf("%s %s: %v\n%.600s", method, path, err, a.body)
		}
	}
	return a
}

var requestID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// json is the decoded answer, with its numbers as they were written.
func (a *answer) json() map[string]any {
	a.Helper()
	var v map[string]any
	a.decode(&v)
	return v
}

func (a *answer) list() []map[string]any {
	a.Helper()
	var v []map[string]any
	a.decode(&v)
	return v
}

func (a *answer) decode(v any) {
	a.Helper()
	dec := json.NewDecoder(bytes.NewReader(a.body))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		a.Fatalf("%v in %.300s", err, a.body)
	}
}

// is compares the whole body, as JSON.
func (a *answer) is(want string) {
	a.Helper()
	if got := strings.TrimSpace(string(a.body)); got != want {
		a.Errorf("answered %s\nwant     %s", got, want)
	}
}

// fails wants a 422 for exactly these fields, with a message that is the first field's and counts the others.
func (a *answer) fails(fields ...string) map[string][]string {
	a.Helper()
	var v struct {
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
	}
	if a.status != 422 {
		a.Errorf("answered %d, want 422 on %v: %.400s", a.status, fields, a.body)
		return nil
	}
	a.decode(&v)
	if got := slices.Sorted(maps.Keys(v.Errors)); !slices.Equal(got, slices.Sorted(slices.Values(fields))) {
		a.Errorf("failed on %v, want %v: %.400s", got, fields, a.body)
	}
	n, first := 0, ""
	for _, list := range v.Errors {
		for _, text := range list {
			n++
			if strings.HasPrefix(v.Message, text) && len(text) > len(first) {
				first = text
			}
		}
	}
	rest := map[bool]string{n == 1: "", n == 2: " (and 1 more error)",
		n > 2: fmt.Sprintf(" (and %d more errors)", n-1)}[true]
	if first == "" || v.Message != first+rest {
		a.Errorf("message %q does not tell the first of %d errors: %v", v.Message, n, v.Errors)
	}
	return v.Errors
}

// says wants a field to have exactly this message.
func (a *answer) says(field string, text ...string) {
	a.Helper()
	if got := a.fails(field)[field]; !slices.Equal(got, text) {
		a.Errorf("%s: %q, want %q", field, got, text)
	}
}

// checker checks answers against an OpenAPI document.
type checker struct {
	mu       sync.Mutex
	doc      map[string]any
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

func newChecker(t testing.TB, text []byte) *checker {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{doc: v.(map[string]any), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("https://parley.test/openapi.json", v); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *checker) schema(pointer ...string) (*jsonschema.Schema, error) {
	at := "https://parley.test/openapi.json#"
	for _, p := range pointer {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[at]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(at)
	c.schemas[at] = s
	return s, err
}

// operation finds the path and method that a request is documented under.
func (c *checker) operation(method, path string) (template string, op map[string]any) {
	segments := strings.Split(path, "/")
	literal := -1
	for t, item := range c.doc["paths"].(map[string]any) {
		parts := strings.Split(t, "/")
		same, n := len(parts) == len(segments), 0
		for i := 0; same && i < len(parts); i++ {
			if parts[i] == segments[i] {
				n++
			} else {
				same = strings.HasPrefix(parts[i], "{") && segments[i] != ""
			}
		}
		if o, ok := item.(map[string]any)[strings.ToLower(method)].(map[string]any); ok && same && n > literal {
			template, op, literal = t, o, n
		}
	}
	return template, op
}

// request checks a request's body against its schema.
func (c *checker) request(method, template, body string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	s, err := c.schema("paths", template, strings.ToLower(method), "requestBody", "content", "application/json",
		"schema")
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// check checks one answer against its schema. An answer that is not documented must at least be an error with a
// message.
func (c *checker) check(method, path string, a *answer) error {
	if !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		if a.status == 307 || strings.HasPrefix(path, "/api/docs") {
			return nil
		}
		return fmt.Errorf("content type %q of a %d", a.header.Get("Content-Type"), a.status)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		return err
	}
	template, op := c.operation(method, strings.TrimSuffix(strings.TrimPrefix(path, "/api"), "/"))
	if op == nil {
		if m, ok := v.(map[string]any); strings.HasSuffix(strings.TrimSuffix(path, "/"), "openapi.json") || ok && m["message"] != nil &&
			a.status >= 400 {
			return nil
		}
		return fmt.Errorf("answers %d, but is not documented", a.status)
	}
	responses := op["responses"].(map[string]any)
	code := strconv.Itoa(a.status)
	if _, ok := responses[code]; !ok {
		if a.status < 400 {
			return fmt.Errorf("status %d is not documented", a.status)
		}
		code = "default"
	}
	s, err := c.schema("paths", template, strings.ToLower(method), "responses", code, "content", "application/json",
		"schema")
	if err != nil {
		return err
	}
	return s.Validate(v)
}
