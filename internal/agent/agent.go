// Package agent thinks: one Turn takes a conversation to its next reply, with tools on the way, for text and voice
// alike. It also reads a finished conversation and fills in what the assistant's post-call schema asks for.
//
// The channel provides what to think about (prompt, history, tools) and a Sink that takes the reply as it forms: a chat
// forwards the text, a call forms sentences and speaks them.
package agent

import (
	"context"
	"encoding/json"
	"time"

	"parley/internal/ai"
)

// Turn is one turn of thinking. Its texts have their variables already filled in (parley.Render).
type Turn struct {
	Model  ai.Model
	System string
	// Day is the date, with the time zone's offset, that System tells, and Now the sentence that tells it and the time; "" where it
	// tells no time.
	Day, Now string
	// History is the conversation, oldest first, up to and including the customer's message to be answered. It includes
	// the assistant's initial message like any other. Replay rebuilds the messages of a stored reply that called tools.
	History []ai.Message
	Tools   []Tool
	// Budget is how much history the model gets, in tokens as estimated by Tokens; 0 means DefaultBudget. See Trim.
	Budget int
	// Steps is how often the model may be asked; the last time it must answer in words. 0 means DefaultSteps.
	Steps       int
	Temperature *float64 // 0 to 2; nil leaves it to the model
	MaxTokens   int      // of one step's text; 0 leaves it to the model
	Sink        Sink     // may be nil
	// Done are the calls made by an earlier attempt at this turn. They are not repeated: the model is told their
	// results.
	Done []ToolCall
	// Keep, if set, stores the step's calls before they run, the first of them being the turn's n-th, and stores each
	// again with its result (with done set). A call that it can't store beforehand does not run: the error ends the
	// turn.
	Keep func(ctx context.Context, n int, calls []ToolCall, done bool) error

	misfits misfits
}

// The defaults of a Turn.
const (
	DefaultBudget = 16_000
	DefaultSteps  = 8
)

// Tool is a tool that the model may call, and what it does.
type Tool struct {
	ai.Tool
	// Run executes the tool. arguments is a JSON object with everything that the schema requires and has no default for,
	// in the right types. The model is told the result, at most 64 KiB of it, or that there was an error: a Misfit where
	// the arguments don't fit. Tools of one step run concurrently. A panic counts as an error.
	Run func(ctx context.Context, arguments json.RawMessage) (string, error)
	// Async is Run for a channel in which the conversation goes on meanwhile; nil where it has to wait. It may take longer.
	Async func(ctx context.Context, arguments json.RawMessage) (string, error)
	// AsyncTime is how long Async takes at most.
	AsyncTime time.Duration
	// Fillers are said while it runs: when it takes a moment, and when it takes some seconds more. "" is a sentence of the channel's.
	Fillers [2]string
	// Ends says that nothing is left to say once this tool has done its work: it hung up. If it fails the turn goes on.
	Ends bool
	// Idle says that it changes nothing: one that still runs when the customer interrupts is broken off.
	Idle bool
}

// Sink takes a turn's reply as it forms. Its methods are called one at a time and may block: thinking waits for them.
type Sink interface {
	// Text takes the next piece of the reply. All pieces together make up Reply.Text.
	Text(delta string)
	// ToolStarted announces a call that is about to run, ToolFinished its end; calls of one step may finish in any
	// order.
	ToolStarted(c ToolCall)
	ToolFinished(c ToolCall)
}

// ToolCall is the record of one tool call.
type ToolCall struct {
	ID        string          `json:"-"` // the model's name for it
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // what the model wrote; a JSON string when it was no JSON
	Result    string          `json:"result"`    // what the model was told
	Fillers   [2]string       `json:"-"`         // the tool's
}

// Reply is the outcome of a turn.
type Reply struct {
	Text  string
	Calls []ToolCall // in the order in which they were made
	// Messages is what the turn adds to the history: calls, results and texts in order.
	Messages []ai.Message
	Usage    ai.Usage // of all steps
}
