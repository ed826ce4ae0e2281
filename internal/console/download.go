package console

import (
	"context"
	"io"
	"time"

	"parley"
	"parley/internal/form"
	"parley/internal/sheet"
	"parley/internal/store"
	"parley/internal/web"
)

// sheet sends a list in the reader's time zone.
func (c *Console) sheet(r *request, write func(zone *time.Location, begin sheet.Begin) error) (*answer, error) {
	return nil, web.SendCSV(r.w, r.Request, func(begin func(string) io.Writer) error { return write(r.zone(), begin) })
}

// asked reads a list's filters; a list that is asked for by wrong ones is not found.
func asked(r *request, q any) error {
	if len(form.Query(r.URL.Query(), q)) > 0 {
		return parley.Errorf(parley.NotFound, "There is no such list.")
	}
	return nil
}

func (c *Console) callSheet(r *request) (*answer, error) {
	var q callQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		return sheet.Calls(r.Context(), c.DB, r.UserID(), q.filter(r.UserID(), zone), zone, begin)
	})
}

func (c *Console) conversationSheet(r *request) (*answer, error) {
	var q inboxQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		return sheet.Conversations(r.Context(), c.DB, r.UserID(), q.filter(r), zone, begin)
	})
}

func (c *Console) campaignSheet(r *request) (*answer, error) {
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		return sheet.Campaigns(r.Context(), c.DB, r.UserID(), zone, begin)
	})
}

func (c *Console) smsSheet(r *request) (*answer, error) {
	var q smsQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		return sheet.Texts(r.Context(), c.DB, r.UserID(), q.filter(zone), zone, begin)
	})
}

func (c *Console) ledgerSheet(r *request) (*answer, error) {
	var q dates
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		from, to := q.bounds(zone)
		return sheet.Ledger(r.Context(), c.DB, r.UserID(), from, to, zone, begin)
	})
}

func (c *Console) deliverySheet(r *request) (*answer, error) {
	var q deliveryQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		return sheet.Deliveries(r.Context(), c.DB, r.UserID(), parley.EventKind(q.Event), parley.DeliveryStatus(q.Status), zone, begin)
	})
}

// whole sends a list that has no filters.
func (c *Console) whole(write func(context.Context, *store.DB, int64, *time.Location, sheet.Begin) error) handler {
	return func(r *request) (*answer, error) {
		return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
			return write(r.Context(), c.DB, r.UserID(), zone, begin)
		})
	}
}

func (c *Console) documentSheet(r *request) (*answer, error) {
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		return sheet.Documents(r.Context(), c.DB, r.UserID(), r.id("id"), zone, begin)
	})
}

func (c *Console) runSheet(r *request) (*answer, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, begin sheet.Begin) error {
		return sheet.TestRuns(r.Context(), c.DB, r.UserID(), a.ID, zone, begin)
	})
}
