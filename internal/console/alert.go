package console

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"parley/internal/alert"
	"parley/internal/form"
	"parley/internal/parley"
)

// alertKind is a kind of alert as its form begins.
type alertKind struct {
	kind          parley.AlertKind
	tab, label    string // what is watched; what the threshold is called
	unit, help    string
	defaultAmount float64
}

// alertKinds are all kinds, in the order of their tabs.
var alertKinds = []alertKind{
	{parley.AlertFailures, "Failed calls", "Share of failed calls", "%", "You are told when this share of the calls fails.", 20},
	{parley.AlertLatency, "Slow replies", "Latency", "ms", "You are told when one reply in ten takes this long or longer.", 2000},
	{parley.AlertSpend, "Spending", "Spent in a day", "USD", "You are told when this much was charged since midnight.", 20},
	{parley.AlertBalance, "Low balance", "Balance", "USD", "You are told when the balance falls below this.", 10},
	{parley.AlertSilence, "No calls", "Without a call", "hours", "You are told when this much time passes without a call.", 3},
}

func alertKindOf(k parley.AlertKind) alertKind {
	for _, one := range alertKinds {
		if one.kind == k {
			return one
		}
	}
	return alertKinds[0]
}

// alertForm is the page of one alert.
type alertForm struct {
	*fields
	alertKind
	alert            *parley.Alert // nil: it is new
	list             string        // where the list behind its figure is
	assistants       []option
	mailTo, endpoint string // "": noMail says why; the account has no endpoint
	noMail           string
	zone             string // of its hours: the account's
	refused          string // why no test was sent
	told             *alert.Told
}

func alertPath(id int64) string { return "/alerts/" + strconv.FormatInt(id, 10) }

func (f *alertForm) path(more string) string {
	if f.alert == nil {
		return "/alerts/new"
	}
	return alertPath(f.alert.ID) + more
}

// ofCalls says whether the alert watches calls, which have a channel.
func (f *alertForm) ofCalls() bool { return f.kind.Of() || f.kind == parley.AlertSilence }

func (c *Console) alertList(r *request) (*answer, error) {
	list, err := c.DB.Alerts(r.Context(), r.UserID())
	return show("Alerts", alertList(list, c.base(r))), err
}

// alertForm readies the page of an alert, or of a new one of a kind.
func (c *Console) alertForm(r *request, a *parley.Alert, kind parley.AlertKind, tree map[string]any,
	wrong parley.Fields) (f *alertForm, err error) {
	f = &alertForm{fields: fieldsOf[parley.Alert](tree, wrong), alertKind: alertKindOf(kind), alert: a, zone: r.who.User.Timezone}
	if a != nil {
		f.list = behindAlert(a, time.Now(), r.zone())
	}
	if f.endpoint = r.who.User.WebhookURL; f.endpoint != "" && !r.may("GET /webhooks") {
		f.endpoint = "the account's endpoint"
	}
	switch {
	case !c.Alerts.Mail.On():
		f.noMail = "This server sends no e-mail yet: its operator sets PARLEY_SMTP_URL."
	case r.who.User.EmailProvenAt == 0:
		f.noMail = "The account's e-mail address is not confirmed yet: see Account."
	default:
		f.mailTo = r.who.User.Email
	}
	f.assistants, _, err = c.assistantFilter(r)
	return f, err
}

func (c *Console) alertNew(r *request) (*answer, error) {
	k := alertKindOf(parley.AlertKind(r.URL.Query().Get("kind")))
	a := &parley.Alert{}
	form.Defaults(a)
	a.Kind, a.Name, a.Threshold = k.kind, k.tab, k.defaultAmount
	if k.kind == parley.AlertSilence { // a night without calls is no news; who wants other hours chooses them
		from, to := "09:00", "18:00"
		a.HoursStart, a.HoursEnd, a.Days = &from, &to, a.Days[:5]
	}
	f, err := c.alertForm(r, nil, k.kind, treeOf(a), nil)
	if err != nil {
		return nil, err
	}
	return show("New alert", alertEditor(f)), nil
}

func (c *Console) alertCreate(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Alert]())
	made, err := alert.Create(r.Context(), c.DB, r.UserID(), tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see(alertPath(made.ID), "watched"), nil
	case !ok:
		return nil, err
	}
	f, err := c.alertForm(r, nil, parley.AlertKind(textOf(tree["kind"])), tree, wrong)
	if err != nil {
		return nil, err
	}
	return invalid("New alert", alertEditor(f)), nil
}

// alertOf readies the page of one of the user's alerts as it is stored.
func (c *Console) alertOf(r *request) (*alertForm, error) {
	a, err := c.DB.Alert(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return c.alertForm(r, a, a.Kind, treeOf(a), nil)
}

func (c *Console) alertPage(r *request) (*answer, error) {
	f, err := c.alertOf(r)
	if err != nil {
		return nil, err
	}
	return show(f.alert.Name, alertEditor(f)), nil
}

func (c *Console) alertSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.Alert]())
	_, err := alert.Change(r.Context(), c.DB, r.UserID(), r.id("id"), tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see(alertPath(r.id("id")), "saved"), nil
	case !ok:
		return nil, err
	}
	f, err := c.alertOf(r)
	if err != nil {
		return nil, err
	}
	f.fields = fieldsOf[parley.Alert](tree, wrong)
	return invalid(f.alert.Name, alertEditor(f)), nil
}

// alertTest sends what would be sent, as the API does.
func (c *Console) alertTest(r *request) (*answer, error) {
	f, err := c.alertOf(r)
	if err != nil {
		return nil, err
	}
	if f.told, err = c.Alerts.Test(r.Context(), r.UserID(), f.alert.ID); err != nil {
		if f.refused = refusal(err); f.refused == "" {
			return nil, err
		}
		a := invalid(f.alert.Name, alertEditor(f))
		return a, nil
	}
	return show(f.alert.Name, alertEditor(f)), nil
}

func (c *Console) alertDelete(r *request) (*answer, error) {
	if err := alert.Delete(r.Context(), c.DB, r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/alerts", "deleted"), nil
}

// behindAlert is the list behind an alert's figure: its calls, or what was charged.
func behindAlert(a *parley.Alert, now time.Time, zone *time.Location) string {
	v := url.Values{}
	if a.AssistantID != nil {
		setID(v, "assistant_id", *a.AssistantID)
	}
	switch a.Kind {
	case parley.AlertBalance:
		return "/ledger"
	case parley.AlertSpend:
		v.Set("range", "today")
		return address("/analytics", v, 0)
	case parley.AlertFailures:
		v.Set("status", string(parley.CallFailed))
	case parley.AlertLatency:
		v.Set("slower_than_ms", strconv.FormatInt(int64(max(a.Threshold, 1)), 10))
	}
	if a.Kind.Of() { // lists go by days; the window's last calls are their first rows
		first := now.Add(-time.Duration(a.WindowMinutes) * time.Minute)
		v.Set("date_from", first.In(zone).Format(time.DateOnly))
	}
	if a.Channel != nil {
		v.Set("type", *a.Channel)
	}
	v.Set("test", "false")
	return address("/calls", v, 0)
}

// listLabel says what behindAlert leads to.
func (f *alertForm) listLabel() string {
	switch f.kind {
	case parley.AlertBalance:
		return "Ledger"
	case parley.AlertSpend:
		return "Today's cost"
	case parley.AlertFailures:
		return "Failed calls"
	case parley.AlertLatency:
		return "Calls with slow replies"
	}
	return "Calls"
}

// alertValue is what was last found, in words.
func alertValue(a *parley.Alert) string {
	switch {
	case !a.Active:
		return ""
	case a.CheckedAt == 0:
		return "Not checked yet"
	case a.Value == nil:
		return "Nothing to measure"
	case a.Kind.Of() && a.Calls < a.MinCalls:
		return fmt.Sprintf("%s in %s, too few to judge (at least %d)", a.Shown(*a.Value), count(int(a.Calls), "call", "calls"), a.MinCalls)
	case a.Kind.Of():
		return a.Shown(*a.Value) + " in " + count(int(a.Calls), "call", "calls")
	}
	return a.Shown(*a.Value)
}
