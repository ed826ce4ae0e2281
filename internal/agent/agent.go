// Package agent thinks: one Turn takes a conversation to its next reply, with tools on the way, for text and voice
// alike. It also reads a finished conversation and fills in what the assistant's post-call schema asks for.
//
// The channel brings what to think about (prompt, history, tools) and a Sink that takes the reply as it forms: a chat
// forwards the text, a call forms sentences and speaks them.
package agent

import (
	"context"
	"encoding/json"

	"parley/internal/ai"
)

// Turn is one turn of thinking. Its texts are ready: variables are already in them (parley.Render).
type Turn struct {
	Model  ai.Model
	System string
	// History is the conversation, oldest first, up to and with the customer's message that is to be answered. The
	// assistant's initial message is in it like any other. Replay makes the messages of a stored reply that called
	// tools.
	History []ai.Message
	Tools   []Tool
	// Budget is how much history the model gets, in tokens as Tokens estimates them; 0 is DefaultBudget. See Trim.
	Budget int
	// Steps is how often the model may be asked; the last time it must answer in words. 0 is DefaultSteps.
	Steps       int
	Temperature *float64 // 0 to 2; nil leaves it to the model
	MaxTokens   int      // of one step's text; 0 leaves it to the model
	Sink        Sink     // may be nil
	// Done are the calls that an earlier attempt at this turn made. They are not made again: the model is told what
	// came of them.
	Done []ToolCall
	// Keep, where there is one, writes down the step's calls before they run, the first of them the turn's n-th, and
	// each again with its result (then done). What it can't write down before does not run: its error ends the turn.
	Keep func(ctx context.Context, n int, calls []ToolCall, done bool) error
}

// What a Turn does when it isn't told.
const (
	DefaultBudget = 16_000
	DefaultSteps  = 8
)

// Tool is a tool that the model may call, and what it does.
type Tool struct {
	ai.Tool
	// Run does it. arguments is a JSON object that has what the schema requires, in the right types. The result, at
	// most 64 KiB of it, is told to the model; an error is told to it as one. Tools of one step run at the same time.
	// A panic is an error too.
	Run func(ctx context.Context, arguments json.RawMessage) (string, error)
	// Ends says that nothing is left to be said after this tool has done what it does: it hung up. When it fails the
	// turn goes on.
	Ends bool
}

// Sink takes a turn's reply as it forms. Its methods are called one at a time and may block: thinking waits for them.
type Sink interface {
	// Text takes the next piece of the reply. All pieces together are Reply.Text.
	Text(delta string)
	// ToolStarted tells of a call that is about to run, ToolFinished of its end; those of one step may finish in any
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
}

// Reply is what a turn came to.
type Reply struct {
	Text  string
	Calls []ToolCall // in the order in which they were made
	// Messages is what the turn adds to the history: calls, results and texts in order.
	Messages []ai.Message
	Usage    ai.Usage // of all steps
}
