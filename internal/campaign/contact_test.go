package campaign

import (
	"context"
	"testing"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
)

// A lead's second number is really dialled when the attempts at the first are used up; a number on the blacklist is
// skipped.
func TestSecondNumberIsDialled(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		camp, elsewhere := h.campaign(map[string]any{"max_retries": num(1)}), h.campaign(nil)
		l := &parley.Lead{CampaignID: camp.ID, PhoneNumber: phone(1), Variables: map[string]string{"name": "Ana"},
			Contacts: []parley.LeadContact{{PhoneNumber: phone(2), Variables: map[string]string{"name": "Bo"}},
				{PhoneNumber: phone(3)}, {PhoneNumber: phone(4)}}}
		if err := h.AddLead(t.Context(), h.user.ID, l, false); err != nil {
			t.Fatal(err)
		}
		h.begin(camp)
		call := func(want, name string, how answer) {
			t.Helper()
			h.due(l.ID)
			if n := h.round(); n != 1 {
				t.Fatalf("%d calls instead of one to %s: %+v", n, want, h.lead(l.ID))
			}
			all := h.dialled()
			d := all[len(all)-1]
			if d.To != want || d.Variables["name"] != name {
				t.Fatalf("%s was called for %v, not %s", d.To, d.Variables, want)
			}
			// not while the lead is being called
			for _, ch := range []LeadChange{{CampaignID: &elsewhere.ID}, {NewContacts: true}} {
				if _, err := h.ChangeLead(t.Context(), h.user.ID, l.ID, ch); err != error(errBeingCalled) {
					t.Errorf("changed while it is called: %v", err)
				}
			}
			h.end(d, how)
		}
		call(phone(1), "Ana", busy)
		call(phone(1), "Ana", nobody)
		if got := h.lead(l.ID); got.Status != parley.LeadRescheduled || got.Contact != 1 || got.Attempts != 0 ||
			got.Contacts[0].Status != parley.LeadRescheduled {
			t.Fatalf("%+v", got)
		}
		if _, err := h.Blacklist(t.Context(), h.user.ID, phone(3)); err != nil {
			t.Fatal(err)
		}
		call(phone(2), "Bo", nobody)
		call(phone(2), "Bo", nobody)
		call(phone(4), "Ana", person)
		got := h.lead(l.ID)
		if got.Status != parley.LeadCompleted || got.Contacts[0].Status != parley.LeadExhausted ||
			got.Contacts[1].Status != parley.LeadBlacklisted || got.Contacts[2].Status != parley.LeadCompleted {
			t.Errorf("%+v", got)
		}
		// The user closes the lead, moves it, and gives it other numbers.
		off, created := parley.LeadExhausted, parley.LeadCreated
		if l, err := h.ChangeLead(t.Context(), h.user.ID, l.ID, LeadChange{Status: &off}); err != nil ||
			l.Status != parley.LeadExhausted {
			t.Errorf("%+v, %v", l, err)
		}
		other := h.campaign(nil)
		moved, err := h.ChangeLead(t.Context(), h.user.ID, l.ID,
			LeadChange{CampaignID: &other.ID, Status: &created, NewContacts: true,
				Contacts: []parley.LeadContact{{PhoneNumber: phone(5)}}})
		if err != nil || moved.CampaignID != other.ID || moved.Campaign.ID != other.ID ||
			len(moved.Contacts) != 1 || moved.Contacts[0].ID != 1 || moved.Status != parley.LeadCreated ||
			moved.Attempts != 0 {
			t.Errorf("%+v, %v", moved, err)
		}
		h.leads(camp, 1, 1)
		if _, err := h.ChangeLead(t.Context(), h.user.ID, l.ID,
			LeadChange{CampaignID: &camp.ID}); err != store.DuplicateLead {
			t.Errorf("its number is in the campaign already: %v", err)
		}
		nobodys := int64(99999)
		if _, err := h.ChangeLead(t.Context(), h.user.ID, l.ID,
			LeadChange{CampaignID: &nobodys}); !store.IsNotFound(err) {
			t.Errorf("to an unknown campaign: %v", err)
		}
		// When the person with a further number is erased, the number goes and the lead stays.
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.EraseCustomer(ctx, h.user.ID, phone(5))
			return err
		})
		if got := h.lead(l.ID); len(got.Contacts) != 0 {
			t.Errorf("%+v", got.Contacts)
		}
	})
}

// If a number is one that Parley never calls, the lead's next number is used, and a lead whose numbers are all on the
// blacklist is not called.
func TestFurtherNumbersOfNoUse(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		camp := h.campaign(nil)
		h.refuse = func(o call.Order) error {
			if o.To == phone(1) {
				return &call.Barred{Number: o.To}
			}
			return nil
		}
		for _, n := range []string{phone(7), phone(8)} {
			if _, err := h.Blacklist(t.Context(), h.user.ID, n); err != nil {
				t.Fatal(err)
			}
		}
		l := &parley.Lead{CampaignID: camp.ID, PhoneNumber: phone(1),
			Contacts: []parley.LeadContact{{PhoneNumber: phone(2)}}}
		blocked := &parley.Lead{CampaignID: camp.ID, PhoneNumber: phone(7),
			Contacts: []parley.LeadContact{{PhoneNumber: phone(8)}}}
		for _, l := range []*parley.Lead{l, blocked} {
			if err := h.AddLead(t.Context(), h.user.ID, l, false); err != nil {
				t.Fatal(err)
			}
		}
		if blocked.Status != parley.LeadBlacklisted {
			t.Errorf("%+v", blocked)
		}
		h.begin(camp)
		h.round()
		h.round()
		all := h.dialled()
		if len(all) != 1 || all[0].To != phone(2) {
			t.Fatalf("%+v; the lead is %+v", all, h.lead(l.ID))
		}
		h.end(all[0], person)
		if got := h.lead(l.ID); got.Status != parley.LeadCompleted {
			t.Errorf("%+v", got)
		}
	})
}
