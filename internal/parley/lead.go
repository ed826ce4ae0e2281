package parley

import (
	"time"

	"github.com/uptrace/bun"
)

// LeadStatus is where a lead is on its way through a campaign.
type LeadStatus string

// The states of a lead.
const (
	LeadCreated     LeadStatus = "created"             // waits for its first attempt
	LeadScheduled   LeadStatus = "scheduled"           // a node has taken it and is about to call
	LeadProcessing  LeadStatus = "processing"          // is being called, or the call is being evaluated
	LeadCompleted   LeadStatus = "completed"           // nothing more to do
	LeadRescheduled LeadStatus = "rescheduled"         // waits for its next attempt
	LeadExhausted   LeadStatus = "reached-max-retries" // every attempt was made in vain
	LeadBlacklisted LeadStatus = "blacklisted"         // must not be called
)

// LeadStatuses are all states, in the order of a lead's life.
var LeadStatuses = []LeadStatus{LeadCreated, LeadScheduled, LeadProcessing, LeadRescheduled, LeadCompleted,
	LeadExhausted, LeadBlacklisted}

// LeadEvent is something that moves a lead from one state to another.
type LeadEvent string

// What moves leads.
const (
	LeadClaim   LeadEvent = "claim"   // a node takes it for an attempt, for as long as its lease runs
	LeadGiveUp  LeadEvent = "give up" // the attempt was not made after all: no line, no money, the campaign was stopped
	LeadDial    LeadEvent = "dial"    // a call exists
	LeadDone    LeadEvent = "done"    // the call came to what it was made for
	LeadRetry   LeadEvent = "retry"   // it did not, and there are attempts left
	LeadExhaust LeadEvent = "exhaust" // it did not, and there are none; or the number can't be called from here at all
	LeadForgive LeadEvent = "forgive" // the attempt is given back: the line was down
	LeadBlock   LeadEvent = "block"   // its number is on the blacklist
	LeadReset   LeadEvent = "reset"   // its user wants it called again from the start
	LeadClose   LeadEvent = "close"   // its user wants it called no more
	// LeadWriteOff is its user's too: it counts as tried in vain.
	LeadWriteOff LeadEvent = "write off"
)

// LeadMoves has every move of a lead from one state to another; docs/campaigns.md draws them. No other move exists. A
// lead that is given up waits as before: created if it had no attempt yet, else rescheduled.
var LeadMoves = map[LeadStatus]map[LeadEvent]LeadStatus{
	LeadCreated: {LeadClaim: LeadScheduled, LeadBlock: LeadBlacklisted, LeadReset: LeadCreated,
		LeadClose: LeadCompleted, LeadWriteOff: LeadExhausted},
	LeadScheduled: {LeadClaim: LeadScheduled, LeadGiveUp: LeadRescheduled, LeadDial: LeadProcessing,
		LeadExhaust: LeadExhausted, LeadBlock: LeadBlacklisted, LeadReset: LeadCreated, LeadClose: LeadCompleted,
		LeadWriteOff: LeadExhausted},
	LeadProcessing: {LeadDone: LeadCompleted, LeadRetry: LeadRescheduled, LeadExhaust: LeadExhausted,
		LeadBlock: LeadBlacklisted, LeadClose: LeadCompleted, LeadWriteOff: LeadExhausted},
	LeadRescheduled: {LeadClaim: LeadScheduled, LeadForgive: LeadRescheduled, LeadBlock: LeadBlacklisted,
		LeadReset: LeadCreated, LeadClose: LeadCompleted, LeadWriteOff: LeadExhausted},
	LeadCompleted: {LeadReset: LeadCreated, LeadClose: LeadCompleted, LeadWriteOff: LeadExhausted},
	LeadExhausted: {LeadForgive: LeadRescheduled, LeadReset: LeadCreated, LeadClose: LeadCompleted,
		LeadWriteOff: LeadExhausted},
	LeadBlacklisted: {LeadReset: LeadCreated, LeadClose: LeadCompleted, LeadWriteOff: LeadExhausted},
}

// After is the state that an event leads to from s of a lead with so many attempts, and whether it leads anywhere.
func (s LeadStatus) After(e LeadEvent, attempts int) (to LeadStatus, ok bool) {
	to, ok = LeadMoves[s][e]
	if ok && e == LeadGiveUp && attempts == 0 {
		to = LeadCreated
	}
	return to, ok
}

// Waiting says whether the lead will be called without anybody's doing.
func (s LeadStatus) Waiting() bool {
	return s == LeadCreated || s == LeadScheduled || s == LeadRescheduled
}

// Outcome is what became of a lead's last call.
type Outcome string

// The outcomes.
const (
	OutcomeAnswered  Outcome = "answered" // by a person
	OutcomeVoicemail Outcome = "voicemail"
	OutcomeBusy      Outcome = "busy"
	OutcomeNoAnswer  Outcome = "no_answer"
	OutcomeFailed    Outcome = "failed"
	OutcomeCanceled  Outcome = "canceled"
)

// Lead is somebody whom a campaign calls.
type Lead struct {
	bun.BaseModel `bun:"leads" json:"-"`

	ID            int64             `bun:",pk,autoincrement" json:"id"`
	UserID        int64             `json:"-"`
	CampaignID    int64             `json:"campaign_id"`
	PhoneNumber   string            `json:"phone_number"` // E.164
	Variables     map[string]string `bun:"type:json" json:"variables"`
	Status        LeadStatus        `json:"status"`
	Attempts      int               `json:"attempts"`
	NextAttemptAt DateTime          `json:"next_attempt_at"` // of a rescheduled one: not before then
	LastCallID    *int64            `json:"last_call_id"`
	Outcome       *Outcome          `json:"outcome"` // of the last call that ended
	AnsweredBy    *AnsweredBy       `json:"answered_by"`
	Evaluation    map[string]any    `bun:"type:json" json:"evaluation"`
	Extracted     map[string]any    `bun:"type:json" json:"extracted_variables"`
	TotalCost     Money             `json:"total_cost"` // of all its calls
	Contacts      []LeadContact     `bun:"contacts,type:json,nullzero" json:"secondary_contacts"`
	CreatedAt     DateTime          `json:"created_at"`
	UpdatedAt     DateTime          `json:"updated_at"`
	Campaign      EventCampaign     `bun:"-" json:"campaign"`

	// attempts ever made, also those that did not count: what makes a call of this lead the only one of its kind
	Serial    int    `json:"-"`
	Base      int    `json:"-"` // Serial when it last began from the start
	Fresh     bool   `json:"-"` // no attempt yet: it waits behind those that are tried again
	Contact   int    `json:"-"` // which number is called: 0 its own, then those of its contacts
	Duplicate bool   `json:"-"` // another lead of the campaign has this number, and that is wanted
	DueAt     Time   `json:"-"` // when it can be claimed; 0 when it can't
	Owner     string `json:"-"` // the node that has claimed it
	WatchAt   Time   `json:"-"` // while its last call is not over and told: when to see whether that is still there
}

// Move brings the lead to the state that an event leads to, and says whether the event leads anywhere. A lead that was
// closed during a call is not called again before that call's end.
func (l *Lead) Move(e LeadEvent, now Time) bool {
	to, ok := l.Status.After(e, l.Attempts)
	if !ok || e == LeadReset && l.WatchAt > 0 {
		return false
	}
	if e == LeadReset {
		l.Attempts, l.Base, l.Fresh, l.Contact = 0, l.Serial, true, 0
		NumberContacts(l.Contacts)
	}
	if e != LeadClose && e != LeadWriteOff {
		l.WatchAt = 0
	}
	l.Status, l.DueAt, l.NextAttemptAt, l.Owner = to, 0, 0, ""
	if to.Waiting() {
		l.DueAt = now
	}
	l.UpdatedAt = DateTime(now)
	return true
}

// LeadCall is what a call that has ended means for its lead.
type LeadCall struct {
	ID         int64
	Serial     int // which of the lead's attempts it was
	Status     CallStatus
	AnsweredBy AnsweredBy
	Reason     EndedReason
	Reached    bool // the phone rang, or somebody answered
	Extracted  map[string]any
	Evaluation map[string]any
	Cost       Money
	EndedAt    Time
}

// Outcome is what became of the call, in one word.
func (e *LeadCall) Outcome() Outcome {
	switch {
	case e.Status == CallCompleted && e.AnsweredBy == AnsweredMachine:
		return OutcomeVoicemail
	case e.Status == CallCompleted:
		return OutcomeAnswered
	case e.Status == CallBusy:
		return OutcomeBusy
	case e.Status == CallNoAnswer:
		return OutcomeNoAnswer
	case e.Status == CallCanceled:
		return OutcomeCanceled
	}
	return OutcomeFailed
}

// LineFailed says whether the call speaks of the line, or of what speaks over it, rather than of who was called: many
// of them in a row pause a campaign.
func (e *LeadCall) LineFailed() bool {
	return e.Outcome() == OutcomeFailed && e.Reason != Rejected && !e.silent()
}

// silent says whether the call says nothing about the line: it ended with the process that had it, or for want of
// money.
func (e *LeadCall) silent() bool {
	return e.Reason == NodeLost || e.Reason == Shutdown || e.Reason == InsufficientBalance
}

// blameless says whether the attempt came to nothing through no doing of the far end, which noticed nothing of it.
func (e *LeadCall) blameless() bool {
	return e.Outcome() == OutcomeFailed && !e.Reached && (e.silent() || e.Reason == ProviderFailure)
}

// Uncounted is how many attempts of a lead may not count; those after them do, so that nothing goes on for ever.
const Uncounted = 10

// blamelessAfter is when a lead is called again whose attempt did not count.
const blamelessAfter = time.Minute

// Finish writes a call's end into its lead: done, or once more after the campaign's interval, or never again. A lead
// whose user has closed it meanwhile stays so. Finish changes nothing, and says so, where the lead does not wait for
// that call's end: it was told of it before.
func (l *Lead) Finish(c *Campaign, e *LeadCall) bool {
	if l.WatchAt == 0 || l.Serial != e.Serial || l.LastCallID == nil || *l.LastCallID != e.ID {
		return false
	}
	l.WatchAt = 0
	outcome, by := e.Outcome(), e.AnsweredBy
	l.Outcome, l.AnsweredBy, l.Extracted, l.Evaluation = &outcome, &by, object(e.Extracted), object(e.Evaluation)
	l.TotalCost += e.Cost
	if l.Status != LeadProcessing {
		return true
	}
	l.Fresh = false
	retry := outcome != OutcomeAnswered
	switch outcome {
	case OutcomeVoicemail:
		retry = c.RetryOnVoicemail
	case OutcomeAnswered:
		if c.RetryOnGoalIncomplete && c.GoalCompletionVariable != nil {
			reached, _ := e.Extracted[*c.GoalCompletionVariable].(bool)
			retry = !reached
		}
	}
	wait := time.Duration(c.RetryInterval) * time.Minute
	if e.blameless() && l.Serial-l.Base-l.Attempts < Uncounted {
		l.Attempts--
		wait = blamelessAfter
	}
	switch {
	case !retry:
		l.Move(LeadDone, e.EndedAt)
	case int64(l.Attempts) > c.MaxRetries && l.NextContact(LeadExhausted):
		l.Move(LeadRetry, e.EndedAt) // it has not been called at this number: at once
		l.DueAt, l.NextAttemptAt = e.EndedAt, DateTime(e.EndedAt)
	case int64(l.Attempts) > c.MaxRetries:
		l.Move(LeadExhaust, e.EndedAt)
	default:
		l.Move(LeadRetry, e.EndedAt)
		l.DueAt = e.EndedAt.Add(wait)
		l.NextAttemptAt = DateTime(l.DueAt)
	}
	return true
}

// BlacklistEntry is a number that no campaign of the user's calls.
type BlacklistEntry struct {
	bun.BaseModel `bun:"blacklist" json:"-"`

	ID          int64    `bun:",pk,autoincrement" json:"id"`
	UserID      int64    `json:"-"`
	PhoneNumber string   `json:"phone_number"`
	CreatedAt   DateTime `json:"created_at"`
}
