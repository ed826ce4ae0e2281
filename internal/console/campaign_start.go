package console

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"parley/internal/campaign"
	"parley/internal/parley"
	"parley/internal/web"
)

// campaignAhead is the page before a campaign's start: who will be called, when, and what it may cost.
type campaignAhead struct {
	*campaign.Ahead
	own     string // the number that is to be called first
	refused string // why it was not
	later   string // when it is to start by itself
	wrong   string // why that can't be
}

func (c *Console) campaignAhead(r *request) (*campaignAhead, error) {
	a, err := c.Campaigns.Ahead(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	ahead := &campaignAhead{Ahead: a}
	if at := a.Campaign.StartsAt; at != 0 {
		ahead.later = at.Time().In(a.Zone()).Format("2006-01-02T15:04")
	}
	return ahead, nil
}

func (c *Console) campaignAsk(r *request) (*answer, error) {
	a, err := c.campaignAhead(r)
	if err != nil {
		return nil, err
	}
	if a.Campaign.Status == parley.CampaignInProgress {
		return see(a.path("")), nil
	}
	return show("Start "+a.Campaign.Name, campaignAsk(a)).in(a.Campaign.Timezone), nil
}

// campaignSchedule has a campaign start by itself.
func (c *Console) campaignSchedule(r *request) (*answer, error) {
	at := strings.TrimSpace(r.PostFormValue("starts_at"))
	_, err := c.Campaigns.Launch(r.Context(), r.UserID(), r.id("id"), cmp.Or(at, "-"))
	wrong, ok := fieldErrors(err)
	if !ok {
		return c.campaignMoved(r, err, "scheduled")
	}
	a, err := c.campaignAhead(r)
	if err != nil {
		return nil, err
	}
	f := fieldsOf[struct{}](nil, wrong)
	a.later, a.wrong = at, f.wrong("starts_at")
	return invalid("Start "+a.Campaign.Name, campaignAsk(a)).in(a.Campaign.Timezone), nil
}

func (c *Console) campaignUnschedule(r *request) (*answer, error) {
	_, err := c.Campaigns.Unschedule(r.Context(), r.UserID(), r.id("id"))
	return c.campaignMoved(r, err, "unscheduled")
}

// campaignTry calls a number of the user's own first, as the API does.
func (c *Console) campaignTry(r *request) (*answer, error) {
	a, err := c.campaignAhead(r)
	if err != nil {
		return nil, err
	}
	a.own = strings.TrimSpace(r.PostFormValue("phone_number"))
	to, err := parley.ReadPhone(a.own, r.who.User.Country)
	if err != nil {
		a.refused = strings.TrimSpace("Enter your number in international format, such as +14155552671. " + parley.PhoneHelp(err))
		return invalid("Start "+a.Campaign.Name, campaignAsk(a)).in(a.Campaign.Timezone), nil
	}
	order, err := c.Campaigns.Rehearsal(r.Context(), r.UserID(), a.Campaign.ID, to)
	if err == nil {
		var made *parley.Call
		if made, err = c.Calls.Start(r.Context(), order); err == nil {
			return see("/calls/" + strconv.FormatInt(made.ID, 10)), nil
		}
	}
	if a.refused = callRefusal(err); a.refused == "" {
		return nil, err
	}
	return invalid("Start "+a.Campaign.Name, campaignAsk(a)).in(a.Campaign.Timezone), nil
}

// campaignSample sends a list to begin with.
func (c *Console) campaignSample(r *request) (*answer, error) {
	return nil, web.SendCSV(r.w, r.Request, func(begin func(string) io.Writer) error {
		return c.Campaigns.Sample(r.Context(), r.UserID(), r.id("id"), begin)
	})
}

// basis says what the estimate is made from.
func (a *campaignAhead) basis() string {
	from := a.Estimate.From
	if a.Estimate.Own() {
		return fmt.Sprintf("From this assistant's last %d calls, of which %s were answered. Each lead is counted once, without retries.",
			from.Calls, share{n: from.Answered, of: from.Calls}.percent())
	}
	return "This assistant has made too few calls for an estimate of its own."
}

func (a *campaignAhead) path(more string) string {
	return "/campaigns/" + strconv.FormatInt(a.Campaign.ID, 10) + more
}

// days are the campaign's days in words: Monday to Friday, or one by one.
func (a *campaignAhead) days() string {
	var names []string
	first, last := -1, -1
	for i, d := range weekdays {
		for _, day := range a.Campaign.AllowedDays {
			if day == d.value {
				if first < 0 {
					first = i
				}
				last = i
				names = append(names, d.label)
				break
			}
		}
	}
	switch {
	case len(names) == len(weekdays):
		return "every day"
	case len(names) > 2 && last-first+1 == len(names):
		return names[0] + " to " + names[len(names)-1]
	}
	return strings.Join(names, ", ")
}

// hours are the campaign's hours by its own clock.
func (a *campaignAhead) hours() string {
	from, to := a.Campaign.AllowedHoursStartTime[:5], a.Campaign.AllowedHoursEndTime[:5]
	if from == to || from == "00:00" && to == "23:59" {
		return "around the clock"
	}
	return from + " to " + to
}

// maxPlaces are how many time zones are shown one by one.
const maxPlaces = 8

// rest is how many leads are in the zones that are not shown.
func (a *campaignAhead) rest() (leads int64) {
	for _, p := range a.Places[min(len(a.Places), maxPlaces):] {
		leads += p.Leads
	}
	return leads
}

// night says whether somebody would be called early in the morning or late at night.
func (a *campaignAhead) night() bool { return len(a.Places) > 0 && a.Places[0].Night }

// zoneName is a time zone as people read it: Europe/Berlin is Berlin.
func zoneName(zone string) string {
	return strings.ReplaceAll(zone[strings.LastIndexByte(zone, '/')+1:], "_", " ")
}

// many is a number of things in words, with separators.
func many(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return whole(n) + " " + more
}
