package parley

import "maps"

// LeadContact is a further number of a lead: it is called when the attempts at the one before it are used up.
type LeadContact struct {
	ID          int64             `json:"id"`           // within its lead, from 1
	PhoneNumber string            `json:"phone_number"` // E.164
	Variables   map[string]string `json:"variables"`    // they go before the lead's own
	Status      LeadStatus        `json:"status"`
}

// MaxContacts is how many further numbers a lead may have.
const MaxContacts = 10

// NumberContacts gives a lead's contacts their ids and their first state.
func NumberContacts(list []LeadContact) []LeadContact {
	for i := range list {
		list[i].ID, list[i].Status = int64(i+1), LeadCreated
		if list[i].Variables == nil {
			list[i].Variables = map[string]string{}
		}
	}
	return list
}

// Target is the number that the lead is called at now, with the variables of that call.
func (l *Lead) Target() (phone string, vars map[string]string) {
	if l.Contact == 0 || l.Contact > len(l.Contacts) {
		return l.PhoneNumber, l.Variables
	}
	c := &l.Contacts[l.Contact-1]
	vars = maps.Clone(l.Variables)
	if vars == nil {
		vars = map[string]string{}
	}
	maps.Copy(vars, c.Variables)
	return c.PhoneNumber, vars
}

// Numbers are all numbers of the lead's.
func (l *Lead) Numbers() []string {
	list := []string{l.PhoneNumber}
	for _, c := range l.Contacts {
		list = append(list, c.PhoneNumber)
	}
	return list
}

// NextContact goes on to the lead's next number, whose attempts begin from 0, and notes what the present one came to;
// false where there is none.
func (l *Lead) NextContact(came LeadStatus) bool {
	if l.Contact > 0 && l.Contact <= len(l.Contacts) {
		l.Contacts[l.Contact-1].Status = came
	}
	if l.Contact >= len(l.Contacts) {
		return false
	}
	l.Contact++
	l.Attempts, l.Base = 0, l.Serial
	return true
}

// Reach goes on to a number that is not blocked, where the present one is; false where there is none.
func (l *Lead) Reach(blocked map[string]bool) bool {
	for phone, _ := l.Target(); blocked[phone]; phone, _ = l.Target() {
		if !l.NextContact(LeadBlacklisted) {
			return false
		}
	}
	return true
}

// ShowContacts brings what is shown of the contacts up to date: the one that is called stands as its lead does.
func (l *Lead) ShowContacts() {
	if l.Contacts == nil {
		l.Contacts = []LeadContact{}
	}
	if l.Contact > 0 && l.Contact <= len(l.Contacts) {
		l.Contacts[l.Contact-1].Status = l.Status
	}
}

// DropContact removes the contacts with a number, and says whether there were any. A lead that is at one goes on with
// the next; one that has none left is called no more.
func (l *Lead) DropContact(phone string, now Time) (dropped bool) {
	var kept []LeadContact
	at := l.Contact
	for i, c := range l.Contacts {
		if c.PhoneNumber != phone {
			kept = append(kept, c)
			continue
		}
		dropped = true
		if i < at-1 {
			l.Contact--
		}
	}
	l.Contacts = kept
	if l.Contact > len(kept) {
		l.Contact = len(kept)
		if l.Status.Waiting() {
			l.Move(LeadWriteOff, now)
		}
	}
	return dropped
}
