package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const leadNotFound = "Lead not found"

// Lead is one of the user's leads.
func (q Query) Lead(ctx context.Context, userID, id int64) (*parley.Lead, error) {
	return q.lead(ctx, q.q.NewSelect(), userID, id)
}

// LeadForUpdate is Lead, kept from others until the transaction ends.
func (tx *Tx) LeadForUpdate(ctx context.Context, userID, id int64) (*parley.Lead, error) {
	l, err := tx.lead(ctx, tx.locked(tx.q.NewSelect()), userID, id)
	return l, tx.saw(parley.AuditLead, id, l, err)
}

func (q Query) lead(ctx context.Context, s *bun.SelectQuery, userID, id int64) (*parley.Lead, error) {
	list := make([]parley.Lead, 0, 1)
	err := s.Model(&list).Where("id = ? AND user_id = ?", id, userID).
		Where("campaign_id IN (SELECT id FROM campaigns WHERE user_id = ? AND deleted_at = 0)", userID).Scan(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, parley.Errorf(parley.NotFound, leadNotFound)
	}
	return &list[0], q.nameCampaigns(ctx, userID, list)
}

// LockLead is a lead of the user's, also of a deleted campaign, without its campaign's name, kept from others until
// the transaction ends; nil with the error where there is none.
func (tx *Tx) LockLead(ctx context.Context, userID, id int64) (*parley.Lead, error) {
	l := new(parley.Lead)
	if err := tx.locked(tx.q.NewSelect().Model(l).Where("id = ? AND user_id = ?", id, userID)).Scan(ctx); err != nil {
		return nil, notFound(err, leadNotFound)
	}
	return l, nil
}

// nameCampaigns fills in the names of some leads' campaigns.
func (q Query) nameCampaigns(ctx context.Context, userID int64, list []parley.Lead) error {
	var ids []int64
	for _, l := range list {
		ids = append(ids, l.CampaignID)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil
	}
	var rows []parley.EventCampaign
	err := q.q.NewRaw("SELECT id, name FROM campaigns WHERE user_id = ? AND id IN (?)", userID,
		bun.List(ids)).Scan(ctx, &rows)
	for i := range list {
		list[i].ShowContacts()
		for _, c := range rows {
			if c.ID == list[i].CampaignID {
				list[i].Campaign = c
			}
		}
	}
	return err
}

// LeadFilter narrows a list; zero values don't.
type LeadFilter struct {
	Status      parley.LeadStatus
	CampaignID  int64
	PhoneNumber string
	From, To    parley.Time // To is exclusive
}

// Leads is a page of the user's leads, newest first.
func (q Query) Leads(ctx context.Context, userID int64, f LeadFilter, p Page) ([]parley.Lead, int, error) {
	list := []parley.Lead{}
	s := q.q.NewSelect().TableExpr("leads").Where("user_id = ?", userID)
	only(s, "status", f.Status)
	only(s, "campaign_id", f.CampaignID)
	only(s, "phone_number", f.PhoneNumber)
	between(s, f.From, f.To)
	gone, err := q.deletedCampaigns(ctx, userID)
	if err != nil {
		return list, 0, err
	}
	if len(gone) > 0 {
		s.Where("campaign_id NOT IN (?)", bun.List(gone))
	}
	total, more, err := pageOf(ctx, s, p, "id", s.Count)
	if err == nil && more {
		err = q.q.NewSelect().Model(&list).Where("id IN (?)", s).OrderExpr("id DESC").Scan(ctx)
	}
	if err != nil {
		return list, total, err
	}
	return list, total, q.nameCampaigns(ctx, userID, list)
}

// LeadsAfter are leads of a campaign of the user's with a higher id, by id.
func (q Query) LeadsAfter(ctx context.Context, userID, campaignID, id int64, limit int) (list []parley.Lead,
	err error) {
	err = q.q.NewSelect().Model(&list).Where("campaign_id = ? AND user_id = ? AND id > ?", campaignID, userID,
		id).Order("id").Limit(int64(limit)).Scan(ctx)
	return list, err
}

// LeadsToCall are leads of a campaign of the user's that are to be called, with a higher id, by id: their numbers and
// variables alone.
func (q Query) LeadsToCall(ctx context.Context, userID, campaignID, after int64, limit int) (list []parley.Lead,
	err error) {
	err = q.q.NewSelect().Model(&list).Column("id", "phone_number", "variables").
		Where("campaign_id = ? AND user_id = ? AND id > ? AND due_at > 0", campaignID, userID,
			after).Order("id").Limit(int64(limit)).Scan(ctx)
	return list, err
}

// AddLeads stores new leads of a campaign of the user's, which must be valid: those whose number is on the blacklist
// as blacklisted, the others to be called. A number that the campaign has already is left out unless duplicates are
// wanted; added says which were stored.
func (tx *Tx) AddLeads(ctx context.Context, userID, campaignID int64, list []*parley.Lead,
	duplicates bool) (added []bool, err error) {
	var numbers []string
	for _, l := range list {
		numbers = append(numbers, l.Numbers()...)
	}
	blocked, err := tx.Blacklisted(ctx, userID, numbers)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	has, err := tx.CampaignNumbers(ctx, userID, campaignID, numbers)
	if err != nil {
		return nil, err
	}
	now := parley.Now()
	rows := make([]*parley.Lead, 0, len(list))
	added = make([]bool, len(list))
	for i, l := range list {
		l.ID, l.UserID, l.CampaignID, l.Status, l.Fresh, l.DueAt, l.Duplicate = 0, userID, campaignID,
			parley.LeadCreated, true, now, has[l.PhoneNumber]
		l.CreatedAt, l.UpdatedAt = parley.DateTime(now), parley.DateTime(now)
		l.Evaluation, l.Extracted = map[string]any{}, map[string]any{}
		if l.Variables == nil {
			l.Variables = map[string]string{}
		}
		if len(l.Contacts) == 0 {
			l.Contacts = nil
		}
		if parley.NumberContacts(l.Contacts); !l.Reach(blocked) {
			l.Move(parley.LeadBlock, now)
		}
		if l.Duplicate && !duplicates {
			continue
		}
		has[l.PhoneNumber], added[i] = true, true
		rows = append(rows, l)
	}
	if len(rows) == 0 {
		return added, nil
	}
	if err := tx.room(ctx, userID, leadLimit, int64(len(rows))); err != nil {
		return nil, err
	}
	if err := tx.insertLeads(ctx, rows, func(l *parley.Lead) { added[slices.Index(list, l)] = false }); err != nil {
		return nil, err
	}
	return added, tx.noteLeads(userID, campaignID, rows)
}

// noteLeads notes leads that were added: one by its id, several by their number, in one entry.
func (tx *Tx) noteLeads(userID, campaignID int64, rows []*parley.Lead) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(l *parley.Lead) bool { return l.ID == 0 })
	if len(rows) == 0 {
		return nil
	}
	of, changes := thing{kind: parley.AuditLead}, []parley.AuditChange{{Field: "campaign_id", To: number(campaignID)}}
	if len(rows) == 1 {
		of.id = strconv.FormatInt(rows[0].ID, 10)
	} else {
		changes = append(changes, parley.AuditChange{Field: "leads", To: number(int64(len(rows)))})
	}
	tx.enter(userID, parley.AuditCreated, of, "", changes)
	return nil
}

func number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// CampaignNumbers says which of some numbers a campaign of the user's has leads with.
func (q Query) CampaignNumbers(ctx context.Context, userID, campaignID int64, numbers []string) (map[string]bool,
	error) {
	var there []string
	// The plus keeps SQLite from reading the whole campaign by its index of the user's leads.
	err := q.q.NewRaw("SELECT phone_number FROM leads WHERE campaign_id = ? AND +user_id = ? AND phone_number IN (?)", campaignID, userID,
		bun.List(numbers)).Scan(ctx, &there)
	has := make(map[string]bool, len(there))
	for _, n := range there {
		has[n] = true
	}
	return has, err
}

// insertLeads stores rows and gives them their ids. refused is told of those whose number another transaction has
// added to the campaign just now.
func (tx *Tx) insertLeads(ctx context.Context, rows []*parley.Lead, refused func(*parley.Lead)) error {
	type row struct {
		ID          int64
		PhoneNumber string
		Duplicate   bool
	}
	var stored []row
	_, err := tx.q.NewInsert().Model(&rows).On("CONFLICT (campaign_id, phone_number) WHERE NOT duplicate DO NOTHING").
		Returning("id, phone_number, duplicate").Exec(ctx, &stored)
	if err != nil {
		return err
	}
	// as they were given: no order is promised
	slices.SortFunc(stored, func(a, b row) int { return cmp.Compare(a.ID, b.ID) })
	ids := make(map[row][]int64, len(stored))
	for _, s := range stored {
		key := row{0, s.PhoneNumber, s.Duplicate}
		ids[key] = append(ids[key], s.ID)
	}
	for _, l := range rows {
		key := row{0, l.PhoneNumber, l.Duplicate}
		if len(ids[key]) == 0 {
			refused(l)
			continue
		}
		l.ID, ids[key] = ids[key][0], ids[key][1:]
	}
	return nil
}

// SaveLead stores a changed lead.
func (tx *Tx) SaveLead(ctx context.Context, userID int64, l *parley.Lead) error {
	if len(l.Contacts) == 0 {
		l.Contacts = nil
	}
	res, err := tx.q.NewUpdate().Model(l).ExcludeColumn("id", "user_id",
		"created_at").Where("id = ? AND user_id = ?", l.ID, userID).Exec(ctx)
	err = one(res, leadOnce(err), leadNotFound)
	if tx.seen[thing{parley.AuditLead, strconv.FormatInt(l.ID, 10)}] == nil { // not by somebody who changes this lead
		return err
	}
	return tx.note(userID, parley.AuditChanged, parley.AuditLead, l.ID, l, err)
}

func leadOnce(err error) error {
	if violates(err, "leads.campaign_id, leads.phone_number", "leads_once") {
		return DuplicateLead
	}
	return err
}

// DuplicateLead is the refusal of a number that a campaign has already.
var DuplicateLead = parley.Fields{{Name: "phone_number",
	Messages: []string{"The phone_number is in this campaign already: send allow_duplicate to add it again."}}}.Err()

// DeleteLead removes a lead. A call that it has just now goes on.
func (tx *Tx) DeleteLead(ctx context.Context, userID, id int64) error {
	res, err := tx.q.NewRaw("DELETE FROM leads WHERE id = ? AND user_id = ? AND campaign_id IN (SELECT id FROM campaigns "+
		"WHERE user_id = ? AND deleted_at = 0)",
		id, userID, userID).Exec(ctx)
	return tx.note(userID, parley.AuditDeleted, parley.AuditLead, id, nil, one(res, err, leadNotFound))
}

// dropContacts removes a customer's number from among the further numbers of the user's leads: one step of it, that
// says whether there is more.
func (tx *Tx) dropContacts(ctx context.Context, userID int64, phone string) (more bool, err error) {
	var list []parley.Lead
	err = tx.locked(tx.q.NewSelect().Model(&list).Where("user_id = ? AND contacts IS NOT NULL AND CAST(contacts AS TEXT) LIKE ?", userID,
		`%"`+phone+`"%`).
		Limit(Step)).Scan(ctx)
	dropped := 0
	for i := range list {
		if err == nil && list[i].DropContact(phone, parley.Now()) {
			dropped++
			err = tx.SaveLead(ctx, userID, &list[i])
		}
	}
	return dropped == Step, err
}

// ClaimLeads takes at most n leads of a campaign that are due, for owner until then: those that are tried again first,
// longest due first. The campaign must be locked. Leads that owner has not called by then are due again.
func (tx *Tx) ClaimLeads(ctx context.Context, campaignID int64, n int, owner string, now,
	until parley.Time) ([]parley.Lead, error) {
	list := make([]parley.Lead, 0, n)
	for _, which := range []string{"NOT fresh", "fresh"} {
		if len(list) >= n {
			break
		}
		var some []parley.Lead
		err := tx.q.NewRaw(`UPDATE leads SET `+leadClaim.set+`, due_at = ?, owner = ? WHERE `+leadClaim.from+` AND id IN (SELECT id FROM leads
			WHERE campaign_id = ? AND due_at > 0 AND due_at <= ? AND `+which+` ORDER BY due_at, id LIMIT ?`+tx.skipLocked()+`) RETURNING *`,
			until, owner, campaignID, now, n-len(list)).Scan(ctx, &some)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(some, func(a, b parley.Lead) int { return int(a.ID - b.ID) })
		list = append(list, some...)
	}
	return list, nil
}

// BlockLeads says of claimed leads that they must not be called.
func (tx *Tx) BlockLeads(ctx context.Context, ids []int64, now parley.Time) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.q.NewRaw("UPDATE leads SET "+leadBlock.set+
		", due_at = 0, next_attempt_at = 0, owner = '', updated_at = ? WHERE id IN (?) AND "+leadBlock.from,
		now, bun.List(ids)).Exec(ctx)
	return err
}

// DialLead notes, in the transaction that makes it, that a claimed lead is being called; false when it must not be:
// the claim has lapsed and another has taken it, it was blocked, closed or deleted, its campaign is in progress no
// more, or open says that it must not call now. Whoever stops a campaign waits for this transaction, or this one sees
// the stop.
func (tx *Tx) DialLead(ctx context.Context, l *parley.Lead, callID int64, now, watch parley.Time,
	open func(*parley.Campaign) bool) (bool, error) {
	var list []parley.Campaign
	s := tx.lock(tx.q.NewSelect().Model(&list).Where("id = ?", l.CampaignID).Where(campaignRuns), "SHARE")
	if err := s.Scan(ctx); err != nil || len(list) == 0 || !open(&list[0]) {
		return false, err
	}
	return some(tx.q.NewRaw(`UPDATE leads SET `+leadDial.set+`, serial = serial + 1, attempts = attempts + 1, last_call_id = ?, due_at = 0, next_attempt_at = 0,
		owner = '', watch_at = ?, updated_at = ? WHERE id = ? AND `+leadDial.from+` AND owner = ? AND serial = ?`,
		callID, watch, now, l.ID, l.Owner, l.Serial).Exec(ctx))
}

// GiveUpLead has a claimed lead wait again, until due, as before its claim.
func (tx *Tx) GiveUpLead(ctx context.Context, l *parley.Lead, due parley.Time) error {
	_, err := tx.q.NewRaw(`UPDATE leads SET `+leadGiveUp.set+`, due_at = ?, owner = ''
		WHERE id = ? AND `+leadGiveUp.from+` AND owner = ? AND serial = ?`, due, l.ID, l.Owner, l.Serial).Exec(ctx)
	return err
}

// GiveUpAll has all leads wait again that owner has claimed and not called.
func (tx *Tx) GiveUpAll(ctx context.Context, owner string, now parley.Time) error {
	_, err := tx.q.NewRaw(`UPDATE leads SET `+leadGiveUp.set+`, due_at = ?, owner = ''
		WHERE `+leadGiveUp.from+` AND owner = ? AND owner <> ''`, now, owner).Exec(ctx)
	return err
}

// ForgiveLeads gives leads of a campaign back the attempt that a broken line took. They wait until due at least.
func (tx *Tx) ForgiveLeads(ctx context.Context, campaignID int64, ids []int64, now, due parley.Time) error {
	if len(ids) == 0 {
		return nil
	}
	later := "CASE WHEN due_at > ? THEN due_at ELSE ? END"
	_, err := tx.q.NewRaw(`UPDATE leads SET `+leadForgive.set+`, attempts = attempts - 1, due_at = `+later+`, next_attempt_at = `+later+`, updated_at = ?
		WHERE campaign_id = ? AND id IN (?) AND outcome = 'failed' AND attempts > 0 AND serial - base - attempts < ?
		AND `+leadForgive.from, due, due, due, due, now, campaignID, bun.List(ids), parley.Uncounted).Exec(ctx)
	return err
}

// WatchedLeads are leads, of whatever user, whose call should have been heard of by now, and keeps them from others
// for a while.
func (tx *Tx) WatchedLeads(ctx context.Context, now, until parley.Time, limit int) (list []parley.Lead, err error) {
	err = tx.q.NewRaw(
		`UPDATE leads SET watch_at = ? WHERE id IN (SELECT id FROM leads WHERE watch_at > 0 AND watch_at <= ? ORDER BY watch_at LIMIT ?`+
			tx.skipLocked()+`) RETURNING *`,
		until, now, limit).Scan(ctx, &list)
	return list, err
}

// InCampaign says whether a campaign has another lead than except with a number.
func (q Query) InCampaign(ctx context.Context, campaignID int64, number string, except int64) (bool, error) {
	return q.q.NewSelect().Model((*parley.Lead)(nil)).Where("campaign_id = ? AND phone_number = ? AND id <> ?",
		campaignID, number, except).Exists(ctx)
}
