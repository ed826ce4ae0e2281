package ai

import (
	"context"
	"time"

	"parley/internal/audio"
)

// RealtimeModel is one model that hears and thinks, and speaks or writes. It is safe for concurrent use.
type RealtimeModel interface {
	// Connect opens a session, and blocks until the vendor has accepted what it is set up with. The error is an
	// *Error, unless ctx ended: then it is context.Cause(ctx). When ctx ends later the session closes itself.
	Connect(ctx context.Context, s RealtimeSetup) (RealtimeSession, error)
}

// RealtimeSetup is what a session is opened with. Turns are found by who uses it: the vendor's own detection of them
// is off.
type RealtimeSetup struct {
	System   string
	Tools    []Tool
	Writes   bool       // its replies are text, and somebody else speaks
	Voice    string     // the vendor's own name of it; "" where it writes
	Speed    float64    // 1 is the voice's own; 0 counts as 1
	Language string     // ISO 639-1, of what is heard
	Rate     audio.Rate // of what is heard and what is spoken
	Keywords []string   // words to be heard better, where the vendor knows how
}

// RealtimeSession is a conversation with a model. Its methods are called by one goroutine at a time and never block;
// what comes of them is told by Events. Once it has closed they do nothing.
//
// What is heard is written utterance by utterance, and is in the conversation with End. What the model says comes as
// responses, for which it is asked; their numbers, and those of texts that are added, are the caller's and are used
// once. Responses that are asked for while one is under way wait for its end.
type RealtimeSession interface {
	// Write takes the next sound of the present utterance; the slice may be used until it returns. It never allocates
	// per frame.
	Write(pcm []int16)
	// End says that the utterance is over. One final RealtimeHeard follows for each End, in any order. Utterances are
	// counted from 0.
	End()
	// Forget says that an utterance was none: it is taken out of the conversation.
	Forget(utterance int)
	// Add puts a text of either side into the conversation, or calls with their results.
	Add(n int, m ...Message)
	// Respond asks for a response, as an instruction says where there is one. With words it may call no tools.
	Respond(n int, instruction string, words bool)
	// Say has a text said as it is. It is in the conversation only where it is added. A session that writes can't.
	Say(n int, text string)
	// Result is what came of a call.
	Result(callID, result string)
	// Cut says that of a response, or of a text that was added, nothing was heard but its sound up to a time, and text
	// of its text: the model is made to know no more of it. A response that is under way ends, and its calls are not
	// going to be made.
	Cut(n int, heard time.Duration, text string)
	// Events is what happens. It must be read until it is closed, which it is when the session is.
	Events() <-chan RealtimeEvent
	// Close ends the session, and returns when nothing is left running.
	Close()
}

// RealtimeEvent is something that happened in a session. Its kind says which fields count.
type RealtimeEvent struct {
	Kind      RealtimeKind
	N         int // of the utterance, or the response
	Text      string
	Final     bool
	PCM       []int16 // the receiver's
	Call      *ToolCall
	Usage     Usage
	Remaining time.Duration
	Err       error
}

// RealtimeKind says what happened.
type RealtimeKind uint8

// The kinds, each with the fields that it uses.
const (
	// N, Text (of all of the utterance so far), Final, Err: what the customer said. It may come long after the reply.
	RealtimeHeard RealtimeKind = iota
	RealtimeSound              // N, PCM: a response is spoken
	RealtimeText               // N, Text: the next piece of its text, which may be ahead of the sound
	RealtimeCall               // N, Call: it calls a tool; its result is waited for
	// N, Usage, Err: a response is over. Exactly one for each that was asked for, but for one that was cut before the
	// vendor was asked; of one that was cut it is all that is told.
	RealtimeDone
	RealtimeExpiring // Remaining: the session is going to end by itself
	RealtimeLost     // Err: the session has ended, and nobody closed it
)
