package console

import (
	"reflect"
	"slices"
	"strconv"

	"parley/internal/form"
	"parley/internal/parley"
)

// campaignForm is the form of a campaign's settings.
type campaignForm struct {
	*fields
	id         int64 // 0: it is new
	name       string
	assistants []option
	numbers    []parley.Number
}

func (f *campaignForm) path() string {
	if f.id == 0 {
		return "/campaigns/new"
	}
	return "/campaigns/" + strconv.FormatInt(f.id, 10) + "/edit"
}

// campaignForm reads what a form chooses from.
func (c *Console) campaignForm(r *request, camp *parley.Campaign, tree map[string]any,
	wrong parley.Fields) (*campaignForm, error) {
	f := &campaignForm{fields: fieldsOf[parley.Campaign](tree, wrong)}
	if camp != nil {
		f.id, f.name = camp.ID, camp.Name
	}
	assistants, err := c.DB.Assistants(r.Context(), r.UserID(), "outbound")
	if err != nil {
		return nil, err
	}
	for _, a := range assistants {
		label := a.Name
		if a.Status != "active" {
			label += " (inactive)"
		}
		f.assistants = append(f.assistants, option{value: strconv.FormatInt(a.ID, 10), label: label})
	}
	f.numbers, err = c.DB.Numbers(r.Context(), r.UserID())
	return f, err
}

func (c *Console) campaignNew(r *request) (*answer, error) {
	camp := &parley.Campaign{}
	form.Defaults(camp)
	camp.Timezone = r.who.Timezone()
	// when people may be called; who wants other hours chooses them
	camp.AllowedHoursStartTime, camp.AllowedHoursEndTime = "09:00", "18:00"
	camp.AllowedDays = camp.AllowedDays[:5]
	camp.MaxCallsInParallel = min(3, c.Prices.Plan(r.who.User.Plan).MaxParallel())
	tree := treeOf(camp)
	clockOf(tree)
	f, err := c.campaignForm(r, nil, tree, nil)
	if err != nil {
		return nil, err
	}
	return show("New campaign", campaignEditor(f)), nil
}

// clockOf shows a campaign's hours as a box for a time of day takes them.
func clockOf(tree map[string]any) {
	for _, name := range []string{"allowed_hours_start_time", "allowed_hours_end_time"} {
		if text, ok := tree[name].(string); ok && len(text) > 5 {
			tree[name] = text[:5]
		}
	}
}

func (c *Console) campaignCreate(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Campaign]())
	made, err := c.Campaigns.Create(r.Context(), r.who.User, tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see("/campaigns/"+strconv.FormatInt(made.ID, 10), "created"), nil
	case !ok:
		return nil, err
	}
	f, err := c.campaignForm(r, nil, tree, wrong)
	if err != nil {
		return nil, err
	}
	return invalid("New campaign", campaignEditor(f)), nil
}

func (c *Console) campaignEdit(r *request) (*answer, error) {
	camp, err := c.DB.Campaign(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	tree := treeOf(camp)
	clockOf(tree)
	f, err := c.campaignForm(r, camp, tree, nil)
	if err != nil {
		return nil, err
	}
	return show(camp.Name, campaignEditor(f)).in(camp.Timezone), nil
}

func (c *Console) campaignSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Campaign]())
	_, err := c.Campaigns.Update(r.Context(), r.who.User, r.id("id"), tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see("/campaigns/"+r.PathValue("id"), "saved"), nil
	case !ok:
		return nil, err
	}
	camp, err := c.DB.Campaign(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f, err := c.campaignForm(r, camp, tree, wrong)
	if err != nil {
		return nil, err
	}
	return invalid(camp.Name, campaignEditor(f)).in(camp.Timezone), nil
}

// holds says whether a list of texts has one.
func (f *fields) holds(name, text string) bool {
	list, _ := f.get(name).([]any)
	return slices.ContainsFunc(list, func(v any) bool { return textOf(v) == text })
}
