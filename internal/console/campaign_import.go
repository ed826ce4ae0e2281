package console

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/a-h/templ"

	"parley"
	"parley/internal/campaign"
)

// listLimit bounds a list of leads, as the API bounds it.
const listLimit = 64 << 20

// campaignImport adds the list in a form to a campaign, campaignCheck looks at it only. Either says what is wrong
// with which row.
func (c *Console) campaignImport(r *request) (*answer, error) { return c.takeList(r, false) }
func (c *Console) campaignCheck(r *request) (*answer, error)  { return c.takeList(r, true) }

func (c *Console) takeList(r *request, dry bool) (*answer, error) {
	if _, err := c.DB.Campaign(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	file, duplicates, err := c.listFile(r)
	if err != nil {
		return nil, err
	}
	var report *campaign.ImportReport
	wrong := "Choose a CSV file first."
	if file != nil {
		defer os.Remove(file.Name())
		defer file.Close()
		size, err := file.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
		if err != nil {
			return nil, fmt.Errorf("read the list: %w", err)
		}
		report, err = c.Campaigns.ImportLeads(r.Context(), r.UserID(),
			campaign.Import{CampaignID: r.id("id"), File: file, Size: size, Duplicates: duplicates, Dry: dry, Rejected: true})
		var e *parley.Error
		switch {
		case errors.As(err, &e) && e.Kind == parley.Invalid:
			wrong = e.Message
		case err != nil:
			return nil, err
		}
	}
	v, err := c.campaign(r)
	if err != nil {
		return nil, err
	}
	if v.report, v.checked = report, dry; report == nil {
		v.wrong = wrong
		return invalid(v.Name, campaignPage(v)), nil
	}
	return show(v.Name, campaignPage(v)), nil
}

// listFile keeps the file of a form on disk: only the whole form says what is to be done with it. It is nil where the
// form has none.
func (c *Console) listFile(r *request) (file *os.File, duplicates bool, err error) {
	body := r.upload(listLimit)
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, false, formError(err)
	}
	defer func() {
		if err != nil && file != nil {
			file.Close()
			os.Remove(file.Name())
			file = nil
		}
	}()
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return file, duplicates, nil
		}
		if err != nil {
			return file, false, formError(err)
		}
		switch {
		case part.FileName() != "" && file == nil:
			if file, err = os.CreateTemp("", "parley-import-"); err != nil {
				return nil, false, fmt.Errorf("keep the list: %w", err)
			}
			if _, err = io.Copy(file, part); err != nil && body.Err != nil {
				err = formError(body.Err)
			}
		case part.FormName() == "allow_duplicate":
			var text []byte
			text, err = io.ReadAll(io.LimitReader(part, 10))
			duplicates = string(text) == "1"
		}
		if err != nil {
			return file, false, err
		}
	}
}

// rejected is the list of the rows that were left out, as an address: the page has it, and the server keeps nothing.
func (v *campaignView) rejected() templ.SafeURL {
	return templ.SafeURL("data:text/csv;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(v.report.Rejected)))
}

// mostTold is how many bad rows a page shows.
const mostTold = 200
