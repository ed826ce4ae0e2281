package parley

import (
	"slices"
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// CampaignStatus is where a campaign is in its life.
type CampaignStatus string

// The states of a campaign.
const (
	CampaignDraft      CampaignStatus = "draft"
	CampaignInProgress CampaignStatus = "in-progress"
	CampaignStopped    CampaignStatus = "stopped"
	CampaignEnded      CampaignStatus = "completed"
)

// CampaignEvent is something that moves a campaign from one state to another.
type CampaignEvent string

// What moves campaigns.
const (
	CampaignStart    CampaignEvent = "start"    // its user's wish
	CampaignStop     CampaignEvent = "stop"     // its user's wish
	CampaignComplete CampaignEvent = "complete" // no lead is left, and it is to end then
)

// CampaignMoves has every move of a campaign from one state to another; docs/campaigns.md draws them. No other move
// exists.
var CampaignMoves = map[CampaignStatus]map[CampaignEvent]CampaignStatus{
	CampaignDraft:      {CampaignStart: CampaignInProgress},
	CampaignInProgress: {CampaignStop: CampaignStopped, CampaignComplete: CampaignEnded},
	CampaignStopped:    {CampaignStart: CampaignInProgress},
	CampaignEnded:      {CampaignStart: CampaignInProgress},
}

// Campaign calls a list of leads with an outbound assistant, within its hours and limits.
type Campaign struct {
	bun.BaseModel `bun:"campaigns" json:"-"`

	ID     int64          `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID int64          `json:"-"`
	Name   string         `json:"name" required:"true" maxLength:"255"`
	Status CampaignStatus `json:"status" readOnly:"true"`

	AssistantID             int64    `json:"assistant_id" required:"true" format:"assistant" doc:"An outbound assistant."`
	Timezone                string   `json:"timezone" maxLength:"64" format:"timezone" doc:"IANA time zone of hours and days; the account's when absent."`
	MaxCallsInParallel      int64    `json:"max_calls_in_parallel" minimum:"1" maximum:"10" doc:"At most what the plan allows. Default: 3, or what the plan allows if that is less."`
	MarkCompleteWhenNoLeads bool     `json:"mark_complete_when_no_leads" default:"true"`
	AllowedHoursStartTime   string   `json:"allowed_hours_start_time" default:"00:00:00" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9](:00)?$" must:"match the format H:i" doc:"H:i. Later than the end: the hours span midnight; equal to it: the whole day."`
	AllowedHoursEndTime     string   `json:"allowed_hours_end_time" default:"23:59:00" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9](:00)?$" must:"match the format H:i" doc:"H:i; the last minute in which calls begin."`
	AllowedDays             []string `bun:"type:json" json:"allowed_days" default:"[\"monday\",\"tuesday\",\"wednesday\",\"thursday\",\"friday\",\"saturday\",\"sunday\"]" enum:"monday,tuesday,wednesday,thursday,friday,saturday,sunday" maxItems:"50" doc:"Days on which the hours begin."`
	MaxRetries              int64    `json:"max_retries" default:"3" minimum:"1" maximum:"5" doc:"Attempts after the first."`
	RetryInterval           int64    `json:"retry_interval" default:"60" minimum:"10" maximum:"4320" doc:"Minutes from the end of a call to the next attempt, at least."`
	RetryOnVoicemail        bool     `json:"retry_on_voicemail" default:"false"`
	RetryOnGoalIncomplete   bool     `json:"retry_on_goal_incomplete" default:"false" doc:"Needs goal_completion_variable."`
	GoalCompletionVariable  *string  `json:"goal_completion_variable" maxLength:"255" doc:"A bool field of the assistant's post_call_schema."`
	PhoneNumberIDs          []int64  `bun:"-" json:"phone_number_ids" maxItems:"100" uniqueItems:"true" doc:"Your numbers that calls are made from, in turn; the assistant's own if empty."`

	PausedUntil Time    `json:"paused_until" readOnly:"true" doc:"While it is in progress: no calls before then, because of pause_reason."`
	PauseReason *string `json:"pause_reason" readOnly:"true" doc:"Also why its scheduled start was refused."`
	StartsAt    Time    `json:"starts_at,omitempty" readOnly:"true" doc:"While it waits for its scheduled start: when that is."`
	StartedAt   Time    `json:"started_at" readOnly:"true"`
	CompletedAt Time    `json:"completed_at" readOnly:"true"`
	CreatedAt   Time    `json:"created_at" readOnly:"true"`
	UpdatedAt   Time    `json:"updated_at" readOnly:"true"`

	// leads of the calls that failed in a row, the last ones; negative where the phone rang
	Failing   []int64 `bun:"type:json" json:"-"`
	Pauses    int     `json:"-"` // breaks in a row that failures caused
	Rotation  int64   `json:"-"` // calls begun: which number is next
	Answered  int64   `json:"-"` // calls by their outcome
	Voicemail int64   `json:"-"`
	Busy      int64   `json:"-"`
	NoAnswer  int64   `json:"-"`
	Failed    int64   `json:"-"`
	Canceled  int64   `json:"-"`
	Cost      Money   `json:"-"` // of all calls
	DeletedAt Time    `json:"-"`
}

// CampaignFacts is what the world outside a campaign knows about what it names.
type CampaignFacts struct {
	Account   *User
	Plan      Plan
	Assistant *Assistant     // the outbound one that assistant_id names, nil where there is none of the user's
	Numbers   map[int64]bool // those of phone_number_ids that are the user's
}

// MaxParallel is how many calls at once a campaign may have on a plan.
func (p Plan) MaxParallel() int64 { return int64(min(10, p.ParallelCalls)) }

// Check fills in what depends on the account, and adds the rules that the fields' own can't see. Values that the
// campaign already has, in old, are not judged again; old is nil for a new campaign.
func (c *Campaign) Check(old *Campaign, facts CampaignFacts, f *Fields) {
	if old == nil {
		old = &Campaign{}
	}
	if c.Timezone == "" && !f.Has("timezone") {
		c.Timezone = facts.Account.Timezone
	}
	most := facts.Plan.MaxParallel()
	switch {
	case f.Has("max_calls_in_parallel"):
	case c.MaxCallsInParallel == 0:
		c.MaxCallsInParallel = min(3, most)
	case c.MaxCallsInParallel > most && c.MaxCallsInParallel != old.MaxCallsInParallel:
		f.Add("max_calls_in_parallel", "must not be greater than %d.", most)
	}
	c.AllowedHoursStartTime = withSeconds(c.AllowedHoursStartTime)
	c.AllowedHoursEndTime = withSeconds(c.AllowedHoursEndTime)
	if len(c.AllowedDays) == 0 && !f.Has("allowed_days") {
		f.Add("allowed_days", "must have at least 1 item.")
	}
	c.checkGoal(old, facts, f)
	for i, id := range c.PhoneNumberIDs {
		if at := "phone_number_ids." + strconv.Itoa(i); !facts.Numbers[id] && !f.Has(at) && !f.Has("phone_number_ids") {
			f.AddText(at, "The selected "+at+" is invalid.")
		}
	}
}

func (c *Campaign) checkGoal(old *Campaign, facts CampaignFacts, f *Fields) {
	const field = "goal_completion_variable"
	goal := c.GoalCompletionVariable
	switch {
	case f.Has(field):
	case goal == nil && c.RetryOnGoalIncomplete:
		f.Add(field, "is required when retry_on_goal_incomplete is true.")
	case goal == nil || facts.Assistant == nil:
	case old.GoalCompletionVariable != nil && *old.GoalCompletionVariable == *goal && old.AssistantID == c.AssistantID:
	case !slices.ContainsFunc(facts.Assistant.PostCallSchema,
		func(i ExtractedItem) bool { return i.Name == *goal && i.Type == "bool" }):
		f.Add(field, "must name a bool of the assistant's post_call_schema.")
	}
}

// withSeconds is a time of day as answers show it.
func withSeconds(clock string) string {
	if len(clock) == len("15:04") {
		return clock + ":00"
	}
	return clock
}

// CampaignStats is how a campaign stands: its leads by status, and its calls by what became of them.
type CampaignStats struct {
	Total     int64                `json:"total" doc:"Leads."`
	ByStatus  map[LeadStatus]int64 `json:"by_status" doc:"Leads."`
	Calls     int64                `json:"calls" doc:"That have ended."`
	Answered  int64                `json:"answered" doc:"Calls that a person answered."`
	Voicemail int64                `json:"voicemail"`
	Busy      int64                `json:"busy"`
	NoAnswer  int64                `json:"no_answer"`
	Failed    int64                `json:"failed"`
	Canceled  int64                `json:"canceled"`
	Cost      Money                `json:"cost" doc:"USD, of all calls."`
}

// Stats are the campaign's counts over its leads by status.
func (c *Campaign) Stats(leads map[LeadStatus]int64) CampaignStats {
	s := CampaignStats{ByStatus: map[LeadStatus]int64{}, Answered: c.Answered, Voicemail: c.Voicemail, Busy: c.Busy,
		NoAnswer: c.NoAnswer,
		Failed:   c.Failed, Canceled: c.Canceled, Cost: c.Cost}
	for _, status := range LeadStatuses {
		s.ByStatus[status] = leads[status]
		s.Total += leads[status]
	}
	s.Calls = s.Answered + s.Voicemail + s.Busy + s.NoAnswer + s.Failed + s.Canceled
	return s
}

// Count adds a call that has ended.
func (c *Campaign) Count(e *LeadCall) {
	c.Cost += e.Cost
	switch e.Outcome() {
	case OutcomeAnswered:
		c.Answered++
	case OutcomeVoicemail:
		c.Voicemail++
	case OutcomeBusy:
		c.Busy++
	case OutcomeNoAnswer:
		c.NoAnswer++
	case OutcomeCanceled:
		c.Canceled++
	default:
		c.Failed++
	}
}

// Map is the counts as an event tells them.
func (s CampaignStats) Map() map[string]any {
	return map[string]any{"total": s.Total, "by_status": s.ByStatus, "calls": s.Calls, "answered": s.Answered,
		"voicemail": s.Voicemail, "busy": s.Busy,
		"no_answer": s.NoAnswer, "failed": s.Failed, "canceled": s.Canceled, "cost": s.Cost}
}

// BreakAfter is how many calls of a campaign fail in a row before it pauses.
const BreakAfter = 5

// Break notes what became of a call of the campaign's. Calls that fail one after another mean that the line is down
// rather than that nobody is there: the campaign pauses, and says so. Then one call tries: when it fails too the next
// pause is twice as long, up to an hour. forgive are the leads that are to get the attempt back that this took;
// nobody's phone rang.
func (c *Campaign) Break(leadID int64, e *LeadCall, now Time) (forgive []int64) {
	switch {
	case e.silent():
		return nil
	case !e.LineFailed():
		if c.Failing = []int64{}; c.Pauses > 0 {
			c.Pauses, c.PausedUntil, c.PauseReason = 0, 0, nil
		}
		return nil
	}
	c.Failing = slices.DeleteFunc(slices.Clone(c.Failing), func(id int64) bool { return id == leadID || id == -leadID })
	if e.Reached {
		leadID = -leadID
	}
	c.Failing = append(c.Failing, leadID)
	c.Failing = c.Failing[max(0, len(c.Failing)-BreakAfter):]
	if c.Pauses == 0 && len(c.Failing) < BreakAfter {
		return nil
	}
	list := c.Failing
	if c.Pauses > 0 {
		list = list[len(list)-1:]
	}
	if c.Pauses == 0 || c.PausedUntil <= now { // else it was under way already when the campaign paused
		reason := "The last calls failed one after another: the line seems to be down. One call tests it when the pause is over."
		c.PausedUntil, c.PauseReason = now.Add(min(time.Minute<<min(c.Pauses, 10), time.Hour)), &reason
		c.Pauses++
	}
	for _, id := range list {
		if id > 0 {
			forgive = append(forgive, id)
		}
	}
	return forgive
}

// Probing says whether the campaign tries, after a break, with one call at a time.
func (c *Campaign) Probing() bool { return c.Pauses > 0 }
