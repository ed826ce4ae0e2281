package parley_test

import (
	"testing"
	"time"

	"parley/internal/parley"
)

// When the attempts at one number are used up the next number is tried, at once and with its own attempts; after the
// last number the lead is exhausted.
func TestLeadContacts(t *testing.T) {
	now := parley.Now()
	c := &parley.Campaign{MaxRetries: 1, RetryInterval: 60}
	l := &parley.Lead{PhoneNumber: "+1", Variables: map[string]string{"name": "Ana", "who": "Ana"},
		Status: parley.LeadCreated, Fresh: true,
		Contacts: parley.NumberContacts([]parley.LeadContact{{PhoneNumber: "+2",
			Variables: map[string]string{"who": "Bo"}}, {PhoneNumber: "+3"}})}
	var called []string
	call := func(status parley.CallStatus) {
		phone, vars := l.Target()
		called = append(called, phone+" "+vars["name"]+" "+vars["who"])
		l.Serial++
		l.Attempts++
		id := int64(l.Serial)
		l.Status, l.LastCallID, l.WatchAt = parley.LeadProcessing, &id, 1
		if !l.Finish(c, &parley.LeadCall{ID: id, Serial: l.Serial, Status: status, Reached: true, EndedAt: now}) {
			t.Fatalf("call %d was not written", id)
		}
	}
	for i, due := range []time.Duration{time.Hour, 0, time.Hour, 0, time.Hour} {
		call(parley.CallBusy)
		if l.Status != parley.LeadRescheduled || l.DueAt != now.Add(due) {
			t.Fatalf("after call %d: %s, due in %v, want %v", i, l.Status, l.DueAt.Sub(now), due)
		}
	}
	call(parley.CallBusy)
	want := []string{"+1 Ana Ana", "+1 Ana Ana", "+2 Ana Bo", "+2 Ana Bo", "+3 Ana Ana", "+3 Ana Ana"}
	for i := range want {
		if called[i] != want[i] {
			t.Errorf("call %d was %q, want %q", i, called[i], want[i])
		}
	}
	if l.Status != parley.LeadExhausted || l.Contacts[0].Status != parley.LeadExhausted ||
		l.Contacts[1].Status != parley.LeadExhausted {
		t.Errorf("%+v", l)
	}
	// After a reset, a number on the blacklist is skipped, and the lead is done when a person answers.
	l.Move(parley.LeadReset, now)
	if phone, _ := l.Target(); phone != "+1" || l.Contacts[0].Status != parley.LeadCreated {
		t.Errorf("after a reset: %+v", l)
	}
	if !l.Reach(map[string]bool{"+1": true, "+2": true}) {
		t.Fatal("nobody is left")
	}
	call(parley.CallCompleted)
	l.ShowContacts()
	if called[len(called)-1] != "+3 Ana Ana" || l.Status != parley.LeadCompleted ||
		l.Contacts[0].Status != parley.LeadBlacklisted || l.Contacts[1].Status != parley.LeadCompleted {
		t.Errorf("%q: %+v", called, l)
	}
	if (&parley.Lead{PhoneNumber: "+1"}).Reach(map[string]bool{"+1": true}) {
		t.Error("a number on the blacklist is reached")
	}
	// A lead whose person was erased is not called any more.
	l.Move(parley.LeadReset, now)
	l.NextContact(parley.LeadExhausted)
	if !l.DropContact("+2", now) || l.DropContact("+2", now) || len(l.Contacts) != 1 || !l.Status.Waiting() {
		t.Errorf("%+v", l)
	}
	if phone, _ := l.Target(); phone != "+3" {
		t.Errorf("it goes on with %s", phone)
	}
	if l.DropContact("+3", now); l.Status != parley.LeadExhausted {
		t.Errorf("without a number: %s", l.Status)
	}
}
