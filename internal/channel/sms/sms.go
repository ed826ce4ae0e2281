// Package sms is the channel of text messages, from and to rented numbers, over any carrier.
package sms

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/billing"
	"parley/internal/carrier"
	"parley/internal/channel"
	"parley/internal/chat"
	"parley/internal/parley"
	"parley/internal/store"
)

// Channel is where text messages go through.
type Channel struct {
	DB      *store.DB
	Carrier carrier.Carrier
	Sandbox bool // the carrier is the sandbox: what it has taken can be read, and messages can be made to come in
	Prices  *billing.Prices
	Limits  channel.Limits

	Chat *chat.Chat // answers what comes in; it tells our Replied of replies
	// how long a dead server's message waits for another; longer than a carrier is waited for. 0 is 20 s
	Lease time.Duration
}

// Declare declares the channel. Its carrier is that of the rented numbers, whose settings are elsewhere.
func Declare() *channel.Declaration {
	return &channel.Declaration{Code: "sms", Open: func(h channel.House) (channel.Channel, error) {
		return &Channel{DB: h.DB, Carrier: h.Carrier, Sandbox: h.Sandbox, Prices: h.Prices, Limits: h.Limits,
			Chat: h.Chat}, nil
	}}
}

const (
	strands = 20 * time.Second // what was begun so long ago and has not ended, nobody works on any more
	tryFor  = 10 * time.Minute // how long a message that nobody waits for is tried
	longest = 1600             // characters that carriers take in one message
)

// The jobs of this channel.
type (
	sendArgs struct { // a message that nobody waits for is to be sent
		ID int64 `json:"id"`
	}
	inboundArgs struct { // a message that came in is to be answered
		ID int64 `json:"id"`
	}
	sweepArgs struct{}
)

func (sendArgs) Kind() string    { return "sms_send" }
func (inboundArgs) Kind() string { return "sms_inbound" }
func (sweepArgs) Kind() string   { return "sms_sweep" }

// AddWorkers registers the workers of this channel's jobs.
func (c *Channel) AddWorkers(w *river.Workers) {
	river.AddWorker(w, channel.Work(func(ctx context.Context,
		a sendArgs) error {
		return c.outbox().Resume(ctx, a.ID, parley.Now())
	}))
	river.AddWorker(w, channel.Work(func(ctx context.Context, a inboundArgs) error { return c.answer(ctx, a.ID) }))
	river.AddWorker(w, channel.Work(func(ctx context.Context,
		_ sweepArgs) error {
		return c.sweep(ctx, parley.Now().Add(-strands))
	}))
	river.AddWorker(w, channel.Work(func(ctx context.Context,
		a reportArgs) error {
		return c.Report(ctx, carrier.Report(a))
	}))
}

// Periodic are the jobs that time causes.
func (c *Channel) Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{channel.Every(strands/2, sweepArgs{})}
}

// Close does nothing: the carrier is others' too.
func (c *Channel) Close() {}

// sweep ends what a dead server left standing.
func (c *Channel) sweep(ctx context.Context, before parley.Time) error {
	out, in, err := c.DB.StrandedSMS(ctx, before, 100)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range out {
		failed = append(failed, c.outbox().Resume(ctx, id, parley.Now()))
	}
	for _, id := range in {
		failed = append(failed, c.answer(ctx, id))
	}
	return errors.Join(failed...)
}

// errDaySpent is why a message that nobody waits for was not sent.
var errDaySpent = parley.Errorf(parley.Forbidden, "Outgoing calls and messages may not cost more today (PARLEY_CALL_DAILY_SPEND).")

// Failure is a message that the carrier did not take. Nothing was charged.
type Failure struct {
	Reason     string
	Unanswered bool // it did not say so: whether it took the message is not known
}

func (f *Failure) Error() string { return "failed to send SMS: " + f.Reason }

// Send sends a message from one of a user's numbers and waits until the carrier has taken it. Reasons to refuse it are
// reported in the contract's order. The error is a *Failure if the carrier refused the message.
func (c *Channel) Send(ctx context.Context, userID, from int64, to, body string) (*parley.SMS, error) {
	ctx = context.WithoutCancel(ctx) // what has begun is finished, whoever still listens
	refuse := func(text string) error { return parley.Errorf(parley.Refused, "%s", text) }
	var m *parley.SMS
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
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
		if err := c.Limits.Allowed(e164); err != nil {
			return err
		}
		m = c.compose(n, e164, body)
		free, err := tx.Free(ctx, userID)
		if err != nil {
			return err
		}
		if free < m.TotalCost {
			return refuse(store.Insufficient.Message)
		}
		reason, err := c.unable(ctx, tx, n, e164)
		if err != nil {
			return err
		}
		if reason != "" {
			return refuse(reason)
		}
		return c.add(ctx, tx, m)
	})
	if errors.Is(err, store.Insufficient) { // spent in between
		err = refuse(store.Insufficient.Message)
	}
	if err != nil {
		return nil, err
	}
	m, err = c.outbox().Deliver(ctx, m.ID, parley.Now(), true)
	if f, ok := errors.AsType[*channel.Failure](err); ok {
		err = &Failure{f.Reason, carrier.Refusal(f.Err) == nil}
	}
	return m, err
}

// compose makes a message and its price.
func (c *Channel) compose(n *parley.Number, to, body string) *parley.SMS {
	m := &parley.SMS{PhoneNumberID: n.ID, UserID: n.UserID, From: n.PhoneNumber, To: to, Body: body,
		Segments:     len(Segments(body)),
		SegmentPrice: c.Prices.Segment(parley.PhoneCountry(to)), Status: parley.SMSQueued}
	m.TotalCost = m.SegmentPrice * parley.Money(m.Segments)
	return m
}

// unable says why a number can't send to a person, "" when it can.
func (c *Channel) unable(ctx context.Context, tx *store.Tx, n *parley.Number, to string) (string, error) {
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

// add counts a message to its day, stores it and sets its price aside.
func (c *Channel) add(ctx context.Context, tx *store.Tx, m *parley.SMS) error {
	if err := c.Limits.Spend(ctx, tx, m.UserID, m.TotalCost); err != nil {
		return err
	}
	return c.outbox().Add(ctx, tx, m)
}

// queue stores a message that nobody waits for, and the job that sends it. One that the balance doesn't cover, or
// that may not go there or cost so much, stands as failed.
func (c *Channel) queue(ctx context.Context, tx *store.Tx, n *parley.Number, to, body string) (refusal, err error) {
	m := c.compose(n, to, body)
	free, err := tx.Free(ctx, n.UserID)
	if err != nil {
		return nil, err
	}
	spent, err := tx.Spend(ctx, n.UserID, parley.Now())
	if err != nil {
		return nil, err
	}
	refusal = c.Limits.Allowed(to)
	switch {
	case refusal != nil:
	case c.Limits.DailySpend > 0 && spent+m.TotalCost > c.Limits.DailySpend:
		refusal = errDaySpent
	case free < m.TotalCost:
		refusal = store.Insufficient
	}
	if refusal != nil {
		text := refusal.Error()
		m.Status, m.Error = parley.SMSFailed, &text
		return refusal, tx.CreateSMS(ctx, n.UserID, m)
	}
	if err := c.add(ctx, tx, m); err != nil {
		return nil, err
	}
	return nil, tx.Enqueue(ctx, sendArgs{m.ID}, nil)
}

// Report takes what the carrier tells of a message: twice or out of order changes nothing.
func (c *Channel) Report(ctx context.Context, r carrier.Report) error {
	return store.Told(c.report(ctx, r))
}

func (c *Channel) report(ctx context.Context, r carrier.Report) error {
	text, ours := strings.CutPrefix(r.Reference, "sms:")
	id, err := strconv.ParseInt(text, 10, 64)
	if !ours || err != nil {
		m, err := c.DB.SMSBySID(ctx, r.SID)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		id = m.ID
	}
	if _, err := c.outbox().Told(ctx, id, channel.Report{Name: r.SID, Status: string(r.Status),
		Reason: r.Error}); !store.IsNotFound(err) {
		return err
	}
	return nil
}
