// Package voice holds a conversation on a leg: what is heard, what is said, what is done, and when it is over. Who
// speaks when is decided by the turn machine (internal/turn), to which a Session gives time, sound and the vendors.
//
// Everything in a session has one owner, and owners talk by events:
//
//   - The owner (owner.go), one goroutine, has the machine, the book and all else that is decided (type owned). It takes what happens one
//     thing after the other, gives it to the machine, and does what that says. It calls the ear and Tell; it holds no lock.
//   - The leg's goroutine has the audio path (peer.go): it detects speech, cleans frames and passes them to the owner through a channel with
//     room for all there are, and it pulls what is heard next out of the playout. It never waits for the owner. What can't wait for a
//     decision is settled beforehand: where the machine has armed the playout, speech that begins silences it with the very next packet,
//     and the owner, who judges that speech a moment later, may let it go on.
//   - The playout (playout.go) has the sound that is there, under a lock of its own that is held only while sound is copied: the vendors'
//     goroutines add to it, the leg takes from it, the owner says what is in it and reads how much of it was heard.
//   - The clock (clock.go) has the time, in the same way.
//   - A driver (driver.go) hears, thinks and speaks for a persona; the owner calls it. There are two: the pipeline (pipeline.go) of
//     recognizer, model and synthesizer, and realtime (realtime.go), one model that hears and speaks or writes.
//   - Vendors and tools have goroutines of their own, which wait for as long as they must. They post what they have to the owner's inbox
//     (inbox.go), which never waits, or ask the owner and wait for the answer; the owner never waits for them.
package voice

import (
	"context"
	"io"

	"parley"
	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
)

// Persona is who speaks on a call: an assistant that was readied for it, with the voice that it speaks with and the
// ear that it hears with.
type Persona struct {
	Assistant *parley.Assistant // its manners: every field about voice
	// Think makes a turn of thinking: history ends with what is to be answered. The session adds the assistant's
	// built-in tools, and changes the turn as it needs: each call makes a new one.
	Think func(history []ai.Message, sink agent.Sink) *agent.Turn

	// Rendered texts, "" for none.
	Initial, Reengagement, VoicemailMessage string

	// Synthesizer speaks. A Cache knows sounds by it: the same vendor should be the same (comparable) value in all
	// calls.
	Synthesizer ai.Synthesizer
	Voice       string // the vendor's own name of the voice
	Language    string // ISO 639-1
	Recognizer  ai.Recognizer

	// Realtime hears in place of the Recognizer, and answers in place of Think's model; of Think it has the prompt and the
	// tools. Without Writes it speaks too, as Voice: a Synthesizer, which is optional then, has the same voice and says
	// what is to be said word by word. With Writes the Synthesizer says everything.
	Realtime ai.RealtimeModel
	Writes   bool
}

// Session is one conversation on one leg.
type Session struct {
	Persona  Persona
	Outbound bool // we called: who answered is judged, and a voicemail is dealt with

	// Speculate has replies begun as soon as what the customer said is known, while it is still waited whether they
	// go on. Where an ear finds turns, its word that one may be over does so too, whatever this says. That saves most of the model's time, and costs the requests that are given up. Tools run only when the
	// turn has ended.
	Speculate bool

	Cache  *Cache         // of fixed sentences, shared by all sessions; may be nil
	Record io.WriteSeeker // where the recording goes, as WAV; nil for none
	// Transfer asks the far end to go elsewhere; nil where the leg can't.
	Transfer func(ctx context.Context, to string) error
	// Hand readies another assistant to go on with the conversation; nil where there is none.
	Hand func(ctx context.Context, assistantID int64) (Persona, error)
	// Tell takes what happens as it happens. It must not block, nor call the session; it may be nil.
	Tell func(Event)
	// Detect makes what finds speech in the sound; nil is audio.NewVAD.
	Detect func(audio.Rate) Detector
}

// Detector says which frames hold speech, as *audio.VAD does.
type Detector interface {
	Detect(f audio.Frame) (speech, voiced bool)
}

// EventKind says what happened.
type EventKind string

// The kinds.
const (
	PartialHeard EventKind = "partial" // Text: what the customer has said so far
	TurnEnded    EventKind = "turn"    // Turn
	ToolUsed     EventKind = "tool"    // Call
	Answerer     EventKind = "answered_by"
)

// Event is something that happened in the conversation.
type Event struct {
	Kind       EventKind
	Text       string
	Turn       parley.CallTurn
	Call       agent.ToolCall
	AnsweredBy parley.AnsweredBy
}

// Result is what a conversation came to.
type Result struct {
	// Reason is why it is over: the cause that ctx ended with or that the leg returned, where that is a
	// parley.EndedReason, or the session's own end reason.
	Reason     parley.EndedReason
	Turns      []parley.CallTurn
	Calls      []agent.ToolCall // the tools that were used, in order
	AnsweredBy parley.AnsweredBy
	Usage      ai.Usage // what the models counted
	Eager      Eager
	Err        error // what went wrong on the way, for the log
	// the vendor's failure that it came to: it ended the call, or the assistant's last reply was an apology for it
	Failure error
}

// Eager counts the replies that were begun before the customer's turn had ended, and those of them that were used: the
// others were given up, as the customer went on.
type Eager struct{ Begun, Used int }

// Transferrer is a leg that can ask the far end to go elsewhere (a blind transfer). It returns when the far end has
// taken it on, or with the error that it refused with.
type Transferrer interface {
	audio.Leg
	Transfer(ctx context.Context, to string) error
}
