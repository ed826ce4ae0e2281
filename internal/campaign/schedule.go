package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

// startLayouts are how a scheduled start is written by the clock of the campaign's time zone.
var startLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// startOf reads when a campaign is to start.
func startOf(text string, zone *time.Location, now time.Time) (at time.Time, err error) {
	text = strings.TrimSpace(text)
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		for _, layout := range startLayouts {
			if at, err = time.ParseInLocation(layout, text, zone); err == nil {
				break
			}
		}
	}
	var f parley.Fields
	switch {
	case err != nil:
		f.Add("starts_at", "must be a date and a time, such as 2026-12-01 09:00.")
	case !at.After(now):
		f.Add("starts_at", "must be in the future.")
	case at.After(now.AddDate(1, 0, 0)):
		f.Add("starts_at", "must be within a year.")
	}
	return at, f.Err()
}

// Schedule has a campaign begin by itself: at is RFC 3339, or a date and a time by the campaign's own clock. What would
// refuse its start now refuses this.
func (d *Roster) Schedule(ctx context.Context, userID, id int64, at string) (c *parley.Campaign, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if c, err = tx.CampaignForUpdate(ctx, userID, id); err != nil {
			return err
		}
		when, err := startOf(at, zone(c.Timezone), time.Now())
		if err != nil {
			return err
		}
		if _, ok := parley.CampaignMoves[c.Status][parley.CampaignStart]; !ok {
			return parley.Errorf(parley.Refused, "The campaign is already in progress.")
		}
		if err := d.ready(ctx, tx.Query, userID, c); err != nil {
			return err
		}
		c.StartsAt, c.PauseReason = parley.At(when), nil
		return tx.SaveCampaignRun(ctx, userID, c)
	})
	return c, err
}

// Unschedule takes a campaign's scheduled start away.
func (d *Roster) Unschedule(ctx context.Context, userID, id int64) (c *parley.Campaign, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if c, err = tx.CampaignForUpdate(ctx, userID, id); err != nil {
			return err
		}
		if c.StartsAt == 0 {
			return parley.Errorf(parley.Refused, "The campaign has no scheduled start.")
		}
		c.StartsAt = 0
		return tx.SaveCampaignRun(ctx, userID, c)
	})
	return c, err
}

// dueAtOnce is how many scheduled starts a round looks at.
const dueAtOnce = 100

// beginDue begins the campaigns whose scheduled start has come.
func (d *Roster) beginDue(ctx context.Context) error {
	list, err := d.DB.DueCampaigns(ctx, parley.Now(), dueAtOnce)
	for i := range list {
		if err := d.beginOne(ctx, list[i].UserID, list[i].ID); err != nil && ctx.Err() == nil {
			slog.Error("begin a campaign as scheduled", "campaign", list[i].ID, "user", list[i].UserID, "error", err)
		}
	}
	return err
}

// beginOne begins a campaign whose scheduled start has come. Of several processes one does: it takes the start away in
// the transaction that begins the campaign. A start that is refused is not tried again: the campaign says why, and its
// owner is told.
func (d *Roster) beginOne(ctx context.Context, userID, id int64) error {
	ahead, err := d.Ahead(ctx, userID, id) // reads the whole list: under no lock
	if err != nil {
		return ignoreMissing(err)
	}
	unfit := ""
	if ahead.Refusal == "" {
		unfit = ahead.Blocked()
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.CampaignForUpdate(ctx, userID, id)
		if err != nil {
			return ignoreMissing(err)
		}
		if c.StartsAt == 0 || c.StartsAt > parley.Now() { // another process has begun it, or its user thought again
			return nil
		}
		to, ok := parley.CampaignMoves[c.Status][parley.CampaignStart]
		if ok {
			err = d.ready(ctx, tx.Query, userID, c)
		}
		if errors.Is(err, errImporting) { // a moment later
			return nil
		}
		if ok && err == nil && unfit != "" {
			err = parley.Errorf(parley.Refused, "%s", unfit)
		}
		var refused *parley.Error
		switch {
		case ok && err == nil:
			return begin(ctx, tx, c, to)
		case errors.As(err, &refused):
			return d.notStarted(ctx, tx, c, refused.Message)
		case err != nil:
			return err
		}
		c.StartsAt = 0
		return tx.SaveCampaignRun(ctx, userID, c)
	})
}

// notStarted takes away a scheduled start that was refused, and tells the campaign's owner, in the transaction that does.
func (d *Roster) notStarted(ctx context.Context, tx *store.Tx, c *parley.Campaign, reason string) error {
	u, err := tx.User(ctx, c.UserID)
	if err != nil {
		return err
	}
	e := parley.CampaignNotStarted{CampaignID: c.ID, Name: c.Name, Reason: reason, StartsAt: c.StartsAt, CreatedAt: parley.Now()}
	why := "The scheduled start was refused: " + reason
	c.StartsAt, c.PauseReason = 0, &why
	if err := tx.SaveCampaignRun(ctx, c.UserID, c); err != nil {
		return err
	}
	if u.WebhookURL != "" {
		if err := tx.EnqueueDelivery(ctx, u.ID, e.Delivery(u.WebhookURL)); err != nil {
			return err
		}
	}
	if d.Mail == nil || !d.Mail.On() {
		return nil
	}
	_, err = d.Mail.Queue(ctx, tx, d.notStartedMessage(u, &e))
	return err
}

// notStartedMessage is what the campaign's owner reads.
func (d *Roster) notStartedMessage(u *parley.User, e *parley.CampaignNotStarted) mail.Message {
	name := strings.Join(strings.Fields(e.Name), " ")
	text := fmt.Sprintf("The campaign %s was to start at %s, and did not.\n\n%s\n\nStart it when this is mended:\n\n%s/campaigns/%d\n", name,
		e.StartsAt.Time().In(u.Zone()).Format("January 2, 2006, 15:04 MST"), e.Reason, d.URL, e.CampaignID)
	return mail.Message{Kind: mail.NotStarted, Account: u.ID, To: u.Email, Text: text}
}
