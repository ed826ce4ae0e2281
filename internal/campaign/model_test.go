package campaign

import (
	"container/heap"
	"slices"
	"testing"
	"time"

	"parley/internal/call"
	"parley/internal/form"
	"parley/internal/parley"
)

// A week of 10,000 leads in a second or two: the real planner, lead rules and hours, on a store that is a list in
// memory and a clock that jumps from event to event.
func TestWeekOfThousands(t *testing.T) {
	m := &model{week: week{harness: &harness{TB: t}, leads: 10_000, of: map[int64]*parley.Campaign{}},
		now: weekStart, live: map[int64]int{}}
	m.prepare()
	for m.now.Before(weekStart.Add(7 * 24 * time.Hour)) {
		next := m.round()
		for len(m.ends) > 0 && !m.ends[0].at.After(next) { // all ends at one instant, then a round
			next = m.ends[0].at
			m.finish(heap.Pop(&m.ends).(ending))
		}
		m.now = next
	}
	m.judge(m.calls)
	for _, l := range m.list {
		if l.Status != parley.LeadCompleted && l.Status != parley.LeadExhausted {
			t.Fatalf("a lead is %s after the week: %+v", l.Status, l)
		}
	}
}

// model is a week without a database.
type model struct {
	week
	now  time.Time
	list []*parley.Lead
	// By campaign: the leads that can be called at some time. Both lists are in the order in which they are due, since
	// the interval is the same for all.
	fresh, again map[int64][]*parley.Lead
	hours        map[int64]Hours
	live         map[int64]int // by campaign and by user (negative)
	ends         endings
}

type ending struct {
	at time.Time
	d  *dialled
	l  *parley.Lead
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func (m *model) prepare() {
	m.fresh, m.again, m.hours = map[int64][]*parley.Lead{}, map[int64][]*parley.Lead{}, map[int64]Hours{}
	each := m.leads / len(kinds) / 4
	for u := range int64(4) {
		m.users = append(m.users, &parley.User{ID: u + 1})
		for k := range kinds {
			c := modelOf(k)
			c.ID, c.UserID = u*10+int64(k)+1, u+1
			m.of[c.ID], m.hours[c.ID] = c, HoursOf(c)
			for range each {
				l := &parley.Lead{ID: int64(len(m.list) + 1), CampaignID: c.ID, UserID: c.UserID,
					PhoneNumber: phone(len(m.list)), Status: parley.LeadCreated,
					Fresh: true, DueAt: parley.At(m.now)}
				m.list = append(m.list, l)
				m.fresh[c.ID] = append(m.fresh[c.ID], l)
			}
		}
	}
}

// modelOf returns a campaign of a kind with its defaults.
func modelOf(k int) *parley.Campaign {
	c := defaults()
	bindKind(c, kinds[k])
	c.PhoneNumberIDs = []int64{1, 2, 3}
	return c
}

// round has every campaign do what the planner wants, and returns when to look again even if no call ends.
func (m *model) round() time.Time {
	next := m.now.Add(time.Hour)
	var states []State
	ids := make([]int64, 0, len(m.of))
	for id := range m.of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	users := map[int64]int{}
	for _, u := range m.users {
		users[u.ID] = m.live[-u.ID]
	}
	for _, id := range ids {
		c := m.of[id]
		fresh, again := m.fresh[id], m.again[id]
		s := State{ID: id, User: c.UserID, Hours: m.hours[id], Limit: int(c.MaxCallsInParallel), Account: 10,
			Live: m.live[id], Left: len(fresh)+len(again)+m.live[id] > 0}
		if len(again) > 0 {
			s.Due = again[0].DueAt.Time()
		}
		if len(fresh) > 0 && (s.Due.IsZero() || fresh[0].DueAt.Time().Before(s.Due)) {
			s.Due = fresh[0].DueAt.Time()
		}
		states = append(states, s)
	}
	for _, step := range Plan(m.now, states, users, burst) {
		if !step.Again.IsZero() && step.Again.Before(next) {
			next = step.Again
		}
		for range step.Calls {
			m.dial(m.of[step.ID])
		}
	}
	return next
}

// dial claims a lead of a campaign and calls it, in the store's order.
func (m *model) dial(c *parley.Campaign) {
	now := parley.At(m.now)
	queue := m.again
	if list := m.again[c.ID]; len(list) == 0 || list[0].DueAt > now {
		queue = m.fresh
	}
	if list := queue[c.ID]; len(list) == 0 || list[0].DueAt > now {
		return
	}
	l := queue[c.ID][0]
	queue[c.ID] = queue[c.ID][1:]
	l.Move(parley.LeadClaim, now)
	l.Move(parley.LeadDial, now)
	l.Serial, l.Attempts, l.WatchAt = l.Serial+1, l.Attempts+1, now
	d := &dialled{Order: call.Order{UserID: c.UserID, To: l.PhoneNumber, NumberID: c.PhoneNumberIDs[c.Rotation%3],
		CampaignID: c.ID, LeadID: l.ID, Attempt: l.Serial},
		id: int64(len(m.calls) + 1), at: m.now}
	l.LastCallID = &d.id
	c.Rotation++
	m.calls = append(m.calls, d)
	m.live[c.ID]++
	m.live[-c.UserID]++
	heap.Push(&m.ends, ending{m.now.Add(fate(d).lasts), d, l})
}

func (m *model) finish(e ending) {
	c, a := m.of[e.d.CampaignID], fate(e.d)
	e.d.ended = e.at
	m.live[c.ID]--
	m.live[-c.UserID]--
	status, reason := parley.Disposition(a.cause, a.talked > 0)
	by := parley.AnsweredHuman
	if a.machine {
		by = parley.AnsweredMachine
	}
	end := &parley.LeadCall{ID: e.d.id, Serial: e.d.Attempt, Status: status, AnsweredBy: by, Reason: reason,
		Reached: a.rang, Extracted: a.found, EndedAt: parley.At(e.at)}
	if !e.l.Finish(c, end) {
		m.Fatalf("lead %d did not wait for its call", e.l.ID)
	}
	c.Count(end)
	c.Break(e.l.ID, end, parley.At(e.at))
	if e.l.Status == parley.LeadRescheduled {
		m.again[c.ID] = append(m.again[c.ID], e.l)
	}
}

func defaults() *parley.Campaign {
	c := &parley.Campaign{}
	form.Defaults(c)
	return c
}

func bindKind(c *parley.Campaign, kind map[string]any) {
	fields := form.Bind(kind, c, false)
	c.Check(nil, parley.CampaignFacts{Account: &parley.User{Timezone: "UTC"}, Plan: parley.Plan{ParallelCalls: 10}},
		&fields)
	if err := fields.Err(); err != nil {
		panic(err)
	}
}
