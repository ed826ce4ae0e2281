package parley

import (
	"fmt"

	"github.com/uptrace/bun"
)

// Test is a conversation with an assistant that is written down, and what must come of it: a simulated caller performs
// it (internal/rehearsal reads the script).
type Test struct {
	bun.BaseModel `bun:"tests" json:"-"`

	ID          int64  `bun:",pk,autoincrement" json:"id"`
	UserID      int64  `json:"-"`
	AssistantID int64  `json:"assistant_id"`
	Name        string `json:"name" doc:"The script's name."`
	Channel     string `json:"channel" enum:"call,chat"`
	Script      string `json:"script" doc:"The test in YAML."`
	Customer    string `json:"-"` // whose words it is made of; "": nobody's
	CreatedAt   Time   `json:"created_at"`
	UpdatedAt   Time   `json:"updated_at"`

	// of the latest run that it was performed in
	LastRunID *int64    `bun:"-" json:"last_run_id"`
	LastState TestState `bun:"-" json:"last_state" doc:"The worst result in the latest run that included it; empty before the first."`
	LiveState TestState `bun:"-" json:"live_state" doc:"Its result in the latest run against the live assistant; empty before the first."`
	// of the latest run against the draft as it is saved now
	DraftRunID *int64    `bun:"-" json:"draft_run_id" doc:"The latest run of it against the assistant's current draft."`
	DraftState TestState `bun:"-" json:"draft_state" doc:"Its result there; empty before the first run, and without a draft."`
}

// TestState is how far a performance of a test is, or what became of it.
type TestState string

// The states of performances.
const (
	TestWaiting TestState = "waiting"
	TestRunning TestState = "running"
	TestPassed  TestState = "pass"
	TestFailed  TestState = "fail"
	TestBroken  TestState = "error" // it could not be performed
	TestStopped TestState = "stopped"
)

// Over says whether nothing more will come of a performance.
func (s TestState) Over() bool { return s != TestWaiting && s != TestRunning }

// Draft is what an assistant would be with changes that are not saved. Nil is unchanged.
type Draft struct {
	SystemPrompt   *string `json:"system_prompt,omitempty" maxLength:"100000"`
	InitialMessage *string `json:"initial_message,omitempty" maxLength:"1000"`
	LLMModelID     *int64  `json:"llm_model_id,omitempty" doc:"For an assistant in pipeline mode."`
}

// Empty says whether nothing is changed.
func (d *Draft) Empty() bool {
	return d == nil || d.SystemPrompt == nil && d.InitialMessage == nil && d.LLMModelID == nil
}

// With is the assistant with the changes of a draft.
func (a *Assistant) With(d *Draft) *Assistant {
	if d.Empty() {
		return a
	}
	changed := *a.Chosen()
	if d.SystemPrompt != nil {
		changed.SystemPrompt = *d.SystemPrompt
	}
	if d.InitialMessage != nil {
		changed.InitialMessage = *d.InitialMessage
	}
	if d.LLMModelID != nil && a.LLMModelID != nil {
		changed.LLMModelID, changed.FallbackLLMModelIDs = d.LLMModelID, nil
	}
	changed.Settle(a)
	return &changed
}

// TestRun is one performance of tests of an assistant, or of a conversation that is replayed.
type TestRun struct {
	bun.BaseModel `bun:"test_runs" json:"-"`

	ID          int64  `bun:",pk,autoincrement" json:"id"`
	UserID      int64  `json:"-"`
	AssistantID int64  `json:"assistant_id"`
	Draft       *Draft `bun:"type:json,nullzero" json:"draft" doc:"The fields of the assistant that were changed for this run; null if none."`
	// of a run against the assistant's draft
	DraftAt     Time     `json:"draft_at" doc:"When the draft that the run tested was saved; null if it tested no draft."`
	SealedDraft []byte   `json:"-"`
	Changes     Settings `bun:"-" json:"-"` // SealedDraft, read
	// what is replayed, where the run is a replay
	CallID         *int64  `json:"call_id" doc:"The call that is replayed; null if none."`
	ConversationID *string `json:"conversation_id" doc:"The conversation that is replayed; null if none."`
	Customer       string  `json:"-"` // whose words are replayed; "": nobody's
	Stopped        bool    `json:"-"`
	CreatedAt      Time    `json:"created_at"`
	FinishedAt     Time    `json:"finished_at"`

	TestCounts `bun:"-"`
	Status     string `bun:"-" json:"status" enum:"running,finished,stopped"`
}

// TestCounts are how many performances of a run are in which state.
type TestCounts struct {
	Total  int `json:"total"`
	Left   int `json:"left" doc:"Not run yet."`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
	Broken int `json:"broken" doc:"Tests that could not be run."`
}

// Count counts a performance's state, n times.
func (c *TestCounts) Count(s TestState, n int) {
	c.Total += n
	switch s {
	case TestPassed:
		c.Passed += n
	case TestFailed:
		c.Failed += n
	case TestBroken:
		c.Broken += n
	case TestWaiting, TestRunning:
		c.Left += n
	}
}

// State is the worst of the states.
func (c *TestCounts) State() TestState {
	switch {
	case c.Left > 0:
		return TestRunning
	case c.Broken > 0:
		return TestBroken
	case c.Failed > 0:
		return TestFailed
	case c.Passed > 0:
		return TestPassed
	case c.Total > 0:
		return TestStopped
	}
	return ""
}

// Unproved says what is missing before a run proves that what it is of passes its assistant's tests, as the end of a
// sentence; "" where nothing is. Nil is no run; left is how many tests were not in it.
func (r *TestRun) Unproved(left int) string {
	switch {
	case r == nil:
		return "they have not been run against the draft as it is saved now."
	case r.FinishedAt == 0:
		return "they are still running."
	case r.Failed+r.Broken > 0:
		return fmt.Sprintf("%d of %d did not pass.", r.Failed+r.Broken, r.Total)
	case r.Passed < r.Total:
		return "the last run was stopped."
	case left > 0:
		return fmt.Sprintf("the last run left %d of them out.", left)
	}
	return ""
}

// Replay says whether the run performs a stored conversation again.
func (r *TestRun) Replay() bool { return r.CallID != nil || r.ConversationID != nil }

// Settle fills in the status.
func (r *TestRun) Settle() {
	switch {
	case r.FinishedAt == 0:
		r.Status = "running"
	case r.Stopped:
		r.Status = "stopped"
	default:
		r.Status = "finished"
	}
}

// TestResult is one performance of a test, and what became of it.
type TestResult struct {
	bun.BaseModel `bun:"test_results" json:"-"`

	ID          int64     `bun:",pk,autoincrement" json:"id"`
	RunID       int64     `json:"-"`
	UserID      int64     `json:"-"`
	AssistantID int64     `json:"-"`
	TestID      *int64    `json:"test_id" doc:"null for a replay."`
	Name        string    `json:"name" doc:"The test's name, with what distinguishes this run of it."`
	Channel     string    `json:"channel"`
	State       TestState `json:"state" enum:"waiting,running,pass,fail,error,stopped"`
	Error       string    `json:"error" doc:"Why it could not be run."`
	// what it is performed by, as it was when the run began
	Script   string `json:"-"` // in its own row, one a test and run; former versions stored it here
	ScriptID *int64 `json:"-"`
	Place    int    `json:"-"` // among the performances of its script

	Verdicts      []TestVerdict `bun:"type:json,nullzero" json:"verdicts"`
	Figures       *TestFigures  `bun:"type:json,nullzero" json:"figures"`
	Turns         []CallTurn    `bun:"type:json,nullzero" json:"turns"`
	FunctionCalls []CallTool    `bun:"type:json,nullzero" json:"function_calls"`
	Picture       string        `json:"-"` // SVG, of a call that failed
	PlayedCallID  *int64        `json:"played_call_id" doc:"The call in which it was run."`
	TookMS        int64         `bun:"took_ms" json:"took_ms"`

	Node       string `json:"-"` // the process that performs it
	Tries      int    `json:"-"`
	DueAt      Time   `json:"-"` // when it is to be taken; that of a process is gone then
	FinishedAt Time   `json:"finished_at"`
}

// Complete gives lists that nothing was put into their empty value.
func (r *TestResult) Complete() {
	if r.Verdicts == nil {
		r.Verdicts = []TestVerdict{}
	}
	if r.Turns == nil {
		r.Turns = []CallTurn{}
	}
	if r.FunctionCalls == nil {
		r.FunctionCalls = []CallTool{}
	}
}

// TestVerdict is what became of one expectation.
type TestVerdict struct {
	Line int    `json:"line" doc:"The line of the script."`
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Got  string `json:"got,omitempty"`
	AtMS int64  `json:"at_ms" doc:"Milliseconds since the answer."`
}

// TestFigures are what was measured.
type TestFigures struct {
	ReplyP50MS   int64   `json:"reply_p50_ms"`
	ReplyP95MS   int64   `json:"reply_p95_ms"`
	GreetingMS   int64   `json:"greeting_ms"`
	DeadAirMS    int64   `json:"dead_air_ms" doc:"The longest silence while the caller waited."`
	FalseCutoffs int     `json:"false_cutoffs"`
	MissedTurns  int     `json:"missed_turns"`
	StalePackets int     `json:"stale_packets"`
	Words        int     `json:"words" doc:"Words that the caller said."`
	Misheard     int     `json:"misheard" doc:"Words of these that were misheard."`
	Tools        int     `json:"tools" doc:"How often tools were called."`
	Cost         float64 `json:"cost" doc:"What it would have cost, in USD: nothing is charged for a test."`
}
