package console

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"parley/internal/campaign"
	"parley/internal/form"
	"parley/internal/parley"
)

// leadInput is what a lead is made of by hand.
type leadInput struct {
	PhoneNumber string            `json:"phone_number" required:"true" maxLength:"32" format:"phone"`
	Variables   map[string]string `json:"variables" maxProperties:"200" format:"variables"`
}

// leadForm is the page of one lead of a campaign.
type leadForm struct {
	*fields
	campaign *parley.Campaign
	id       int64    // 0: it is new
	shown    []string // variables that it has and the page shows: one whose row is not sent goes
	refused  string   // why it was not saved
}

func (l *leadForm) path() string {
	at := "/campaigns/" + strconv.FormatInt(l.campaign.ID, 10) + "/leads/"
	if l.id == 0 {
		return at + "new"
	}
	return at + strconv.FormatInt(l.id, 10)
}

func (l *leadForm) title() string {
	if l.id == 0 {
		return "New lead"
	}
	return "Lead"
}

// leadForm readies the form of a campaign's lead; a new one's has the assistant's variables.
func (c *Console) leadForm(r *request) (*leadForm, error) {
	of, err := c.DB.Campaign(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f, in := &leadForm{campaign: of}, leadInput{Variables: map[string]string{}}
	if r.PathValue("lead") != "" {
		l, err := c.DB.Lead(r.Context(), r.UserID(), r.id("lead"))
		if err != nil {
			return nil, err
		}
		if l.CampaignID != of.ID {
			return nil, parley.Errorf(parley.NotFound, "There is no such lead.")
		}
		f.id, in.PhoneNumber, in.Variables = l.ID, l.PhoneNumber, l.Variables
		f.shown = slices.Sorted(maps.Keys(l.Variables))
	} else {
		a, err := c.DB.Assistant(r.Context(), r.UserID(), of.AssistantID)
		if err != nil {
			return nil, err
		}
		for name := range a.Variables {
			in.Variables[name] = ""
		}
	}
	f.fields = fieldsOf[leadInput](treeOf(in), nil)
	return f, nil
}

func (c *Console) leadPage(r *request) (*answer, error) {
	f, err := c.leadForm(r)
	if err != nil {
		return nil, err
	}
	return show(f.title(), leadPage(f)), nil
}

func (c *Console) leadSave(r *request) (*answer, error) {
	f, err := c.leadForm(r)
	if err != nil {
		return nil, err
	}
	tree := r.tree(reflect.TypeFor[leadInput]())
	if rows, ok := tree["variables"].(map[string]any); ok && f.id == 0 { // left empty: the assistant's own
		for name, v := range rows {
			if v == "" {
				delete(rows, name)
			}
		}
	}
	f.shown = r.PostForm["shown"] // somebody else may have added others meanwhile
	var in leadInput
	err = form.Bind(tree, &in, true).Err()
	if err == nil {
		err = c.storeLead(r, f, &in)
	}
	wrong, ok := fieldErrors(err)
	f.refused = refusal(err)
	switch {
	case err == nil:
		return see("/campaigns/"+r.PathValue("id"), "saved"), nil
	case !ok && f.refused == "":
		return nil, err
	}
	f.fields = fieldsOf[leadInput](tree, wrong)
	return invalid(f.title(), leadPage(f)), nil
}

func (c *Console) storeLead(r *request, f *leadForm, in *leadInput) error {
	if f.id == 0 {
		return c.Campaigns.AddLead(r.Context(), r.UserID(), &parley.Lead{CampaignID: f.campaign.ID, PhoneNumber: in.PhoneNumber,
			Variables: in.Variables}, false)
	}
	gone := slices.DeleteFunc(slices.Clone(f.shown), func(name string) bool { _, sent := in.Variables[name]; return sent })
	_, err := c.Campaigns.ChangeLead(r.Context(), r.UserID(), f.id,
		campaign.LeadChange{PhoneNumber: &in.PhoneNumber, Variables: in.Variables, Without: gone})
	return err
}
