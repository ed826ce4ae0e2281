package parley

import (
	"slices"
	"strings"
	"time"
)

// NumberRoute says who takes the calls that come to a number, besides the inbound assistant that has it: what happens
// outside its hours, and which callers are turned away.
type NumberRoute struct {
	Timezone    string      `json:"timezone" maxLength:"64" format:"timezone" doc:"IANA time zone of the hours; the account's when absent."`
	Hours       []OpenHours `json:"hours" maxItems:"50" doc:"When the number's assistant answers. Empty: always."`
	ClosedDates []string    `json:"closed_dates" maxItems:"366" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" must:"be a date such as 2026-12-25" doc:"Days without hours (YYYY-MM-DD, in the time zone)."`

	Otherwise            RouteKind `json:"otherwise" default:"refuse" enum:"refuse,assistant" doc:"What happens outside the hours. refuse: the caller hears that nobody is available (480), and nothing is charged. assistant: otherwise_assistant_id answers."`
	OtherwiseAssistantID *int64    `json:"otherwise_assistant_id" format:"assistant" doc:"With otherwise=assistant: an inbound assistant of yours. It may answer a number of its own too."`

	BlockedCallers []string `json:"blocked_callers" maxItems:"1000" maxLength:"32" doc:"Numbers whose calls are turned away (603), in international format; one that ends in * is a prefix."`
	BlockAnonymous bool     `json:"block_anonymous" default:"false" doc:"Turn away callers who withhold their number."`
	BlockBlacklist bool     `json:"block_blacklisted" default:"false" doc:"Turn away callers who are on your blacklist, which otherwise concerns campaigns alone."`
}

// RouteKind is what happens to a call outside the hours.
type RouteKind string

// The kinds.
const (
	RouteRefuse    RouteKind = "refuse"
	RouteAssistant RouteKind = "assistant"
)

// OpenHours are hours of some days.
type OpenHours struct {
	Days []string `json:"days" enum:"monday,tuesday,wednesday,thursday,friday,saturday,sunday" maxItems:"7" doc:"Days on which the hours begin; every day when empty."`
	From string   `json:"from" default:"00:00" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" must:"match the format H:i" doc:"H:i."`
	To   string   `json:"to" default:"00:00" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" must:"match the format H:i" doc:"H:i, when they are over. Earlier than from: on the next day. Equal to it: the whole day."`
}

// Open reports whether the hours are on at a time, by the clock of the zone, whatever the zone does to its clocks.
// Hours that span midnight belong to the day on which they begin.
func (r *NumberRoute) Open(now time.Time) bool {
	zone, err := time.LoadLocation(r.Timezone)
	if err != nil {
		zone = time.UTC // the route was made on a system that knows more zones
	}
	now = now.In(zone)
	y, m, d := now.Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, time.UTC) // of the days alone, whatever their hours
	yesterday, clock := today.AddDate(0, 0, -1), now.Format("15:04")
	closed := func(day time.Time) bool { return slices.Contains(r.ClosedDates, day.Format(time.DateOnly)) }
	if len(r.Hours) == 0 {
		return !closed(today)
	}
	return slices.ContainsFunc(r.Hours, func(h OpenHours) bool {
		on := func(day time.Time) bool {
			name := strings.ToLower(day.Weekday().String())
			return (len(h.Days) == 0 || slices.Contains(h.Days, name)) && !closed(day)
		}
		switch {
		case h.From == h.To:
			return on(today)
		case h.From < h.To:
			return on(today) && h.From <= clock && clock < h.To
		}
		return on(today) && h.From <= clock || on(yesterday) && clock < h.To
	})
}

// Blocks reports whether a caller is turned away; "" is one who withholds the number. The blacklist is the caller's to
// look at.
func (r *NumberRoute) Blocks(caller string) bool {
	if caller == "" {
		return r.BlockAnonymous
	}
	return slices.ContainsFunc(r.BlockedCallers, func(b string) bool {
		if prefix, ok := strings.CutSuffix(b, "*"); ok {
			return strings.HasPrefix(caller, prefix)
		}
		return caller == b
	})
}

// Tidy brings a route into the form in which it is kept, and says what is wrong with it.
func (r *NumberRoute) Tidy() (wrong Fields) {
	for i, day := range r.ClosedDates {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			wrong.AddText("closed_dates", "There is no such day as "+r.ClosedDates[i]+".")
		}
	}
	for i, b := range r.BlockedCallers {
		prefix, short := strings.CutSuffix(strings.TrimSpace(b), "*")
		if short {
			digits := strings.TrimPrefix(prefix, "+")
			if len(digits) < 1 || len(digits) > 15 || !strings.HasPrefix(prefix, "+") || strings.Trim(digits, "0123456789") != "" {
				wrong.AddText("blocked_callers", b+" is no prefix such as +4930*.")
			}
			r.BlockedCallers[i] = prefix + "*"
			continue
		}
		n, ok := NormalizePhone(prefix)
		if !ok {
			wrong.AddText("blocked_callers", b+" is no phone number in international format, such as +4930901820.")
			continue
		}
		r.BlockedCallers[i] = n
	}
	if r.Otherwise == RouteAssistant && r.OtherwiseAssistantID == nil {
		wrong.AddText("otherwise_assistant_id", "Choose the assistant that answers outside the hours.")
	}
	return wrong
}
