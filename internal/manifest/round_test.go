package manifest_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"parley/internal/alert"
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
	"parley/internal/channel/whatsapp"
	"parley/internal/document"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/exam"
	"parley/internal/keyring"
	"parley/internal/knowledge"
	"parley/internal/mail"
	"parley/internal/manifest"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/openai"
	"parley/internal/search"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
	"parley/internal/web"
)

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// server is a whole API on a database of its own.
type server struct {
	url       string
	db        *store.DB
	authority *auth.Authority
	cat       *catalog.Catalog
	seen      *requests
	offer     *manifest.Server // what it offers everybody
}

// requests counts what changes something, and breaks connections off after some.
type requests struct {
	http.Handler
	left sync.Map // credential -> *atomic.Int64
}

func (c *requests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if left, ok := c.left.Load(r.Header.Get("Authorization")); ok && r.Method != "GET" && left.(*atomic.Int64).Add(-1) < 0 {
		panic(http.ErrAbortHandler)
	}
	c.Handler.ServeHTTP(w, r)
}

// breakAfter has all an account's changes after so many more fail; n < 0: none.
func (c *requests) breakAfter(s *manifest.Server, n int) {
	credential := "Bearer " + s.Key
	if n < 0 {
		c.left.Delete(credential)
		return
	}
	left := new(atomic.Int64)
	left.Store(int64(n))
	c.left.Store(credential, left)
}

func open(t testing.TB, models ...string) *server {
	t.Helper()
	prices, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.SQLite(t, store.Rules{Plan: prices.Plan})
	another := deepgram.Declare(&deepgram.Settings{})
	another.Speakers[0].Configured = func() bool { return true }
	another.Listeners[0].Configured = another.Speakers[0].Configured
	s := &server{db: db, authority: &auth.Authority{DB: db, SessionFor: time.Hour}}
	s.cat = catalog.New("https://voice.example.com", provider.All(another, openai.Declare(&openai.Settings{APIKey: "k",
		ChatModel: models, RealtimeModel: []string{"gpt-realtime"}, TTSModel: "tts-1", STTModel: "whisper-1"})))
	s.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, s.cat.Models()) })
	rows, err := db.Models(t.Context())
	if err == nil {
		err = s.cat.SetModels(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	from := sandbox.New(sms.Outbox(db))
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	guard := egress.New(nil)
	t.Cleanup(guard.Close)
	c := api.Config{DB: db, Auth: s.authority, Catalog: s.cat, Prices: prices, WhatsApp: &whatsapp.Channel{DB: db},
		Assistants: &assistant.Studio{Stages: stage.New(), DB: db, Catalog: s.cat, Tools: tool.New(guard)},
		Calls:      call.New(call.Config{DB: db}),
		Numbers:    number.New(number.Config{DB: db, Carrier: from, Prices: prices}),
		SMS:        &sms.Channel{DB: db, Carrier: from, Sandbox: true, Prices: prices},
		Knowledge:  &knowledge.Library{Index: search.Index{DB: db}, Blobs: blobs, Cut: document.Here},
		Alerts:     alert.New(db, &mail.Sender{}, ""),
		Campaigns:  campaign.New(campaign.Config{DB: db, Prices: prices, Blobs: blobs})}
	if c.Keys, err = keyring.Open(t.Context(), db, provider.All(), "", func(int64, string) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Keys.Close)
	c.Exams = exam.New(exam.Config{DB: db, Assistants: c.Assistants, Hub: event.NewHub()})
	s.seen = &requests{Handler: &web.Guard{Handler: api.New(c)}}
	srv := httptest.NewServer(s.seen)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *server) write(t testing.TB, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	if err := s.db.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// account is a new account, and a client of it.
func (s *server) account(t testing.TB) *manifest.Server {
	t.Helper()
	u := storetest.User(t, s.db, 5*parley.USD)
	var token string
	s.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
		_, token, err = s.authority.NewKey(ctx, tx, u.ID, parley.APIKey, "test")
		return err
	})
	c := &manifest.Client{URL: s.url, Key: token, HTTP: client}
	if s.offer == nil {
		var err error
		if s.offer, err = manifest.Open(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return manifest.As(s.offer, c)
}

// pull reads an account and writes its files.
func pull(t testing.TB, s *manifest.Server) (*manifest.Account, fstest.MapFS) {
	t.Helper()
	a, err := s.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range a.Warnings {
		t.Error(w)
	}
	dir := fstest.MapFS{}
	for name, text := range a.Files(nil) {
		dir[name] = &fstest.MapFile{Data: text}
	}
	return a, dir
}

// planned compares files with an account.
func planned(t testing.TB, s *manifest.Server, dir fs.FS, prune bool, env map[string]string) (*manifest.Plan, error) {
	t.Helper()
	files, err := manifest.Load(dir)
	if err != nil {
		return nil, err
	}
	now, err := s.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.NewPlan(files, now, prune, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
}

// push makes an account like files.
func push(t testing.TB, s *manifest.Server, dir fs.FS, prune bool, env map[string]string) error {
	t.Helper()
	plan, err := planned(t, s, dir, prune, env)
	if err != nil {
		return err
	}
	return s.Apply(t.Context(), plan, func(*manifest.Change) {})
}

// text is all files, for comparison.
func text(dir fstest.MapFS) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(dir)) {
		fmt.Fprintf(&b, "== %s\n%s\n", name, dir[name].Data)
	}
	return b.String()
}

// firstDifference tells where two texts part.
func firstDifference(x, y string) string {
	a, b := strings.Split(x, "\n"), strings.Split(y, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			from := max(0, i-12)
			return strings.Join(a[from:i], "\n") + "\nwas:  " + a[i] + "\nis:   " + b[i]
		}
	}
	return fmt.Sprintf("%d lines, %d lines", len(a), len(b))
}

// An account that is written to files and pushed into an empty account of another server is there again: its files are the
// same bytes, and nothing is left to do. PARLEY_MANIFEST_ACCOUNTS sets how many random accounts are tried.
func TestRoundTrip(t *testing.T) {
	n := 24
	if text := os.Getenv("PARLEY_MANIFEST_ACCOUNTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	from, to := open(t, "gpt-4o", "gpt-4o-mini"), open(t, "gpt-4o-mini", "gpt-4o")
	newRandom(t, to, to.account(t), rand.New(rand.NewPCG(99, 99)), "+4940800").fill(6) // so that ids differ
	from.account(t)
	for i := range n {
		t.Run(fmt.Sprint("seed ", i), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(i), 7))
			source, target := from.account(t), to.account(t)
			made := newRandom(t, from, source, r, fmt.Sprintf("+4930%05d", i))
			made.fill(1 + r.IntN(4))
			a, files := pull(t, source)
			secrets := manifest.Secrets(a)
			for name, f := range files {
				for _, s := range made.secrets {
					if strings.Contains(string(f.Data), s) {
						t.Errorf("%s holds the secret %q:\n%s", name, s, f.Data)
					}
				}
			}
			if plan, err := planned(t, source, files, true, nil); err != nil || !plan.Empty() {
				var b strings.Builder
				if err == nil {
					plan.Write(&b)
				}
				t.Fatalf("the account differs from its own files: %v\n%s\n%s", err, &b, text(files))
			}
			if r.IntN(2) == 0 { // it breaks off some times, and goes on
				for cut := 1 + r.IntN(4); ; cut += 1 + r.IntN(4) {
					to.seen.breakAfter(target, cut)
					err := push(t, target, files, false, secrets)
					to.seen.breakAfter(target, -1)
					if err == nil {
						break
					}
				}
			}
			if err := push(t, target, files, false, secrets); err != nil {
				t.Fatalf("push: %v\n%s", err, text(files))
			}
			if plan, err := planned(t, target, files, true, nil); err != nil || !plan.Empty() {
				var b strings.Builder
				if err == nil {
					plan.Write(&b)
				}
				t.Fatalf("a second push has something to do: %v\n%s", err, &b)
			}
			if _, again := pull(t, target); text(again) != text(files) {
				t.Fatalf("the files are others:\n%s", firstDifference(text(files), text(again)))
			}
		})
	}
}
