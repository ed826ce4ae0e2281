package assistant

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/parley"
)

// The prompt ends with the time of the conversation: told anew every five minutes, past midnight and when the clocks change.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		name, zone, prompt string
		off                bool
		start              string
		gone               time.Duration
		want               string
	}{
		{"at first", "Europe/Berlin", "Be kind.\n", false, "2026-11-27T13:30:40Z", 0,
			"Be kind.\n\nIt is Friday, 27 November 2026, 14:30 in the time zone Europe/Berlin (UTC+01:00)."},
		{"soon after", "Europe/Berlin", "x", false, "2026-11-27T13:30:40Z", 4 * time.Minute,
			"x\n\nIt is Friday, 27 November 2026, 14:30 in the time zone Europe/Berlin (UTC+01:00)."},
		{"later", "Europe/Berlin", "x", false, "2026-11-27T13:30:40Z", 11 * time.Minute,
			"x\n\nIt is Friday, 27 November 2026, 14:40 in the time zone Europe/Berlin (UTC+01:00)."},
		{"past midnight", "Asia/Kolkata", "x", false, "2026-12-31T18:29:00Z", 2 * time.Minute,
			"x\n\nIt is Friday, 1 January 2027, 00:01 in the time zone Asia/Kolkata (UTC+05:30)."},
		{"the clocks go forward", "Europe/Berlin", "x", false, "2026-03-29T00:58:00Z", 3 * time.Minute,
			"x\n\nIt is Sunday, 29 March 2026, 03:01 in the time zone Europe/Berlin (UTC+02:00)."},
		{"the clocks go back", "America/New_York", "x", false, "2026-11-01T05:58:00Z", 3 * time.Minute,
			"x\n\nIt is Sunday, 1 November 2026, 01:01 in the time zone America/New_York (UTC-05:00)."},
		{"no such zone", "Nowhere", "x", false, "2026-11-27T13:30:40Z", 0,
			"x\n\nIt is Friday, 27 November 2026, 13:30 in the time zone UTC (UTC+00:00)."},
		{"a date alone", "UTC", "{{current_date}}", false, "2026-11-27T13:30:40Z", 0,
			"{{current_date}}\n\nIt is Friday, 27 November 2026, 13:30 in the time zone UTC (UTC+00:00)."},
		{"the prompt has it", "UTC", "{{ current_date }} {{current_time}}", false, "2026-11-27T13:30:40Z", 0,
			"{{ current_date }} {{current_time}}"},
		{"off", "UTC", "x", true, "2026-11-27T13:30:40Z", 0, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, err := time.Parse(time.RFC3339, c.start)
				if err != nil {
					t.Fatal(err)
				}
				clock := newClock(&parley.Assistant{Timezone: c.zone, SystemPrompt: c.prompt, PromptCurrentTime: !c.off}, start)
				time.Sleep(c.gone)
				if got := clock.after(c.prompt); got != c.want {
					t.Errorf("the prompt is %q", got)
				}
			})
		})
	}
}
