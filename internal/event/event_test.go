package event

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// An event is delivered, signed, if and only if its cause was committed, and only once when the endpoint accepts it.
func TestDelivered(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
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
		if r.header.Get("webhook-id") != d.WebhookID || r.body != d.Payload ||
			r.header.Get("Content-Type") != "application/json" {
			t.Errorf("sent %v %s", r.header, r.body)
		}
		if err := h.verify(h.keys()[0], r); err != nil {
			t.Error(err)
		}
		if h.verify(h.keys()[0], heard{r.header, r.body + " "}) == nil ||
			h.verify([]byte("another key of thirty-two bytes."), r) == nil {
			t.Error("anything is verified")
		}
		got, log := h.delivery(d), h.log(d)
		if got.Attempts != 1 || got.NextAttemptAt != 0 || *got.LastStatus != 204 || got.LastError != nil {
			t.Errorf("%+v", got)
		}
		if len(log) != 1 || *log[0].Status != 204 || log[0].Error != nil || log[0].At < d.CreatedAt {
			t.Errorf("log %+v", log)
		}
		if list, total, err := h.db.Deliveries(t.Context(), h.user.ID, "", "",
			store.Page{Number: 1, Size: 10}); err != nil || total != 1 || list[0].ID != d.ID {
			t.Errorf("%d deliveries %+v: %v", total, list, err)
		}
	})
}

// A delivery that is not accepted is retried after 30 s, 1 min, 2 min, 10 min, 1 h and 6 h, and then no more, with the
// same id and body. Jitter adds at most a tenth to each pause.
func TestSchedule(t *testing.T) {
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}
	each(t, func(t *testing.T, h *harness) {
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
					t.Errorf("after attempt %d it is %s and the next comes after %v, not %v", i+1, got.Status,
						got.NextAttemptAt.Sub(over), delay)
				}
			}
			if got := h.delivery(d); got.Status != parley.DeliveryFailed || got.NextAttemptAt != 0 ||
				*got.LastError != "The endpoint answered 503 Service Unavailable." {
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

// A failed delivery can be sent again, with its whole schedule, under its own id.
func TestResend(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
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
		if got = h.delivery(d); got.Status != parley.DeliveryDelivered || got.Attempts != 9 ||
			got.LastError != nil || got.Answer != "answered 200" {
			t.Errorf("%+v", got)
		}
		for _, r := range e.got() {
			if r.header.Get("webhook-id") != d.WebhookID || r.body != d.Payload {
				t.Errorf("another event: %v %s", r.header, r.body)
			}
		}
	})
}

// For a day after a rotation, the old secret signs too.
func TestRotation(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		e := h.endpoint(200)
		began := parley.Now().Add(time.Hour) // the deliveries below are due
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
		for range 30 { // however often it is rotated, the header doesn't grow
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

// Two requests that need the first secret at the same time get the same one.
func TestFirstSecret(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
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
