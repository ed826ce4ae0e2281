package campaign

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"parley/internal/billing"
	"parley/internal/blob"
	"parley/internal/call"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// harness is campaigns on a database with a user, an outbound assistant with a number, and a telephone whose far end
// is the test.
type harness struct {
	testing.TB
	*Runner
	user      *parley.User
	assistant *parley.Assistant
	number    int64

	mu     sync.Mutex
	calls  []*dialled
	refuse func(call.Order) error // returns the error of Start, nil to make the call
	far    func(*dialled)         // is told about each call, in a new goroutine
	under  sync.WaitGroup
}

// dialled is a call that the campaigns had made.
type dialled struct {
	call.Order
	id    int64
	at    time.Time // when it began
	ended time.Time
}

func each(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t testing.TB, db *store.DB) *harness {
	t.Helper()
	prices, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{TB: t, user: storetest.User(t, db, 1000*parley.USD)}
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h.Runner = &Runner{Roster: New(Config{DB: db, Prices: prices, Blobs: blobs}), Start: h.start}
	n := &parley.Number{PhoneNumber: fmt.Sprintf("+1415555%04d", h.user.ID), CountryCode: "US", Type: parley.NumberSIP}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, h.user.ID, n) })
	h.number = n.ID
	h.assistant = h.person(func(a *parley.Assistant) { a.PhoneNumberID = &n.ID })
	return h
}

// person makes an active outbound assistant.
func (h *harness) person(change func(*parley.Assistant)) *parley.Assistant {
	h.Helper()
	a := &parley.Assistant{}
	form.Defaults(a)
	a.Name, a.Type, a.Status, a.Mode, a.Timezone, a.SystemPrompt, a.VoiceID, a.LanguageID = "Caller", "outbound",
		"active", "pipeline", "UTC", "Be kind.", 1, 1
	if change != nil {
		change(a)
	}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, h.user.ID, a) })
	return a
}

func (h *harness) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.DB.Write(context.Background(), fn); err != nil {
		h.Fatal(err)
	}
}

// campaign makes a campaign; body overrides the required fields.
func (h *harness) campaign(body map[string]any) *parley.Campaign {
	h.Helper()
	whole := map[string]any{"name": "Spring", "assistant_id": num(h.assistant.ID)}
	for k, v := range body {
		whole[k] = v
	}
	c, err := h.Create(context.Background(), h.user, whole)
	if err != nil {
		h.Fatal(err)
	}
	return c
}

// phone returns the n-th of many valid numbers.
func phone(n int) string { return fmt.Sprintf("+1415%03d%04d", 200+n/10000, n%10000) }

// leads adds n leads to a campaign.
func (h *harness) leads(c *parley.Campaign, from, n int) (list []*parley.Lead) {
	h.Helper()
	for i := range n {
		list = append(list, &parley.Lead{PhoneNumber: phone(from + i)})
	}
	for i := 0; i < n; i += 500 {
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddLeads(ctx, c.UserID, c.ID, list[i:min(n, i+500)], false)
			return err
		})
	}
	return list
}

func (h *harness) begin(c *parley.Campaign) {
	h.Helper()
	if _, err := h.Begin(context.Background(), c.UserID, c.ID); err != nil {
		h.Fatal(err)
	}
}

// start is the telephone: it makes the row of a call as call.Center does.
func (h *harness) start(ctx context.Context, o call.Order) (*parley.Call, error) {
	h.mu.Lock()
	refuse := h.refuse
	h.mu.Unlock()
	if refuse != nil {
		if err := refuse(o); err != nil {
			return nil, err
		}
	}
	c := &parley.Call{AssistantID: o.AssistantID, CampaignID: &o.CampaignID, LeadID: &o.LeadID, Attempt: o.Attempt,
		Type:   parley.CallOutbound,
		Status: parley.CallInitiated, CustomerPhone: &o.To, InputVariables: o.Variables, MaxDuration: 600,
		CarrierRate: 1000, Node: h.node}
	err := h.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateCall(ctx, o.UserID, c); err != nil {
			return err
		}
		return o.Also(ctx, tx, c)
	})
	if store.IsSecondCall(err) {
		return c, nil // the first call of that attempt is the answer
	}
	if err != nil {
		return nil, err
	}
	d := &dialled{Order: o, id: c.ID, at: time.Now()}
	h.mu.Lock()
	h.calls = append(h.calls, d)
	far := h.far
	h.mu.Unlock()
	if far != nil {
		h.under.Go(func() { far(d) })
	}
	return c, nil
}

// dialled returns the calls so far.
func (h *harness) dialled() []*dialled {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*dialled{}, h.calls...)
}

// answer is how a far end takes a call.
type answer struct {
	cause   error
	nobodys bool // the number does not exist
	rang    bool
	talked  time.Duration // 0: not answered
	machine bool
	found   map[string]any
	lasts   time.Duration // from its beginning, including the ringing
}

// told is the line's error for the call.
func (a answer) told() error {
	if a.nobodys {
		return call.ErrNoSuchNumber
	}
	return a.cause
}

var (
	person  = answer{cause: parley.CustomerHangup, rang: true, talked: 30 * time.Second}
	machine = answer{cause: parley.Voicemail, rang: true, talked: 10 * time.Second, machine: true,
		lasts: 20 * time.Second}
	busy    = answer{cause: parley.LineBusy, lasts: 2 * time.Second}
	nobody  = answer{cause: parley.NoAnswer, rang: true, lasts: 30 * time.Second}
	down    = answer{cause: parley.Unreachable}
	nobodys = answer{cause: parley.Unreachable, nobodys: true}
)

// end ends a call and completes its report, in two transactions as for real calls.
func (h *harness) end(d *dialled, a answer) {
	h.Helper()
	now := parley.Now()
	h.mu.Lock()
	d.ended = now.Time()
	h.mu.Unlock()
	err := h.DB.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.CallForUpdate(ctx, d.id)
		if err != nil {
			return err
		}
		if a.rang {
			c.RingingAt = c.CreatedAt
		}
		if a.talked > 0 {
			c.AnsweredAt, c.AnsweredBy = parley.DateTime(now.Add(-a.talked)), parley.AnsweredHuman
			if a.machine {
				c.AnsweredBy = parley.AnsweredMachine
			}
		}
		c.Variables = a.found
		c.End(a.cause, now)
		if err := tx.EndCall(ctx, c); err != nil {
			return err
		}
		if !c.Answered() {
			if err := h.Unanswered(ctx, tx, c, a.told()); err != nil {
				return err
			}
		}
		return h.Finished(ctx, tx, c, h.assistant)
	})
	if err != nil {
		h.Error(err)
	}
	h.Wake(d.UserID)
}

// round looks at all campaigns once.
func (h *harness) round() int {
	h.Helper()
	n, _, err := h.Runner.round(context.Background(), nil, h.room())
	if err != nil {
		h.Fatal(err)
	}
	return n
}

func (h *harness) lead(id int64) *parley.Lead {
	h.Helper()
	l, err := h.DB.Lead(context.Background(), h.user.ID, id)
	if err != nil {
		h.Fatal(err)
	}
	return l
}

func (h *harness) now(c *parley.Campaign) *parley.Campaign {
	h.Helper()
	c, err := h.DB.Campaign(context.Background(), c.UserID, c.ID)
	if err != nil {
		h.Fatal(err)
	}
	return c
}
