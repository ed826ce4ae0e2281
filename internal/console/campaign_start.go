package console

import (
	"strconv"
	"strings"

	"parley"
	"parley/internal/campaign"
)

// campaignAhead is the page before a campaign's start: who will be called, when, and what it may cost.
type campaignAhead struct{ *campaign.Ahead }

func (c *Console) campaignAsk(r *request) (*answer, error) {
	a, err := c.Campaigns.Ahead(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	if a.Campaign.Status == parley.CampaignInProgress {
		return see("/campaigns/" + r.PathValue("id")), nil
	}
	return show("Start "+a.Campaign.Name, campaignAsk(&campaignAhead{a})), nil
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

// mostPlaces are how many time zones are shown one by one.
const mostPlaces = 8

// rest is how many leads are in the zones that are not shown.
func (a *campaignAhead) rest() (leads int64) {
	for _, p := range a.Places[min(len(a.Places), mostPlaces):] {
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
	whole, _, _ := strings.Cut(grouped(strconv.FormatInt(n, 10)+"."), ".")
	return whole + " " + more
}
