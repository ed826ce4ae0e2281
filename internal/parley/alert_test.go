package parley

import (
	"testing"
	"time"
)

func TestAlertJudge(t *testing.T) {
	type step struct {
		value float64
		calls int64
		want  AlertChange
	}
	for name, c := range map[string]struct {
		a     Alert
		steps []step
	}{
		"failures": {Alert{Kind: AlertFailures, Threshold: 20, MinCalls: 5}, []step{
			{100, 4, AlertSame}, // too few calls
			{19.9, 5, AlertSame}, {20, 5, AlertRaise}, {60, 9, AlertSame},
			{18, 9, AlertSame}, // not better by a tenth
			{0, 4, AlertSame},  // too few calls to be sure
			{17.9, 9, AlertResolve}, {17, 9, AlertSame}, {25, 9, AlertRaise}}},
		"balance": {Alert{Kind: AlertBalance, Threshold: 10, MinCalls: 5}, []step{
			{10, 0, AlertSame}, {9.99, 0, AlertRaise}, {9, 0, AlertSame}, {10.5, 0, AlertSame}, {11, 0, AlertResolve}, {-3, 0, AlertRaise}}},
		"silence": {Alert{Kind: AlertSilence, Threshold: 3, MinCalls: 5}, []step{
			{2.9, 0, AlertSame}, {3, 0, AlertRaise}, {9, 0, AlertSame}, {0, 0, AlertResolve}}},
		"latency": {Alert{Kind: AlertLatency, Threshold: 1500, MinCalls: 1}, []step{
			{1499, 1, AlertSame}, {1501, 1, AlertRaise}, {1400, 0, AlertSame}, {1349, 1, AlertResolve}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.a
			for i, s := range c.steps {
				now := Time(i + 1)
				if got := a.Judge(AlertReading{&s.value, s.calls}, now); got != s.want {
					t.Fatalf("step %d, %v of %d: %v, want %v", i, s.value, s.calls, got, s.want)
				}
				if *a.Value != s.value || a.Calls != s.calls || a.CheckedAt != now {
					t.Errorf("step %d is noted as %v of %d at %d", i, *a.Value, a.Calls, a.CheckedAt)
				}
				if raised := a.RaisedAt == now && a.LastRaisedAt == now; raised != (s.want == AlertRaise) {
					t.Errorf("step %d: raised at %d", i, a.RaisedAt)
				}
				if resolved := a.ResolvedAt == now && a.RaisedAt == 0; resolved != (s.want == AlertResolve) {
					t.Errorf("step %d: resolved at %d", i, a.ResolvedAt)
				}
			}
			if a.Judge(AlertReading{}, 99) != AlertSame || a.Value != nil {
				t.Error("nothing to measure is judged")
			}
		})
	}
}

func TestAlertOpen(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	work := []string{"monday", "tuesday", "wednesday", "thursday", "friday"}
	all := append([]string{"saturday", "sunday"}, work...)
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 0, 0, berlin) }
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		start, end *string
		days       []string
		from, to   time.Time
		want       time.Duration
	}{
		"no hours":            {nil, nil, all, at(2, 8, 0), at(2, 10, 30), 150 * time.Minute},
		"within":              {text("09:00"), text("18:00"), work, at(2, 10, 0), at(2, 12, 0), 2 * time.Hour},
		"before they begin":   {text("09:00"), text("18:00"), work, at(2, 6, 0), at(2, 9, 30), 30 * time.Minute},
		"over a night":        {text("09:00"), text("18:00"), work, at(2, 17, 50), at(3, 9, 30), 40 * time.Minute},
		"over a weekend":      {text("09:00"), text("18:00"), work, at(6, 17, 0), at(9, 10, 0), 2 * time.Hour}, // 6 is a Friday
		"spanning midnight":   {text("22:00"), text("02:00"), all, at(2, 23, 0), at(3, 1, 0), 2 * time.Hour},
		"of the day before":   {text("22:00"), text("02:00"), []string{"friday"}, at(7, 0, 0), at(7, 12, 0), 2 * time.Hour},
		"the whole day":       {text("08:00"), text("08:00"), all, at(2, 3, 0), at(3, 3, 0), 24 * time.Hour},
		"clocks are set":      {text("00:00"), text("06:00"), all, at(28, 12, 0), at(29, 12, 0), 5 * time.Hour},
		"to is before from":   {text("09:00"), text("18:00"), all, at(3, 12, 0), at(2, 12, 0), 0},
		"no hours, reversed":  {nil, nil, all, at(3, 12, 0), at(2, 12, 0), 0},
		"closed all the time": {text("09:00"), text("18:00"), work, at(7, 9, 0), at(8, 18, 0), 0},
	} {
		a := Alert{HoursStart: c.start, HoursEnd: c.end, Days: c.days}
		if got := a.Open(c.from, c.to, berlin); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	long := Alert{HoursStart: text("09:00"), HoursEnd: text("10:00"), Days: all}
	if got := long.Open(time.Time{}, at(2, 12, 0), berlin); got < 364*time.Hour || got > 367*time.Hour {
		t.Errorf("in all times: %v", got)
	}
}

func TestAlertCheck(t *testing.T) {
	one, inbound, nine := int64(1), "inbound", "09:00"
	good := Alert{Kind: AlertFailures, Threshold: 20, Days: []string{"monday"}, Email: true}
	for field, change := range map[string]func(*Alert){
		"":             func(a *Alert) { a.AssistantID, a.Channel = &one, &inbound },
		"threshold":    func(a *Alert) { a.Threshold = 101 },
		"assistant_id": func(a *Alert) { a.Kind, a.AssistantID = AlertBalance, &one },
		"channel":      func(a *Alert) { a.Kind, a.Channel = AlertSpend, &inbound },
		"hours_end":    func(a *Alert) { a.HoursStart = &nine },
		"days":         func(a *Alert) { a.Days = nil },
		"email":        func(a *Alert) { a.Email = false },
	} {
		a, f := good, Fields(nil)
		change(&a)
		if a.Check(&f); len(f) > 1 || f.Has(field) != (field != "") || field == "" && len(f) > 0 {
			t.Errorf("%s: %v", field, f)
		}
	}
	a, f := Alert{Kind: AlertSilence, Threshold: 169, Days: []string{"monday"}, Webhook: true}, Fields(nil)
	if a.Check(&f); !f.Has("threshold") {
		t.Error("a silence of 169 hours is waited for")
	}
}

func TestAlertRule(t *testing.T) {
	inbound, nine, six := "inbound", "09:00", "18:00"
	for want, a := range map[string]Alert{
		"20 % or more of the calls within an hour fail": {Kind: AlertFailures, Threshold: 20, WindowMinutes: 60},
		"12.5 % or more of the inbound calls within 2 hours fail": {Kind: AlertFailures, Threshold: 12.5, WindowMinutes: 120,
			Channel: &inbound},
		"one reply in ten takes 1500 ms or longer, in calls within 30 minutes": {Kind: AlertLatency, Threshold: 1500, WindowMinutes: 30},
		"$50.00 or more are spent in a day":                                    {Kind: AlertSpend, Threshold: 50},
		"the balance is below $5.00":                                           {Kind: AlertBalance, Threshold: 5},
		"there are no inbound calls for 3 hours between 09:00 and 18:00": {Kind: AlertSilence, Threshold: 3, Channel: &inbound, HoursStart: &nine,
			HoursEnd: &six},
		"there are no calls for 1 hour": {Kind: AlertSilence, Threshold: 1},
	} {
		if got := a.Rule(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
