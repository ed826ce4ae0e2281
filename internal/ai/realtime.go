package ai

import (
	"context"
	"time"

	"parley/internal/audio"
)

// RealtimeModel is a single model that hears and thinks, and speaks or writes. It is safe for concurrent use.
type RealtimeModel interface {
	// Connect opens a session, and blocks until the vendor has accepted its setup. The error is an *Error, unless ctx
	// ended: then it is context.Cause(ctx). If ctx ends later, the session closes itself. What the vendor counts while
	// it lasts is spent on the Tally of ctx, tokens of sound apart from others.
	Connect(ctx context.Context, s RealtimeSetup) (RealtimeSession, error)
}

// Decides reports whether a model decides by itself when it speaks. Its sessions are written all that the customer sends, in utterances or
// not; a response that is asked for is what it says next. It says RealtimeBegan where nobody has asked.
func Decides(m RealtimeModel) bool {
	d, ok := m.(interface{ Decides() bool })
	return ok && d.Decides()
}

// RealtimeSetup is what a session is opened with. Its user finds the turns: the vendor's own turn detection is off, unless the model
// Decides.
type RealtimeSetup struct {
	System   string
	Tools    []Tool
	Writes   bool       // its replies are text, and somebody else speaks
	Voice    string     // the vendor's own name of it; "" where it writes
	Speed    float64    // 1 is the voice's own; 0 counts as 1
	Language string     // ISO 639-1, of what is heard; "": the model finds it
	Others   []string   // further languages that may be spoken: the model finds which
	Rate     audio.Rate // of what is heard and what is spoken
	Keywords []string   // words to be heard better, where the vendor knows how
	Reads    bool       // it hears nothing, and says only the texts that it is given to Say
}

// RealtimeSession is a conversation with a model. Its methods are called by one goroutine at a time and never block;
// their results come as Events. Once it has closed they do nothing.
//
// Audio is written utterance by utterance, and enters the conversation with End. The model speaks in responses, which
// it is asked for. Their numbers, and those of added texts, are chosen by the caller and used once. A response
// requested while another is under way waits for its end.
type RealtimeSession interface {
	// Write takes the next audio of the current utterance; the slice may be used until it returns. It never allocates
	// per frame.
	Write(pcm []int16)
	// End says that the utterance is over. One final RealtimeHeard follows for each End, in any order; another one
	// corrects it. Utterances are counted from 0.
	End()
	// Forget says that an utterance was not one after all: it is removed from the conversation, where the vendor can
	// take sound back. Elsewhere it is heard before what is said next.
	Forget(utterance int)
	// Add puts a text of either side into the conversation, or calls with their results.
	Add(n int, m ...Message)
	// Respond asks for a response, following the instruction if there is one. With words set it may call no tools.
	Respond(n int, instruction string, words bool)
	// Say has a text said verbatim, in a session that Reads.
	Say(n int, text string)
	// Result passes on the result of a call.
	Result(callID, result string)
	// Cut says how much of a response, or of an added text, was heard: its audio up to a time, and text of its text.
	// The model is made to know no more of it; where the vendor can take nothing back, the model is told in a note. A
	// response that is under way ends, and its calls will not be made.
	Cut(n int, heard time.Duration, text string)
	// Events delivers what happens. It must be read until it is closed, which happens when the session closes.
	Events() <-chan RealtimeEvent
	// Close ends the session, and returns when nothing is left running.
	Close()
}

// RealtimeEvent is something that happened in a session. Its kind determines which fields count.
type RealtimeEvent struct {
	Kind      RealtimeKind
	N         int // of the utterance, or the response
	Text      string
	Language  string // in which an utterance was said, ISO 639-1, where Others were asked for and the model's recognizer tells; else ""
	Final     bool
	PCM       []int16 // the receiver's
	At        time.Duration
	Call      *ToolCall
	Usage     Usage
	Remaining time.Duration
	Err       error
}

// RealtimeKind says what happened.
type RealtimeKind uint8

// The kinds, each with the fields that it uses.
const (
	// N, Text (of the whole utterance so far), Final, Err: what the customer said. It may come long after the reply.
	RealtimeHeard RealtimeKind = iota
	RealtimeSound              // N, PCM: a response is spoken
	// N, Text, At: the next piece of its text, which may be ahead of the sound. At is when it has been said, from the start of the
	// response's sound; 0 where the vendor doesn't say.
	RealtimeText
	RealtimeCall // N, Call: it calls a tool; its result is waited for
	// N, Usage, Err: a response is over. There is exactly one for each response requested, except one that was cut
	// before the vendor was asked. After a cut it is the only event of that response.
	RealtimeDone
	RealtimeExpiring // Remaining: the session is going to end by itself
	// Usage: of a response that was over before its vendor had counted it.
	RealtimeUsed
	RealtimeLost // Err: the session has ended, and nobody closed it
	// A model that decides by itself when it speaks has begun to, or calls a tool, and no response was asked for: the next one that is
	// asked for is that.
	RealtimeBegan
)
