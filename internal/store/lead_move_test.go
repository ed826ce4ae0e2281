package store_test

import (
	"context"
	"errors"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// From every state, with and without attempts, every event moves a lead in SQL to the state that the table of moves
// says, and no other.
func TestLeadMovesInSQL(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, parley.USD)
		a := assistant(t, db, u.ID, func(a *parley.Assistant) { a.Type = "outbound" })
		c := &parley.Campaign{Name: "C", AssistantID: a.ID, Timezone: "UTC", MaxCallsInParallel: 1,
			AllowedDays: []string{}}
		l := &parley.Lead{PhoneNumber: "+14155550123"}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateCampaign(ctx, u.ID, c); err != nil {
				return err
			}
			_, err := tx.AddLeads(ctx, u.ID, c.ID, []*parley.Lead{l}, false)
			return err
		})
		events := map[parley.LeadEvent]bool{}
		for _, moves := range parley.LeadMoves {
			for e := range moves {
				events[e] = true
			}
		}
		for _, from := range parley.LeadStatuses {
			for e := range events {
				for attempts := range 2 {
					l.Status, l.Attempts = from, attempts
					write(t, db, func(ctx context.Context, tx *store.Tx) error {
						return errors.Join(tx.SaveLead(ctx, u.ID, l), store.MoveLead(ctx, tx, l.ID, e))
					})
					got, err := db.Lead(t.Context(), u.ID, l.ID)
					if err != nil {
						t.Fatal(err)
					}
					want := *l
					want.Move(e, parley.Now())
					if got.Status != want.Status {
						t.Errorf("%s from %s after %d attempts leads to %s, want %s", e, from, attempts, got.Status,
							want.Status)
					}
				}
			}
		}
	})
}
