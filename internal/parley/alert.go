package parley

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// AlertKind is what an alert watches.
type AlertKind string

// The kinds of alerts, with the unit of their thresholds.
const (
	AlertFailures AlertKind = "failure_rate"  // percent of the calls in the window that failed
	AlertLatency  AlertKind = "latency_p90"   // ms within which 90 % of the replies in the window were heard
	AlertSpend    AlertKind = "spend_per_day" // USD that were charged today
	AlertBalance  AlertKind = "balance_below" // USD that are left
	AlertSilence  AlertKind = "no_calls"      // hours without a call
)

// Alert is a rule about the figures of an account, and how it stands: who has it is told when it is raised, and again
// when it is resolved.
type Alert struct {
	bun.BaseModel `bun:"alerts" json:"-"`

	ID            int64     `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID        int64     `json:"-"`
	Name          string    `json:"name" required:"true" maxLength:"255"`
	Kind          AlertKind `json:"kind" required:"true" enum:"failure_rate,latency_p90,spend_per_day,balance_below,no_calls" doc:"What is monitored: the share of failed calls, the 90th percentile of reply latency, today's charges, the balance, the hours without a call."`
	Threshold     float64   `json:"threshold" required:"true" minimum:"0.01" maximum:"1000000000" doc:"Percent, milliseconds, USD or hours. The alert is raised when the value reaches it; for balance_below, when the value is below it."`
	AssistantID   *int64    `json:"assistant_id" format:"assistant" doc:"Only what this assistant did; not for balance_below."`
	Channel       *string   `json:"channel" enum:"inbound,outbound,web" doc:"Only these calls; for failure_rate, latency_p90 and no_calls."`
	WindowMinutes int64     `json:"window_minutes" default:"60" minimum:"15" maximum:"1440" doc:"For failure_rate and latency_p90: how many of the last minutes are evaluated, in quarters of an hour."`
	MinCalls      int64     `json:"min_calls" default:"5" minimum:"1" maximum:"1000" doc:"For failure_rate and latency_p90: with fewer calls in the window, nothing is raised or resolved."`
	HoursStart    *string   `json:"hours_start" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" must:"match the format H:i" doc:"For no_calls: only the time between hours_start and hours_end counts, in the account's time zone."`
	HoursEnd      *string   `json:"hours_end" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" must:"match the format H:i"`
	Days          []string  `bun:"type:json" json:"days" default:"[\"monday\",\"tuesday\",\"wednesday\",\"thursday\",\"friday\",\"saturday\",\"sunday\"]" enum:"monday,tuesday,wednesday,thursday,friday,saturday,sunday" maxItems:"50" doc:"For no_calls with hours: days on which the hours begin."`
	Email         bool      `json:"email" default:"true" doc:"An e-mail to the account's address."`
	Webhook       bool      `json:"webhook" default:"true" doc:"alert.raised and alert.resolved to the account's endpoint, if it has one."`
	Active        bool      `json:"active" default:"true" doc:"Whether the alert is evaluated."`

	RaisedAt     Time     `json:"raised_at" readOnly:"true" doc:"Since when it is raised; null while it is not."`
	LastRaisedAt Time     `json:"last_raised_at" readOnly:"true"`
	ResolvedAt   Time     `json:"resolved_at" readOnly:"true" doc:"When it was last resolved."`
	Value        *float64 `json:"value" readOnly:"true" doc:"The last measured value, in the unit of the threshold; null when there was nothing to measure."`
	Calls        int64    `json:"calls" readOnly:"true" doc:"How many calls the value is based on; for failure_rate and latency_p90."`
	CheckedAt    Time     `json:"checked_at" readOnly:"true"`
	CreatedAt    Time     `json:"created_at" readOnly:"true"`
	UpdatedAt    Time     `json:"updated_at" readOnly:"true"`

	DueAt Time `json:"-"` // when it is looked at next; 0 while it is not active
}

// MaxAlerts is how many an account may have: each is looked at every minute.
const MaxAlerts = 50

// maxSilence is the longest that no_calls waits.
const maxSilence = 168

// Of says whether the alert is of calls in a window, so that the number of calls matters.
func (k AlertKind) Of() bool { return k == AlertFailures || k == AlertLatency }

// Check adds the rules that the fields' own can't see.
func (a *Alert) Check(f *Fields) {
	switch {
	case f.Has("threshold") || f.Has("kind"):
	case a.Kind == AlertFailures && a.Threshold > 100:
		f.Add("threshold", "must not be greater than 100.")
	case a.Kind == AlertSilence && a.Threshold > maxSilence:
		f.Add("threshold", "must not be greater than %d.", maxSilence)
	}
	if a.AssistantID != nil && a.Kind == AlertBalance && !f.Has("assistant_id") {
		f.Add("assistant_id", "must be null: the balance is the whole account's.")
	}
	if a.Channel != nil && (a.Kind == AlertBalance || a.Kind == AlertSpend) && !f.Has("channel") {
		f.Add("channel", "must be null for this kind.")
	}
	if (a.HoursStart == nil) != (a.HoursEnd == nil) && !f.Has("hours_start") && !f.Has("hours_end") {
		f.Add("hours_end", "is required together with hours_start.")
	}
	if len(a.Days) == 0 && !f.Has("days") {
		f.Add("days", "must have at least 1 item.")
	}
	if !a.Email && !a.Webhook {
		f.Add("email", "must be true when webhook is false: nobody would be notified.")
	}
}

// AlertReading is what was found when an alert was looked at.
type AlertReading struct {
	Value *float64 // nil: there is nothing to measure
	Calls int64
}

// AlertChange is what a look at an alert comes to.
type AlertChange int

// The changes.
const (
	AlertSame AlertChange = iota
	AlertRaise
	AlertResolve
)

// Judge notes what was found and says what changes. An alert that is raised stays so until its value is better than the
// threshold by a tenth, so that a value that swings around it is told once. With too few calls, nothing changes.
func (a *Alert) Judge(r AlertReading, now Time) AlertChange {
	a.Value, a.Calls, a.CheckedAt = r.Value, r.Calls, now
	if r.Value == nil || a.Kind.Of() && r.Calls < a.MinCalls {
		return AlertSame
	}
	v := *r.Value
	bad, good := v >= a.Threshold, v < a.Threshold*.9
	if a.Kind == AlertBalance {
		bad, good = v < a.Threshold, v >= a.Threshold*1.1
	}
	switch {
	case bad && a.RaisedAt == 0:
		a.RaisedAt, a.LastRaisedAt = now, now
		return AlertRaise
	case good && a.RaisedAt != 0:
		a.RaisedAt, a.ResolvedAt = 0, now
		return AlertResolve
	}
	return AlertSame
}

// Open is how much of the time from one instant to another counts for the alert, by the clocks of a zone. Hours that
// span midnight belong to the day on which they begin. At most a year is looked at.
func (a *Alert) Open(from, to time.Time, zone *time.Location) (open time.Duration) {
	if a.HoursStart == nil || a.HoursEnd == nil {
		return max(0, to.Sub(from))
	}
	if year := to.AddDate(-1, 0, 0); from.Before(year) {
		from = year
	}
	start, end := clock(*a.HoursStart), clock(*a.HoursEnd)
	if end <= start {
		end += 24 * 60 // also the whole day, where they are equal
	}
	y, m, d := from.In(zone).Date()
	for n := -1; ; n++ {
		opens := time.Date(y, m, d+n, 0, start, 0, 0, zone)
		if !opens.Before(to) {
			return open
		}
		day := strings.ToLower(time.Date(y, m, d+n, 12, 0, 0, 0, time.UTC).Weekday().String())
		if !slices.Contains(a.Days, day) {
			continue
		}
		closes := time.Date(y, m, d+n, 0, end, 0, 0, zone)
		if opens.Before(from) {
			opens = from
		}
		if closes.After(to) {
			closes = to
		}
		open += max(0, closes.Sub(opens))
	}
}

// Rule is the alert's condition in words.
func (a *Alert) Rule() string {
	calls := "calls"
	if a.Channel != nil {
		calls = map[string]string{"inbound": "inbound calls", "outbound": "outbound calls", "web": "browser calls"}[*a.Channel]
	}
	switch a.Kind {
	case AlertFailures:
		return fmt.Sprintf("%s or more of the %s within %s fail", a.Shown(a.Threshold), calls, minutes(a.WindowMinutes))
	case AlertLatency:
		return fmt.Sprintf("one reply in ten takes %s or longer, in %s within %s", a.Shown(a.Threshold), calls, minutes(a.WindowMinutes))
	case AlertSpend:
		return a.Shown(a.Threshold) + " or more are spent in a day"
	case AlertBalance:
		return "the balance is below " + a.Shown(a.Threshold)
	}
	rule := fmt.Sprintf("there are no %s for %s", calls, a.Shown(a.Threshold))
	if a.HoursStart != nil && a.HoursEnd != nil {
		rule += fmt.Sprintf(" between %s and %s", *a.HoursStart, *a.HoursEnd)
	}
	return rule
}

// Shown is a value of the alert's with its unit.
func (a *Alert) Shown(v float64) string {
	digits := func(n int) string { return trimZeros(strconv.FormatFloat(v, 'f', n, 64)) }
	switch a.Kind {
	case AlertFailures:
		return digits(1) + " %"
	case AlertLatency:
		return digits(0) + " ms"
	case AlertSpend, AlertBalance:
		return "$" + Money(math.Round(v*float64(USD))).Text()
	}
	if n := digits(1); n != "1" {
		return n + " hours"
	}
	return "1 hour"
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

func minutes(n int64) string {
	switch {
	case n == 60:
		return "an hour"
	case n%60 == 0:
		return fmt.Sprintf("%d hours", n/60)
	}
	return fmt.Sprintf("%d minutes", n)
}

// AlertEvent is the payload of alert.raised and alert.resolved.
type AlertEvent struct {
	Event         EventKind `json:"event"`
	Version       int       `json:"version"`
	Test          bool      `json:"test,omitempty"` // made up, for POST /user/alerts/{id}/test
	AlertID       int64     `json:"alert_id"`
	Name          string    `json:"name"`
	Kind          AlertKind `json:"kind"`
	Rule          string    `json:"rule"`           // the condition in words
	Threshold     float64   `json:"threshold"`      // percent, milliseconds, USD or hours
	Value         *float64  `json:"value"`          // in the same unit
	Calls         int64     `json:"calls"`          // of how many calls it is, for failure_rate and latency_p90
	WindowMinutes int64     `json:"window_minutes"` // for these two
	AssistantID   *int64    `json:"assistant_id"`
	Channel       *string   `json:"channel"`
	RaisedAt      Time      `json:"raised_at"`
	ResolvedAt    Time      `json:"resolved_at"` // null for alert.raised
	CreatedAt     Time      `json:"created_at"`
}

// Event is what is told of the alert as it stands now.
func (a *Alert) Event(change AlertChange, now Time) AlertEvent {
	e := AlertEvent{Event: EventAlertRaised, Version: EventVersion, AlertID: a.ID, Name: a.Name, Kind: a.Kind, Rule: a.Rule(),
		Threshold: a.Threshold, Value: a.Value, Calls: a.Calls, WindowMinutes: a.WindowMinutes, AssistantID: a.AssistantID,
		Channel: a.Channel, RaisedAt: a.LastRaisedAt, CreatedAt: now}
	if change == AlertResolve {
		e.Event, e.ResolvedAt = EventAlertResolved, a.ResolvedAt
	}
	return e
}

// Delivery is the event's way to the account's endpoint.
func (e AlertEvent) Delivery(url string) *Delivery { return NewDelivery(e.Event, url, e) }
