package campaign

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"parley/internal/parley"
)

func hours(zone, start, end string, on ...string) Hours {
	if len(on) == 0 {
		on = days[:]
	}
	return HoursOf(&parley.Campaign{Timezone: zone, AllowedHoursStartTime: start + ":00", AllowedHoursEndTime: end +
		":00", AllowedDays: on})
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOpen(t *testing.T) {
	weekdays := []string{"monday", "tuesday", "wednesday", "thursday", "friday"}
	for _, c := range []struct {
		name string
		h    Hours
		utc  string // 2026-03-02 is a Monday
		open bool
	}{
		{"before", hours("UTC", "09:00", "17:00"), "2026-03-02 08:59:59", false},
		{"first instant", hours("UTC", "09:00", "17:00"), "2026-03-02 09:00:00", true},
		{"the end minute is in", hours("UTC", "09:00", "17:00"), "2026-03-02 17:00:59", true},
		{"behind the end minute", hours("UTC", "09:00", "17:00"), "2026-03-02 17:01:00", false},
		{"whole day by default", hours("UTC", "00:00", "23:59"), "2026-03-02 23:59:59", true},
		{"equal is the whole day", hours("UTC", "08:00", "08:00"), "2026-03-02 03:00:00", true},
		{"equal at midnight too", hours("UTC", "00:00", "00:00"), "2026-03-02 23:59:59", true},
		{"one minute", hours("UTC", "09:00", "09:01"), "2026-03-02 09:01:59", true},
		{"another day", hours("UTC", "09:00", "17:00", "tuesday"), "2026-03-02 12:00:00", false},
		{"the zone's day, not UTC's", hours("Pacific/Auckland", "00:00", "23:59", "tuesday"), "2026-03-02 12:00:00",
			true},
		{"west of Greenwich", hours("America/Los_Angeles", "09:00", "17:00", "sunday"), "2026-03-02 00:30:00", true},
		{"half an hour off", hours("Asia/Kolkata", "09:00", "09:29"), "2026-03-02 03:30:00", true},
		{"over midnight, evening", hours("UTC", "22:00", "02:00", weekdays...), "2026-03-06 23:00:00", true},
		{"over midnight, Friday's morning on Saturday", hours("UTC", "22:00", "02:00", weekdays...),
			"2026-03-07 02:00:59", true},
		{"over midnight, closed", hours("UTC", "22:00", "02:00", weekdays...), "2026-03-07 02:01:00", false},
		{"over midnight, Saturday's evening", hours("UTC", "22:00", "02:00", weekdays...), "2026-03-07 22:00:00",
			false},
		{"over midnight, Sunday's morning of no Saturday", hours("UTC", "22:00", "02:00", weekdays...),
			"2026-03-08 01:00:00", false},
		{"over midnight, Monday's morning of no Sunday", hours("UTC", "22:00", "02:00", weekdays...),
			"2026-03-09 01:00:00", false},
		// Berlin sets its clocks from 02:00 to 03:00 on 2026-03-29 (at 01:00 UTC), and from 03:00 back to 02:00 on
		// 2026-10-25 (at 01:00 UTC).
		{"the day before summer time", hours("Europe/Berlin", "09:00", "17:00"), "2026-03-28 08:00:00", true},
		{"summer time begins", hours("Europe/Berlin", "09:00", "17:00"), "2026-03-29 07:00:00", true},
		{"and ends an hour sooner", hours("Europe/Berlin", "09:00", "17:00"), "2026-03-29 15:01:00", false},
		{"the hour that isn't there", hours("Europe/Berlin", "02:00", "02:59"), "2026-03-29 01:00:00", false},
		{"the hour that is there twice, first", hours("Europe/Berlin", "02:00", "02:59"), "2026-10-25 00:30:00", true},
		{"the hour that is there twice, second", hours("Europe/Berlin", "02:00", "02:59"), "2026-10-25 01:30:00", true},
		{"behind it", hours("Europe/Berlin", "02:00", "02:59"), "2026-10-25 02:00:00", false},
		{"hours over the gap", hours("Europe/Berlin", "22:00", "03:00"), "2026-03-29 01:00:59", true},
		{"an unknown zone is UTC", hours("Mars/Olympus", "09:00", "17:00"), "2026-03-02 09:00:00", true},
	} {
		if got := c.h.Open(at(t, c.utc)); got != c.open {
			t.Errorf("%s: open at %s is %v", c.name, c.utc, got)
		}
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		h          Hours
		from, next string
	}{
		{hours("UTC", "09:00", "17:00"), "2026-03-02 10:00:30", "2026-03-02 10:00:30"},
		{hours("UTC", "09:00", "17:00"), "2026-03-02 17:01:00", "2026-03-03 09:00:00"},
		{hours("UTC", "09:00", "17:00", "monday"), "2026-03-02 17:01:00", "2026-03-09 09:00:00"},
		{hours("Europe/Berlin", "09:00", "17:00"), "2026-03-28 20:00:00", "2026-03-29 07:00:00"},
		{hours("Europe/Berlin", "09:00", "17:00"), "2026-10-24 20:00:00", "2026-10-25 08:00:00"},
		// that day has no 02:30
		{hours("Europe/Berlin", "02:30", "02:40"), "2026-03-28 20:00:00", "2026-03-30 00:30:00"},
		// once more in the same night
		{hours("Europe/Berlin", "02:30", "02:40"), "2026-10-25 00:41:00", "2026-10-25 01:30:00"},
		{hours("Europe/Berlin", "09:00", "02:40"), "2026-10-25 00:41:00", "2026-10-25 01:00:00"},
		{hours("UTC", "22:00", "02:00", "friday"), "2026-03-07 02:01:00", "2026-03-13 22:00:00"},
		{hours("Europe/Berlin", "02:30", "02:40", "sunday"), "2026-03-28 20:00:00", "2026-04-05 00:30:00"},
	} {
		if got := c.h.Next(at(t, c.from)); !got.Equal(at(t, c.next)) {
			t.Errorf("from %s next at %s, want %s", c.from, got.UTC(), c.next)
		}
	}
	if got := (&Hours{zone: time.UTC}).Next(at(t, "2026-03-02 10:00:30")); !got.IsZero() {
		t.Errorf("no day is allowed, and yet calls begin at %s", got)
	}
}

// Next is the first open minute, as looking at every minute finds it.
func TestNextMissesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns",
		"Africa/Casablanca", "Asia/Kathmandu", "Pacific/Chatham"}
	clock := func() string { return fmt.Sprintf("%02d:%02d", r.IntN(24), r.IntN(60)) }
	for range 1000 {
		var on []string
		for _, d := range days {
			if r.IntN(2) == 0 {
				on = append(on, d)
			}
		}
		if on == nil {
			on = days[:1]
		}
		zone, start, end := names[r.IntN(len(names))], clock(), clock()
		h := hours(zone, start, end, on...)
		// Days on which clocks are set, a week around them, and any.
		from := []string{"2026-03-25", "2026-10-22", "2026-03-05", "2026-10-29", "2026-04-01", "2026-02-10"}[r.IntN(6)]
		begin := at(t, from+" 00:00:00").Add(time.Duration(r.IntN(5*24*60*60)) * time.Second)
		want := begin
		if !h.Open(want) {
			for want = begin.Truncate(time.Minute).Add(time.Minute); !h.Open(want); want = want.Add(time.Minute) {
				if want.Sub(begin) > 9*24*time.Hour {
					want = time.Time{}
					break
				}
			}
		}
		got := h.Next(begin)
		if !got.Equal(want) && !(got.IsZero() && want.Sub(begin) > 8*24*time.Hour) {
			t.Fatalf("%s %s-%s on %v: from %s next at %s, want %s", zone, start, end, on, begin, got.UTC(), want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	h := hours("Europe/Berlin", "09:00", "17:00", "monday")
	from := at(b, "2026-03-03 10:00:00")
	for b.Loop() {
		if h.Next(from).IsZero() {
			b.Fatal("never")
		}
	}
}
