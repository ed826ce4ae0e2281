package parley_test

import (
	"testing"
	"time"

	"parley/internal/parley"
)

// What the end of a call means for its lead.
func TestLeadFinish(t *testing.T) {
	goal := "status"
	yes, no := map[string]any{"status": true}, map[string]any{"status": false}
	end := func(cause error, answered bool, by parley.AnsweredBy, found map[string]any) parley.LeadCall {
		status, reason := parley.Disposition(cause, answered)
		return parley.LeadCall{Status: status, Reason: reason, AnsweredBy: by, Reached: true, Extracted: found}
	}
	person := end(parley.CustomerHangup, true, parley.AnsweredHuman, nil)
	machine := end(parley.Voicemail, true, parley.AnsweredMachine, nil)
	unreached := func(cause error) parley.LeadCall {
		c := end(cause, false, parley.AnsweredUnknown, nil)
		c.Reached = false
		return c
	}
	for name, c := range map[string]struct {
		change   func(*parley.Campaign)
		call     parley.LeadCall
		attempts int // including this one
		serial   int // attempts ever; 0 for the same as attempts
		status   parley.LeadStatus
		outcome  parley.Outcome
		left     int           // attempts after it
		wait     time.Duration // of a rescheduled one
	}{
		"a person": {nil, person, 1, 0, parley.LeadCompleted, parley.OutcomeAnswered, 1, 0},
		"nobody knows who": {nil, end(parley.CustomerHangup, true, parley.AnsweredUnknown, nil), 1, 0,
			parley.LeadCompleted, parley.OutcomeAnswered, 1, 0},
		"a machine": {nil, machine, 1, 0, parley.LeadCompleted, parley.OutcomeVoicemail, 1, 0},
		"a machine, once more": {func(c *parley.Campaign) { c.RetryOnVoicemail = true }, machine, 1, 0,
			parley.LeadRescheduled, parley.OutcomeVoicemail, 1, time.Hour},
		"a machine, for the last time": {func(c *parley.Campaign) { c.RetryOnVoicemail = true }, machine, 4, 0,
			parley.LeadExhausted, parley.OutcomeVoicemail, 4, 0},
		"busy": {nil, end(parley.LineBusy, false, "", nil), 1, 0, parley.LeadRescheduled,
			parley.OutcomeBusy, 1, time.Hour},
		"busy, the interval": {func(c *parley.Campaign) { c.RetryInterval = 4320 },
			end(parley.LineBusy, false, "", nil), 3, 0, parley.LeadRescheduled, parley.OutcomeBusy, 3, 72 * time.Hour},
		"busy, for the last time": {nil, end(parley.LineBusy, false, "", nil), 4, 0, parley.LeadExhausted,
			parley.OutcomeBusy, 4, 0},
		"one retry": {func(c *parley.Campaign) { c.MaxRetries = 1 },
			end(parley.LineBusy, false, "", nil), 2, 0, parley.LeadExhausted, parley.OutcomeBusy, 2, 0},
		"no answer": {nil, end(parley.NoAnswer, false, "", nil), 1, 0, parley.LeadRescheduled,
			parley.OutcomeNoAnswer, 1, time.Hour},
		"rejected": {nil, end(parley.Rejected, false, "", nil), 1, 0, parley.LeadRescheduled,
			parley.OutcomeFailed, 1, time.Hour},
		"taken back": {nil, end(parley.APIHangup, false, "", nil), 1, 0, parley.LeadRescheduled,
			parley.OutcomeCanceled, 1, time.Hour},
		"torn by us": {nil, end(parley.ProviderFailure, true, parley.AnsweredHuman, nil), 1, 0,
			parley.LeadRescheduled, parley.OutcomeFailed, 1, time.Hour},
		"goal reached": {func(c *parley.Campaign) { c.RetryOnGoalIncomplete = true },
			end(parley.CustomerHangup, true, parley.AnsweredHuman, yes), 1, 0, parley.LeadCompleted,
			parley.OutcomeAnswered, 1, 0},
		"goal missed": {func(c *parley.Campaign) { c.RetryOnGoalIncomplete = true },
			end(parley.CustomerHangup, true, parley.AnsweredHuman, no), 1, 0, parley.LeadRescheduled,
			parley.OutcomeAnswered, 1, time.Hour},
		"goal not known": {func(c *parley.Campaign) { c.RetryOnGoalIncomplete = true }, person, 1, 0,
			parley.LeadRescheduled, parley.OutcomeAnswered, 1, time.Hour},
		"goal missed for good": {func(c *parley.Campaign) { c.RetryOnGoalIncomplete = true }, person, 4, 0,
			parley.LeadExhausted, parley.OutcomeAnswered, 4, 0},
		"a machine is no goal": {func(c *parley.Campaign) { c.RetryOnGoalIncomplete = true }, machine, 1, 0,
			parley.LeadCompleted, parley.OutcomeVoicemail, 1, 0},
		"the goal matters not": {nil, end(parley.CustomerHangup, true, parley.AnsweredHuman, no), 1, 0,
			parley.LeadCompleted, parley.OutcomeAnswered, 1, 0},
		"our node died before it rang": {nil, unreached(parley.NodeLost), 1, 0, parley.LeadRescheduled,
			parley.OutcomeFailed, 0, time.Minute},
		"the last attempt, not made": {nil, unreached(parley.Shutdown), 4, 0, parley.LeadRescheduled,
			parley.OutcomeFailed, 3, time.Minute},
		"it died while it rang": {nil, end(parley.NodeLost, false, "", nil), 1, 0, parley.LeadRescheduled,
			parley.OutcomeFailed, 1, time.Hour},
		"ten times not made": {nil, unreached(parley.NodeLost), 1, 1 + parley.Uncounted,
			parley.LeadRescheduled, parley.OutcomeFailed, 1, time.Hour},
		"no such number": {nil, unreached(parley.Unreachable), 1, 0, parley.LeadRescheduled,
			parley.OutcomeFailed, 1, time.Hour},
	} {
		campaign := &parley.Campaign{MaxRetries: 3, RetryInterval: 60, GoalCompletionVariable: &goal}
		if c.change != nil {
			c.change(campaign)
		}
		id, now := int64(7), parley.Now()
		if c.serial == 0 {
			c.serial = c.attempts
		}
		l := &parley.Lead{Status: parley.LeadProcessing, Attempts: c.attempts, Serial: c.serial, LastCallID: &id,
			WatchAt: now}
		c.call.ID, c.call.Serial, c.call.EndedAt, c.call.Cost = id, c.serial, now, 5
		if !l.Finish(campaign, &c.call) {
			t.Errorf("%s: it did not wait for the call", name)
		}
		wait := time.Duration(0)
		if l.DueAt != 0 {
			wait = l.DueAt.Sub(now)
		}
		if l.Status != c.status || *l.Outcome != c.outcome || l.Attempts != c.left || wait != c.wait ||
			parley.Time(l.NextAttemptAt) != l.DueAt || l.TotalCost != 5 || l.WatchAt != 0 {
			t.Errorf("%s: %s after %s, %d attempts, %s: %+v", name, l.Status, *l.Outcome, l.Attempts, wait, l)
		}
		before := *l
		if l.Finish(campaign, &c.call) || l.TotalCost != before.TotalCost || l.Status != before.Status {
			t.Errorf("%s: told a second time it became %+v", name, l)
		}
	}
}

// If a user closes a lead while it is called, it is not called again, and not reset before the call is over.
func TestLeadClosedWhileCalled(t *testing.T) {
	id, now := int64(7), parley.Now()
	l := &parley.Lead{Status: parley.LeadProcessing, Attempts: 1, Serial: 1, LastCallID: &id, WatchAt: now}
	if l.Move(parley.LeadReset, now) || l.Status != parley.LeadProcessing {
		t.Fatalf("a lead that is being called was reset: %+v", l)
	}
	if !l.Move(parley.LeadClose, now) || l.Move(parley.LeadReset, now) || l.Status != parley.LeadCompleted {
		t.Fatalf("%+v", l)
	}
	end := &parley.LeadCall{ID: id, Serial: 1, Status: parley.CallBusy, EndedAt: now, Cost: 3}
	if !l.Finish(&parley.Campaign{MaxRetries: 3, RetryInterval: 60}, end) || l.Status != parley.LeadCompleted ||
		*l.Outcome != parley.OutcomeBusy || l.TotalCost != 3 {
		t.Fatalf("%+v", l)
	}
	if !l.Move(parley.LeadReset, now) || l.Status != parley.LeadCreated || l.Attempts != 0 || l.Base != 1 ||
		!l.Fresh || l.DueAt != now {
		t.Fatalf("%+v", l)
	}
}

// Five failures in a row pause a campaign, and each further failure pauses it for longer; a success in between
// restarts the count.
func TestCampaignBreak(t *testing.T) {
	now := parley.Now()
	down := parley.LeadCall{Status: parley.CallFailed, Reason: parley.Unreachable}
	rang := parley.LeadCall{Status: parley.CallFailed, Reason: parley.ProviderFailure, Reached: true}
	lost := parley.LeadCall{Status: parley.CallFailed, Reason: parley.NodeLost}
	refused := parley.LeadCall{Status: parley.CallFailed, Reason: parley.Rejected}
	c := &parley.Campaign{Failing: []int64{}}
	fail := func(lead int64, call parley.LeadCall, pause time.Duration, forgiven ...int64) {
		t.Helper()
		got := c.Break(lead, &call, now)
		if len(got) != len(forgiven) {
			t.Fatalf("lead %d: forgiven %v, want %v", lead, got, forgiven)
		}
		for i := range got {
			if got[i] != forgiven[i] {
				t.Fatalf("lead %d: forgiven %v, want %v", lead, got, forgiven)
			}
		}
		if paused := max(0, c.PausedUntil.Sub(now)); paused != pause || (pause > 0) != (c.PauseReason != nil) {
			t.Fatalf("lead %d: paused for %s (%v), want %s", lead, paused, c.PauseReason, pause)
		}
	}
	fail(1, down, 0)
	fail(2, down, 0)
	fail(3, refused, 0) // somebody is there
	for lead := int64(4); lead < 8; lead++ {
		fail(lead, down, 0)
	}
	fail(7, down, 0)  // a single lead proves nothing
	fail(12, lost, 0) // nor does a node that died
	fail(8, rang, time.Minute, 4, 5, 6, 7)
	fail(9, down, time.Minute, 9) // this call was under way already
	now = now.Add(time.Minute)
	for _, pause := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		fail(10, down, pause*time.Minute, 10)
		now = c.PausedUntil
	}
	if !c.Probing() {
		t.Fatal("it does not try with one call")
	}
	answered := parley.LeadCall{Status: parley.CallCompleted}
	if c.Break(11, &answered, now); c.Probing() || c.PausedUntil != 0 || c.PauseReason != nil || len(c.Failing) != 0 {
		t.Fatalf("%+v", c)
	}
}
