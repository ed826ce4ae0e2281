package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
)

// num is a number as a request body has it.
func num(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// A lead's life: called, busy, called again after the interval and not before, answered, done; and its campaign is
// done with it.
func TestLeadGoesItsWay(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(map[string]any{"retry_interval": num(10)})
		l := h.leads(c, 0, 1)[0]
		h.begin(c)
		if n := h.round(); n != 1 {
			t.Fatalf("%d calls", n)
		}
		if got := h.lead(l.ID); got.Status != parley.LeadProcessing || got.Attempts != 1 || got.LastCallID == nil ||
			*got.LastCallID != h.calls[0].id {
			t.Fatalf("%+v", got)
		}
		if n := h.round(); n != 0 {
			t.Fatalf("a lead that is being called was called again: %d", n)
		}
		h.end(h.calls[0], busy)
		got := h.lead(l.ID)
		if got.Status != parley.LeadRescheduled || *got.Outcome != parley.OutcomeBusy ||
			got.DueAt != parley.At(h.calls[0].ended).Add(10*60e9) || parley.Time(got.NextAttemptAt) != got.DueAt {
			t.Fatalf("%+v", got)
		}
		if n := h.round(); n != 0 {
			t.Fatalf("%d calls before the interval is over", n)
		}
		h.due(l.ID)
		if n := h.round(); n != 1 || h.calls[1].Attempt != 2 {
			t.Fatalf("%d calls", n)
		}
		h.end(h.calls[1], person)
		got = h.lead(l.ID)
		if got.Status != parley.LeadCompleted || *got.Outcome != parley.OutcomeAnswered || got.TotalCost != 1000 ||
			got.NextAttemptAt != 0 {
			t.Fatalf("%+v", got)
		}
		h.round()
		if c = h.now(c); c.Status != parley.CampaignEnded || c.CompletedAt == 0 || c.Answered != 1 || c.Busy != 1 ||
			c.Cost != 1000 {
			t.Fatalf("%+v", c)
		}
	})
}

// due ends a lead's waiting interval.
func (h *harness) due(ids ...int64) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		for _, id := range ids {
			l, err := tx.LeadForUpdate(ctx, h.user.ID, id)
			if err != nil {
				return err
			}
			l.DueAt = parley.Now()
			if err := tx.SaveLead(ctx, h.user.ID, l); err != nil {
				return err
			}
		}
		return nil
	})
}

var errBroken = errors.New("broken")

// Two nodes that look at the same campaigns at the same time call nobody twice, and never make more calls at once than
// allowed.
func TestNodesShareCampaigns(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(map[string]any{"max_calls_in_parallel": num(7)})
		other := &Runner{Roster: New(Config{DB: h.DB, Prices: h.Prices}), Start: h.start}
		h.leads(c, 0, 60)
		h.begin(c)
		for len(h.dialled()) < 60 {
			before := h.dialled()
			var both sync.WaitGroup
			for _, d := range []*Runner{h.Runner, other, h.Runner, other} {
				both.Go(func() {
					if _, _, err := d.round(t.Context(), nil, math.MaxInt); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			now := h.dialled()
			if n := len(now) - len(before); n == 0 || n > 7 {
				t.Fatalf("%d calls began at once", n)
			}
			for _, d := range now[len(before):] {
				h.end(d, person)
			}
		}
		seen := map[int64]bool{}
		for _, d := range h.dialled() {
			if seen[d.LeadID] {
				t.Errorf("lead %d was called twice", d.LeadID)
			}
			seen[d.LeadID] = true
		}
	})
}

// A claim of a node that died is taken over when its lease expires, as the same attempt.
func TestClaimLapses(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		l := h.leads(c, 0, 1)[0]
		h.begin(c)
		dead := &Runner{Roster: New(Config{DB: h.DB, Prices: h.Prices})}
		claimed, _, err := dead.claim(t.Context(), c.ID, 5)
		if err != nil || len(claimed) != 1 {
			t.Fatalf("%v %v", claimed, err)
		}
		if got := h.lead(l.ID); got.Status != parley.LeadScheduled || got.Attempts != 0 {
			t.Fatalf("%+v", got)
		}
		if n := h.round(); n != 0 {
			t.Fatalf("a claimed lead was called by another: %d", n)
		}
		if c := h.now(c); c.Status != parley.CampaignInProgress {
			t.Fatalf("with a claimed lead the campaign is %s", c.Status)
		}
		h.due(l.ID) // the lease is over
		if n := h.round(); n != 1 || h.calls[0].Attempt != 1 {
			t.Fatalf("%d calls", n)
		}
		// The dead node comes back to life, and finds its claim gone.
		state := &store.CampaignState{Campaign: *c}
		dead.Start = h.start
		if _, err := dead.dial(t.Context(), state, &claimed[0], 0); err != nil || len(h.dialled()) != 1 {
			t.Fatalf("it called all the same: %v", err)
		}
		if got := h.lead(l.ID); got.Status != parley.LeadProcessing || got.Attempts != 1 || got.Serial != 1 {
			t.Fatalf("%+v", got)
		}
	})
}

// Everything may still change between the claim and the call: the campaign is stopped, deleted or given another
// assistant, its hours end, or the lead is changed, closed, deleted or blacklisted. Then nobody is called.
func TestMindChanges(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		other := h.person(nil)
		for i, c := range []struct {
			what   string
			change func(c *parley.Campaign, l *parley.Lead) error
			status parley.LeadStatus
		}{
			{"stopped", func(c *parley.Campaign, l *parley.Lead) error {
				_, err := h.Stop(t.Context(), c.UserID, c.ID)
				return err
			}, parley.LeadCreated},
			{"deleted", func(c *parley.Campaign, l *parley.Lead) error {
				return h.Delete(t.Context(), c.UserID,
					c.ID)
			}, ""},
			{"closed for the day", func(c *parley.Campaign, l *parley.Lead) error {
				_, err := h.Update(t.Context(), h.user, c.ID,
					map[string]any{"allowed_days": []any{days[(time.Now().Weekday()+3)%7]}, "timezone": "UTC"})
				return err
			}, parley.LeadCreated},
			{"lead closed", func(c *parley.Campaign, l *parley.Lead) error {
				done := parley.LeadCompleted
				_, err := h.ChangeLead(t.Context(), c.UserID, l.ID, LeadChange{Status: &done})
				return err
			}, parley.LeadCompleted},
			{"number changed", func(c *parley.Campaign, l *parley.Lead) error {
				to := phone(900)
				_, err := h.ChangeLead(t.Context(), c.UserID, l.ID, LeadChange{PhoneNumber: &to})
				return err
			}, parley.LeadCreated},
			{"variables changed", func(c *parley.Campaign, l *parley.Lead) error {
				_, err := h.ChangeLead(t.Context(), c.UserID, l.ID,
					LeadChange{Variables: map[string]string{"name": "Ana"}})
				return err
			}, parley.LeadCreated},
			{"assistant changed", func(c *parley.Campaign, l *parley.Lead) error {
				_, err := h.Update(t.Context(), h.user, c.ID, map[string]any{"assistant_id": num(other.ID)})
				return err
			}, parley.LeadCreated},
			{"lead deleted", func(c *parley.Campaign,
				l *parley.Lead) error {
				return h.DeleteLead(t.Context(), c.UserID, l.ID)
			}, ""},
			{"number blacklisted", func(c *parley.Campaign, l *parley.Lead) error {
				_, err := h.Blacklist(t.Context(), c.UserID, l.PhoneNumber)
				return err
			}, parley.LeadBlacklisted},
		} {
			camp := h.campaign(nil)
			l := h.leads(camp, i, 1)[0]
			h.begin(camp)
			// just before the call's transaction
			h.refuse = func(call.Order) error { h.refuse = nil; return c.change(camp, l) }
			if n := h.round(); n != 0 || len(h.dialled()) != 0 {
				t.Fatalf("%s: %d calls", c.what, len(h.dialled()))
			}
			if c.status == "" {
				if _, err := h.DB.Lead(t.Context(), h.user.ID, l.ID); !store.IsNotFound(err) {
					t.Errorf("%s: %v", c.what, err)
				}
			} else if got := h.lead(l.ID); got.Status != c.status || got.Attempts != 0 || got.Owner != "" {
				t.Errorf("%s: %+v", c.what, got)
			}
			if now, err := h.DB.Campaign(t.Context(), h.user.ID, camp.ID); err == nil &&
				now.Status == parley.CampaignInProgress {
				h.Stop(t.Context(), h.user.ID, camp.ID)
			}
		}
	})
}

// A number that was blacklisted after its lead was made and before the claim is not called: the claim checks again.
func TestClaimLooksAtBlacklist(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddToBlacklist(ctx, h.user.ID, phone(0))
			return err
		})
		l := h.leads(c, 0, 2)
		if got := h.lead(l[0].ID); got.Status != parley.LeadBlacklisted {
			t.Fatalf("%+v", got)
		}
		// as if the lead had been made before the entry
		h.write(func(ctx context.Context, tx *store.Tx) error {
			raw := *l[0]
			raw.Status, raw.DueAt = parley.LeadCreated, 1
			return tx.SaveLead(ctx, h.user.ID, &raw)
		})
		h.begin(c)
		if n := h.round(); n != 1 || h.calls[0].LeadID != l[1].ID {
			t.Fatalf("%d calls", n)
		}
		if got := h.lead(l[0].ID); got.Status != parley.LeadBlacklisted {
			t.Fatalf("%+v", got)
		}
		// A number that is blacklisted by the time its call ends is not called again.
		if _, err := h.Blacklist(t.Context(), h.user.ID, l[1].PhoneNumber); err != nil {
			t.Fatal(err)
		}
		h.end(h.calls[0], busy)
		if got := h.lead(l[1].ID); got.Status != parley.LeadBlacklisted || *got.Outcome != parley.OutcomeBusy {
			t.Fatalf("%+v", got)
		}
	})
}

// When Start refuses a call, it costs no attempt; if only the user or the operator can fix the cause, the campaign
// pauses and says why.
func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		camp := h.campaign(nil)
		l := h.leads(camp, 0, 1)[0]
		h.begin(camp)
		for _, c := range []struct {
			err    error
			reason string // of the pause, "" for none
		}{
			{store.Insufficient, "The balance does not cover another call."},
			{parley.Errorf(parley.Invalid, "The assistant is inactive."), "The assistant is inactive."},
			{parley.Errorf(parley.NotFound, "Assistant not found"), "Assistant not found"},
			{parley.Errorf(parley.Forbidden, "The day's limit."), "The day's limit."},
			{call.ErrStopping, ""},
			{fmt.Errorf("make the call: %w", call.ErrFull), ""},
			{errBroken, "A failure of this server keeps the campaign from calling. Its operator can find it in the log."},
		} {
			h.refuse = func(call.Order) error { return c.err }
			h.round()
			got, now := h.lead(l.ID), h.now(camp)
			if got.Status != parley.LeadCreated || got.Attempts != 0 || got.Serial != 0 {
				t.Errorf("%v: %+v", c.err, got)
			}
			if c.reason == "" {
				if now.PausedUntil > parley.Now() {
					t.Errorf("%v: paused until %v", c.err, now.PausedUntil)
				}
				continue
			}
			if now.PauseReason == nil || *now.PauseReason != c.reason ||
				now.PausedUntil.Sub(parley.Now()) < 50*time.Second || now.Status != parley.CampaignInProgress {
				t.Errorf("%v: paused until %v for %v", c.err, now.PausedUntil, now.PauseReason)
			}
			if n := h.round(); n != 0 {
				t.Errorf("%v: it calls in the pause", c.err)
			}
			h.pauseOver(camp)
		}
		h.refuse = nil
		if n := h.round(); n != 1 || h.calls[0].Attempt != 1 {
			t.Fatalf("%d calls", n)
		}
		if now := h.now(camp); now.PauseReason != nil || now.PausedUntil != 0 {
			t.Errorf("what is mended is still told: %v", *now.PauseReason)
		}

		// A destination that is never allowed is given up on, and the campaign goes on.
		never := h.leads(camp, 9, 2)
		h.refuse = func(o call.Order) error {
			if o.To == phone(9) {
				return &call.Barred{Number: o.To}
			}
			return nil
		}
		h.round()
		if got := h.lead(never[0].ID); got.Status != parley.LeadExhausted || *got.Outcome != parley.OutcomeFailed ||
			got.Attempts != 0 {
			t.Errorf("%+v", got)
		}
		if len(h.dialled()) != 2 || h.now(camp).PauseReason != nil {
			t.Errorf("%d calls, paused for %v", len(h.dialled()), h.now(camp).PauseReason)
		}
	})
}

// pauseOver ends a campaign's pause.
func (h *harness) pauseOver(c *parley.Campaign) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		run, err := tx.LockRun(ctx, c.UserID, c.ID)
		if err != nil {
			return err
		}
		if run.PausedUntil != 0 {
			run.PausedUntil = parley.Now()
		}
		return tx.SaveCampaignRun(ctx, c.UserID, run)
	})
}

// A trunk that is down pauses the campaign before the list is used up, and a single call tests whether the trunk is up
// again.
func TestLineDown(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(map[string]any{"max_retries": num(1), "max_calls_in_parallel": num(5)})
		list := h.leads(c, 0, 20)
		h.begin(c)
		h.round()
		for _, d := range h.dialled() {
			h.end(d, down)
		}
		now := h.now(c)
		if len(h.dialled()) != 5 || now.PauseReason == nil || now.Failed != 5 || h.round() != 0 {
			t.Fatalf("after %d calls: paused for %v", len(h.dialled()), now.PauseReason)
		}
		for _, l := range list[:5] {
			if got := h.lead(l.ID); got.Status != parley.LeadRescheduled || got.Attempts != 0 ||
				got.DueAt.Sub(parley.Now()) < 59*time.Minute {
				t.Fatalf("%+v", got)
			}
		}
		for i := range 3 {
			h.pauseOver(c)
			if n := h.round(); n != 1 {
				t.Fatalf("try %d: %d calls", i, n)
			}
			if n := h.round(); n != 0 {
				t.Fatalf("try %d: another call beside it", i)
			}
			h.end(h.dialled()[5+i], down)
			if pause := h.now(c).PausedUntil.Sub(parley.Now()); pause < time.Duration(2<<i)*time.Minute-5*time.Second {
				t.Fatalf("try %d: paused for %s", i, pause)
			}
		}
		h.pauseOver(c)
		h.round()
		h.end(h.dialled()[8], person)
		if now := h.now(c); now.PauseReason != nil || now.Probing() {
			t.Fatalf("%+v", now)
		}
		if n := h.round(); n != 5 {
			t.Fatalf("the line is up, and %d calls begin", n)
		}
	})
}

// A list of numbers that do not exist is called to its end, as the line that reports this works. Such an answer also
// ends a count of failures that a broken line started.
func TestBadNumbers(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(map[string]any{"max_calls_in_parallel": num(5)})
		list := h.leads(c, 0, 12)
		h.begin(c)
		for done := 0; done < 12; {
			if n := h.round(); n == 0 {
				t.Fatalf("after %d calls: paused for %v", done, h.now(c).PauseReason)
			}
			for _, d := range h.dialled()[done:] {
				h.end(d, nobodys)
				done++
			}
		}
		if now := h.now(c); now.PauseReason != nil || now.Failed != 12 || len(now.Failing) != 0 {
			t.Errorf("%+v", now)
		}
		for _, l := range list {
			if got := h.lead(l.ID); got.Status != parley.LeadRescheduled || got.Attempts != 1 ||
				*got.Outcome != parley.OutcomeFailed {
				t.Errorf("%+v", got)
			}
		}
		h.leads(c, 12, 6)
		h.round()
		for _, d := range h.dialled()[12:] {
			h.end(d, down)
		}
		h.pauseOver(c)
		if n := h.round(); n != 1 || !h.now(c).Probing() {
			t.Fatalf("%d calls try whether the line is up", n)
		}
		h.end(h.dialled()[17], nobodys)
		if now := h.now(c); now.Probing() || now.PauseReason != nil {
			t.Errorf("the line is up: %+v", now)
		}
	})
}

// Every call counts once for its campaign, even if its lead was deleted while it rang, or if its end was only learned
// from its report.
func TestCallsCountOnce(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		list := h.leads(c, 0, 3)
		h.begin(c)
		h.round()
		if err := h.DeleteLead(t.Context(), h.user.ID, list[0].ID); err != nil {
			t.Fatal(err)
		}
		for _, d := range h.dialled() {
			if d.LeadID != list[1].ID {
				h.end(d, nobody)
				continue
			}
			h.write(func(ctx context.Context, tx *store.Tx) error {
				call, err := tx.CallForUpdate(ctx, d.id)
				if err != nil {
					return err
				}
				call.End(parley.NoAnswer, parley.Now())
				return errors.Join(tx.EndCall(ctx, call), h.Finished(ctx, tx, call, h.assistant))
			})
		}
		if now := h.now(c); now.NoAnswer != 3 || now.Failed != 0 {
			t.Errorf("%+v", now)
		}
		for _, l := range list[1:] {
			if got := h.lead(l.ID); got.Status != parley.LeadRescheduled || got.Attempts != 1 || got.WatchAt != 0 {
				t.Errorf("%+v", got)
			}
		}
	})
}

// A process without room claims nothing, so that others can; it starts as many calls as it has room for.
func TestFullNode(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		room := 0
		h.Room = func() int { return room }
		a, b := h.campaign(nil), h.campaign(nil)
		h.leads(a, 0, 5)
		h.leads(b, 10, 5)
		h.begin(a)
		h.begin(b)
		for want := range 3 {
			room = want
			before := len(h.dialled())
			if n := h.round(); n != want || len(h.dialled())-before != want {
				t.Errorf("with room for %d: %d calls", want, n)
			}
			for _, c := range []*parley.Campaign{a, b} {
				counts, err := h.DB.LeadCounts(t.Context(), c.UserID, c.ID)
				if err != nil || counts[parley.LeadScheduled] != 0 {
					t.Errorf("with room for %d: %v, %v", want, counts, err)
				}
			}
		}
	})
}

// A call that was deleted before its report keeps nothing waiting for ever.
func TestLostCall(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		l := h.leads(c, 0, 1)[0]
		h.begin(c)
		h.round()
		h.watch(l.ID)
		h.round()
		if got := h.lead(l.ID); got.Status != parley.LeadProcessing || got.WatchAt < parley.Now() {
			t.Fatalf("a call that is there: %+v", got)
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			call, err := tx.CallForUpdate(ctx, h.calls[0].id)
			if err != nil {
				return err
			}
			call.End(parley.NoAnswer, parley.Now())
			if err := tx.EndCall(ctx, call); err != nil {
				return err
			}
			_, err = tx.DeleteCall(ctx, h.user.ID, call.ID)
			return err
		})
		h.watch(l.ID)
		h.round()
		if got := h.lead(l.ID); got.Status != parley.LeadRescheduled || got.Attempts != 1 ||
			*got.Outcome != parley.OutcomeFailed {
			t.Fatalf("a call that is gone: %+v", got)
		}
	})
}

func (h *harness) watch(id int64) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		l, err := tx.LockLead(ctx, h.user.ID, id)
		if err == nil {
			l.WatchAt = 1
			err = tx.SaveLead(ctx, h.user.ID, l)
		}
		return err
	})
}

// For its user, a deleted campaign's leads are gone at once; from the database they go in small steps. Its calls keep
// its name.
func TestDeletedCampaign(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		h.leads(c, 0, 1200)
		h.begin(c)
		h.round()
		if err := h.Delete(t.Context(), c.UserID, c.ID); err != nil {
			t.Fatal(err)
		}
		if _, total, err := h.DB.Leads(t.Context(), c.UserID, store.LeadFilter{},
			store.Page{Number: 1, Size: 10}); err != nil || total != 0 {
			t.Fatalf("%d leads: %v", total, err)
		}
		for range 5 {
			h.round()
		}
		left, err := h.DB.LeadsAfter(t.Context(), c.UserID, c.ID, 0, 10)
		if err != nil || len(left) != 0 {
			t.Fatalf("%d leads left: %v", len(left), err)
		}
		for _, d := range h.dialled() {
			h.end(d, person)
		}
		if untidy, err := h.DB.UntidyLeads(t.Context(), parley.Now()); err != nil || untidy {
			t.Fatalf("still untidy: %v", err)
		}
	})
}

// When a campaign has called everybody, the account's endpoint is notified once.
func TestCompletionIsTold(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.SetWebhookURL(ctx, h.user.ID, "https://example.com/events")
		})
		c := h.campaign(nil)
		h.leads(c, 0, 2)
		h.begin(c)
		h.round()
		h.end(h.calls[0], person)
		h.end(h.calls[1], machine)
		for range 3 {
			h.round()
		}
		list, total, err := h.DB.Deliveries(t.Context(), h.user.ID, parley.EventCampaignCompleted, "",
			store.Page{Number: 1, Size: 10})
		if err != nil || total != 1 {
			t.Fatalf("%d events: %v", total, err)
		}
		d, err := h.DB.Delivery(t.Context(), h.user.ID, list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Event  string
			Name   string
			Status string
			Stats  parley.CampaignStats
		}
		if err := json.Unmarshal([]byte(d.Payload), &e); err != nil || e.Event != "campaign.completed" ||
			e.Name != "Spring" || e.Status != "completed" ||
			e.Stats.Total != 2 || e.Stats.ByStatus["completed"] != 2 || e.Stats.Answered != 1 ||
			e.Stats.Voicemail != 1 {
			t.Errorf("%s: %v", d.Payload, err)
		}

		// A campaign that is set to continue waits for more leads.
		c = h.campaign(map[string]any{"mark_complete_when_no_leads": false})
		h.leads(c, 10, 1)
		h.begin(c)
		h.round()
		h.end(h.dialled()[2], person)
		h.round()
		if now := h.now(c); now.Status != parley.CampaignInProgress {
			t.Errorf("it is %s", now.Status)
		}
		h.leads(c, 11, 1)
		if n := h.round(); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// After Stop returns no call starts any more, whatever was under way.
func TestStopIsStrict(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(map[string]any{"max_calls_in_parallel": num(10)})
		h.leads(c, 0, 40)
		h.begin(c)
		h.far = func(d *dialled) { h.end(d, person) }
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := h.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		h.until("some calls", func() bool { return len(h.dialled()) >= 5 })
		if _, err := h.Stop(ctx, c.UserID, c.ID); err != nil {
			t.Fatal(err)
		}
		stopped := parley.Now()
		h.round()
		cancel()
		run.Wait()
		h.under.Wait()
		calls := h.dialled()
		for _, d := range calls {
			call, err := h.DB.Call(t.Context(), h.user.ID, d.id)
			if err != nil || parley.Time(call.CreatedAt) > stopped {
				t.Errorf("a call began %s after the stop: %v", parley.Time(call.CreatedAt).Sub(stopped), err)
			}
		}
		counts, err := h.DB.LeadCounts(t.Context(), c.UserID, c.ID)
		if err != nil || counts[parley.LeadScheduled]+counts[parley.LeadProcessing] != 0 ||
			int(counts[parley.LeadCompleted]) != len(calls) {
			t.Errorf("%v of %d calls: %v", counts, len(calls), err)
		}
	})
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
