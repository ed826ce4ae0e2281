package console

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"parley/internal/campaign"
	"parley/internal/parley"
	"parley/internal/store"
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
	form, err := c.listFile(r)
	if err != nil {
		return nil, err
	}
	file := form.file
	var names []string
	var report *campaign.ImportReport
	wrong := "Choose a file first: CSV, or a spreadsheet (XLSX)."
	if file != nil {
		defer os.Remove(file.Name())
		defer file.Close()
		size, err := file.Seek(0, io.SeekEnd)
		if err == nil {
			names, err = campaign.Columns(r.Context(), file, size)
		}
		if err != nil {
			return nil, fmt.Errorf("read the list: %w", err)
		}
		report, err = c.Campaigns.ImportLeads(r.Context(), r.UserID(),
			campaign.Import{CampaignID: r.id("id"), File: file, Size: size, Duplicates: form.duplicates, Dry: dry,
				Columns: form.columns(), Rejected: true, Country: form.country(r)})
		var e *parley.Error
		switch {
		case errors.As(err, &e) && (e.Kind == parley.Invalid || e.Kind == parley.Refused || e.Kind == parley.TooMany):
			wrong = e.Message
		case err != nil:
			return nil, err
		}
	}
	v, err := c.campaign(r)
	if err != nil {
		return nil, err
	}
	if dry || report == nil {
		if err := c.listColumns(r, v, names, form.columns()); err != nil {
			return nil, err
		}
	}
	v.country = form.country(r)
	if v.report, v.checked = report, dry; report == nil {
		v.wrong = wrong
		return invalid(v.Name, campaignPage(v)).in(v.Timezone), nil
	}
	return show(v.Name, campaignPage(v)).in(v.Timezone), nil
}

// listForm is a form with a list.
type listForm struct {
	file       *os.File // nil: it has none
	duplicates bool
	texts      url.Values
}

// country is where the list's national numbers are read: the form's choice, or the account's country.
func (f *listForm) country(r *request) string {
	if !f.texts.Has("country") {
		return r.who.User.Country
	}
	if c := f.texts.Get("country"); parley.CountryName(c) != "" {
		return c
	}
	return ""
}

// columns are what the form says of the list's columns.
func (f *listForm) columns() map[string]string {
	of := map[string]string{}
	for _, i := range indexes(f.texts, "column") {
		at := "column." + strconv.Itoa(i)
		of[f.texts.Get(at+".name")] = f.texts.Get(at + ".as")
	}
	return of
}

// listColumn is a column of a list, and what it is taken for.
type listColumn struct{ name, as string }

// as are what a column can be taken for.
func (v *campaignView) as(l listColumn) []option {
	list := []option{{value: "phone_number", label: "Phone number"}, {label: "Nothing: leave it out"}}
	if !slices.Contains(v.used, l.name) && l.name != "phone_number" {
		list = append([]option{{value: l.name, label: "{{" + l.name + "}}"}}, list...)
	}
	for _, name := range v.used {
		list = append(list, option{value: name, label: "{{" + name + "}}"})
	}
	return list
}

// listColumns notes what the columns of a list are taken for, as said or as it seems best, and what is lacking.
func (c *Console) listColumns(r *request, v *campaignView, names []string, said map[string]string) error {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), v.AssistantID)
	if err != nil {
		if store.IsNotFound(err) {
			return nil
		}
		return err
	}
	for _, name := range parley.VariableNames(a.Texts()...) {
		if !slices.Contains(parley.BuiltinVariables, name) {
			v.used = append(v.used, name)
		}
	}
	v.lacking = campaign.Needed(a)
	phone := campaign.PhoneColumn(names)
	for _, as := range said {
		if as == "phone_number" {
			phone = ""
		}
	}
	for _, name := range names {
		as, ok := said[name]
		switch {
		case ok:
		case name == phone:
			as = "phone_number"
		default:
			if as = campaign.Suggest(name, v.used); as == "phone_number" { // one column holds it
				as = name
			}
		}
		v.columns = append(v.columns, listColumn{name, as})
		v.lacking = slices.DeleteFunc(v.lacking, func(n string) bool { return n == as })
	}
	return nil
}

// maxText is how long a text of a list's form may be.
const maxText = 4 << 10

// listFile keeps the file of a form on disk: only the whole form says what is to be done with it.
func (c *Console) listFile(r *request) (f *listForm, err error) {
	f = &listForm{texts: url.Values{}}
	body := r.upload(listLimit)
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, formError(err)
	}
	defer func() {
		if err != nil && f.file != nil {
			f.file.Close()
			os.Remove(f.file.Name())
		}
	}()
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return f, nil
		}
		if err != nil {
			return f, formError(err)
		}
		switch {
		case part.FileName() != "" && f.file == nil:
			if f.file, err = os.CreateTemp("", "parley-import-"); err != nil {
				return f, fmt.Errorf("keep the list: %w", err)
			}
			if _, err = io.Copy(f.file, part); err != nil && body.Err != nil {
				err = formError(body.Err)
			}
		case part.FormName() == "allow_duplicate" || part.FormName() == "country" || strings.HasPrefix(part.FormName(), "column."):
			var text []byte
			text, err = io.ReadAll(io.LimitReader(part, maxText))
			f.texts.Set(part.FormName(), string(text))
			f.duplicates = f.texts.Get("allow_duplicate") == "1"
		}
		if err != nil {
			return f, err
		}
	}
}

// rejected is the list of the rows that were left out, as an address: the page has it, and the server keeps nothing.
func (v *campaignView) rejected() templ.SafeURL {
	return templ.SafeURL("data:text/csv;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(v.report.Rejected)))
}

// lastImport says how the campaign's last list ended, with when.
func (v *campaignView) lastImport(zone *time.Location) string {
	text := count(v.last.Imported, "lead", "leads") + " imported"
	if v.last.Skipped > 0 {
		text += ", " + strconv.Itoa(v.last.Skipped) + " left out"
	}
	return text + ", " + v.last.EndedAt.Time().In(zone).Format("2006-01-02 15:04 MST")
}

// importVersion changes when what is shown of the last import does.
func (v *campaignView) importVersion() string {
	if v.last == nil {
		return ""
	}
	return fmt.Sprintf("%d.%s", v.last.ID, v.last.State)
}

// maxTold is how many bad rows a page shows.
const maxTold = 200
