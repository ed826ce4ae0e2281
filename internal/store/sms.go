package store

import (
	"context"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const smsNotFound = "SMS not found"

// CreateSMS stores a message that is to be sent.
func (tx *Tx) CreateSMS(ctx context.Context, userID int64, m *parley.SMS) error {
	m.ID, m.UserID, m.CreatedAt = 0, userID, parley.DateTime(parley.Now())
	m.UpdatedAt = m.CreatedAt
	_, err := tx.q.NewInsert().Model(m).Exec(ctx)
	return err
}

// SMS is one of the user's messages.
func (q Query) SMS(ctx context.Context, userID, id int64) (*parley.SMS, error) {
	m := new(parley.SMS)
	err := q.q.NewSelect().Model(m).Where("id = ? AND user_id = ?", id, userID).Scan(ctx)
	return m, notFound(err, smsNotFound)
}

// SMSForUpdate is the message with that id, whoever's it is (jobs and carriers know no user), kept from others until
// the transaction ends.
func (tx *Tx) SMSForUpdate(ctx context.Context, id int64) (*parley.SMS, error) {
	m := new(parley.SMS)
	err := tx.locked(tx.q.NewSelect().Model(m).Where("id = ?", id)).Scan(ctx)
	return m, notFound(err, smsNotFound)
}

// SMSBySID is the message that the carrier calls so.
func (q Query) SMSBySID(ctx context.Context, sid string) (*parley.SMS, error) {
	m := new(parley.SMS)
	err := q.q.NewSelect().Model(m).Where("sid = ?", sid).Scan(ctx)
	return m, notFound(err, smsNotFound)
}

// SMSFilter narrows a list; zero values don't.
type SMSFilter struct {
	Status        parley.SMSStatus
	PhoneNumberID int64
	To            string      // E.164
	From, Until   parley.Time // Until is exclusive
}

// SMSPage is a page of the user's messages, newest first.
func (q Query) SMSPage(ctx context.Context, userID int64, f SMSFilter, p Page) ([]parley.SMS, int, error) {
	list := []parley.SMS{}
	s := q.q.NewSelect().Model(&list).Where("user_id = ?", userID)
	only(s, "status", f.Status)
	only(s, "phone_number_id", f.PhoneNumberID)
	only(s, "recipient", f.To)
	between(s, f.From, f.Until)
	total, err := page(ctx, s, p, "id DESC")
	return list, total, err
}

// ClaimSMS makes the caller the one who sends a queued message, for as long as the lease; false when it is not
// queued, or another sends it. m is the message as it was before, so that AttemptedAt says whether it may have been
// sent already.
func (tx *Tx) ClaimSMS(ctx context.Context, id int64, lease time.Duration) (m *parley.SMS, mine bool, err error) {
	if m, err = tx.SMSForUpdate(ctx, id); err != nil {
		return nil, false, err
	}
	now := parley.Now()
	if m.Status != parley.SMSQueued || m.LeaseUntil > now {
		return m, false, nil
	}
	attempted := m.AttemptedAt
	if attempted == 0 {
		attempted = now
	}
	_, err = tx.q.NewRaw("UPDATE sms SET lease_until = ?, attempted_at = ? WHERE id = ?", now.Add(lease), attempted,
		id).Exec(ctx)
	return m, err == nil, err
}

// UnclaimSMS ends a claim: the message waits to be sent again.
func (tx *Tx) UnclaimSMS(ctx context.Context, id int64) error {
	_, err := tx.q.NewRaw("UPDATE sms SET lease_until = 0 WHERE id = ?", id).Exec(ctx)
	return err
}

// MoveSMS brings a message that is locked on to a state that it may come to, with what the carrier said. A sid that
// another message has is refused by the rule sms_sid.
func (tx *Tx) MoveSMS(ctx context.Context, m *parley.SMS, to parley.SMSStatus, sid, reason string) error {
	if m.Status == parley.SMSFailed { // it was sent after all
		m.Error = nil
	}
	if sid != "" {
		m.SID = sid
	}
	if reason != "" {
		m.Error = &reason
	}
	m.Status, m.UpdatedAt, m.LeaseUntil = to, parley.DateTime(parley.Now()), 0
	_, err := tx.q.NewUpdate().Model(m).Column("sid", "error", "status", "total_cost", "lease_until", "updated_at").
		Where("id = ?", m.ID).Exec(ctx)
	return err
}

// NewSIDs are those of some carrier's names that no message has.
func (q Query) NewSIDs(ctx context.Context, sids []string) (unknown []string, err error) {
	if len(sids) == 0 {
		return nil, nil
	}
	var known []string
	if err := q.q.NewSelect().Table("sms").Column("sid").Where("sid IN (?)", bun.List(sids)).Scan(ctx,
		&known); err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, k := range known {
		has[k] = true
	}
	for _, s := range sids {
		if !has[s] {
			unknown = append(unknown, s)
		}
	}
	return unknown, nil
}

// AddInboundSMS stores a message that came in; false when it is there already.
func (tx *Tx) AddInboundSMS(ctx context.Context, m *parley.InboundSMS) (bool, error) {
	m.CreatedAt = parley.Now()
	known, err := tx.q.NewSelect().Model(m).Where("sid = ?", m.SID).Exists(ctx)
	if err != nil || known {
		return false, err
	}
	_, err = tx.q.NewInsert().Model(m).Exec(ctx)
	if violates(err, "sms_inbound.sid", "sms_inbound_sid_key") { // told twice at once
		return false, parley.Errorf(parley.Conflict, "The message %s came twice at once.", m.SID)
	}
	return err == nil, err
}

// InboundSMS is a message that came in, by our id or, where that is 0, by the carrier's.
func (q Query) InboundSMS(ctx context.Context, id int64, sid string) (*parley.InboundSMS, error) {
	m := new(parley.InboundSMS)
	s := q.q.NewSelect().Model(m)
	if id != 0 {
		s.Where("id = ?", id)
	} else {
		s.Where("sid = ?", sid)
	}
	return m, notFound(s.Scan(ctx), smsNotFound)
}

// HandledSMS notes that a message that came in needs nothing more.
func (tx *Tx) HandledSMS(ctx context.Context, id int64) error {
	_, err := tx.q.NewRaw("UPDATE sms_inbound SET handled = TRUE WHERE id = ?", id).Exec(ctx)
	return err
}

// StrandedSMS are the ids of what somebody began before a time and has not ended: messages to be sent that nobody has
// a lease of, and messages that came in.
func (q Query) StrandedSMS(ctx context.Context, before parley.Time, limit int) (out, in []int64, err error) {
	if err = q.q.NewRaw("SELECT id FROM sms WHERE status = 'queued' AND updated_at < ? AND lease_until < ? ORDER BY id LIMIT ?",
		before, parley.Now(), limit).Scan(ctx, &out); err != nil {
		return nil, nil, err
	}
	err = q.q.NewRaw("SELECT id FROM sms_inbound WHERE NOT handled AND created_at < ? ORDER BY id LIMIT ?", before,
		limit).Scan(ctx, &in)
	return out, in, err
}

// OptOut notes that a person wants no more messages from one of the user's numbers, or that they want them again.
func (tx *Tx) OptOut(ctx context.Context, userID int64, number, person string, out bool) (err error) {
	if out {
		_, err = tx.q.NewRaw("INSERT INTO sms_opt_outs (user_id, sender, recipient, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			userID, number, person, parley.Now()).Exec(ctx)
	} else {
		_, err = tx.q.NewRaw("DELETE FROM sms_opt_outs WHERE user_id = ? AND sender = ? AND recipient = ?", userID,
			number, person).Exec(ctx)
	}
	return err
}

// OptedOut says whether a person wants no messages from one of the user's numbers.
func (q Query) OptedOut(ctx context.Context, userID int64, number, person string) (bool, error) {
	return q.q.NewSelect().Table("sms_opt_outs").Where("user_id = ? AND sender = ? AND recipient = ?", userID,
		number, person).Exists(ctx)
}

// EraseSMS is one step of removing the user's messages to and from a person; it says whether there are more. Messages
// that are still to be sent go out first and are erased the next time. If the person has asked for no more messages,
// that is kept, for their own sake.
func (tx *Tx) EraseSMS(ctx context.Context, userID int64, person string) (removed int, more bool, err error) {
	return tx.removeSMS(ctx, "user_id = ? AND recipient = ?", "user_id = ? AND sender = ?", userID, person)
}

// ForgetSMS is one step of removing messages, out and in, that are older than a time. Those that are still to be sent
// stay.
func (tx *Tx) ForgetSMS(ctx context.Context, before parley.Time) (more bool, err error) {
	_, more, err = tx.removeSMS(ctx, "created_at < ?", "created_at < ? AND handled", before)
	return more, err
}

// removeSMS removes a few of the messages that conditions pick, out and in.
func (tx *Tx) removeSMS(ctx context.Context, out, in string, args ...any) (removed int, more bool, err error) {
	for _, from := range []string{"sms WHERE status <> 'queued' AND " + out, "sms_inbound WHERE " + in,
		"sandbox_outbox WHERE " + out} {
		table, _, _ := strings.Cut(from, " ")
		n, err := count(tx.q.NewRaw("DELETE FROM "+table+" WHERE id IN (SELECT id FROM "+from+" LIMIT ?)",
			append(args, Step)...).Exec(ctx))
		if err != nil {
			return 0, false, err
		}
		removed, more = removed+n, more || n == Step
	}
	return removed, more, nil
}

// KeepOutbox puts a message into the sandbox's outbox; false, with the one that is there, when its reference is in it.
func (tx *Tx) KeepOutbox(ctx context.Context, m *parley.OutboxSMS) (bool, error) {
	m.ID, m.CreatedAt = 0, parley.DateTime(parley.Now())
	kept, err := some(tx.q.NewInsert().Model(m).On("CONFLICT (reference) DO NOTHING").Exec(ctx))
	if err != nil || kept {
		return kept, err
	}
	return false, tx.q.NewSelect().Model(m).Where("reference = ?", m.Reference).Scan(ctx)
}

// Outbox is a page of the user's messages in the sandbox's outbox, newest first.
func (q Query) Outbox(ctx context.Context, userID int64, p Page) ([]parley.OutboxSMS, int, error) {
	list := []parley.OutboxSMS{}
	total, err := page(ctx, q.q.NewSelect().Model(&list).Where("user_id = ?", userID), p, "id DESC")
	return list, total, err
}
