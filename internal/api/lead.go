package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"

	"parley/internal/campaign"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// importLimit bounds the body that a list of leads comes in (decisions 1).
const importLimit = 64 << 20

func (a *API) leadRoutes() {
	const tag, missing = "Leads", "Lead not found"
	handle(a, op{Method: "POST", Path: "/user/lead", Name: "createLead", Tag: tag, Idempotent: true,
		Summary: "Add a lead to a campaign"}, a.createLead)
	handle(a, op{Method: "POST", Path: "/user/leads/import", Name: "importLeads", Tag: tag, Body: leadImport{},
		Upload: importLimit, File: "file", Idempotent: true,
		Summary: "Add the rows of a CSV file or a spreadsheet (XLSX) to a campaign; " +
			"the first 1,000 rows that can't be added are reported one by one"},
		a.importLeads)
	handle(a, op{Method: "GET", Path: "/user/leads", Name: "listLeads", Tag: tag,
		Summary: "List leads: with page or per_page a page of them, without either the newest 1,000 as a plain array"}, a.listLeads)
	handle(a, op{Method: "GET", Path: "/user/leads/{id}", Name: "getLead", Tag: tag, NotFound: missing,
		Summary: "Read a lead"}, a.getLead)
	for i, path := range []string{"/user/leads/{id}", "/leads/{id}"} { // clients know both
		short := []string{"", "Short"}[i]
		for _, method := range []string{"PUT", "PATCH"} {
			handle(a, op{Method: method, Path: path,
				Name: map[string]string{"PUT": "updateLead", "PATCH": "patchLead"}[method] + short, Tag: tag,
				NotFound: missing, Body: leadChange{}, Partial: true,
				Summary: "Update a lead: variables are merged; status created calls it from the start, completed stops calling it"},
				a.updateLead)
		}
		handle(a, op{Method: "DELETE", Path: path, Name: "deleteLead" + short, Tag: tag, NotFound: missing,
			Summary: "Delete a lead; a live call goes on"}, a.deleteLead)
	}
}

type newLead struct {
	Body struct {
		CampaignID      int64             `json:"campaign_id" required:"true"`
		PhoneNumber     string            `json:"phone_number" required:"true" maxLength:"32" format:"phone" doc:"In international format, or as it is dialled in your country."`
		Variables       map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{name}}; they override the assistant's own."`
		AllowDuplicate  bool              `json:"allow_duplicate" default:"false" doc:"Add the number even if the campaign already has it."`
		AllowDupplicate bool              `json:"allow_dupplicate" default:"false" doc:"The same, as older clients write it."`
		Contacts        []newContact      `json:"secondary_contacts" maxItems:"10" doc:"Further numbers: each is called when the attempts at the one before it are used up."`
	}
}

type newContact struct {
	PhoneNumber string            `json:"phone_number" required:"true" maxLength:"32" format:"phone" doc:"In international format, or as it is dialled in your country."`
	Variables   map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"They override the lead's own."`
}

func contacts(list []newContact) (out []parley.LeadContact) {
	for _, c := range list {
		out = append(out, parley.LeadContact{PhoneNumber: c.PhoneNumber, Variables: c.Variables})
	}
	return out
}

func (a *API) createLead(ctx context.Context, r *request, in *newLead) (*messageData[*parley.Lead], error) {
	l := &parley.Lead{CampaignID: in.Body.CampaignID, PhoneNumber: in.Body.PhoneNumber, Variables: in.Body.Variables,
		Contacts: contacts(in.Body.Contacts)}
	err := a.Campaigns.AddLead(ctx, r.UserID(), l, in.Body.AllowDuplicate || in.Body.AllowDupplicate)
	return &messageData[*parley.Lead]{"Lead created successfully", l}, err
}

type leadImport struct {
	CampaignID      int64 `json:"campaign_id" required:"true"`
	AllowDuplicate  bool  `json:"allow_duplicate" default:"false" doc:"Add numbers even if the campaign already has them."`
	AllowDupplicate bool  `json:"allow_dupplicate" default:"false"`
	// parsed from JSON in a text, as the other fields of the form are texts
	Columns     map[string]string `json:"columns" maxProperties:"201" doc:"A JSON object from column names of the file to what they hold: phone_number, a variable, or an empty string to ignore the column."`
	Country     *string           `json:"country" maxLength:"2" format:"country" doc:"Where national numbers of the list are read, such as DE; by default your account's country."`
	RejectedCSV bool              `json:"rejected_csv" default:"false" doc:"The answer has the rows that were skipped, as CSV."`
}

func (a *API) importLeads(ctx context.Context, r *request, _ *none) (*messageData[*campaign.ImportReport], error) {
	fields, tree := parley.Fields{}, r.Body
	var file *os.File
	var size int64
	sum := sha256.New()
	if r.Form != nil {
		// Nothing is known of the campaign before the whole form was read: the file waits on disk.
		f, err := os.CreateTemp("", "parley-import-")
		if err != nil {
			return nil, fmt.Errorf("keep the list: %w", err)
		}
		defer os.Remove(f.Name())
		defer f.Close()
		if tree, err = r.Form.fields(func(name string, content io.Reader) error {
			if name != "file" || file != nil {
				return nil // of no use; it is read over
			}
			file = f
			size, err = io.Copy(io.MultiWriter(f, sum), content)
			return err
		}); err != nil {
			return nil, err
		}
		texts(tree, "campaign_id", "allow_duplicate", "allow_dupplicate", "rejected_csv")
		if text, ok := tree["columns"].(string); ok {
			var columns map[string]any
			if json.Unmarshal([]byte(text), &columns) == nil {
				tree["columns"] = columns
			}
		}
		r.Form = nil
	}
	if file == nil {
		fields.Add("file", "is required.")
	}
	in := &leadImport{}
	form.Defaults(in)
	if err := append(form.Bind(tree, in, true), fields...).Err(); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	order := campaign.Import{CampaignID: in.CampaignID, File: file, Size: size, Duplicates: in.AllowDuplicate ||
		in.AllowDupplicate, Columns: in.Columns, Rejected: in.RejectedCSV, Country: r.country()}
	if in.Country != nil {
		order.Country = *in.Country
	}
	fmt.Fprintln(sum, order.CampaignID, order.Duplicates, order.Columns, order.Rejected, order.Country)
	if err := a.once(r, r.op, sum.Sum(nil), func(ctx context.Context) (int, any, error) {
		report, err := a.Campaigns.ImportLeads(ctx, r.UserID(), order)
		message := "Leads imported successfully"
		if err == nil && report.Imported == 0 {
			message = "No leads were imported"
		}
		return http.StatusOK, &messageData[*campaign.ImportReport]{message, report}, err
	}); err != nil {
		return nil, err
	}
	return nil, errAnswered
}

// texts turns a form's texts into what JSON would have, the first into a number and the others into booleans; what is
// left empty is left out.
func texts(tree map[string]any, number string, flags ...string) {
	switch text, _ := tree[number].(string); {
	case strings.TrimSpace(text) == "":
		delete(tree, number)
	case strings.Trim(strings.TrimSpace(text), "0123456789") == "":
		tree[number] = json.Number(strings.TrimSpace(text))
	}
	for _, name := range flags {
		switch text, _ := tree[name].(string); strings.TrimSpace(text) {
		case "true", "1":
			tree[name] = true
		case "false", "0":
			tree[name] = false
		case "":
			delete(tree, name)
		}
	}
}

type leadQuery struct {
	pageQuery
	dateQuery
	Status      string `query:"status" enum:"created,scheduled,processing,completed,rescheduled,reached-max-retries,blacklisted"`
	CampaignID  int64  `query:"campaign_id"`
	PhoneNumber string `query:"phone_number" maxLength:"32" reads:"phone"`
}

// filter is what the store is asked for.
func (q *leadQuery) filter() store.LeadFilter {
	from, to := q.bounds()
	return store.LeadFilter{Status: parley.LeadStatus(q.Status), CampaignID: q.CampaignID,
		PhoneNumber: q.PhoneNumber, From: from, To: to}
}

// leadList is the answer of a list of leads: a page of them, or the newest ones alone.
type leadList struct {
	page   *Paginated[parley.Lead]
	newest []parley.Lead
}

// AnyOf are the shapes of the answer.
func (leadList) AnyOf() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[Paginated[parley.Lead]](), reflect.TypeFor[[]parley.Lead]()}
}

func (l leadList) MarshalJSON() ([]byte, error) {
	if l.page != nil {
		return json.Marshal(l.page)
	}
	return json.Marshal(l.newest)
}

// newestLeads is how many leads a list without pages has.
const newestLeads = 1000

func (a *API) listLeads(ctx context.Context, r *request, in *leadQuery) (leadList, error) {
	if err := a.ownFilters(ctx, r, 0, in.CampaignID); err != nil {
		return leadList{}, err
	}
	whole := !named(r, "page") && !named(r, "per_page")
	p := in.page(15)
	if whole {
		p = store.Page{Size: newestLeads, Below: store.First}
	}
	list, total, err := a.DB.Leads(ctx, r.UserID(), in.filter(), p)
	if err != nil || whole {
		return leadList{newest: list}, err
	}
	e := envelope(a, r.Request, list, total, p)
	return leadList{page: &e}, nil
}

func (a *API) getLead(ctx context.Context, r *request, in *byID) (*parley.Lead, error) {
	return a.DB.Lead(ctx, r.UserID(), in.ID)
}

type leadChange struct {
	PhoneNumber     string            `json:"phone_number" required:"true" maxLength:"32" format:"phone" doc:"In international format, or as it is dialled in your country; not while the lead is being called."`
	Variables       map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Merged into the existing ones."`
	Status          string            `json:"status" required:"true" enum:"created,completed,reached-max-retries" doc:"created: call it from the start; completed: don't call it again; reached-max-retries: don't call it again, all attempts failed."`
	CampaignID      int64             `json:"campaign_id" required:"true" doc:"Moves the lead to another of your campaigns; not while it is being called."`
	Contacts        []newContact      `json:"secondary_contacts" maxItems:"10" doc:"Replace the existing ones; not while the lead is being called."`
	AllowDuplicate  bool              `json:"allow_duplicate" default:"false" doc:"Allow the new number even if the campaign already has it."`
	AllowDupplicate bool              `json:"allow_dupplicate" default:"false"`
}

func (a *API) updateLead(ctx context.Context, r *request, in *byID) (*messageData[*parley.Lead], error) {
	var sent leadChange
	if err := form.Bind(r.Body, &sent, false).Err(); err != nil {
		// an unknown lead is told before a bad body
		if _, missing := a.DB.Lead(ctx, r.UserID(), in.ID); missing != nil {
			err = missing
		}
		return nil, err
	}
	ch := campaign.LeadChange{Variables: sent.Variables, Duplicate: sent.AllowDuplicate || sent.AllowDupplicate}
	if sent.PhoneNumber != "" {
		ch.PhoneNumber = &sent.PhoneNumber
	}
	if _, ok := r.Body["campaign_id"]; ok {
		ch.CampaignID = &sent.CampaignID
	}
	if _, ok := r.Body["secondary_contacts"]; ok {
		ch.Contacts, ch.NewContacts = contacts(sent.Contacts), true
	}
	if status := parley.LeadStatus(sent.Status); status != "" {
		ch.Status = &status
	}
	l, err := a.Campaigns.ChangeLead(ctx, r.UserID(), in.ID, ch)
	return &messageData[*parley.Lead]{"Lead updated successfully", l}, err
}

func (a *API) deleteLead(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Lead deleted successfully"}, a.Campaigns.DeleteLead(ctx, r.UserID(), in.ID)
}
