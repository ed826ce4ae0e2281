package event

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"parley/internal/egress"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// harness is a database with a user, and a sender whose clock the test sets.
type harness struct {
	testing.TB
	db   *store.DB
	user *parley.User
	s    *Sender

	mu    sync.Mutex
	clock time.Time
}

func each(t *testing.T, test func(t *testing.T, h *harness), rules ...store.Rules) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) }, rules...)
}

func open(t testing.TB, db *store.DB) *harness {
	h := &harness{TB: t, db: db, user: storetest.User(t, db, 10*parley.USD), clock: time.Now()}
	h.s = h.sender()
	return h
}

// sender is one more process on the database.
func (h *harness) sender() *Sender {
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	h.Cleanup(guard.Close)
	s := NewSender(h.db, guard)
	s.now = func() time.Time {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.clock
	}
	s.jitter = func() float64 { return 0 }
	return s
}

// set moves the clock.
func (h *harness) set(to parley.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = to.Time()
}

func (h *harness) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// send enqueues an event for a URL.
func (h *harness) send(userID int64, url string) *parley.Delivery {
	h.Helper()
	d := parley.BalanceLow{TotalBalance: 1, Threshold: 2, CreatedAt: parley.Now()}.Delivery(url)
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueDelivery(ctx, userID, d) })
	return d
}

// run runs a sender until the test ends.
func (h *harness) run(s *Sender) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	h.Cleanup(func() { stop(); <-done })
}

// round makes the attempts that are due at the clock's time.
func (h *harness) round() {
	h.Helper()
	var attempts sync.WaitGroup
	if _, err := h.s.round(h.Context(), &attempts); err != nil {
		h.Fatal(err)
	}
	attempts.Wait()
}

func (h *harness) delivery(d *parley.Delivery) *parley.Delivery {
	h.Helper()
	got, err := h.db.Delivery(h.Context(), d.UserID, d.ID)
	if err != nil {
		h.Fatal(err)
	}
	return got
}

func (h *harness) log(d *parley.Delivery) []parley.DeliveryAttempt {
	h.Helper()
	list, err := h.db.DeliveryLog(h.Context(), d.UserID, d.ID)
	if err != nil {
		h.Fatal(err)
	}
	return list
}

// until waits for something that another goroutine does.
func (h *harness) until(what string, ok func() bool) {
	h.Helper()
	look, hang := time.NewTicker(time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-hang:
			h.Fatalf("waited for %s in vain", what)
		}
	}
}

// heard is a request that an endpoint got.
type heard struct {
	header http.Header
	body   string
}

// endpoint is a user's endpoint that remembers the requests it got and answers with a status.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	heard  []heard
	status int
}

func (h *harness) endpoint(status int) *endpoint {
	e := &endpoint{status: status}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.heard = append(e.heard, heard{r.Header, string(body)})
		status := e.status
		e.mu.Unlock()
		w.WriteHeader(status)
		fmt.Fprintf(w, "answered %d", status)
	}))
	h.Cleanup(e.Close)
	return e
}

func (e *endpoint) got() []heard {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard
}

func (e *endpoint) answer(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

// verify checks a request with the specification's own library.
func (h *harness) verify(key []byte, got heard) error {
	h.Helper()
	w, err := standardwebhooks.NewWebhook(store.WebhookSecretText(key))
	if err != nil {
		h.Fatal(err)
	}
	return w.VerifyIgnoringTimestamp([]byte(got.body), got.header)
}

func (h *harness) keys() [][]byte {
	h.Helper()
	keys, err := h.db.WebhookSecrets(h.Context(), h.user.ID, parley.At(h.s.now()))
	if err != nil {
		h.Fatal(err)
	}
	return keys
}

// assistant is one of the user's assistants, with these endpoints.
func (h *harness) assistant(userID int64, change func(*parley.Assistant)) *parley.Assistant {
	h.Helper()
	a := &parley.Assistant{}
	form.Defaults(a)
	a.Name, a.Type, a.Mode, a.Timezone, a.SystemPrompt, a.VoiceID, a.LanguageID = "Desk", "inbound", "pipeline",
		"UTC", "Be kind.", 1, 1
	change(a)
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, userID, a) })
	return a
}
