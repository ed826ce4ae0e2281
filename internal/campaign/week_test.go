package campaign

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// weekStart is the Monday of a week on whose Sunday Europe changes its clocks.
var weekStart = time.Date(2026, 3, 23, 0, 0, 0, 0, time.UTC)

// A week of four users' campaigns on fake time, with the real store: no call is outside its hours or too soon after
// the one before, there are never too many at once or in all, and every lead is finished.
func TestWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(weekStart))
		h := open(t, storetest.SQLite(t))
		h.Poll = func() time.Duration { return time.Hour } // nobody else writes: an end wakes the campaigns, and due times are known
		w := &week{harness: h, leads: 192, of: map[int64]*parley.Campaign{}}
		w.prepare()
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := h.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(7 * 24 * time.Hour)
		cancel()
		run.Wait()
		h.under.Wait()
		w.judge(w.dialled())
		for id, c := range w.of {
			stats, err := w.Stats(t.Context(), c.UserID, id)
			if err != nil {
				t.Fatal(err)
			}
			if now := w.now(c); now.Status != parley.CampaignEnded {
				t.Errorf("campaign in %s is %s after the week: %+v", c.Timezone, now.Status, stats)
			}
			if n := stats.ByStatus[parley.LeadCompleted] + stats.ByStatus[parley.LeadExhausted]; n != stats.Total ||
				stats.Total != int64(w.leads/len(w.of)) {
				t.Errorf("campaign in %s: %+v", c.Timezone, stats)
			}
		}
	})
}

type week struct {
	*harness
	leads int
	of    map[int64]*parley.Campaign
	users []*parley.User
}

// kinds are campaigns with every kind of hours.
var kinds = []map[string]any{
	{"timezone": "Europe/Berlin", "allowed_hours_start_time": "09:00", "allowed_hours_end_time": "17:00",
		"max_calls_in_parallel": num(10)},
	{"timezone": "America/New_York", "allowed_hours_start_time": "20:00", "allowed_hours_end_time": "02:00",
		"retry_interval": num(10), "max_retries": num(5)},
	{"timezone": "Australia/Lord_Howe", "retry_on_voicemail": true, "max_calls_in_parallel": num(5),
		"max_retries": num(1)},
	{"timezone": "Asia/Kathmandu", "allowed_days": []any{"wednesday", "saturday", "sunday"},
		"retry_on_goal_incomplete": true, "goal_completion_variable": "status"},
}

// prepare makes the campaigns with their leads, and starts them.
func (w *week) prepare() {
	w.far = w.takes
	w.users = []*parley.User{w.user}
	for range 3 {
		w.users = append(w.users, storetest.User(w, w.DB, 1000*parley.USD))
	}
	each := w.leads / len(kinds) / len(w.users)
	for i, u := range w.users {
		w.user = u
		w.assistant = w.person(nil)
		var numbers []any
		for n := range 3 {
			number := &parley.Number{PhoneNumber: phone(90000 + 10*i + n), CountryCode: "US", Type: parley.NumberSIP}
			w.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, u.ID, number) })
			numbers = append(numbers, num(number.ID))
		}
		for k, kind := range kinds {
			kind = maps.Clone(kind)
			kind["phone_number_ids"] = numbers
			c := w.campaign(kind)
			w.harness.leads(c, (i*len(kinds)+k)*each, each)
			w.begin(c)
			w.of[c.ID] = c
		}
	}
}

// takes is the far end of all calls.
func (w *week) takes(d *dialled) {
	a := fate(d)
	time.Sleep(a.lasts)
	w.end(d, a)
}

// fate decides how a call goes: who answers, and what they do, depends only on the number and the attempt.
func fate(d *dialled) answer {
	hash := fnv.New32a()
	hash.Write([]byte(d.To))
	a := person
	switch dice := (int(hash.Sum32()>>3)%97 + 31*d.Attempt) % 100; {
	case dice < 45:
		a.talked = time.Duration(20+2*dice) * time.Second
		a.lasts = a.talked
		a.found = map[string]any{"status": dice%3 == 0}
	case dice < 60:
		a = machine
	case dice < 75:
		a = busy
	case dice < 95:
		a = nobody
	default:
		a = answer{cause: parley.Rejected, rang: true, lasts: 5 * time.Second}
	}
	return a
}

// judge checks all calls of the week against the campaigns' rules.
func (w *week) judge(calls []*dialled) {
	perLead := map[int64][]*dialled{}
	numbers := map[int64]map[int64]int{}
	for _, d := range calls {
		c := w.of[d.CampaignID]
		perLead[d.LeadID] = append(perLead[d.LeadID], d)
		if !allowed(c, d.at) {
			w.Errorf("campaign in %s called at %s", c.Timezone, d.at)
		}
		if numbers[c.ID] == nil {
			numbers[c.ID] = map[int64]int{}
		}
		numbers[c.ID][d.NumberID]++
	}
	for id, list := range perLead {
		c := w.of[list[0].CampaignID]
		for i, d := range list {
			if d.Attempt != i+1 {
				w.Errorf("attempt %d of lead %d is numbered %d", i+1, id, d.Attempt)
			}
			if i > 0 && d.at.Sub(list[i-1].ended) < time.Duration(c.RetryInterval)*time.Minute {
				w.Errorf("lead %d was called %s after its last call", id, d.at.Sub(list[i-1].ended))
			}
		}
		if len(list) > int(c.MaxRetries)+1 {
			w.Errorf("lead %d was called %d times", id, len(list))
		}
	}
	if len(perLead) != w.leads {
		w.Errorf("%d of %d leads were called", len(perLead), w.leads)
	}
	for id, times := range numbers {
		least, most := math.MaxInt, 0
		for _, n := range times {
			least, most = min(least, n), max(most, n)
		}
		if len(times) != 3 || most-least > 1 {
			w.Errorf("campaign %d called from its numbers so often: %v", id, times)
		}
	}
	w.judgeParallel(calls)
	w.Logf("%d calls", len(calls))
}

// judgeParallel goes through the starts and ends of calls in order.
func (w *week) judgeParallel(calls []*dialled) {
	type edge struct {
		at time.Time
		by int
		d  *dialled
	}
	var edges []edge
	for _, d := range calls {
		edges = append(edges, edge{d.at, 1, d}, edge{d.ended, -1, d})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	campaign, user, most := map[int64]int{}, map[int64]int{}, map[int64]int{}
	for _, e := range edges {
		campaign[e.d.CampaignID] += e.by
		user[e.d.UserID] += e.by
		most[e.d.UserID] = max(most[e.d.UserID], user[e.d.UserID])
		if n := campaign[e.d.CampaignID]; n > int(w.of[e.d.CampaignID].MaxCallsInParallel) {
			w.Errorf("campaign %d has %d calls at once", e.d.CampaignID, n)
		}
		if n := user[e.d.UserID]; n > 10 { // the plan's limit
			w.Errorf("user %d has %d calls at once", e.d.UserID, n)
		}
	}
	for _, u := range w.users {
		if most[u.ID] < 10 { // all four campaigns could call at some time, and want more than the plan allows
			w.Errorf("user %d never had more than %d calls at once", u.ID, most[u.ID])
		}
	}
}

// allowed checks a campaign's hours independently of the code under test.
func allowed(c *parley.Campaign, t time.Time) bool {
	z, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return false
	}
	local := t.In(z)
	clock := local.Format("15:04") + ":00"
	start, end := c.AllowedHoursStartTime, c.AllowedHoursEndTime
	day := local
	switch {
	case start <= end:
		if clock < start || clock > end {
			return false
		}
	case clock >= start:
	case clock <= end:
		day = time.Date(local.Year(), local.Month(), local.Day()-1, 12, 0, 0, 0, z)
	default:
		return false
	}
	return slices.Contains(c.AllowedDays, map[time.Weekday]string{0: "sunday", 1: "monday", 2: "tuesday",
		3: "wednesday", 4: "thursday", 5: "friday", 6: "saturday"}[day.Weekday()])
}
