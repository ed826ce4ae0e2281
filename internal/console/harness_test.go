package console

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/ai/aitest"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/blob"
	"parley/internal/campaign"
	"parley/internal/catalog"
	"parley/internal/egress"
	"parley/internal/endpoint"
	"parley/internal/event"
	"parley/internal/exam"
	"parley/internal/keyring"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/setup"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/web"
)

const password = "correct horse"

// harness is a console on a fresh database.
type harness struct {
	*Console
	url   string
	model *aitest.Server // the model that assistants think with
	guard web.Guard      // in front of the console
}

func open(t *testing.T, change ...func(*Config)) *harness {
	t.Helper()
	return openUnder(t, store.Rules{}, change...)
}

// openUnder is open with the operator's own rules and the usual plans.
func openUnder(t *testing.T, rules store.Rules, change ...func(*Config)) *harness {
	t.Helper()
	prices, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	rules.Plan = prices.Plan
	db := storetest.SQLite(t, rules)
	cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", RealtimeModel: []string{"gpt-realtime"}})))
	err = db.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.KeepModels(ctx, cat.Models())
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.SetModels(rows); err != nil {
		t.Fatal(err)
	}
	c := Config{DB: db, Auth: &auth.Authority{DB: db, SessionFor: time.Hour},
		Assistants: &assistant.Studio{DB: db, Catalog: cat}, Catalog: cat, Prices: prices}
	if c.Keys, err = keyring.Open(t.Context(), db, provider.All(), "", func(int64, string) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Keys.Close)
	c.Exams = exam.New(exam.Config{DB: db, Assistants: c.Assistants, Hub: event.NewHub()})
	c.Endpoints = endpoint.New(db, egress.New(nil, netip.MustParsePrefix("127.0.0.0/8")), c.Keys.Providers, endpoint.Public,
		func(int64, string) {})
	t.Cleanup(c.Endpoints.Close)
	c.Assistants.Endpoints = c.Endpoints
	c.Alerts = watch(&c)
	model := think(t, &c)
	connect(t, &c)
	for _, f := range change {
		f(&c)
	}
	if c.Campaigns != nil {
		if c.Campaigns.Blobs, err = blob.OpenDir(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		storetest.Jobs(t, db, c.Campaigns.AddWorkers, campaign.Queue)
	}
	c.Setup = &setup.Setup{Keys: c.Keys, Assistants: c.Assistants}
	h := &harness{Console: New(c), model: model}
	h.guard.Handler = h
	srv := httptest.NewServer(&h.guard)
	t.Cleanup(srv.Close)
	h.url = srv.URL
	return h
}

// user makes an account with the password of these tests.
func (h *harness) user(t *testing.T) *parley.User {
	t.Helper()
	u := storetest.User(t, h.DB, 5*parley.USD)
	hash, err := auth.HashPassword(password)
	if err != nil {
		t.Fatal(err)
	}
	u.PasswordHash = hash
	if err := h.DB.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.SaveUser(ctx, u)
	}); err != nil {
		t.Fatal(err)
	}
	return u
}

// assistant makes an assistant of the user's from a template.
func (h *harness) assistant(t *testing.T, u *parley.User, name string) *parley.Assistant {
	t.Helper()
	body, err := h.fromTemplate(&templates[0], &newAssistant{Name: name, LanguageID: 1}, u, h.Catalog.Voices("pipeline", 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.Assistants.Create(t.Context(), u.ID, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// visitor is a browser without scripts.
type visitor struct {
	t       *testing.T
	harness *harness
	client  *http.Client
}

func (h *harness) visitor(t *testing.T) *visitor {
	jar, _ := cookiejar.New(nil)
	return &visitor{t, h, &http.Client{Jar: jar, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// signedIn is a visitor who has signed in.
func (h *harness) signedIn(t *testing.T, u *parley.User) *visitor {
	t.Helper()
	v := h.visitor(t)
	v.post("/signin", url.Values{"email": {u.Email}, "password": {password}}).moved("/")
	return v
}

// reply is an answer whose body has been read.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func (v *visitor) send(method, path string, form url.Values, headers ...string) *reply {
	v.t.Helper()
	req, err := http.NewRequest(method, v.harness.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return &reply{v.t, res.StatusCode, res.Header, string(raw)}
}

func (v *visitor) get(path string, headers ...string) *reply {
	v.t.Helper()
	return v.send("GET", path, nil, headers...)
}

func (v *visitor) post(path string, form url.Values, headers ...string) *reply {
	v.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	return v.send("POST", path, form, headers...)
}

// publish saves the form of an assistant's editor and makes it live.
func (v *visitor) publish(path string, form url.Values) {
	v.t.Helper()
	v.post(path, form).moved(path + "?done=drafted")
	v.post(path+"/publish", nil).moved(path + "?done=published")
}

func (r *reply) is(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, want %d\n%.1500s", r.status, status, r.body)
	}
	return r
}

func (r *reply) moved(to string) *reply {
	r.t.Helper()
	r.is(http.StatusSeeOther)
	if got := r.header.Get("Location"); got != to {
		r.t.Fatalf("sent to %q, want %q", got, to)
	}
	return r
}

func (r *reply) says(text string) *reply {
	r.t.Helper()
	if !strings.Contains(r.doc().Text(), text) {
		r.t.Fatalf("the page does not say %q:\n%.3000s", text, r.body)
	}
	return r
}

func (r *reply) doc() *goquery.Document {
	r.t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(r.body))
	if err != nil {
		r.t.Fatal(err)
	}
	return doc
}

// form is what a browser would send for the form with that action.
func (r *reply) form(action string) url.Values {
	r.t.Helper()
	v := url.Values{}
	form := r.doc().Find(`form[method=post][action="` + action + `"]`)
	if form.Length() != 1 {
		r.t.Fatalf("%d forms go to %s:\n%.2000s", form.Length(), action, r.body)
	}
	form.Find("input, select, textarea").Each(func(_ int, s *goquery.Selection) {
		name, _ := s.Attr("name")
		if name == "" || s.Closest("template").Length() > 0 {
			return
		}
		value := s.AttrOr("value", "")
		switch goquery.NodeName(s) {
		case "textarea":
			value = strings.ReplaceAll(s.Text(), "\n", "\r\n") // browsers send line breaks like this
		case "select":
			chosen := s.Find("option[selected]")
			if chosen.Length() == 0 {
				chosen = s.Find("option").First()
			}
			value = chosen.AttrOr("value", "")
		}
		if kind := s.AttrOr("type", ""); (kind == "checkbox" || kind == "radio") && s.AttrOr("checked", "no") == "no" {
			return
		}
		v.Add(name, value)
	})
	return v
}

// paths are the pages of a user who has one of everything.
func (h *harness) paths(t *testing.T, u *parley.User) []string {
	a, tool := h.assistant(t, u, "Front desk"), h.tool(t, u, "look_up")
	one := "/assistants/" + id(a.ID)
	return append(h.channels(t, u, a), "/assistants", "/assistants?q=desk", "/assistants/new", one, one+"/versions",
		one+"/versions/1", one+"/publish", "/tools", "/tools/new", "/tools/"+id(tool.ID),
		"/conversations", "/conversations?type=test", "/conversations/"+h.talk(t, a, parley.TestConversation).ID,
		one+"/talk", "/ledger", "/keys", "/account")
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

const secret = "Bearer very-secret-value"

func (h *harness) tool(t *testing.T, u *parley.User, name string) *parley.Tool {
	t.Helper()
	tool := &parley.Tool{Name: name, Description: "Looks something up.", Endpoint: "https://api.example.com/{id}",
		Method: "GET", Timeout: 7,
		Headers: []parley.ToolHeader{{Name: "Authorization", Value: secret}, {Name: "X-Kind", Value: "{{kind}}"}},
		Schema:  []parley.ToolParam{{Name: "id", Type: "number", Description: "The order's number", Required: true}}}
	if err := h.DB.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.CreateTool(ctx, u.ID, tool)
	}); err != nil {
		t.Fatal(err)
	}
	return tool
}

func (h *harness) key(t *testing.T, u *parley.User) int64 {
	t.Helper()
	var k *parley.Key
	err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		k, _, err = h.Auth.NewKey(ctx, tx, u.ID, parley.APIKey, "secret plans key")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return k.ID
}
