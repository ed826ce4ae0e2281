package campaign

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
)

// watch is how long after its beginning somebody looks whether the call of a lead is still there.
const watch = 15 * time.Minute

// Unanswered writes what a call of a campaign's came to that nobody took: the lead's next step, the campaign's
// counts, its pause when calls fail in a row. It is run in the transaction that ends the call. A number that is
// nobody's says that the line works: as one who refuses. Where there is no such lead any more the call is Finished's.
func (d *Roster) Unanswered(ctx context.Context, tx *store.Tx, c *parley.Call, cause error) error {
	e := leadCall(c)
	if errors.Is(cause, call.ErrNoSuchNumber) {
		e.Reason = parley.Rejected
	}
	return d.over(ctx, tx, c, e, false)
}

// Finished does the same for a call that somebody took, and for one that Unanswered has not written. It runs in the
// transaction that completes the call's report, when the findings are known. A call without a campaign, and one that is
// told a second time, change nothing.
func (d *Roster) Finished(ctx context.Context, tx *store.Tx, c *parley.Call, _ *parley.Assistant) error {
	return d.over(ctx, tx, c, leadCall(c), true)
}

func leadCall(c *parley.Call) *parley.LeadCall {
	return &parley.LeadCall{ID: c.ID, Serial: c.Attempt, Status: c.Status, AnsweredBy: c.AnsweredBy,
		Reason: c.EndedReason, Reached: c.RingingAt != 0 || c.Answered(),
		Extracted: c.Variables, Evaluation: c.Evaluation, Cost: c.TotalCost(), EndedAt: parley.Time(c.EndedAt)}
}

func (d *Roster) over(ctx context.Context, tx *store.Tx, c *parley.Call, e *parley.LeadCall, last bool) error {
	if c.CampaignID == nil || c.LeadID == nil {
		return nil
	}
	return d.finish(ctx, tx, c.UserID, *c.CampaignID, *c.LeadID, e, last)
}

// Describe adds the lead and the campaign that a call was made for to what its events tell. Those that are gone are
// not told.
func (d *Roster) Describe(ctx context.Context, tx *store.Tx, c *parley.Call, e *parley.CallEnded) error {
	if c.CampaignID == nil || c.LeadID == nil {
		return nil
	}
	l, err := tx.Lead(ctx, c.UserID, *c.LeadID)
	if err != nil {
		return ignoreMissing(err)
	}
	e.Lead = &parley.EventLead{ID: l.ID, PhoneNumber: l.PhoneNumber, Variables: l.Variables}
	e.Campaign = &l.Campaign
	return nil
}

// finish writes what a call came to for its lead and its campaign; for the campaign alone where the lead is gone, and
// nobody comes after this.
func (d *Roster) finish(ctx context.Context, tx *store.Tx, userID, campaignID, leadID int64, e *parley.LeadCall,
	last bool) error {
	c, err := tx.LockRun(ctx, userID, campaignID) // before the lead: as every transaction that needs both
	if err != nil {
		return ignoreMissing(err)
	}
	tx.AfterCommit(func() { d.Wake(userID) })
	l, err := tx.LockLead(ctx, userID, leadID)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	switch {
	case l == nil && !last, l != nil && !l.Finish(c, e):
		return nil
	case l != nil:
		if err := d.settle(ctx, tx, c, l, e.EndedAt); err != nil {
			return err
		}
	}
	now := parley.Now()
	c.Count(e)
	forgive := c.Break(leadID, e, now)
	if err := tx.ForgiveLeads(ctx, campaignID, forgive, now,
		e.EndedAt.Add(time.Duration(c.RetryInterval)*time.Minute)); err != nil {
		return err
	}
	return tx.SaveCampaignRun(ctx, userID, c)
}

// settle stores a lead whose call is over. One that is to be called again shows when that will be, in the campaign's
// hours; one whose number came on the blacklist meanwhile is not.
func (d *Roster) settle(ctx context.Context, tx *store.Tx, c *parley.Campaign, l *parley.Lead, now parley.Time) error {
	if l.Status == parley.LeadRescheduled {
		blocked, err := tx.Blacklisted(ctx, l.UserID, l.Numbers())
		if err != nil {
			return err
		}
		h := HoursOf(c)
		if next := h.Next(l.DueAt.Time()); !next.IsZero() {
			l.NextAttemptAt = parley.DateTime(parley.At(next))
		}
		if !l.Reach(blocked) {
			l.Move(parley.LeadBlock, now)
		}
	}
	return tx.SaveLead(ctx, l.UserID, l)
}

// tidy does what nobody waits for: it removes leads of deleted campaigns, some at a time, and looks for leads whose
// call was lost.
func (d *Roster) tidy(ctx context.Context) error {
	if untidy, err := d.DB.UntidyLeads(ctx, parley.Now()); err != nil || !untidy {
		return err
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.EmptyCampaigns(ctx, 500); err != nil {
			return err
		}
		now := parley.Now()
		list, err := tx.WatchedLeads(ctx, now, now.Add(watch), 100)
		if err != nil {
			return err
		}
		for i := range list {
			if err := d.lost(ctx, tx, &list[i], now); err != nil {
				return err
			}
		}
		return nil
	})
}

// lost ends the wait of a lead for a call that is not there any more, because somebody deleted it before it was
// reported. The phone may have rung.
func (d *Roster) lost(ctx context.Context, tx *store.Tx, l *parley.Lead, now parley.Time) error {
	if l.LastCallID == nil {
		return nil
	}
	there, err := tx.CallExists(ctx, l.UserID, *l.LastCallID)
	if err != nil || there {
		return err
	}
	slog.Warn("the call of a lead is gone", "lead", l.ID, "call", *l.LastCallID)
	return d.finish(ctx, tx, l.UserID, l.CampaignID, l.ID,
		&parley.LeadCall{ID: *l.LastCallID, Serial: l.Serial, Status: parley.CallFailed,
			AnsweredBy: parley.AnsweredUnknown, Reason: parley.NodeLost, Reached: true, EndedAt: now}, true)
}
