package lang

import (
	"strings"
	"testing"
	"time"
)

func TestWeekday(t *testing.T) {
	for iso, list := range weekdays {
		names := strings.Fields(list)
		seen := map[string]bool{}
		for _, n := range names {
			seen[n] = true
		}
		if len(names) != 7 || len(seen) != 7 {
			t.Errorf("%s has the days %q", iso, names)
		}
	}
	for _, c := range []struct {
		iso  string
		day  time.Weekday
		want string
	}{{"en", time.Sunday, "Sunday"}, {"de", time.Saturday, "Samstag"}, {"es", time.Wednesday, "miércoles"},
		{"vi", time.Monday, "Thứ Hai"}, {"", time.Friday, "Friday"}} {
		if got := Weekday(c.iso, c.day); got != c.want {
			t.Errorf("%q: %q, want %q", c.iso, got, c.want)
		}
	}
}
