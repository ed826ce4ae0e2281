package parley_test

import (
	"testing"
	"time"

	"parley/internal/parley"
)

func TestRouteOpen(t *testing.T) {
	office := []parley.OpenHours{{Days: []string{"monday", "tuesday"}, From: "09:00", To: "12:30"},
		{Days: []string{"monday"}, From: "14:00", To: "18:00"}}
	night := []parley.OpenHours{{Days: []string{"friday"}, From: "22:00", To: "06:00"}}
	all := []parley.OpenHours{{Days: []string{"sunday"}, From: "00:00", To: "00:00"}}
	for _, c := range []struct {
		route parley.NumberRoute
		at    string // UTC
		open  bool
	}{
		{parley.NumberRoute{}, "2026-06-08T03:00:00Z", true},
		{parley.NumberRoute{ClosedDates: []string{"2026-06-08"}}, "2026-06-08T03:00:00Z", false},
		{parley.NumberRoute{Hours: office}, "2026-06-08T08:59:59Z", false}, // a Monday
		{parley.NumberRoute{Hours: office}, "2026-06-08T09:00:00Z", true},
		{parley.NumberRoute{Hours: office}, "2026-06-08T12:29:59Z", true},
		{parley.NumberRoute{Hours: office}, "2026-06-08T12:30:00Z", false},
		{parley.NumberRoute{Hours: office}, "2026-06-08T14:00:00Z", true},
		{parley.NumberRoute{Hours: office}, "2026-06-09T14:00:00Z", false},
		{parley.NumberRoute{Hours: office}, "2026-06-10T10:00:00Z", false},
		{parley.NumberRoute{Hours: office, ClosedDates: []string{"2026-06-08"}}, "2026-06-08T10:00:00Z", false},
		{parley.NumberRoute{Hours: office, Timezone: "America/New_York"}, "2026-06-08T10:00:00Z", false},
		{parley.NumberRoute{Hours: office, Timezone: "America/New_York"}, "2026-06-08T13:00:00Z", true},
		{parley.NumberRoute{Hours: office, Timezone: "America/New_York"}, "2026-12-07T13:30:00Z", false}, // winter
		{parley.NumberRoute{Hours: office, Timezone: "Nowhere/Known"}, "2026-06-08T10:00:00Z", true},
		{parley.NumberRoute{Hours: night}, "2026-06-12T21:59:00Z", false}, // a Friday
		{parley.NumberRoute{Hours: night}, "2026-06-12T22:00:00Z", true},
		{parley.NumberRoute{Hours: night}, "2026-06-13T05:59:00Z", true},
		{parley.NumberRoute{Hours: night}, "2026-06-13T06:00:00Z", false},
		{parley.NumberRoute{Hours: night}, "2026-06-12T03:00:00Z", false},
		// closed on the day on which the hours begin, and on the day on which they end
		{parley.NumberRoute{Hours: night, ClosedDates: []string{"2026-06-12"}}, "2026-06-13T03:00:00Z", false},
		{parley.NumberRoute{Hours: night, ClosedDates: []string{"2026-06-13"}}, "2026-06-13T03:00:00Z", true},
		{parley.NumberRoute{Hours: all}, "2026-06-14T23:59:00Z", true},
		{parley.NumberRoute{Hours: all}, "2026-06-15T00:00:00Z", false},
		// clocks go back: in New York half past one comes twice on 2026-11-01, a Sunday, and it is Sunday both times
		{parley.NumberRoute{Hours: all, Timezone: "America/New_York"}, "2026-11-01T05:30:00Z", true},
		{parley.NumberRoute{Hours: all, Timezone: "America/New_York"}, "2026-11-01T06:30:00Z", true},
		// and a midnight that does not exist: Beirut, 2026-03-29
		{parley.NumberRoute{Hours: all, Timezone: "Asia/Beirut"}, "2026-03-28T22:30:00Z", true},
		{parley.NumberRoute{Hours: night, Timezone: "Asia/Beirut"}, "2026-03-27T23:00:00Z", true},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.route.Open(at); got != c.open {
			t.Errorf("%+v at %s: %v", c.route, c.at, got)
		}
	}
}

func TestRouteBlocks(t *testing.T) {
	r := parley.NumberRoute{BlockedCallers: []string{"+49 30 901820", "+1900*", "020 1", "+*", "+44x*"}}
	if wrong := r.Tidy(); len(wrong) != 1 || len(wrong[0].Messages) != 3 {
		t.Errorf("wrong: %v", wrong)
	}
	r.BlockedCallers = r.BlockedCallers[:2]
	for caller, want := range map[string]bool{"+4930901820": true, "+49309018201": false, "+19005550100": true,
		"+1901": false, "": false} {
		if got := r.Blocks(caller); got != want {
			t.Errorf("%q: %v", caller, got)
		}
	}
	r.BlockAnonymous = true
	if !r.Blocks("") {
		t.Error("who withholds the number is let in")
	}
	wrong := (&parley.NumberRoute{ClosedDates: []string{"2026-02-30"}, Otherwise: parley.RouteAssistant}).Tidy()
	if !wrong.Has("closed_dates") || !wrong.Has("otherwise_assistant_id") {
		t.Errorf("wrong: %v", wrong)
	}
}
