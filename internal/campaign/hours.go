package campaign

import (
	"slices"
	"sync"
	"time"

	"parley/internal/parley"
)

// Hours are when a campaign may call: by the clock on the wall of its time zone, whatever the zone does to its
// clocks. Hours that span midnight belong to the day on which they begin.
type Hours struct {
	zone       *time.Location
	start, end int     // minutes of the day; end's minute is the last
	days       [7]bool // by time.Weekday
}

// HoursOf are a campaign's hours. A zone that this system does not know is UTC: the campaign was made on another.
func HoursOf(c *parley.Campaign) Hours {
	h := Hours{zone: zone(c.Timezone), start: minute(c.AllowedHoursStartTime), end: minute(c.AllowedHoursEndTime)}
	for d := time.Sunday; d <= time.Saturday; d++ {
		h.days[d] = slices.Contains(c.AllowedDays, days[d])
	}
	if h.start == h.end { // the whole day
		h.start, h.end = 0, lastMinute
	}
	return h
}

const lastMinute = 24*60 - 1

var days = [7]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// minute is the minute of the day of HH:MM:SS.
func minute(clock string) int {
	t, err := time.Parse(time.TimeOnly, clock)
	if err != nil {
		return 0
	}
	return t.Hour()*60 + t.Minute()
}

var zones sync.Map // name -> *time.Location: reading one costs a file

func zone(name string) *time.Location {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	zones.Store(name, z)
	return z
}

// Open says whether calls may begin at t.
func (h *Hours) Open(t time.Time) bool {
	t = t.In(h.zone)
	m, day := t.Hour()*60+t.Minute(), t.Weekday()
	switch {
	case h.start <= h.end:
		return h.days[day] && m >= h.start && m <= h.end
	case m >= h.start:
		return h.days[day]
	case m <= h.end: // begun the day before
		return h.days[(day+6)%7]
	}
	return false
}

// Next is the first instant from t on at which calls may begin; the zero time when there is none within eight days,
// as for hours that lie in a gap of the clocks.
func (h *Hours) Next(t time.Time) time.Time {
	if h.Open(t) {
		return t
	}
	end := t.Add(8 * 24 * time.Hour)
	t = t.Truncate(time.Minute).Add(time.Minute) // zones are whole minutes from UTC
	for !h.Open(t) {
		if !t.Before(end) {
			return time.Time{}
		}
		t = t.Add(h.step(t))
	}
	return t
}

// step is how far one may go from t, which is closed, and not miss the opening: nearly to the hours' next beginning
// by the clock as it goes now. Where clocks that are set on the way could bring the opening here, just before it and
// just behind the end, it is a minute.
func (h *Hours) step(t time.Time) time.Duration {
	const day, shift = 24 * 60, 3 * 60 // shift is more than clocks are set by
	local := t.In(h.zone)
	now := local.Hour()*60 + local.Minute()
	wait, since := (h.start-now+day)%day, (now-h.end+day)%day
	if wait > shift && since > shift {
		return time.Duration(wait-shift) * time.Minute
	}
	return time.Minute
}
