// Package ai defines what we ask of AI vendors: a Model that thinks in text, an Embedder, a Synthesizer that speaks, a
// Recognizer that listens; and what a vendor declares about itself (Vendor). Each vendor is one package under
// internal/provider; aitest holds scripted fakes, a faithful local server, and the conformance suites that every vendor
// passes.
package ai

import (
	"context"
	"encoding/json"
)

// Model generates replies. A Model is safe for concurrent use and keeps no conversation state between calls.
type Model interface {
	// Generate asks for one reply and blocks until it is complete. Each piece goes to yield as it arrives, in order and
	// from the calling goroutine, so a slow yield slows the vendor's stream down instead of filling memory; text is
	// always cut between runes. The Reply holds all that was yielded, even when there is an error.
	//
	// The error is an *Error, unless ctx ended or yield refused: then it is context.Cause(ctx), or yield's error. When
	// Generate returns, nothing of the request is left running.
	Generate(ctx context.Context, req Request, yield func(Delta) error) (Reply, error)
}

// Request is a request for a reply.
type Request struct {
	System   string
	Messages []Message
	Tools    []Tool
	// NoCalls asks for an answer in words; Tools are then present only so that the calls in Messages make sense.
	NoCalls bool
	// Temperature is 0 to 2; nil leaves it to the vendor.
	Temperature *float64
	// MaxTokens bounds the reply; 0 leaves it to the vendor.
	MaxTokens int
	// Schema asks for a reply that is one JSON object of this JSON Schema. nil asks for words.
	Schema *Schema
}

// Role says who a message is from.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // the result of a call
)

// Message is one message of a conversation.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text,omitempty"`
	// Calls are the tool calls of an assistant's message. Each is followed by a message of ToolRole with its id.
	Calls []ToolCall `json:"calls,omitempty"`
	// CallID is the call whose result this is, for ToolRole.
	CallID string `json:"call_id,omitempty"`
}

// ToolCall is a tool call that the model makes.
type ToolCall struct {
	ID   string `json:"id"` // unique within the request
	Name string `json:"name"`
	// Arguments is what the model wrote: ideally a JSON object, but it may be anything.
	Arguments string `json:"arguments"`
	// Seal is what the vendor that made the call wants back with it in later requests, "" for nothing. Other vendors
	// ignore it.
	Seal string `json:"seal,omitempty"`
}

// Tool is a tool as the model sees it.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, of type object; nil when there are none.
	Schema json.RawMessage
}

// Schema is a JSON Schema that a reply must follow: of type object, every property required, additionalProperties
// false. Inside its properties it may have what a vendor doesn't take, which is then told in words.
type Schema struct {
	Name string // letters, digits, underscore
	JSON json.RawMessage
}

// Delta is a piece of a reply: text, or a call that is complete.
type Delta struct {
	Text string
	Call *ToolCall
}

// Reply is a complete reply, or as much of it as arrived.
type Reply struct {
	Text   string
	Calls  []ToolCall
	Finish Finish
	Usage  Usage
}

// Finish says why a reply ended.
type Finish string

// The reasons. A reply that did not end has none.
const (
	Stop      Finish = "stop"
	Length    Finish = "length" // MaxTokens, or the model's own limit
	ToolCalls Finish = "tool_calls"
	Filtered  Finish = "filtered" // the vendor's content filter cut it
)

// Usage is the number of tokens a reply took, as the vendor counts them; zero where the vendor doesn't say.
type Usage struct {
	In  int `json:"in"`
	Out int `json:"out"` // with what the model thought and didn't say

	// How many of In the vendor had in its cache, and how many it put there. Vendors price both separately.
	Cached int `json:"cached,omitempty"`
	Stored int `json:"stored,omitempty"`
}

// Add adds another reply's usage.
func (u *Usage) Add(v Usage) {
	u.In += v.In
	u.Out += v.Out
	u.Cached += v.Cached
	u.Stored += v.Stored
}
