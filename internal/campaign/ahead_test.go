package campaign

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// Before a start the user can see who would be called, when by the leads' own clocks, what it may cost, and which
// variables have no value.
func TestAhead(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		caller := h.person(func(a *parley.Assistant) {
			a.PhoneNumberID = &h.number
			a.InitialMessage, a.SystemPrompt = "Hello {{name}}, {{company}} here.",
				"Today is {{current_date}}. Ask {{name}} for {{order}}."
			a.Variables = map[string]string{"company": "Acme"}
		})
		c := h.campaign(map[string]any{"assistant_id": num(caller.ID), "timezone": "Europe/Berlin",
			"allowed_hours_start_time": "09:00", "allowed_hours_end_time": "18:00"})
		look := func() *Ahead {
			t.Helper()
			a, err := h.Ahead(t.Context(), h.user.ID, c.ID)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := look(); a.Leads != 0 || !strings.Contains(a.Refusal, "no leads") {
			t.Errorf("without leads: %+v", a)
		}
		list := []*parley.Lead{{PhoneNumber: "+4930901820", Variables: map[string]string{"name": "Ana", "order": "1"}},
			{PhoneNumber: "+4930901821", Variables: map[string]string{"name": "Bo", "order": ""}},
			{PhoneNumber: "+12125550100", Variables: map[string]string{"name": "Cy"}},
			{PhoneNumber: "+78005553535", Variables: map[string]string{"name": "Di"}}}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.AddLeads(ctx, c.UserID, c.ID, list, false); err != nil {
				return err
			}
			done := *list[1]
			done.Status, done.DueAt, done.PhoneNumber = parley.LeadCompleted, 0, "+4930901829"
			if _, err := tx.AddLeads(ctx, c.UserID, c.ID, []*parley.Lead{&done}, false); err != nil {
				return err
			}
			done.Status, done.DueAt = parley.LeadCompleted, 0
			return tx.SaveLead(ctx, c.UserID, &done)
		})
		h.Allow = func(e164 string) bool { return !strings.HasPrefix(e164, "+7") }
		a := look()
		if a.Refusal != "" || a.Leads != 4 || a.Barred != 1 || a.Caller != "Caller" || a.Free != 1000*parley.USD ||
			a.Opens.Before(time.Now().Add(-time.Second)) {
			t.Errorf("%+v", a)
		}
		if want := 3 * (h.Prices.Calls.Assistant + h.Prices.Calls.Trunk); a.Minute != want {
			t.Errorf("a minute with each costs %v, not %v", a.Minute, want)
		}
		if got := fmt.Sprint(a.Unfilled); got != "[{order 2}]" {
			t.Errorf("without a value are %s", got)
		}
		if len(a.Places) != 2 || a.Places[0].Zone != "America/New_York" || !a.Places[0].Night ||
			a.Places[1] != (Place{Zone: "Europe/Berlin", Leads: 2, From: "09:00", To: "18:00"}) {
			t.Errorf("the places are %+v", a.Places)
		}

		// Over the carrier, a minute has its country's price.
		rented := &parley.Number{PhoneNumber: "+12025550199", CountryCode: "US", Type: parley.NumberNormal}
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, h.user.ID, rented) })
		if _, err := h.Update(t.Context(), h.user, c.ID,
			map[string]any{"phone_number_ids": []any{num(rented.ID)}}); err != nil {
			t.Fatal(err)
		}
		if want := 3*h.Prices.Calls.Assistant + 2*h.Prices.Outbound("DE") + h.Prices.Outbound(
			"US"); look().Minute != want {
			t.Errorf("over the carrier it costs %v, not %v", look().Minute, want)
		}
		if _, err := h.Ahead(t.Context(), h.user.ID+1, c.ID); !store.IsNotFound(err) {
			t.Errorf("a stranger is answered %v", err)
		}
	})
}

// The hours of a campaign by the clocks of other zones.
func TestHoursElsewhere(t *testing.T) {
	winter := time.Date(2026, 1, 14, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		zone, from, to, there string
		want                  string
		night                 bool
	}{
		{"Europe/Berlin", "09:00:00", "18:00:00", "Europe/Berlin", "09:00–18:00", false},
		{"Europe/Berlin", "09:00:00", "18:00:00", "America/New_York", "03:00–12:00", true},
		{"Europe/Berlin", "09:00:00", "18:00:00", "Asia/Kolkata", "13:30–22:30", true},
		{"Europe/Berlin", "09:00:00", "18:00:00", "Europe/London", "08:00–17:00", false},
		{"Europe/Berlin", "09:00:00", "18:00:00", "", "09:00–18:00", false},
		{"UTC", "08:00:00", "21:00:00", "UTC", "08:00–21:00", false},
		{"UTC", "08:00:00", "21:01:00", "UTC", "08:00–21:01", true},
		{"UTC", "22:00:00", "06:00:00", "UTC", "22:00–06:00", true},
		{"UTC", "22:00:00", "06:00:00", "America/Los_Angeles", "14:00–22:00", true},
		{"UTC", "00:00:00", "00:00:00", "UTC", "00:00–23:59", true},
	} {
		h := HoursOf(&parley.Campaign{Timezone: c.zone, AllowedHoursStartTime: c.from, AllowedHoursEndTime: c.to,
			AllowedDays: days[:]})
		p := h.at(c.there, 1, h.Next(winter))
		if got := p.From + "–" + p.To; got != c.want || p.Night != c.night {
			t.Errorf("%s–%s in %s is %s (night: %t) in %q, want %s (%t)", c.from, c.to, c.zone, got, p.Night,
				c.there, c.want, c.night)
		}
	}
}
