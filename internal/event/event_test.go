package event

import (
	"context"
	"errors"
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

	"parley"
	"parley/internal/egress"
	"parley/internal/form"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// house is a database with a user, and a sender whose clock the test sets.
type house struct {
	testing.TB
	db   *store.DB
	user *parley.User
	s    *Sender

	mu    sync.Mutex
	clock time.Time
}

func each(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t testing.TB, db *store.DB) *house {
	h := &house{TB: t, db: db, user: storetest.User(t, db, 10*parley.USD), clock: time.Now()}
	h.s = h.sender()
	return h
}

// sender is one more process on the database.
func (h *house) sender() *Sender {
	guard := egress.New(netip.MustParsePrefix("127.0.0.0/8"))
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
func (h *house) set(to parley.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = to.Time()
}

func (h *house) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// send enqueues an event for a URL.
func (h *house) send(userID int64, url string) *parley.Delivery {
	h.Helper()
	d := parley.BalanceLow{TotalBalance: 1, Threshold: 2, CreatedAt: parley.Now()}.Delivery(url)
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueDelivery(ctx, userID, d) })
	return d
}

// run runs a sender until the test ends.
func (h *house) run(s *Sender) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	h.Cleanup(func() { stop(); <-done })
}

// round makes the attempts that are due by the clock.
func (h *house) round() {
	h.Helper()
	var attempts sync.WaitGroup
	if _, err := h.s.round(h.Context(), &attempts); err != nil {
		h.Fatal(err)
	}
	attempts.Wait()
}

func (h *house) delivery(d *parley.Delivery) *parley.Delivery {
	h.Helper()
	got, err := h.db.Delivery(h.Context(), d.UserID, d.ID)
	if err != nil {
		h.Fatal(err)
	}
	return got
}

func (h *house) log(d *parley.Delivery) []parley.DeliveryAttempt {
	h.Helper()
	list, err := h.db.DeliveryLog(h.Context(), d.UserID, d.ID)
	if err != nil {
		h.Fatal(err)
	}
	return list
}

// until waits for something that another goroutine brings about.
func (h *house) until(what string, ok func() bool) {
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

// endpoint is a user's endpoint, which remembers what it got and answers with a status.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	heard  []heard
	status int
}

func (h *house) endpoint(status int) *endpoint {
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

// verify holds a request against the specification's own library.
func (h *house) verify(key []byte, got heard) error {
	h.Helper()
	w, err := standardwebhooks.NewWebhook(store.WebhookSecretText(key))
	if err != nil {
		h.Fatal(err)
	}
	return w.VerifyIgnoringTimestamp([]byte(got.body), got.header)
}

func (h *house) keys() [][]byte {
	h.Helper()
	keys, err := h.db.WebhookSecrets(h.Context(), h.user.ID, parley.At(h.s.now()))
	if err != nil {
		h.Fatal(err)
	}
	return keys
}

// assistant is one of the user's with these endpoints.
func (h *house) assistant(userID int64, change func(*parley.Assistant)) *parley.Assistant {
	h.Helper()
	a := &parley.Assistant{}
	form.Defaults(a)
	a.Name, a.Type, a.Mode, a.Timezone, a.SystemPrompt, a.VoiceID, a.LanguageID = "Desk", "inbound", "pipeline", "UTC", "Be kind.", 1, 1
	change(a)
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, userID, a) })
	return a
}

// An event is delivered, signed, if and only if its cause was committed, and once where it is taken.
func TestDelivered(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		e := h.endpoint(204)
		boom := errors.New("boom")
		err := h.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if err := tx.EnqueueDelivery(ctx, h.user.ID, parley.BalanceLow{}.Delivery(e.URL)); err != nil {
				return err
			}
			return boom
		})
		if err != boom {
			t.Fatal(err)
		}
		h.s.now = time.Now
		h.run(h.s)
		d := h.send(h.user.ID, e.URL)
		h.until("the delivery", func() bool { return h.delivery(d).Status == parley.DeliveryDelivered })
		h.round() // nothing is left to do
		if len(e.got()) != 1 {
			t.Fatalf("the endpoint got %d requests", len(e.got()))
		}
		r := e.got()[0]
		if r.header.Get("webhook-id") != d.WebhookID || r.body != d.Payload || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("sent %v %s", r.header, r.body)
		}
		if err := h.verify(h.keys()[0], r); err != nil {
			t.Error(err)
		}
		if h.verify(h.keys()[0], heard{r.header, r.body + " "}) == nil || h.verify([]byte("another key of thirty-two bytes."), r) == nil {
			t.Error("anything is verified")
		}
		got, log := h.delivery(d), h.log(d)
		if got.Attempts != 1 || got.NextAttemptAt != 0 || *got.LastStatus != 204 || got.LastError != nil {
			t.Errorf("%+v", got)
		}
		if len(log) != 1 || *log[0].Status != 204 || log[0].Error != nil || log[0].At < d.CreatedAt {
			t.Errorf("log %+v", log)
		}
		if list, total, err := h.db.Deliveries(t.Context(), h.user.ID, "", "", store.Page{Number: 1, Size: 10}); err != nil || total != 1 || list[0].ID != d.ID {
			t.Errorf("%d deliveries %+v: %v", total, list, err)
		}
	})
}

// What is not taken is tried after 30 s, 1 min, 2 min, 10 min, 1 h, 6 h and not again, under one id with one body; a tenth is added at
// most.
func TestSchedule(t *testing.T) {
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}
	each(t, func(t *testing.T, h *house) {
		for _, jitter := range []float64{0, 1} {
			h.s.jitter = func() float64 { return jitter }
			e := h.endpoint(503)
			d := h.send(h.user.ID, e.URL)
			for i := range len(want) + 1 {
				due := h.delivery(d).NextAttemptAt
				h.set(due - 1)
				if h.round(); len(e.got()) != i {
					t.Fatalf("attempt %d came before its time", i+1)
				}
				h.set(due)
				if h.round(); len(e.got()) != i+1 {
					t.Fatalf("attempt %d did not come at its time", i+1)
				}
				got := h.delivery(d)
				if got.Attempts != i+1 || *got.LastStatus != 503 {
					t.Errorf("after attempt %d: %+v", i+1, got)
				}
				if i == len(want) {
					break
				}
				over := due.Add(time.Duration(h.log(d)[i].DurationMS) * time.Millisecond)
				delay := want[i] + time.Duration(jitter*float64(want[i])/10)
				if got.Status != parley.DeliveryPending || got.NextAttemptAt.Sub(over) != delay {
					t.Errorf("after attempt %d it is %s and the next comes after %v, not %v", i+1, got.Status, got.NextAttemptAt.Sub(over), delay)
				}
			}
			if got := h.delivery(d); got.Status != parley.DeliveryFailed || got.NextAttemptAt != 0 || *got.LastError != "The endpoint answered 503 Service Unavailable." {
				t.Errorf("in the end: %+v", got)
			}
			h.set(parley.At(h.clock.Add(1000 * time.Hour)))
			h.round()
			if len(e.got()) != 7 || len(h.log(d)) != 7 {
				t.Errorf("%d attempts", len(e.got()))
			}
			times := map[string]bool{}
			for _, r := range e.got() {
				if r.header.Get("webhook-id") != d.WebhookID || r.body != d.Payload {
					t.Errorf("another event: %v %s", r.header, r.body)
				}
				if err := h.verify(h.keys()[0], r); err != nil {
					t.Error(err)
				}
				times[r.header.Get("webhook-timestamp")] = true
			}
			if len(times) != 7 {
				t.Errorf("timestamps %v: each attempt has its own", times)
			}
		}
	})
}

// A delivery that failed can be sent again, with its whole schedule, under its own id.
func TestResend(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		e := h.endpoint(500)
		d := h.send(h.user.ID, e.URL)
		for h.delivery(d).Status == parley.DeliveryPending {
			h.set(h.delivery(d).NextAttemptAt)
			h.round()
		}
		resend := func(userID int64) error {
			return h.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.ResendDelivery(ctx, userID, d.ID)
				return err
			})
		}
		if err := resend(storetest.User(t, h.db, 0).ID); !store.IsNotFound(err) {
			t.Errorf("another user sends it again: %v", err)
		}
		if err := resend(h.user.ID); err != nil {
			t.Fatal(err)
		}
		h.round()
		got := h.delivery(d)
		if got.Status != parley.DeliveryPending || got.Attempts != 8 {
			t.Fatalf("%+v", got)
		}
		h.set(got.NextAttemptAt)
		e.answer(200)
		h.round()
		if got = h.delivery(d); got.Status != parley.DeliveryDelivered || got.Attempts != 9 || got.LastError != nil || got.Answer != "answered 200" {
			t.Errorf("%+v", got)
		}
		for _, r := range e.got() {
			if r.header.Get("webhook-id") != d.WebhookID || r.body != d.Payload {
				t.Errorf("another event: %v %s", r.header, r.body)
			}
		}
	})
}

// A rotated secret signs along for a day.
func TestRotation(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		e := h.endpoint(200)
		began := parley.Now().Add(time.Hour) // what is sent below is due
		h.set(began)
		h.send(h.user.ID, e.URL)
		h.round()
		old := h.keys()[0]
		var fresh []byte
		h.write(func(ctx context.Context, tx *store.Tx) (err error) {
			fresh, err = tx.RotateWebhookSecret(ctx, h.user.ID, began)
			return err
		})
		for _, c := range []struct {
			at   time.Duration
			both bool
		}{{0, true}, {24*time.Hour - time.Microsecond, true}, {24 * time.Hour, false}} {
			h.set(began.Add(c.at))
			h.send(h.user.ID, e.URL)
			h.round()
			r := e.got()[len(e.got())-1]
			if err := h.verify(fresh, r); err != nil {
				t.Errorf("after %v the new secret: %v", c.at, err)
			}
			if err := h.verify(old, r); (err == nil) != c.both {
				t.Errorf("after %v the old secret: %v", c.at, err)
			}
		}
		for range 30 { // however often, the header stays of a size
			h.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.RotateWebhookSecret(ctx, h.user.ID, parley.At(h.clock))
				return err
			})
		}
		if n := len(h.keys()); n != 10 {
			t.Errorf("%d secrets sign", n)
		}
	})
}

// Two that need the first secret at once get the same one.
func TestFirstSecret(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		var wg sync.WaitGroup
		got := make(chan string, 8)
		for range 8 {
			wg.Go(func() {
				keys, err := Keys(t.Context(), h.db, h.user.ID, parley.Now())
				if err != nil || len(keys) != 1 {
					t.Errorf("%d keys: %v", len(keys), err)
					return
				}
				got <- string(keys[0])
			})
		}
		wg.Wait()
		close(got)
		first := <-got
		for key := range got {
			if key != first {
				t.Error("there are two first secrets")
			}
		}
	})
}

// An endpoint that answers 410 is disabled wherever its user has it, and for that user alone.
func TestGone(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		gone, fine := h.endpoint(410), h.endpoint(200)
		other := storetest.User(t, h.db, 0)
		all := func(a *parley.Assistant) {
			a.IsWebhookActive, a.WebhookURL, a.InboundWebhookURL, a.ConversationEndedURL = true, &gone.URL, &gone.URL, &gone.URL
		}
		a := h.assistant(h.user.ID, all)
		b := h.assistant(h.user.ID, func(b *parley.Assistant) { all(b); b.WebhookURL, b.InboundWebhookURL = &fine.URL, &fine.URL })
		c := h.assistant(other.ID, all)
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SetWebhookURL(ctx, h.user.ID, gone.URL) })
		d := h.send(h.user.ID, gone.URL)
		h.set(d.NextAttemptAt)
		later, elsewhere := h.send(h.user.ID, gone.URL), h.send(h.user.ID, fine.URL)
		h.write(func(ctx context.Context, tx *store.Tx) error { // not due yet, as one that waits for its next attempt
			list, err := tx.ClaimDeliveries(ctx, later.Lane, 10, later.NextAttemptAt, later.NextAttemptAt.Add(time.Hour))
			for _, x := range list {
				if x.ID == d.ID {
					_, err = tx.ResendDelivery(ctx, h.user.ID, d.ID)
				}
			}
			return err
		})
		h.set(parley.Now())
		h.round()
		if got := h.delivery(d); got.Status != parley.DeliveryFailed || *got.LastStatus != 410 || got.Attempts != 1 {
			t.Errorf("%+v", got)
		}
		if got := h.delivery(later); got.Status != parley.DeliveryFailed || got.Attempts != 0 || got.NextAttemptAt != 0 || got.LastError == nil {
			t.Errorf("what waited for it: %+v", got)
		}
		if got := h.delivery(elsewhere); got.Status != parley.DeliveryDelivered {
			t.Errorf("another endpoint's: %+v", got)
		}
		read := func(a *parley.Assistant) *parley.Assistant {
			got, err := h.db.Assistant(t.Context(), a.UserID, a.ID)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if a = read(a); a.IsWebhookActive || a.WebhookURL == nil || a.InboundWebhookURL != nil || a.ConversationEndedURL != nil {
			t.Errorf("is_webhook_active %v, %v %v %v", a.IsWebhookActive, a.WebhookURL, a.InboundWebhookURL, a.ConversationEndedURL)
		}
		if b = read(b); !b.IsWebhookActive || b.InboundWebhookURL == nil || b.ConversationEndedURL != nil {
			t.Errorf("another URL was disabled, or this one was not: %v %v %v", b.IsWebhookActive, b.InboundWebhookURL, b.ConversationEndedURL)
		}
		if c = read(c); !c.IsWebhookActive || c.InboundWebhookURL == nil {
			t.Error("another user's endpoint was disabled")
		}
		if u, err := h.db.User(t.Context(), h.user.ID); err != nil || u.WebhookURL != "" {
			t.Errorf("the account's endpoint is %q: %v", u.WebhookURL, err)
		}
	})
}

// What a process took and died over comes again by itself, as the same event.
func TestDeadProcess(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		e := h.endpoint(200)
		d := h.send(h.user.ID, e.URL)
		now := d.NextAttemptAt
		h.write(func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.ClaimDeliveries(ctx, d.Lane, 8, now, now.Add(claimFor))
			if len(list) != 1 {
				t.Errorf("claimed %d", len(list))
			}
			return err
		})
		h.set(now.Add(claimFor) - 1)
		if h.round(); len(e.got()) != 0 {
			t.Fatal("a delivery that somebody makes was made by another")
		}
		h.set(now.Add(claimFor))
		if h.round(); len(e.got()) != 1 || e.got()[0].header.Get("webhook-id") != d.WebhookID || h.delivery(d).Status != parley.DeliveryDelivered {
			t.Errorf("the dead process's delivery: %d requests, %+v", len(e.got()), h.delivery(d))
		}
	})
}

// Several processes share the work without doing any of it twice.
func TestTwoSenders(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		e := h.endpoint(200)
		for range 3 {
			s := h.sender()
			s.now = time.Now
			h.run(s)
		}
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() { h.send(h.user.ID, e.URL) })
		}
		wg.Wait()
		h.until("all deliveries", func() bool {
			_, total, err := h.db.Deliveries(t.Context(), h.user.ID, parley.EventBalanceLow, parley.DeliveryDelivered, store.Page{Number: 1, Size: 1})
			return err == nil && total == 60
		})
		ids := map[string]int{}
		for _, r := range e.got() {
			ids[r.header.Get("webhook-id")]++
		}
		if len(ids) != 60 || len(e.got()) != 60 {
			t.Errorf("%d events in %d requests", len(ids), len(e.got()))
		}
	})
}

// Deliveries go with what they tell of, and in time by themselves.
func TestErasure(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		a := h.assistant(h.user.ID, func(a *parley.Assistant) { url := "https://example.com"; a.ConversationEndedURL = &url })
		phone := "+12025550123"
		told := func(phone *string) (*parley.Conversation, *parley.Delivery) {
			conv := &parley.Conversation{UserID: h.user.ID, AssistantID: a.ID, Type: parley.WidgetConversation, Variables: map[string]string{}, CustomerPhone: phone}
			var d *parley.Delivery
			h.write(func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateConversation(ctx, conv, "Hello."); err != nil {
					return err
				}
				d = parley.ConversationEnded{ConversationID: conv.ID, CustomerPhone: phone}.Delivery(a)
				return tx.EnqueueDelivery(ctx, h.user.ID, d)
			})
			return conv, d
		}
		there := func(d *parley.Delivery) bool {
			_, err := h.db.Delivery(t.Context(), d.UserID, d.ID)
			return !store.IsNotFound(err)
		}
		conv, deleted := told(nil)
		_, erased := told(&phone)
		_, kept := told(nil)
		called := parley.NewDelivery(parley.EventCallInbound, "https://example.com", map[string]string{})
		called.CustomerPhone = &phone
		zero := 200
		h.write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.RecordDelivery(ctx, h.user.ID, called, &parley.DeliveryAttempt{At: parley.Now(), Status: &zero}); err != nil {
				return err
			}
			if err := tx.DeleteConversation(ctx, h.user.ID, conv.ID); err != nil {
				return err
			}
			_, err := tx.EraseCustomer(ctx, h.user.ID, phone)
			return err
		})
		if there(deleted) || there(erased) || there(called) || !there(kept) {
			t.Errorf("there: deleted %v, erased %v, called %v, kept %v", there(deleted), there(erased), there(called), there(kept))
		}
		forget := func() {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.ForgetDeliveries(ctx, parley.Now().Add(time.Hour), 10)
				return err
			})
		}
		if forget(); !there(kept) {
			t.Error("a delivery that is still tried was forgotten")
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.NoteAttempt(ctx, kept, &parley.DeliveryAttempt{At: parley.Now(), Status: &zero}, 0)
			return err
		})
		if forget(); there(kept) {
			t.Error("an old delivery is kept")
		}
		if err := Forget(t.Context(), h.db); err != nil {
			t.Error(err)
		}
	})
}

// An account is told once per fall below the threshold.
func TestBalanceLow(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		h.db.WarnBelow(5 * parley.USD)
		moves := 0
		move := func(amount parley.Money) {
			h.Helper()
			moves++
			h.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: amount, Reference: fmt.Sprint("move", moves)})
				return err
			})
		}
		told := func(want int, last string) {
			h.Helper()
			list, total, err := h.db.Deliveries(t.Context(), h.user.ID, parley.EventBalanceLow, "", store.Page{Number: 1, Size: 10})
			if err != nil || total != want {
				t.Fatalf("told %d times, not %d: %v", total, want, err)
			}
			if want > 0 {
				d := h.delivery(&list[0])
				if prefix := `{"event":"balance.low","total_balance":` + last + `,"threshold":5,"created_at":"`; len(d.Payload) < len(prefix) || d.Payload[:len(prefix)] != prefix {
					t.Errorf("payload %s", d.Payload)
				}
			}
		}
		move(-6 * parley.USD) // 4: nobody wants to know
		told(0, "")
		move(6 * parley.USD) // 10
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.SetWebhookURL(ctx, h.user.ID, "https://example.com")
		})
		move(-5 * parley.USD) // 5: not below
		told(0, "")
		move(-1) // 4.999999
		told(1, "4.999999")
		move(-1 * parley.USD)
		told(1, "4.999999")
		move(1*parley.USD + 1) // 5: armed again
		move(-1 * parley.USD)
		told(2, "4")
	})
}
