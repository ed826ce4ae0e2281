package catalog

import (
	"strings"
	"testing"
	"time"
)

func TestWeekday(t *testing.T) {
	for _, l := range languages {
		names := strings.Fields(weekdays[l.iso])
		seen := map[string]bool{}
		for _, n := range names {
			seen[n] = true
		}
		if len(names) != 7 || len(seen) != 7 {
			t.Errorf("%s has the days %q", l.name, names)
		}
	}
	for _, c := range []struct {
		language int64
		day      time.Weekday
		want     string
	}{{1, time.Sunday, "Sunday"}, {4, time.Saturday, "Samstag"}, {2, time.Wednesday, "miércoles"},
		{35, time.Monday, "Thứ Hai"}, {0, time.Friday, "Friday"}} {
		if got := Weekday(c.language, c.day); got != c.want {
			t.Errorf("%d: %q, want %q", c.language, got, c.want)
		}
	}
}
