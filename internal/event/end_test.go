package event

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// An endpoint that answers 410 is disabled wherever its user has it, but only for that user.
func TestGone(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		gone, fine := h.endpoint(410), h.endpoint(200)
		other := storetest.User(t, h.db, 0)
		all := func(a *parley.Assistant) {
			a.IsWebhookActive, a.WebhookURL, a.InboundWebhookURL, a.ConversationEndedURL = true, &gone.URL,
				&gone.URL, &gone.URL
		}
		a := h.assistant(h.user.ID, all)
		b := h.assistant(h.user.ID, func(b *parley.Assistant) {
			all(b)
			b.WebhookURL,
				b.InboundWebhookURL = &fine.URL, &fine.URL
		})
		c := h.assistant(other.ID, all)
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SetWebhookURL(ctx, h.user.ID, gone.URL) })
		d := h.send(h.user.ID, gone.URL)
		h.set(d.NextAttemptAt)
		later, elsewhere := h.send(h.user.ID, gone.URL), h.send(h.user.ID, fine.URL)
		h.write(func(ctx context.Context, tx *store.Tx) error { // not due yet, as between attempts
			list, err := tx.ClaimDeliveries(ctx, later.Lane, 10, later.NextAttemptAt,
				later.NextAttemptAt.Add(time.Hour))
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
		if got := h.delivery(later); got.Status != parley.DeliveryFailed || got.Attempts != 0 ||
			got.NextAttemptAt != 0 || got.LastError == nil {
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
		if a = read(a); a.IsWebhookActive || a.WebhookURL == nil || a.InboundWebhookURL != nil ||
			a.ConversationEndedURL != nil {
			t.Errorf("is_webhook_active %v, %v %v %v", a.IsWebhookActive, a.WebhookURL, a.InboundWebhookURL,
				a.ConversationEndedURL)
		}
		if b = read(b); !b.IsWebhookActive || b.InboundWebhookURL == nil || b.ConversationEndedURL != nil {
			t.Errorf("another URL was disabled, or this one was not: %v %v %v", b.IsWebhookActive,
				b.InboundWebhookURL, b.ConversationEndedURL)
		}
		if c = read(c); !c.IsWebhookActive || c.InboundWebhookURL == nil {
			t.Error("another user's endpoint was disabled")
		}
		if u, err := h.db.User(t.Context(), h.user.ID); err != nil || u.WebhookURL != "" {
			t.Errorf("the account's endpoint is %q: %v", u.WebhookURL, err)
		}
	})
}

// A delivery that was claimed by a process that died comes again by itself, as the same event.
func TestDeadProcess(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
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
		if h.round(); len(e.got()) != 1 || e.got()[0].header.Get("webhook-id") != d.WebhookID ||
			h.delivery(d).Status != parley.DeliveryDelivered {
			t.Errorf("the dead process's delivery: %d requests, %+v", len(e.got()), h.delivery(d))
		}
	})
}

// Several processes share the work without doing any of it twice.
func TestTwoSenders(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
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
			_, total, err := h.db.Deliveries(t.Context(), h.user.ID, parley.EventBalanceLow,
				parley.DeliveryDelivered, store.Page{Number: 1, Size: 1})
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

// Deliveries are deleted with what they report on, and after some time anyway.
func TestErasure(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(h.user.ID, func(a *parley.Assistant) {
			url := "https://example.com"
			a.ConversationEndedURL = &url
		})
		phone := "+12025550123"
		told := func(phone *string) (*parley.Conversation, *parley.Delivery) {
			conv := &parley.Conversation{UserID: h.user.ID, AssistantID: a.ID, Type: parley.WidgetConversation,
				Variables: map[string]string{}, CustomerPhone: phone}
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
			if err := tx.RecordDelivery(ctx, h.user.ID, called,
				&parley.DeliveryAttempt{At: parley.Now(), Status: &zero}); err != nil {
				return err
			}
			if err := tx.DeleteConversation(ctx, h.user.ID, conv.ID); err != nil {
				return err
			}
			_, _, err := tx.EraseCustomer(ctx, h.user.ID, phone)
			return err
		})
		if there(deleted) || there(erased) || there(called) || !there(kept) {
			t.Errorf("there: deleted %v, erased %v, called %v, kept %v", there(deleted), there(erased),
				there(called), there(kept))
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

// Deliveries are kept for thirty days, and then forgotten.
func TestDeliveriesAreKept(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		h := open(t, storetest.Open(t, o))
		d := parley.NewDelivery(parley.EventCallInbound, "https://example.com", map[string]string{})
		ok := 200
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.RecordDelivery(ctx, h.user.ID, d, &parley.DeliveryAttempt{At: parley.Now(), Status: &ok})
		})
		for _, c := range []struct {
			after time.Duration
			there bool
		}{{29 * 24 * time.Hour, true}, {2 * 24 * time.Hour, false}} {
			time.Sleep(c.after)
			if err := Forget(t.Context(), h.db); err != nil {
				t.Fatal(err)
			}
			if _, err := h.db.Delivery(t.Context(), h.user.ID, d.ID); store.IsNotFound(err) == c.there {
				t.Errorf("%v later: %v", c.after, err)
			}
		}
	})
}

// The event for a low balance is sent once each time the balance falls below the threshold.
func TestBalanceLow(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		moves := 0
		move := func(amount parley.Money) {
			h.Helper()
			moves++
			h.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: amount,
					Reference: fmt.Sprint("move", moves)})
				return err
			})
		}
		told := func(want int, last string) {
			h.Helper()
			list, total, err := h.db.Deliveries(t.Context(), h.user.ID, parley.EventBalanceLow, "",
				store.Page{Number: 1, Size: 10})
			if err != nil || total != want {
				t.Fatalf("told %d times, not %d: %v", total, want, err)
			}
			if want > 0 {
				d := h.delivery(&list[0])
				if prefix := `{"event":"balance.low","version":1,"total_balance":` + last +
					`,"threshold":5,"created_at":"`; len(d.Payload) < len(prefix) || d.Payload[:len(prefix)] != prefix {
					t.Errorf("payload %s", d.Payload)
				}
			}
		}
		move(-6 * parley.USD) // 4: there is no endpoint
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
	}, store.Rules{LowBalance: 5 * parley.USD})
}
