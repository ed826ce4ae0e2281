// Package voice holds a conversation on a leg: it hears, speaks, acts, and decides when the call is over. The turn
// machine (internal/turn) decides who speaks when; a Session gives it time, audio and the vendors.
//
// Everything in a session has one owner, and owners communicate by events:
//
//   - The owner (owner.go) is one goroutine. It has the machine, the transcript and everything else that is decided (type
//     owned). It takes events one at a time, gives them to the machine, and does what the machine says. It calls the
//     recognizer and Tell, and holds no lock.
//   - The leg's goroutine has the audio path (peer.go): it detects speech, cleans frames and passes them to the owner
//     through a channel with room for all of them, and it pulls the next audio from the playout. It never waits for the
//     owner. What can't wait for a decision is settled in advance: if the machine has armed the playout, 60 ms of
//     speech silence it, or make it fainter, with the very next packet. The owner judges that speech a moment later, and may let it go
//     on.
//   - The playout (playout.go) has the audio that has arrived, under a lock of its own that is held only while audio is
//     copied: the vendors' goroutines add to it, the leg takes from it, the owner decides what is in it and reads how
//     much of it was heard.
//   - The clock (clock.go) has the time, in the same way.
//   - A driver (driver.go) hears, thinks and speaks for a persona; the owner calls it. There are two: the pipeline
//     (pipeline.go) of recognizer, model and synthesizer, and realtime (realtime.go), a single model that hears and
//     speaks or writes. A customer who talks with a person in the assistant's place (person.go) needs none.
//   - Vendors and tools have goroutines of their own, which wait for as long as they must. They post their results to
//     the owner's inbox (inbox.go), which never waits, or ask the owner and wait for the answer; the owner never waits
//     for them.
package voice

import (
	"context"
	"io"
	"sync/atomic"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
)

// Persona is the speaker on a call: an assistant prepared for it, with its voice and its recognizer.
type Persona struct {
	Assistant *parley.Assistant // its manners: every field about voice
	// Think makes a turn of thinking; history ends with what is to be answered. The session adds the assistant's
	// built-in tools and changes the turn as needed, so each call must return a new one.
	Think func(history []ai.Message, sink agent.Sink) *agent.Turn

	// Summarize tells what a conversation ("AI: …" and "Customer: …", a line each) is about, in a few spoken sentences,
	// "" where it can't; nil means that nothing can.
	Summarize func(ctx context.Context, transcript, instructions string) (string, error)

	// Rendered texts; "" means none.
	Initial, Reengagement, VoicemailMessage string
	// VoicemailSound is played in place of VoicemailMessage, which are its words: what somebody has spoken, at the rates
	// that legs have. It is shared, so nobody may write to it.
	VoicemailSound map[audio.Rate][]int16

	// Synthesizer speaks. A Cache keys audio by it, so the same vendor should be the same (comparable) value in all
	// calls.
	Synthesizer ai.Synthesizer
	Voice       string // the vendor's own name of the voice
	Language    string // ISO 639-1
	// Tongues are all languages that the customer may speak, where there are several, the assistant's own first. The
	// persona follows the customer from one to another if its recognizer tells in which they spoke, or a model that heard them
	// writes in it.
	Tongues    []Tongue
	Recognizer ai.Recognizer // beside Realtime: of others than the customer; nil: nobody understands these

	// Realtime hears the customer in place of the Recognizer, and answers in place of Think's model; it uses the
	// prompt and the tools of Think. Without Writes it also speaks, as Voice: the Synthesizer then has the same voice (or is the model
	// itself, ai.Aloud), and says what must be said word by word. With Writes the Synthesizer says everything.
	Realtime ai.RealtimeModel
	Writes   bool
	Decides  bool // the model decides by itself when it speaks
}

// Session is one conversation on one leg.
type Session struct {
	Persona  Persona
	Outbound bool // we called: who answered is judged, and a voicemail is dealt with

	// Speculate has replies begun as soon as it is more likely than not that the customer has finished, while the session
	// still waits to see whether they go on. If a recognizer finds turns, its word that a turn may be over does the same, whatever this field
	// says. This saves most of the model's time, at the cost of the requests that are given up. Tools run only when the
	// turn has ended.
	Speculate bool

	// Judge asks an external detector how likely it is that the customer has finished who has said this, in this language
	// (ISO 639-1), after the assistant's question; ok is false if there is no answer. It is asked when the text changes,
	// where the text counts (endpoint_type ai, or Speculate), and replaces our own judgement. It must return soon. nil: nobody is asked.
	Judge func(ctx context.Context, language, text, question string) (over float64, ok bool)

	Cache  *Cache         // of fixed sentences, shared by all sessions; may be nil
	Record io.WriteSeeker // where the recording goes, as WAV; nil for none
	// Transfer asks the far end to go elsewhere; nil if the leg can't.
	Transfer func(ctx context.Context, to string) error
	// Reach calls whoever a transfer names, and returns their line once they have answered; nil if nobody can be called.
	// It is for a far end that does not send the call elsewhere (parley.ErrNoRefer). Errors and line are as Warm's. The
	// peer that early gives for a rate, if it gives one, hears what sounds before they answer.
	Reach func(ctx context.Context, to string, early func(audio.Rate) audio.Peer) (Line, error)
	// Warm calls somebody who may take the customer over, tells them what it is about, and returns their line once they
	// have accepted; nil if nobody can be called. The error is, or wraps, the parley.EndedReason of that call. The line
	// is the session's: it joins it with the customer, and closes it.
	Warm func(ctx context.Context, n Announcement) (Line, error)
	// Line is somebody who has answered, and has the customer from the first moment: the assistant then has no part in
	// the call, and Persona needs only its Assistant. It is closed with the session. Nil for a conversation.
	Line Line
	// Hand prepares another assistant to take over the conversation; nil if there is none.
	Hand func(ctx context.Context, assistantID int64) (Persona, error)
	// Tell receives events as they happen. It must not block or call the session; it may be nil.
	Tell func(Event)
	// Detect makes the detector that finds speech in the audio; nil means audio.NewVAD.
	Detect func(audio.Rate) Detector

	held atomic.Pointer[run] // while it runs
}

// Detector reports which frames hold speech, as *audio.VAD does.
type Detector interface {
	Detect(f audio.Frame) (speech, voiced bool)
	// Sure reports whether what it has found lately is certainly speech: until then nobody falls silent for it.
	Sure() bool
	// Words says how likely the present sound has words that mean something, as a logit: a hum or a noise has none. 0 where
	// there is no sound, or nothing is known. It is asked while the assistant speaks.
	Words() float32
	// Cadence says in a pause how much the voice before it sounded like the end of what somebody has to say, in log-odds;
	// 0 where nothing is known.
	Cadence() float32
}

// EventKind says what happened.
type EventKind string

// The kinds.
const (
	PartialHeard EventKind = "partial"     // Text: what the customer has said so far
	TurnEnded    EventKind = "turn"        // Turn
	ToolUsed     EventKind = "tool"        // Call
	ToolAnswered EventKind = "answer"      // Call: it ran in the background, and its Result stood as Text until now
	Answerer     EventKind = "answered_by" // AnsweredBy, Verdict
)

// Event is something that happened in the conversation.
type Event struct {
	Kind       EventKind
	Text       string
	Turn       parley.CallTurn
	Call       agent.ToolCall
	AnsweredBy parley.AnsweredBy
	Verdict    parley.CallVerdict
}

// Result is the outcome of a conversation.
type Result struct {
	// Reason says why it is over: the cause that ctx ended with or that the leg returned, if that is a
	// parley.EndedReason, or else the session's own reason.
	Reason     parley.EndedReason
	Turns      []parley.CallTurn
	Calls      []agent.ToolCall // the tools that were used, in order
	AnsweredBy parley.AnsweredBy
	Verdicts   []parley.CallVerdict
	Usage      ai.Usage // what the models counted
	Eager      Eager
	Err        error // what went wrong on the way, for the log
	// the vendor failure behind it: it ended the call, or the assistant's last reply was an apology for it
	Failure error
	Torn    error       // why the leg ended, where it says so in words for the owner (parley.Explanation)
	Over    parley.Time // when the leg was over; what was done after that is no part of the call
}

// Eager counts the replies begun before the customer's turn had ended, and those of them that were used: the others
// were given up because the customer went on.
type Eager struct{ Begun, Used int }

// Transferrer is a leg that can ask the far end to go elsewhere (a blind transfer). It returns when the far end has
// accepted, or with the error that it refused with.
type Transferrer interface {
	audio.Leg
	Transfer(ctx context.Context, to string) error
}
