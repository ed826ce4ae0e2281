package parley_test

import (
	"testing"
	"time"

	"parley/internal/parley"
)

// A session's window is exactly 24 hours, to the microsecond, even on days when the clocks change.
func TestWhatsAppSessionAt(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, last := range map[string]time.Time{"any day": time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC),
		"a day of 23 hours": time.Date(2026, 3, 28, 12, 0, 0, 0, berlin)} {
		at := parley.At(last)
		for _, c := range []struct {
			after   time.Duration
			open    bool
			minutes int
		}{
			{0, true, 1440}, {time.Second, true, 1439}, {time.Hour, true, 1380},
			{23*time.Hour + 59*time.Minute, true, 1}, {24*time.Hour - time.Microsecond, true, 0},
			{24 * time.Hour, false, 0}, {25 * time.Hour, false, 0},
		} {
			got := parley.SessionAt(at, at.Add(c.after))
			want := parley.WhatsAppSession{IsOpen: c.open, CanSendFreeform: c.open, RequiresTemplate: !c.open,
				MinutesRemaining: c.minutes}
			if c.open {
				want.ExpiresAt = at.Add(24 * time.Hour)
			}
			if got != want {
				t.Errorf("%s, %v later: %+v, want %+v", name, c.after, got, want)
			}
		}
	}
	if got := parley.SessionAt(0, parley.Now()); got.IsOpen || !got.RequiresTemplate || got.ExpiresAt != 0 {
		t.Errorf("nobody wrote: %+v", got)
	}
}

// Statuses come in any order, several times; every order leads to the same final status.
func TestWhatsAppAdvances(t *testing.T) {
	run := func(list ...string) string {
		at := parley.WhatsAppSending
		for _, s := range list {
			if parley.Advances(at, s) {
				at = s
			}
		}
		return at
	}
	all := []string{parley.WhatsAppSent, parley.WhatsAppDelivered, parley.WhatsAppRead}
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				want := all[max(i, j, k)]
				if got := run(all[i], all[j], all[k]); got != want {
					t.Errorf("%s %s %s end at %s", all[i], all[j], all[k], got)
				}
			}
		}
	}
	if run("failed", "sent") != "failed" || run("sent", "failed") != "failed" ||
		run("delivered", "failed") != "delivered" || run("what") != parley.WhatsAppSending {
		t.Error("failed")
	}
}
