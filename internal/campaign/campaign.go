// Package campaign calls lists of people.
//
// # Who is called when
//
// Plan is pure: from the running campaigns' states it says how many calls each begins now. Run reads those states,
// claims as many leads as were granted, and has them called. Everything that decides is in the database: how many
// calls there are, whose turn a number is, what failed in a row. So several processes may run the same campaigns, and
// any of them may die.
//
// # Once
//
// A claim moves a lead's due_at on by a lease, under the lock of its campaign. The transaction that makes the call
// moves the lead from scheduled to processing, if the claim still holds and the campaign still runs; a call is unique
// per lead and attempt besides. A claim whose process dies lapses and is taken up. The transaction that ends a call
// which nobody took, or completes the report of one that somebody took, writes its lead's next step (Unanswered,
// Finished).
package campaign

import (
	"cmp"
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"sync"

	"parley/internal/billing"
	"parley/internal/blob"
	"parley/internal/event"
	"parley/internal/form"
	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

// Config is what campaigns are made with.
type Config struct {
	DB     *store.DB
	Prices *billing.Prices
	Blobs  blob.Store // keeps lists until they are imported
	Node   string     // this process's id, at what it has claimed; "": one of its own
	Hub    *event.Hub // is told how imports get on, where not nil (see Topic)
	// Allow says whether a number may be called from here at all; nil: any.
	Allow func(e164 string) bool
	Mail  *mail.Sender // tells owners of starts that were refused; nil: nobody is told by e-mail
	URL   string       // what links in e-mails begin with
}

// Roster makes and changes campaigns, and is told what their calls came to. A Runner has them called.
type Roster struct {
	Config
	node string // names this process at what it has claimed
	wake chan struct{}

	mu    sync.Mutex
	woken map[int64]bool // users whose campaigns are to be looked at
}

// New makes a roster.
func New(c Config) *Roster {
	return &Roster{Config: c, node: cmp.Or(c.Node, rand.Text()), wake: make(chan struct{}, 1), woken: map[int64]bool{}}
}

// Wake has a user's campaigns looked at: something has happened that may let them call. It never waits.
func (d *Roster) Wake(userID int64) {
	d.mu.Lock()
	d.woken[userID] = true
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Topic is the hub's topic of what happens to a campaign.
func Topic(campaignID int64) string { return "campaign:" + strconv.FormatInt(campaignID, 10) }

const assistantMissing = "Assistant not found or not outbound"

// Create makes a campaign from the fields of a request body. The error names every field that fails.
func (d *Roster) Create(ctx context.Context, u *parley.User, body map[string]any) (made *parley.Campaign, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		made = &parley.Campaign{}
		form.Defaults(made)
		fields := form.Bind(body, made, true)
		if err := d.check(ctx, tx.Query, u, nil, made, fields); err != nil {
			return err
		}
		return tx.CreateCampaign(ctx, u.ID, made)
	})
	return made, err
}

// Update changes the fields that body names, also of a campaign that is in progress; the whole must be valid
// afterwards. A body that changes nothing writes nothing.
func (d *Roster) Update(ctx context.Context, u *parley.User, id int64, body map[string]any) (c *parley.Campaign,
	err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if c, err = tx.CampaignForUpdate(ctx, u.ID, id); err != nil {
			return err
		}
		old := *c
		fields := form.Bind(body, c, false)
		if err := d.check(ctx, tx.Query, u, &old, c, fields); err != nil {
			return err
		}
		if reflect.DeepEqual(&old, c) {
			return nil
		}
		return tx.SaveCampaign(ctx, u.ID, c)
	})
	if err != nil {
		return nil, err
	}
	d.Wake(u.ID)
	return c, nil
}

// check judges a campaign over old, what it was; nil for a new one. Wrong fields are reported before a missing
// assistant.
func (d *Roster) check(ctx context.Context, q store.Query, u *parley.User, old, c *parley.Campaign,
	fields parley.Fields) error {
	facts := parley.CampaignFacts{Account: u, Plan: d.Prices.Plan(u.Plan)}
	missing := false
	if !fields.Has("assistant_id") {
		a, err := q.Assistant(ctx, u.ID, c.AssistantID)
		switch {
		case err != nil && !store.IsNotFound(err):
			return err
		case err == nil && a.Type == "outbound":
			facts.Assistant = a
		default:
			missing = old == nil || old.AssistantID != c.AssistantID
		}
	}
	var err error
	if facts.Numbers, err = q.OwnNumbers(ctx, u.ID, c.PhoneNumberIDs); err != nil {
		return err
	}
	c.Check(old, facts, &fields)
	if err := fields.Err(); err != nil || !missing {
		return err
	}
	return parley.Errorf(parley.NotFound, assistantMissing)
}

// Delete hides a campaign and its leads. Its live calls go on, and its calls keep its name.
func (d *Roster) Delete(ctx context.Context, userID, id int64) error {
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteCampaign(ctx, userID, id) })
	d.Wake(userID)
	return err
}

// Stats are the counts of a campaign.
func (d *Roster) Stats(ctx context.Context, userID, id int64) (*parley.CampaignStats, error) {
	c, err := d.DB.Campaign(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	leads, err := d.DB.LeadCounts(ctx, userID, id)
	stats := c.Stats(leads)
	return &stats, err
}

// Begin has a campaign call its leads from now on, in its hours.
func (d *Roster) Begin(ctx context.Context, userID, id int64) (c *parley.Campaign, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if c, err = tx.CampaignForUpdate(ctx, userID, id); err != nil {
			return err
		}
		to, ok := parley.CampaignMoves[c.Status][parley.CampaignStart]
		if !ok {
			return parley.Errorf(parley.Refused, "The campaign is already in progress.")
		}
		if err := d.ready(ctx, tx.Query, userID, c); err != nil {
			return err
		}
		return begin(ctx, tx, c, to)
	})
	d.Wake(userID)
	return c, err
}

func begin(ctx context.Context, tx *store.Tx, c *parley.Campaign, to parley.CampaignStatus) error {
	c.Status, c.StartsAt, c.StartedAt, c.CompletedAt = to, 0, parley.Now(), 0
	c.PausedUntil, c.PauseReason, c.Failing, c.Pauses = 0, nil, []int64{}, 0
	return tx.SaveCampaignRun(ctx, c.UserID, c)
}

// errImporting is why a campaign does not begin while its list is not complete.
var errImporting = parley.Errorf(parley.Refused, "A list is being imported into this campaign: start it when the import has ended.")

// ready says why a campaign can't begin, nil when it can.
func (d *Roster) ready(ctx context.Context, q store.Query, userID int64, c *parley.Campaign) error {
	refuse := func(text string) error { return parley.Errorf(parley.Refused, "%s", text) }
	a, err := q.Assistant(ctx, userID, c.AssistantID)
	switch {
	case store.IsNotFound(err):
		return refuse("The campaign's assistant was deleted: choose another.")
	case err != nil:
		return err
	case a.Type != "outbound":
		return refuse("The campaign's assistant is no longer outbound: choose another.")
	case a.Status != "active":
		return refuse("The campaign's assistant is inactive: activate it first.")
	case len(c.PhoneNumberIDs) == 0 && a.PhoneNumberID == nil:
		return refuse("There is no phone number to call from: give the campaign or its assistant one.")
	}
	if im, err := q.LastImport(ctx, userID, c.ID); err != nil || im != nil && im.EndedAt == 0 {
		if err == nil {
			err = errImporting
		}
		return err
	}
	if left, err := q.LeadsLeft(ctx, c.ID); err != nil || !left {
		if err == nil {
			err = refuse("The campaign has no leads to call.")
		}
		return err
	}
	if free, err := q.Free(ctx, userID); err != nil || free <= 0 {
		if err == nil {
			err = refuse("Insufficient balance")
		}
		return err
	}
	return nil
}

// Stop has a campaign begin no more calls: none begins after Stop has returned. Those that are live go on.
func (d *Roster) Stop(ctx context.Context, userID, id int64) (c *parley.Campaign, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if c, err = tx.CampaignForUpdate(ctx, userID, id); err != nil {
			return err
		}
		to, ok := parley.CampaignMoves[c.Status][parley.CampaignStop]
		if !ok {
			return parley.Errorf(parley.Refused, "The campaign is not in progress.")
		}
		c.Status, c.PausedUntil, c.PauseReason = to, 0, nil
		return tx.SaveCampaignRun(ctx, userID, c)
	})
	return c, err
}
