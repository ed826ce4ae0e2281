package campaign

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
)

// Ahead is what a campaign's start would do.
type Ahead struct {
	Campaign *parley.Campaign
	Caller   string    // the assistant's name, "" when it was deleted
	Refusal  string    // why it can't start, "" when it can
	Opens    time.Time // when the first call begins; zero where its hours never come
	Leads    int64     // that are to be called
	Barred   int64     // of them, those whose numbers are not called from here
	// where the leads are, by their numbers: those who would be called at night first, then most first
	Places   []Place
	Minute   parley.Money // what a minute with each of them costs, all together
	Estimate Estimate
	Free     parley.Money // what may be spent
	Unfilled []Unfilled   // variables of the assistant's that some leads have no value for
}

// Place is a time zone with leads in it, and the campaign's hours by the clocks there.
type Place struct {
	Zone     string // "" where the numbers don't say
	Leads    int64
	From, To string // HH:MM
	Night    bool   // some of it is before 8 or after 21 o'clock
}

// Unfilled is a variable that an assistant's texts use, and how many leads have no value for it.
type Unfilled struct {
	Name  string
	Leads int64
}

// Needed are the variables that an assistant's texts use and that have no value without the list's.
func Needed(a *parley.Assistant) (names []string) {
	for _, name := range parley.VariableNames(a.Texts()...) {
		if a.Variables[name] == "" && !slices.Contains(parley.BuiltinVariables, name) {
			names = append(names, name)
		}
	}
	return names
}

// Unmatched are the variables that nobody on the list has a value for: no column of it has their name.
func (a *Ahead) Unmatched() (names []string) {
	for _, u := range a.Unfilled {
		if u.Leads == a.Leads-a.Barred {
			names = append(names, u.Name)
		}
	}
	return names
}

// Blocked says why the campaign should not start, "" where nothing prevents it: what refuses a start, or that its
// list does not fit its assistant.
func (a *Ahead) Blocked() string {
	names := a.Unmatched()
	if a.Refusal != "" || len(names) == 0 {
		return a.Refusal
	}
	if len(names) > 1 {
		return "The assistant uses {{" + strings.Join(names, "}}, {{") +
			"}}, but no lead has values for them. Import a list with these columns, or give the assistant default values."
	}
	return "The assistant uses {{" + names[0] +
		"}}, but no lead has a value for it. Import a list with this column, or give the assistant a default value."
}

// Zone is the campaign's time zone.
func (a *Ahead) Zone() *time.Location { return zone(a.Campaign.Timezone) }

// Estimate is what calling each lead once may come to.
type Estimate struct {
	Minutes int64 // of talk
	Cost    parley.Money
	// The assistant's own last calls that it is made from. With fewer than enough, it takes everybody to answer and to talk
	// for a minute.
	From store.CallMinutes
}

const (
	enough   = 10  // calls of an assistant's that say how its calls usually go
	lastOnes = 200 // of its calls that are looked at
)

// Own says whether the estimate is made from the assistant's own calls.
func (e *Estimate) Own() bool { return e.From.Calls >= enough }

// estimate says what calling so many leads once may cost: carrier is the lines' price of a minute with each of them.
func (d *Roster) estimate(leads int64, carrier parley.Money, from store.CallMinutes) Estimate {
	e := Estimate{Minutes: leads, Cost: carrier + d.Prices.Calls.Assistant*parley.Money(leads), From: from}
	if e.Own() {
		e.Minutes = (leads*from.Seconds + 60*from.Calls - 1) / (60 * from.Calls)
		e.Cost = carrier.MulRatio(from.Started, from.Calls) +
			(d.Prices.Calls.Assistant*parley.Money(leads)).MulRatio(from.Seconds, 60*from.Calls)
	}
	return e
}

// Launch is Begin for those who have seen what is ahead, or Schedule where at says when: a list that does not fit the
// assistant keeps the campaign from starting.
func (d *Roster) Launch(ctx context.Context, userID, id int64, at string) (*parley.Campaign, error) {
	a, err := d.Ahead(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	if why := a.Blocked(); why != "" {
		return nil, parley.Errorf(parley.Refused, "%s", why)
	}
	if at != "" {
		return d.Schedule(ctx, userID, id, at)
	}
	return d.Begin(ctx, userID, id)
}

// Rehearsal is the order of a call to a number of the user's own, with the first lead's variables. It is nobody's
// attempt at that lead.
func (d *Roster) Rehearsal(ctx context.Context, userID, id int64, to string) (o call.Order, err error) {
	c, err := d.DB.Campaign(ctx, userID, id)
	if err != nil {
		return o, err
	}
	list, err := d.DB.LeadsToCall(ctx, userID, id, 0, 1)
	if err != nil {
		return o, err
	}
	if len(list) == 0 {
		return o, parley.Errorf(parley.Refused, "The campaign has no leads to call.")
	}
	o = call.Order{UserID: userID, AssistantID: c.AssistantID, To: to, Variables: list[0].Variables}
	if len(c.PhoneNumberIDs) > 0 {
		o.NumberID = c.PhoneNumberIDs[0]
	}
	return o, nil
}

// Ahead looks at what a campaign's start would do. It changes nothing.
func (d *Roster) Ahead(ctx context.Context, userID, id int64) (*Ahead, error) {
	c, err := d.DB.Campaign(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	a := &Ahead{Campaign: c}
	var refused *parley.Error
	switch err := d.ready(ctx, d.DB.Query, userID, c); {
	case errors.As(err, &refused):
		a.Refusal = refused.Message
	case err != nil:
		return nil, err
	}
	if a.Free, err = d.DB.Free(ctx, userID); err != nil {
		return nil, err
	}
	assistant, err := d.DB.Assistant(ctx, userID, c.AssistantID)
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	if assistant != nil && err == nil {
		a.Caller = assistant.Name
	} else {
		assistant = &parley.Assistant{}
	}
	hours := HoursOf(c)
	a.Opens = hours.Next(time.Now())
	return a, d.lookAhead(ctx, a, assistant, &hours)
}

// lookAhead counts the leads that are to be called.
func (d *Roster) lookAhead(ctx context.Context, a *Ahead, assistant *parley.Assistant, hours *Hours) error {
	trunk, err := d.byTrunk(ctx, a.Campaign, assistant)
	if err != nil {
		return err
	}
	open := map[string]int64{} // variables without a value, and for how many
	for _, name := range Needed(assistant) {
		open[name] = 0
	}
	carrier, zones, places := parley.Money(0), map[string]string{}, map[string]int64{}
	for after := int64(0); ; {
		list, err := d.DB.LeadsToCall(ctx, a.Campaign.UserID, a.Campaign.ID, after, aheadRows)
		if err != nil {
			return err
		}
		for i := range list {
			l := &list[i]
			after = l.ID
			a.Leads++
			if d.Allow != nil && !d.Allow(l.PhoneNumber) {
				a.Barred++
				continue
			}
			carrier += d.carrier(l.PhoneNumber, trunk)
			// says as much of the zone as the whole number
			begin := l.PhoneNumber[:min(len(l.PhoneNumber), len("+12025550"))]
			if _, known := zones[begin]; !known {
				zones[begin] = zoneOf(begin, a.Opens)
			}
			places[zones[begin]]++
			for name := range open {
				if l.Variables[name] == "" {
					open[name]++
				}
			}
		}
		if len(list) < aheadRows {
			break
		}
	}
	called := a.Leads - a.Barred
	a.Minute = carrier + d.Prices.Calls.Assistant*parley.Money(called)
	from, err := d.DB.LastCalls(ctx, a.Campaign.UserID, a.Campaign.AssistantID, lastOnes)
	if err != nil {
		return err
	}
	a.Estimate = d.estimate(called, carrier, from)
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if open[name] > 0 {
			a.Unfilled = append(a.Unfilled, Unfilled{name, open[name]})
		}
	}
	for zone, n := range places {
		a.Places = append(a.Places, hours.at(zone, n, a.Opens))
	}
	slices.SortFunc(a.Places, func(p, q Place) int {
		if p.Night != q.Night {
			return map[bool]int{true: -1, false: 1}[p.Night]
		}
		return cmp.Or(cmp.Compare(q.Leads, p.Leads), cmp.Compare(p.Zone, q.Zone))
	})
	return nil
}

// aheadRows are how many leads are read at a time.
const aheadRows = 5000

// byTrunk says whether a campaign's calls leave over the user's own trunks alone.
func (d *Roster) byTrunk(ctx context.Context, c *parley.Campaign, a *parley.Assistant) (bool, error) {
	ids := c.PhoneNumberIDs
	if len(ids) == 0 && a.PhoneNumberID != nil {
		ids = []int64{*a.PhoneNumberID}
	}
	list, err := d.DB.Numbers(ctx, c.UserID)
	return !slices.ContainsFunc(list, func(n parley.Number) bool {
		return n.Type != parley.NumberSIP &&
			slices.Contains(ids, n.ID)
	}), err
}

// carrier is what a line to a number costs for a minute.
func (d *Roster) carrier(to string, trunk bool) parley.Money {
	if trunk {
		return d.Prices.Calls.Trunk
	}
	return d.Prices.Outbound(parley.PhoneCountry(to))
}

// zoneOf is the time zone that a number is in; "" where it may be in several whose clocks differ.
func zoneOf(number string, now time.Time) string {
	list := parley.PhoneZones(number)
	if len(list) == 0 {
		return ""
	}
	_, first := now.In(zone(list[0])).Zone()
	for _, name := range list[1:] {
		if _, offset := now.In(zone(name)).Zone(); offset != first {
			return ""
		}
	}
	return list[0]
}

// at is how the hours that come next look by the clocks of a zone.
func (h *Hours) at(name string, leads int64, next time.Time) Place {
	p := Place{Zone: name, Leads: leads}
	day := next.In(h.zone)
	if m := day.Hour()*60 + day.Minute(); h.start > h.end && m <= h.end { // they began the day before
		day = day.AddDate(0, 0, -1)
	}
	there := h.zone
	if name != "" {
		there = zone(name)
	}
	clock := func(minute int) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day(), minute/60, minute%60, 0, 0, h.zone).In(there)
	}
	length := (h.end - h.start + 24*60) % (24 * 60)
	from := clock(h.start)
	to := from.Add(time.Duration(length) * time.Minute)
	if p.From, p.To = from.Format("15:04"), to.Format("15:04"); length == lastMinute { // all day, wherever
		p.From, p.To = "00:00", "23:59"
	}
	begin := from.Hour()*60 + from.Minute()
	p.Night = begin < 8*60 || begin+length > 21*60
	return p
}
