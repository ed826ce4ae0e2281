package exam

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

// Order is what a run is to perform.
type Order struct {
	Tests          []int64 // of the assistant's; none: all of them
	CallID         int64   // or a stored call again,
	ConversationID string  // or a stored conversation
	Draft          *parley.Draft
	OfDraft        bool // of the assistant's draft, as it is saved now
}

// Start begins a run of one of the user's assistants.
func (d *Desk) Start(ctx context.Context, userID, assistantID int64, o Order) (*parley.TestRun, error) {
	a, err := d.DB.Assistant(ctx, userID, assistantID)
	if err != nil {
		return nil, err
	}
	run := &parley.TestRun{AssistantID: a.ID}
	if !o.Draft.Empty() {
		if err := d.Assistants.CheckDraft(a, o.Draft); err != nil {
			return nil, err
		}
		run.Draft = o.Draft
	}
	if o.OfDraft {
		draft, err := d.DB.AssistantDraft(ctx, userID, a.ID)
		if err != nil {
			return nil, err
		}
		run.DraftAt, run.Changes = draft.UpdatedAt, draft.Changes
	}
	list, err := d.ordered(ctx, a, run, o)
	if err != nil {
		return nil, err
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.LockUser(ctx, userID); err != nil {
			return err
		}
		if n, err := tx.UnfinishedTestRuns(ctx, userID); err != nil {
			return err
		} else if n >= maxRuns {
			return parley.Errorf(parley.Conflict, "%d of your test runs are in progress. Wait until one has finished, or stop one.", n)
		}
		if err := tx.ForgetTestRuns(ctx, a.ID, keptRuns-1); err != nil {
			return err
		}
		tx.AfterCommit(d.rouse)
		return tx.CreateTestRun(ctx, userID, run, list)
	})
	return run, err
}

// ordered are the performances of a run.
func (d *Desk) ordered(ctx context.Context, a *parley.Assistant, run *parley.TestRun, o Order) ([]parley.TestResult, error) {
	if o.CallID != 0 || o.ConversationID != "" {
		script, err := d.replay(ctx, a.UserID, run, o)
		if err != nil {
			return nil, err
		}
		return waiting(nil, script)
	}
	tests, err := d.chosen(ctx, a, o.Tests)
	if err != nil {
		return nil, err
	}
	var list []parley.TestResult
	for i := range tests {
		more, err := waiting(&tests[i].ID, tests[i].Script)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	switch {
	case len(list) == 0:
		return nil, parley.Errorf(parley.Invalid, "This assistant has no tests yet: make one first.")
	case len(list) > maxOfRun:
		return nil, parley.Errorf(parley.Invalid, "These tests make %d performances, and a run can have at most %d: run some of them.",
			len(list), maxOfRun)
	}
	return list, nil
}

// chosen are the tests that a run names, all of the assistant's where it names none.
func (d *Desk) chosen(ctx context.Context, a *parley.Assistant, ids []int64) ([]parley.Test, error) {
	if len(ids) == 0 {
		return d.DB.Tests(ctx, a.UserID, a.ID)
	}
	var tests []parley.Test
	for _, id := range ids {
		t, err := d.DB.Test(ctx, a.UserID, a.ID, id)
		if err != nil {
			return nil, err
		}
		tests = append(tests, *t)
	}
	return tests, nil
}

// waiting are the performances of a script, before they are.
func waiting(test *int64, script string) (list []parley.TestResult, err error) {
	cases, err := Read(script)
	if err != nil {
		return nil, err
	}
	for i, p := range performances(cases) {
		list = append(list, parley.TestResult{TestID: test, Name: p.title, Channel: string(p.Channel), Script: script, Place: i})
	}
	return list, nil
}

// Runs are the runs of one of the user's assistants, newest first.
func (d *Desk) Runs(ctx context.Context, userID, assistantID int64, p store.Page) ([]parley.TestRun, int, error) {
	if _, err := d.DB.Assistant(ctx, userID, assistantID); err != nil {
		return nil, 0, err
	}
	return d.DB.TestRuns(ctx, userID, assistantID, p)
}

// Report is a run with what became of it, and what changed since the same tests were performed before.
type Report struct {
	*parley.TestRun
	Results []parley.TestResult `json:"results"`
	Changes []Change            `json:"changes" doc:"Compared with the previous run of each test against the saved assistant."`
	before  []parley.TestResult // those that Changes are against
	// of a replay
	Replayed []Turn `json:"replayed" doc:"For a replay: what was said then and now, turn by turn; empty otherwise."`
}

// Report reads a run.
func (d *Desk) Report(ctx context.Context, userID, assistantID, id int64) (*Report, error) {
	run, err := d.DB.TestRun(ctx, userID, assistantID, id)
	if err != nil {
		return nil, err
	}
	r := &Report{TestRun: run, Changes: []Change{}, Replayed: []Turn{}}
	if r.Results, err = d.DB.TestResults(ctx, userID, id); err != nil {
		return nil, err
	}
	if run.Replay() {
		r.Replayed, err = d.replayed(ctx, userID, r)
		return r, err
	}
	if r.before, err = d.DB.TestResultsBefore(ctx, userID, run); err == nil {
		r.Changes = Compare(r.Results, r.before)
	}
	return r, err
}

// Live is what became of a performance's test when it was last performed by the assistant as it was live before the
// run; "" where it was not.
func (r *Report) Live(of *parley.TestResult) parley.TestState {
	for i := range r.before {
		b := &r.before[i]
		if b.TestID != nil && of.TestID != nil && *b.TestID == *of.TestID && b.Name == of.Name {
			return b.State
		}
	}
	return ""
}
