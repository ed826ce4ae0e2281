package console

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/sheet"
	"parley/internal/store"
	"parley/internal/web"
)

// sheet sends a list in the reader's time zone, as spreadsheets in the browser's language expect it.
func (c *Console) sheet(r *request, write func(zone *time.Location, out sheet.File) error) (*answer, error) {
	local := sheet.Local(browserLanguage(r.Request))
	return nil, web.SendCSV(r.w, r.Request, func(begin func(string) io.Writer) error {
		return write(r.zone(), sheet.File{Begin: begin, Local: local})
	})
}

// browserLanguage returns the first language that a browser asks for, such as "de-AT", "" if it asks for none.
func browserLanguage(r *http.Request) string {
	language, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	language, _, _ = strings.Cut(language, ";")
	return strings.TrimSpace(language)
}

// asked reads a list's filters; a list that is asked for by wrong ones is not found.
func asked(r *request, q any) error {
	if len(r.query(q)) > 0 {
		return parley.Errorf(parley.NotFound, "There is no such list.")
	}
	return nil
}

func (c *Console) callSheet(r *request) (*answer, error) {
	var q callQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Calls(r.Context(), c.DB, r.UserID(), q.filter(r.UserID(), zone), zone, out)
	})
}

func (c *Console) conversationSheet(r *request) (*answer, error) {
	var q inboxQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Conversations(r.Context(), c.DB, r.UserID(), q.filter(r), zone, out)
	})
}

func (c *Console) campaignSheet(r *request) (*answer, error) {
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Campaigns(r.Context(), c.DB, r.UserID(), zone, out)
	})
}

func (c *Console) smsSheet(r *request) (*answer, error) {
	var q smsQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Texts(r.Context(), c.DB, r.UserID(), q.filter(zone), zone, out)
	})
}

func (c *Console) ledgerSheet(r *request) (*answer, error) {
	var q dates
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		from, to := q.bounds(zone)
		return sheet.Ledger(r.Context(), c.DB, r.UserID(), from, to, zone, out)
	})
}

func (c *Console) deliverySheet(r *request) (*answer, error) {
	var q deliveryQuery
	if err := asked(r, &q); err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Deliveries(r.Context(), c.DB, r.UserID(), parley.EventKind(q.Event), parley.DeliveryStatus(q.Status), zone, out)
	})
}

// whole sends a list that has no filters.
func (c *Console) whole(write func(context.Context, *store.DB, int64, *time.Location, sheet.File) error) handler {
	return func(r *request) (*answer, error) {
		return c.sheet(r, func(zone *time.Location, out sheet.File) error {
			return write(r.Context(), c.DB, r.UserID(), zone, out)
		})
	}
}

func (c *Console) documentSheet(r *request) (*answer, error) {
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.Documents(r.Context(), c.DB, r.UserID(), r.id("id"), zone, out)
	})
}

func (c *Console) runSheet(r *request) (*answer, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return c.sheet(r, func(zone *time.Location, out sheet.File) error {
		return sheet.TestRuns(r.Context(), c.DB, r.UserID(), a.ID, zone, out)
	})
}
