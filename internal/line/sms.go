package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/carrier"
	"parley/internal/store"
)

const (
	tryFor  = 10 * time.Minute // how long a message that nobody waits for is tried
	longest = 1600             // characters that carriers take in one message
)

// errDaySpent is why a message that nobody waits for was not sent.
var errDaySpent = parley.Errorf(parley.Forbidden, "Outgoing calls and messages may not cost more today (PARLEY_CALL_DAILY_SPEND).")

// Failure is a message that the carrier did not take. Nothing was charged.
type Failure struct {
	Reason     string
	Unanswered bool // it did not say so: whether it took the message is not known
}

func (f *Failure) Error() string { return "failed to send SMS: " + f.Reason }

// Send sends a message from one of a user's numbers and waits until the carrier has taken it. What speaks against it is told in the
// contract's order; the error is a *Failure where the carrier refused.
func (d *Desk) Send(ctx context.Context, userID, from int64, to, body string) (*parley.SMS, error) {
	ctx = context.WithoutCancel(ctx) // what has begun is finished, whoever still listens
	refuse := func(text string) error { return parley.Errorf(parley.Refused, "%s", text) }
	var m *parley.SMS
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.Number(ctx, userID, from)
		if store.IsNotFound(err) {
			return refuse("From number not found")
		}
		if err != nil {
			return err
		}
		e164, ok := parley.NormalizePhone(to)
		if !ok {
			return refuse("Invalid to phone number")
		}
		if err := d.allowed(e164); err != nil {
			return err
		}
		m = d.compose(n, e164, body)
		free, err := tx.Free(ctx, userID)
		if err != nil {
			return err
		}
		if free < m.TotalCost {
			return refuse(store.Insufficient.Message)
		}
		reason, err := d.unable(ctx, tx, n, e164)
		if err != nil {
			return err
		}
		if reason != "" {
			return refuse(reason)
		}
		return d.add(ctx, tx, m)
	})
	if errors.Is(err, store.Insufficient) { // spent in between
		err = refuse(store.Insufficient.Message)
	}
	if err != nil {
		return nil, err
	}
	return d.deliver(ctx, m.ID, true)
}

// compose makes a message and its price.
func (d *Desk) compose(n *parley.Number, to, body string) *parley.SMS {
	m := &parley.SMS{PhoneNumberID: n.ID, UserID: n.UserID, From: n.PhoneNumber, To: to, Body: body, Segments: len(Segments(body)),
		SegmentPrice: d.Prices.Segment(parley.PhoneCountry(to)), Status: parley.SMSQueued}
	m.TotalCost = m.SegmentPrice * parley.Money(m.Segments)
	return m
}

// unable says why a number can't send to a person, "" when it can.
func (d *Desk) unable(ctx context.Context, tx *store.Tx, n *parley.Number, to string) (string, error) {
	switch {
	case !n.SMSCapable:
		return "From number is not SMS capable", nil
	case !n.Subscribed(parley.Now()):
		return "From number has no active subscription", nil
	}
	out, err := tx.OptedOut(ctx, n.UserID, n.PhoneNumber, to)
	if out {
		return "The recipient has opted out of messages from this number", err
	}
	return "", err
}

// allowed refuses destinations that the operator does not allow: the rule of calls (PARLEY_CALL_PREFIXES).
func (d *Desk) allowed(to string) error {
	if d.Allow == nil || d.Allow(to) {
		return nil
	}
	return parley.Errorf(parley.Forbidden, "Messages to %s are not allowed on this server: its operator decides which destinations are (PARLEY_CALL_PREFIXES).", to)
}

// spend counts a message's price to its day, and refuses it where outgoing calls and messages may not cost so much.
func (d *Desk) spend(ctx context.Context, tx *store.Tx, userID int64, price parley.Money) error {
	total, err := tx.TakeSpend(ctx, userID, parley.Now(), price)
	if err == nil && d.DailySpend > 0 && total > d.DailySpend {
		err = parley.Errorf(parley.Forbidden, "This message costs %s USD, and %s of the %s USD that outgoing calls and messages may cost a day are spent or set aside. The operator sets the limit (PARLEY_CALL_DAILY_SPEND).",
			price, total-price, d.DailySpend)
	}
	return err
}

// add stores a message and sets its price aside.
func (d *Desk) add(ctx context.Context, tx *store.Tx, m *parley.SMS) error {
	if err := d.spend(ctx, tx, m.UserID, m.TotalCost); err != nil {
		return err
	}
	if err := tx.CreateSMS(ctx, m.UserID, m); err != nil {
		return err
	}
	return tx.Reserve(ctx, m.UserID, smsReference(m.ID), m.TotalCost, parley.Now().Add(hold))
}

// queue stores a message that nobody waits for, and the job that sends it. One that the balance doesn't cover, or that may not go there or cost
// so much, stands as failed.
func (d *Desk) queue(ctx context.Context, tx *store.Tx, n *parley.Number, to, body string) (refusal, err error) {
	m := d.compose(n, to, body)
	free, err := tx.Free(ctx, n.UserID)
	if err != nil {
		return nil, err
	}
	spent, err := tx.Spend(ctx, n.UserID, parley.Now())
	if err != nil {
		return nil, err
	}
	refusal = d.allowed(to)
	switch {
	case refusal != nil:
	case d.DailySpend > 0 && spent+m.TotalCost > d.DailySpend:
		refusal = errDaySpent
	case free < m.TotalCost:
		refusal = store.Insufficient
	}
	if refusal != nil {
		text := refusal.Error()
		m.Status, m.Error = parley.SMSFailed, &text
		return refusal, tx.CreateSMS(ctx, n.UserID, m)
	}
	if err := d.add(ctx, tx, m); err != nil {
		return nil, err
	}
	return nil, tx.Enqueue(ctx, sendArgs{m.ID}, nil)
}

// sendQueued sends a message that nobody waits for.
func (d *Desk) sendQueued(ctx context.Context, id int64) error {
	_, err := d.deliver(ctx, id, false)
	var f *Failure
	if errors.As(err, &f) || store.IsNotFound(err) { // it stands in the row
		return nil
	}
	return err
}

// deliver hands a queued message to the carrier, once, and writes down what came of it. A message that somebody waits for has failed when
// the carrier does not take it now; another is tried for a while.
func (d *Desk) deliver(ctx context.Context, id int64, waiting bool) (*parley.SMS, error) {
	var m *parley.SMS
	var mine bool
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		m, mine, err = tx.ClaimSMS(ctx, id, cmp.Or(d.Lease, 20*time.Second))
		return err
	})
	if err != nil || !mine {
		return m, err
	}
	sid, err := d.hand(ctx, m)
	if err == nil {
		return d.move(ctx, carrier.Report{SID: sid, Status: parley.SMSSent}, id)
	}
	refused := carrier.Refusal(err)
	young := parley.Now().Sub(parley.Time(m.CreatedAt)) < tryFor
	if !waiting && young && (refused == nil || refused.Later) {
		// The attempt is noted, so that the next one looks first whether this one has arrived.
		free := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.UnclaimSMS(ctx, id) })
		return m, errors.Join(fmt.Errorf("send message %d: %w", id, err), free)
	}
	reason := "The carrier did not answer."
	if refused != nil {
		reason = refused.Message
	} else {
		unexpected(ctx, "send message "+strconv.FormatInt(id, 10), err)
	}
	if m, err = d.move(ctx, carrier.Report{Status: parley.SMSFailed, Error: reason}, id); err != nil {
		return m, err
	}
	if m.Status != parley.SMSFailed { // the carrier's report says that it did arrive
		return m, nil
	}
	return m, &Failure{reason, refused == nil}
}

// hand gives a message to the carrier. One that may have been given before is looked for first, and so is one whose fate was not told.
func (d *Desk) hand(ctx context.Context, m *parley.SMS) (sid string, err error) {
	out := carrier.SMS{UserID: m.UserID, Reference: smsReference(m.ID), From: m.From, To: m.To, Body: m.Body}
	finder, canFind := d.Carrier.(carrier.Finder)
	_, once := d.Carrier.(carrier.Once)
	since := m.AttemptedAt
	if since != 0 && !once {
		if !canFind {
			return "", &carrier.Error{Message: "The server stopped while the message was sent; whether it has arrived is not known."}
		}
		if sid, err = d.find(ctx, finder, out, since); err != nil || sid != "" {
			return sid, err
		}
	}
	if since == 0 {
		since = parley.Now()
	}
	sid, err = d.Carrier.Send(ctx, out)
	if err != nil && carrier.Refusal(err) == nil && canFind {
		if found, lost := d.find(ctx, finder, out, since); lost == nil && found != "" {
			return found, nil
		}
	}
	return sid, err
}

// find looks at the carrier for a message that no row knows, "" when there is none.
func (d *Desk) find(ctx context.Context, finder carrier.Finder, m carrier.SMS, since parley.Time) (string, error) {
	sids, err := finder.Find(ctx, m, since.Time())
	if err != nil {
		return "", fmt.Errorf("look for %s at the carrier: %w", m.Reference, errors.New(err.Error())) // no refusal: its fate is still open
	}
	unknown, err := d.DB.NewSIDs(ctx, sids)
	if err != nil || len(unknown) == 0 {
		return "", err
	}
	return unknown[0], nil
}

// Report takes what the carrier tells of a message: twice or out of order changes nothing.
func (d *Desk) Report(ctx context.Context, r carrier.Report) error {
	text, ours := strings.CutPrefix(r.Reference, "sms:")
	id, err := strconv.ParseInt(text, 10, 64)
	if !ours || err != nil {
		m, err := d.DB.SMSBySID(ctx, r.SID)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		id = m.ID
	}
	if _, err := d.move(ctx, r, id); !store.IsNotFound(err) {
		return err
	}
	return nil
}

// move brings a message on and moves its money with it: taken when the carrier has taken the message, freed or given back when it failed.
func (d *Desk) move(ctx context.Context, r carrier.Report, id int64) (m *parley.SMS, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if m, err = tx.SMSForUpdate(ctx, id); err != nil {
			return err
		}
		if r.SID != "" && m.SID != "" && r.SID != m.SID { // of another message: ours was never called so
			return nil
		}
		was := m.Status
		moved, err := tx.MoveSMS(ctx, m, r.Status, r.SID, r.Error)
		if err != nil || !moved {
			return err
		}
		if r.Status == parley.SMSFailed {
			if err := tx.CorrectSpend(ctx, m.UserID, parley.Time(m.CreatedAt), -m.TotalCost); err != nil {
				return err
			}
		}
		e := &parley.LedgerEntry{Kind: parley.SMSCharge, Amount: -m.TotalCost, Reference: smsReference(m.ID), Description: "SMS to " + m.To}
		switch {
		case r.Status == parley.SMSFailed && was == parley.SMSQueued:
			return tx.Release(ctx, m.UserID, e.Reference)
		case r.Status == parley.SMSFailed:
			e.Kind, e.Amount, e.Description = parley.Refund, m.TotalCost, "SMS to "+m.To+" failed"
			_, err = tx.Post(ctx, m.UserID, e)
		case was == parley.SMSQueued:
			_, err = tx.Settle(ctx, m.UserID, e)
		}
		return err
	})
	return m, err
}
