package campaign

import (
	"context"
	"maps"

	"parley/internal/parley"
	"parley/internal/store"
)

// AddLead adds a lead to one of the user's campaigns; one whose number is on the blacklist is added as blacklisted.
func (d *Roster) AddLead(ctx context.Context, userID int64, l *parley.Lead, duplicate bool) error {
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.Campaign(ctx, userID, l.CampaignID)
		if err != nil {
			return err
		}
		added, err := tx.AddLeads(ctx, userID, c.ID, []*parley.Lead{l}, duplicate)
		if err == nil && !added[0] {
			err = store.DuplicateLead
		}
		l.Campaign = parley.EventCampaign{ID: c.ID, Name: c.Name}
		l.ShowContacts()
		return err
	})
	d.Wake(userID)
	return err
}

// LeadChange is what a user may change about a lead; nil leaves it as it is.
type LeadChange struct {
	PhoneNumber *string // E.164
	Variables   map[string]string
	Without     []string // variables that go
	// created: call it from the start; completed: call it no more; reached-max-retries: likewise, in vain
	Status      *parley.LeadStatus
	CampaignID  *int64 // where it moves to
	Contacts    []parley.LeadContact
	NewContacts bool // Contacts take the place of those that there are
	Duplicate   bool // the campaign may have the number already
}

// ChangeLead changes a lead. Variables are laid over those that there are.
func (d *Roster) ChangeLead(ctx context.Context, userID, id int64, ch LeadChange) (l *parley.Lead, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if l, err = tx.LeadForUpdate(ctx, userID, id); err != nil {
			return err
		}
		now := parley.Now()
		if err := d.rewrite(ctx, tx, l, ch, now); err != nil {
			return err
		}
		merged := maps.Clone(l.Variables)
		for _, name := range ch.Without {
			delete(merged, name)
		}
		maps.Copy(merged, ch.Variables)
		var wrong parley.Fields
		if parley.CheckVariables(merged, &wrong); len(wrong) > 0 && len(ch.Variables) > 0 {
			return wrong.Err()
		}
		l.Variables, l.UpdatedAt = merged, parley.DateTime(now)
		l.Move(parley.LeadGiveUp, now) // who is about to call would call what it was
		if err := d.moveLead(ctx, tx, l, ch.Status, now); err != nil {
			return err
		}
		if err := tx.SaveLead(ctx, userID, l); err != nil {
			return err
		}
		l, err = tx.Lead(ctx, userID, id)
		return err
	})
	d.Wake(userID)
	return l, err
}

// rewrite changes whom a lead calls, and for which campaign: not while it is called.
func (d *Roster) rewrite(ctx context.Context, tx *store.Tx, l *parley.Lead, ch LeadChange,
	now parley.Time) (err error) {
	was := *l
	if ch.PhoneNumber != nil {
		l.PhoneNumber = *ch.PhoneNumber
	}
	if ch.CampaignID != nil {
		l.CampaignID = *ch.CampaignID
	}
	called := l.Status == parley.LeadProcessing || l.WatchAt > 0 && l.CampaignID != was.CampaignID
	moved := l.PhoneNumber != was.PhoneNumber || l.CampaignID != was.CampaignID
	switch {
	case called && (moved || ch.NewContacts):
		return errBeingCalled
	case l.CampaignID != was.CampaignID:
		if _, err := tx.Campaign(ctx, l.UserID, l.CampaignID); err != nil {
			return err
		}
	}
	if moved {
		if l.Duplicate, err = tx.InCampaign(ctx, l.CampaignID, l.PhoneNumber, l.ID); err != nil {
			return err
		}
		if l.Duplicate && !ch.Duplicate {
			return store.DuplicateLead
		}
	}
	if !ch.NewContacts {
		return nil
	}
	l.Contacts = parley.NumberContacts(ch.Contacts)
	if l.Contact > 0 { // its own number was tried: it goes on with the first of the new ones
		l.Contact = 0
		if !l.NextContact("") && l.Status.Waiting() {
			l.Move(parley.LeadWriteOff, now)
		}
	}
	return nil
}

var errBeingCalled = &parley.Error{Kind: parley.Conflict, Message: "The lead is being called just now."}

// moveLead does what a user wants of a lead's status, and sees to it that a number on the blacklist is not called.
func (d *Roster) moveLead(ctx context.Context, tx *store.Tx, l *parley.Lead, status *parley.LeadStatus,
	now parley.Time) error {
	switch {
	case status == nil, *status == l.Status:
	case *status == parley.LeadCreated:
		if !l.Move(parley.LeadReset, now) {
			return errBeingCalled
		}
	case *status == parley.LeadExhausted:
		l.Move(parley.LeadWriteOff, now)
	default:
		l.Move(parley.LeadClose, now)
	}
	if !l.Status.Waiting() {
		return nil
	}
	blocked, err := tx.Blacklisted(ctx, l.UserID, l.Numbers())
	if err == nil && !l.Reach(blocked) {
		if status != nil {
			return parley.Fields{{Name: "status", Messages: []string{
				"The status can't be created: the phone_number is on the blacklist."}}}.Err()
		}
		l.Move(parley.LeadBlock, now)
	}
	return err
}

// Blacklist keeps the user's campaigns from calling a number.
func (d *Roster) Blacklist(ctx context.Context, userID int64, number string) (e *parley.BlacklistEntry, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		e, err = tx.AddToBlacklist(ctx, userID, number)
		return err
	})
	d.Wake(userID) // a campaign may have no leads left
	return e, err
}

// Unlist lets the user's campaigns call a number again, by the id of its entry on the blacklist.
func (d *Roster) Unlist(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return tx.DropFromBlacklist(ctx, userID, id)
	})
}

// DeleteLead removes a lead. A call that it has just now goes on.
func (d *Roster) DeleteLead(ctx context.Context, userID, id int64) error {
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteLead(ctx, userID, id) })
	d.Wake(userID) // the campaign may have none left
	return err
}
