package parley

import (
	"fmt"
	"time"
)

// Zone is the user's time zone; UTC where it is not known.
func (u *User) Zone() *time.Location {
	if zone, err := time.LoadLocation(u.Timezone); err == nil {
		return zone
	}
	return time.UTC
}

// Ranges are the days that analytics may be asked for without naming them.
var Ranges = []string{"today", "yesterday", "7d", "30d", "90d"}

// MaxDays is how many days analytics are of at most.
const MaxDays = 366

// Days are some days in a row, in a time zone.
type Days struct {
	Dates  []time.Time // their beginnings
	Begins []Time
	To     Time // when the last one ends
}

// RangeOf are the days of a range that ends now, of the last seven days where it names none.
func RangeOf(name string, now time.Time, zone *time.Location) *Days {
	today, days := now.In(zone), map[string]int{"today": 1, "30d": 30, "90d": 90}[name]
	switch {
	case name == "yesterday":
		today, days = today.AddDate(0, 0, -1), 1
	case days == 0:
		days = 7
	}
	d, _ := DaysBetween(today.AddDate(0, 0, 1-days), today, zone)
	return d
}

// DaysBetween are the days from one date to another, both included.
func DaysBetween(first, last time.Time, zone *time.Location) (*Days, error) {
	d := &Days{}
	for n := 0; len(d.Dates) <= MaxDays; n++ {
		at := midnight(first, n, zone)
		if at.Format(time.DateOnly) > last.Format(time.DateOnly) {
			d.To = At(at)
			break
		}
		d.Dates, d.Begins = append(d.Dates, at), append(d.Begins, At(at))
	}
	switch {
	case len(d.Dates) == 0:
		return nil, fmt.Errorf("must not be before the first day")
	case d.To == 0:
		return nil, fmt.Errorf("must be at most %d days after the first", MaxDays-1)
	}
	return d, nil
}

func midnight(date time.Time, later int, zone *time.Location) time.Time {
	year, month, day := date.Date()
	return time.Date(year, month, day+later, 0, 0, 0, 0, zone)
}

// Asked are the days that are asked for: dates go before the name of a range. Fields that can't be are told.
func Asked(name, from, to string, now time.Time, zone *time.Location) (*Days, Fields) {
	if from == "" && to == "" {
		return RangeOf(name, now, zone), nil
	}
	today := now.In(zone).Format(time.DateOnly)
	if to == "" {
		to = max(today, from)
	}
	last, err := time.ParseInLocation(time.DateOnly, to, zone)
	first := last.AddDate(0, 0, -6)
	if err == nil && from != "" {
		first, err = time.ParseInLocation(time.DateOnly, from, zone)
	}
	var wrong Fields
	if err != nil {
		wrong.Add("date_from", "is not a date.")
		return nil, wrong
	}
	d, err := DaysBetween(first, last, zone)
	if err != nil {
		wrong.Add("date_to", "%v.", err)
	}
	return d, wrong
}
