package sms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"parley/internal/carrier"
	"parley/internal/channel"
	"parley/internal/parley"
	"parley/internal/store"
)

// box is what the machine that sends messages asks of text messages.
type box struct{ *Channel }

func (c *Channel) outbox() *channel.Outbox[parley.SMS] {
	return &channel.Outbox[parley.SMS]{DB: c.DB, Box: box{c}}
}

// reference is what the carrier and the ledger call a message.
func reference(id int64) string { return "sms:" + strconv.FormatInt(id, 10) }

func (box) Create(ctx context.Context, tx *store.Tx, m *parley.SMS) error {
	return tx.CreateSMS(ctx, m.UserID, m)
}

func (c box) Claim(ctx context.Context, tx *store.Tx, id int64, _ parley.Time) (*parley.SMS, bool, error) {
	return tx.ClaimSMS(ctx, id, cmp.Or(c.Lease, 20*time.Second))
}

// Unclaim leaves the attempt noted, so that the next one looks first whether this one has arrived.
func (box) Unclaim(ctx context.Context, tx *store.Tx, id int64) error { return tx.UnclaimSMS(ctx, id) }

// Carry gives a message to the carrier. One that may have been given before is looked for first, and so is one whose
// fate was not told.
func (c box) Carry(ctx context.Context, m *parley.SMS) (sid string, err error) {
	out := carrier.SMS{UserID: m.UserID, Reference: reference(m.ID), From: m.From, To: m.To, Body: m.Body}
	finder, canFind := c.Carrier.(carrier.Finder)
	_, once := c.Carrier.(carrier.Once)
	since := m.AttemptedAt
	if since != 0 && !once {
		if !canFind {
			return "", &carrier.Error{Message: "The server stopped while the message was sent; whether it has arrived is not known."}
		}
		if sid, err = c.find(ctx, finder, out, since); err != nil || sid != "" {
			return sid, err
		}
	}
	if since == 0 {
		since = parley.Now()
	}
	sid, err = c.Carrier.Send(ctx, out)
	if err != nil && carrier.Refusal(err) == nil && canFind {
		if found, lost := c.find(ctx, finder, out, since); lost == nil && found != "" {
			return found, nil
		}
	}
	return sid, err
}

// find looks at the carrier for a message that no row knows, "" when there is none.
func (c box) find(ctx context.Context, finder carrier.Finder, m carrier.SMS, since parley.Time) (string, error) {
	sids, err := finder.Find(ctx, m, since.Time())
	if err != nil {
		// no refusal: its fate is still open
		return "", fmt.Errorf("look for %s at the carrier: %w", m.Reference, errors.New(err.Error()))
	}
	unknown, err := c.DB.NewSIDs(ctx, sids)
	if err != nil || len(unknown) == 0 {
		return "", err
	}
	return unknown[0], nil
}

func (c box) Judge(ctx context.Context, m *parley.SMS, err error, now parley.Time, waiting bool) (channel.Outcome,
	string) {
	refused := carrier.Refusal(err)
	young := now.Sub(parley.Time(m.CreatedAt)) < tryFor
	switch {
	case !waiting && young && (refused == nil || refused.Later):
		return channel.Again, ""
	case refused != nil:
		return channel.Ended, refused.Message
	}
	slog.ErrorContext(ctx, "send message "+strconv.FormatInt(m.ID, 10), "error", err)
	return channel.Ended, "The carrier did not answer."
}

func (box) Lock(ctx context.Context, tx *store.Tx, id int64) (*parley.SMS, error) {
	return tx.SMSForUpdate(ctx, id)
}

func (box) At(m *parley.SMS) channel.State { return at(m.Status) }

func at(s parley.SMSStatus) channel.State {
	switch s {
	case parley.SMSQueued:
		return channel.Queued
	case parley.SMSFailed:
		return channel.Failed
	}
	return channel.Taken
}

// Comes lets the carrier's word stand over ours: what we took for failed, and it has taken, was sent.
func (box) Comes(m *parley.SMS, r channel.Report) (channel.State, bool) {
	if r.Name != "" && m.SID != "" && r.Name != m.SID { // of another message: ours was never called so
		return 0, false
	}
	status := parley.SMSStatus(r.Status)
	if m.Status == parley.SMSFailed && m.SID == "" && r.Name != "" {
		return at(status), at(status) == channel.Taken
	}
	return at(status), m.Status.Before(status)
}

func (box) Bill(m *parley.SMS) channel.Bill {
	return channel.Bill{UserID: m.UserID, Kind: parley.SMSCharge, Reference: reference(m.ID), Cost: m.TotalCost,
		For: "SMS to " + m.To, Back: "SMS to " + m.To + " failed"}
}

func (box) Save(ctx context.Context, tx *store.Tx, m *parley.SMS, r channel.Report, moved bool) error {
	failed, late := r.Status == channel.Refused, m.Status == parley.SMSFailed
	switch {
	case failed || moved:
	case late: // its reservation was given up, and the carrier took it after all
		m.TotalCost = 0
	default:
		return store.Insufficient
	}
	if err := tx.MoveSMS(ctx, m, parley.SMSStatus(r.Status), r.Name, r.Reason); err != nil {
		return err
	}
	switch {
	case failed:
		return tx.CorrectSpend(ctx, m.UserID, parley.Time(m.CreatedAt), -m.TotalCost)
	case late:
		return tx.CorrectSpend(ctx, m.UserID, parley.Time(m.CreatedAt), m.TotalCost)
	}
	return nil
}
