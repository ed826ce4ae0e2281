package main

import (
	"context"
	"errors"

	"parley"
	"parley/internal/billing"
	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/event"
	"parley/internal/store"
)

// campaigns opens the desk of campaigns and joins it to that of calls: it has them made, and is told when they are over. Call it before calls
// are made.
func campaigns(db *store.DB, prices *billing.Prices, hub *event.Hub, calls *call.Desk, phone *telephone) *campaign.Desk {
	c := campaign.Config{DB: db, Prices: prices, Hub: hub, Allow: calls.Destinations.Allow, Room: func() int { return phone.room(calls.Stats().Live) }}
	if phone.line != nil || phone.sandbox && phone.carrier == nil { // else another process calls
		c.Start = func(ctx context.Context, o campaign.Order) error {
			_, err := calls.Start(ctx, call.Order{UserID: o.UserID, AssistantID: o.AssistantID, To: o.To, Variables: o.Variables, NumberID: o.NumberID,
				CampaignID: o.CampaignID, LeadID: o.LeadID, Attempt: o.Attempt,
				Also: func(ctx context.Context, tx *store.Tx, c *parley.Call) error { return o.Begin(ctx, tx, c.ID) }})
			return err
		}
	}
	d := campaign.New(c)
	calls.Unanswered = append(calls.Unanswered, func(ctx context.Context, tx *store.Tx, c *parley.Call, cause error) error {
		return d.Unanswered(ctx, tx, c, errors.Is(cause, call.ErrNoSuchNumber))
	})
	calls.Finished = append(calls.Finished, d.Finished)
	calls.Describe = append(calls.Describe, d.Describe)
	calls.Ended = append(calls.Ended, func(c *parley.Call) { d.Wake(c.UserID) }) // there is room for another
	return d
}
