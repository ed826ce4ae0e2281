package alert_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"parley/internal/alert"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/mail"
	"parley/internal/mail/mailtest"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// house is an account with an assistant, and a watch whose clock the test sets.
type house struct {
	*testing.T
	db        *store.DB
	user      *parley.User
	assistant int64
	watch     *alert.Watch
	clock     time.Time
}

func open(t *testing.T, db *store.DB, m *mail.Sender) *house {
	h := &house{T: t, db: db, user: storetest.User(t, db, 20*parley.USD), clock: time.Now()}
	h.watch = alert.New(db, m, "https://voice.example.com")
	h.watch.Now = func() time.Time { return h.clock }
	a := &parley.Assistant{UUID: uuid.NewString(), Name: "Anna", Type: "outbound", Status: "active", Mode: "pipeline",
		Timezone: "UTC", LanguageID: 1, VoiceID: 1001}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, h.user.ID, a) })
	h.assistant = a.ID
	return h
}

func (h *house) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// calls stores calls that are over.
func (h *house) calls(n int, status parley.CallStatus, ms int64) {
	h.Helper()
	for range n {
		now := parley.DateTime(parley.Now())
		c := &parley.Call{AssistantID: h.assistant, Type: parley.CallInbound, Status: parley.CallInProgress, AnsweredAt: now}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateCall(ctx, h.user.ID, c); err != nil {
				return err
			}
			c.Status, c.EndedAt, c.EndedReason, c.AssistantCost = status, now, parley.CustomerHangup, parley.USD
			c.Turns = []parley.CallTurn{{Speaker: parley.SpeakerAssistant, Text: "Yes.", Latency: &parley.Latency{FirstPacketMS: ms}}}
			return tx.EndCall(ctx, c)
		})
	}
}

func (h *house) make(body map[string]any) *parley.Alert {
	h.Helper()
	all := map[string]any{"name": "A rule", "kind": "failure_rate", "threshold": json.Number("20")}
	for k, v := range body {
		all[k] = v
	}
	a, err := alert.Create(h.Context(), h.db, h.user.ID, all)
	if err != nil {
		h.Fatal(err)
	}
	return a
}

// look has a minute pass, and what is due looked at.
func (h *house) look() {
	h.Helper()
	h.clock = h.clock.Add(time.Minute + time.Second)
	if err := h.watch.Round(h.Context()); err != nil {
		h.Fatal(err)
	}
}

func (h *house) read(a *parley.Alert) *parley.Alert {
	h.Helper()
	got, err := h.db.Alert(h.Context(), h.user.ID, a.ID)
	if err != nil {
		h.Fatal(err)
	}
	return got
}

// told are the events of alerts that were enqueued, oldest first.
func (h *house) told() (list []parley.AlertEvent) {
	h.Helper()
	all, _, err := h.db.Deliveries(h.Context(), h.user.ID, "", "", store.Page{Number: 1, Size: 50})
	if err != nil {
		h.Fatal(err)
	}
	for i := range all {
		d, err := h.db.Delivery(h.Context(), h.user.ID, all[len(all)-1-i].ID)
		var e parley.AlertEvent
		if err == nil {
			err = json.Unmarshal([]byte(d.Payload), &e)
		}
		if err != nil {
			h.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// endpoint has the account's own events sent to a URL.
func (h *house) endpoint(url string) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SetWebhookURL(ctx, h.user.ID, url) })
}

func each(t *testing.T, test func(h *house)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(open(t, db, &mail.Sender{})) })
}

// Failed calls raise an alert once, by e-mail and by webhook; calls that are well again resolve it.
func TestRaised(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		server := mailtest.Serve(t)
		m, err := mail.Open(server.URL(), "Parley <parley@example.com>")
		if err != nil {
			t.Fatal(err)
		}
		h := open(t, db, m)
		heard := make(chan parley.AlertEvent, 10)
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var e parley.AlertEvent
			raw, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(raw, &e)
			}
			if err != nil || r.Header.Get("webhook-signature") == "" {
				t.Errorf("%v: %s", err, raw)
			}
			heard <- e
		}))
		defer hook.Close()
		h.endpoint(hook.URL)
		a := h.make(map[string]any{"name": "Failed\ncalls", "assistant_id": json.Number(fmt.Sprint(h.assistant))})
		h.calls(3, parley.CallCompleted, 500)
		h.calls(1, parley.CallFailed, 500)
		h.look()
		if got := h.read(a); got.RaisedAt != 0 || got.Value == nil || *got.Value != 25 || got.Calls != 4 {
			t.Fatalf("with four calls: %+v", got)
		}
		h.calls(1, parley.CallFailed, 500)
		h.look()
		h.look() // it is told once
		if got := h.read(a); got.RaisedAt == 0 || got.LastRaisedAt != got.RaisedAt || *got.Value != 40 || got.Calls != 5 {
			t.Fatalf("with five calls: %+v", got)
		}
		h.calls(20, parley.CallCompleted, 500)
		h.look()
		h.look()
		if got := h.read(a); got.RaisedAt != 0 || got.ResolvedAt == 0 || *got.Value != 8 {
			t.Fatalf("when they are well: %+v", got)
		}

		guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
		defer guard.Close()
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		running.Go(func() { event.NewSender(db, guard).Run(ctx) })
		workers := river.NewWorkers()
		m.AddWorkers(workers, db)
		running.Go(func() {
			if err := db.Work(ctx, t.Context(), store.Jobs{Workers: workers,
				Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}}); err != nil {
				t.Error(err)
			}
		})
		events := map[parley.EventKind]parley.AlertEvent{}
		for range 2 {
			select {
			case e := <-heard:
				events[e.Event] = e
			case <-time.After(20 * time.Second):
				t.Fatalf("only %v came", events)
			}
		}
		if e := events["alert.raised"]; e.AlertID != a.ID || *e.Value != 40 || e.Calls != 5 || e.RaisedAt == 0 || e.ResolvedAt != 0 ||
			e.Test || *e.AssistantID != h.assistant {
			t.Errorf("raised: %+v", e)
		}
		if e := events["alert.resolved"]; *e.Value != 8 || e.ResolvedAt <= e.RaisedAt || e.RaisedAt != events["alert.raised"].RaisedAt {
			t.Errorf("resolved: %+v", e)
		}
		mails := map[string]mailtest.Message{}
		for _, m := range server.Wait(2) {
			mails[m.Header.Get("Subject")] = m
		}
		if m := mails["An alert of your account was raised"]; m.To != h.user.Email || !strings.Contains(m.Text, "Raised: Failed calls") ||
			!strings.Contains(m.Text, "Now: 40 %, of 5 calls.") || !strings.Contains(m.Text, "20 % or more of the calls within an hour fail") ||
			!strings.Contains(m.Text, fmt.Sprintf("https://voice.example.com/alerts/%d", a.ID)) {
			t.Errorf("%v", mails)
		}
		if m := mails["An alert of your account is resolved"]; !strings.Contains(m.Text, "Now: 8 %, of 25 calls.") {
			t.Errorf("%v", mails)
		}
		if n := len(h.told()); n != 2 || len(server.Messages()) != 2 {
			t.Errorf("%d events, %d e-mails", n, len(server.Messages()))
		}
	})
}

// Nothing is sent to an address that nobody has confirmed, however often a test is asked for; and whoever asks is told why.
func TestUnconfirmedAddress(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		server := mailtest.Serve(t)
		m, err := mail.Open(server.URL(), "Parley <parley@example.com>")
		if err != nil {
			t.Fatal(err)
		}
		h := open(t, db, m)
		h.user.EmailProvenAt = 0
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
		a := h.make(map[string]any{"name": "WIN 1,000,000"})
		for range 3 {
			if told, err := h.watch.Test(t.Context(), h.user.ID, a.ID); err == nil || !strings.Contains(err.Error(), "is not confirmed") {
				t.Errorf("told %+v, %v", told, err)
			}
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ProveEmail(ctx, h.user.ID, 0, h.user.Email)
			return err
		})
		if told, err := h.watch.Test(t.Context(), h.user.ID, a.ID); err != nil || told.Email == nil || *told.Email != h.user.Email {
			t.Errorf("told %+v, %v", told, err)
		}
	})
}

// Each kind watches its own figure, of this account alone.
func TestFigures(t *testing.T) {
	each(t, func(h *house) {
		h.endpoint("https://example.com")
		zero := json.Number("1")
		latency := h.make(map[string]any{"kind": "latency_p90", "threshold": json.Number("1500"), "min_calls": json.Number("2")})
		spend := h.make(map[string]any{"kind": "spend_per_day", "threshold": json.Number("3")})
		balance := h.make(map[string]any{"kind": "balance_below", "threshold": json.Number("30")})
		silence := h.make(map[string]any{"kind": "no_calls", "threshold": json.Number("2")})
		inbound := h.make(map[string]any{"channel": "outbound", "min_calls": zero})
		other := storetest.User(h.T, h.db, 0)
		theirs, err := alert.Create(h.Context(), h.db, other.ID, map[string]any{"name": "Theirs", "kind": "spend_per_day", "threshold": zero})
		if err != nil {
			h.Fatal(err)
		}
		h.look()
		for _, a := range []*parley.Alert{latency, inbound} {
			if got := h.read(a); got.Value != nil || got.CheckedAt == 0 || got.RaisedAt != 0 {
				h.Errorf("%s without calls: %+v", a.Kind, got)
			}
		}
		if got := h.read(balance); got.RaisedAt == 0 || *got.Value != 20 {
			h.Errorf("%+v", got)
		}
		h.calls(1, parley.CallCompleted, 700)
		h.calls(2, parley.CallFailed, 2000)
		h.look()
		if got := h.read(latency); got.RaisedAt == 0 || *got.Value < 1960 || *got.Value > 2040 || got.Calls != 3 {
			h.Errorf("%+v", got)
		}
		if got := h.read(spend); got.RaisedAt == 0 || *got.Value != 3 {
			h.Errorf("%+v", got)
		}
		if got := h.read(inbound); got.Value != nil || got.RaisedAt != 0 {
			h.Errorf("failures of outbound calls, of which there are none: %+v", got)
		}
		if got := h.read(silence); got.RaisedAt != 0 || *got.Value > .1 {
			h.Errorf("%+v", got)
		}
		h.clock = h.clock.Add(2 * time.Hour)
		h.look()
		if got := h.read(silence); got.RaisedAt == 0 || *got.Value < 2 || *got.Value > 2.2 {
			h.Errorf("%+v", got)
		}
		if got, err := h.db.Alert(h.Context(), other.ID, theirs.ID); err != nil || got.RaisedAt != 0 || *got.Value != 0 {
			h.Errorf("another account's: %+v %v", got, err)
		}
		h.calls(1, parley.CallCompleted, 700)
		h.clock = time.Now()
		h.write(func(ctx context.Context, tx *store.Tx) error { // as if its minute had passed
			a, err := tx.AlertForUpdate(ctx, h.user.ID, silence.ID)
			if err != nil {
				return err
			}
			a.DueAt = 1
			return tx.SaveAlert(ctx, h.user.ID, a)
		})
		h.look()
		if got := h.read(silence); got.RaisedAt != 0 || got.ResolvedAt == 0 {
			h.Errorf("after a call: %+v", got)
		}
	})
}

// However many processes look at an alert, it is told once.
func TestSeveralProcesses(t *testing.T) {
	each(t, func(h *house) {
		h.endpoint("https://example.com")
		for range 5 {
			h.make(map[string]any{"kind": "balance_below", "threshold": json.Number("30")})
		}
		h.clock = h.clock.Add(time.Minute)
		var processes sync.WaitGroup
		for i := range 6 {
			processes.Go(func() {
				w := alert.New(h.db, &mail.Sender{}, "")
				w.Now = func() time.Time { return h.clock.Add(time.Duration(i) * 30 * time.Second) } // some find the claims lapsed
				if err := w.Round(h.Context()); err != nil {
					h.Error(err)
				}
			})
		}
		processes.Wait()
		if list := h.told(); len(list) != 5 {
			h.Errorf("%d events", len(list))
		}
	})
}

// A process that is overtaken between its claim and its note neither tells the alert again nor notes its older figure.
func TestOvertaken(t *testing.T) {
	each(t, func(h *house) {
		h.endpoint("https://example.com")
		a := h.make(map[string]any{"kind": "balance_below", "threshold": json.Number("30")})
		at := h.clock.Add(time.Minute)
		asked := 0
		h.watch.Now = func() time.Time {
			if asked++; asked == 2 { // the alert is claimed, and about to be read
				h.watch.Now = func() time.Time { return at.Add(2 * time.Minute) }
				if err := h.watch.Round(h.Context()); err != nil {
					h.Error(err)
				}
			}
			return at
		}
		if err := h.watch.Round(h.Context()); err != nil {
			h.Fatal(err)
		}
		if got := h.read(a); got.CheckedAt != parley.At(at.Add(2*time.Minute)) {
			h.Errorf("the older figure is noted: %v", got.CheckedAt)
		}
		if list := h.told(); len(list) != 1 {
			h.Errorf("%d events", len(list))
		}
	})
}

// A rule can be changed while it is raised; one that is switched off is not looked at, and forgets that it was raised.
func TestChanged(t *testing.T) {
	each(t, func(h *house) {
		h.endpoint("https://example.com")
		a := h.make(map[string]any{"kind": "balance_below", "threshold": json.Number("30")})
		h.look()
		change := func(body map[string]any) {
			h.Helper()
			if _, err := alert.Change(h.Context(), h.db, h.user.ID, a.ID, body); err != nil {
				h.Fatal(err)
			}
			h.look()
		}
		change(map[string]any{"threshold": json.Number("5")})
		if got := h.read(a); got.RaisedAt != 0 || got.ResolvedAt == 0 {
			h.Errorf("%+v", got)
		}
		change(map[string]any{"threshold": json.Number("40")})
		checked := h.read(a).CheckedAt
		change(map[string]any{"active": false})
		if got := h.read(a); got.RaisedAt != 0 || got.CheckedAt != checked || got.Value != nil {
			h.Errorf("switched off: %+v", got)
		}
		change(map[string]any{"active": true, "webhook": false})
		if got := h.read(a); got.RaisedAt == 0 {
			h.Errorf("switched on: %+v", got)
		}
		kinds := ""
		for _, e := range h.told() {
			kinds += string(e.Event) + " "
		}
		if kinds != "alert.raised alert.resolved alert.raised " {
			h.Error(kinds)
		}
		if err := alert.Delete(h.Context(), h.db, h.user.ID, a.ID); err != nil {
			h.Fatal(err)
		}
		h.look()
	})
}
