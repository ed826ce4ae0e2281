package ai

import (
	"context"

	"parley/internal/audio"
)

// Recognizer turns what is heard into text. It is safe for concurrent use.
type Recognizer interface {
	// Listen opens an ear for one call. Nothing is heard, and nothing need be running, until the first Write. The
	// error is an *Error, unless ctx has ended: then it is context.Cause(ctx). When ctx ends the ear closes itself.
	Listen(ctx context.Context, h Hearing) (Ear, error)
}

// Hearing is what is listened for.
type Hearing struct {
	Language string     // ISO 639-1
	Rate     audio.Rate // of the frames
	Keywords []string   // words to be heard better, where the vendor knows how
}

// Ear hears one call, utterance by utterance: who listens decides where one begins and ends. Its methods are called
// by one goroutine at a time, never block and never allocate per frame. Once the ear has closed, they do nothing. An
// utterance is bounded (60 s): what is said beyond that is not heard.
//
// An ear whose connection is lost closes its Transcripts: another is opened then. A limit of the vendor's that is known
// beforehand, as of a session's length, the ear crosses by itself.
type Ear interface {
	// Write takes the next sound, of any length; the slice may be used until Write returns. What follows an End, or
	// nothing yet, begins an utterance.
	Write(pcm []int16)
	// End says that the utterance is over. Exactly one final Transcript follows for each End (unless the ear closes
	// first), in order; its text is what was said since the former End, "" where nothing was understood. An utterance
	// may begin while the former one's text is still being found. A vendor that can be asked to finish is asked to;
	// one that can't is answered for with what it has understood up to here.
	End()
	// Continuous says whether Write is to be given all that is heard from the call's beginning on, silence too: the
	// vendor finds turns by itself, and End stops nothing. Otherwise Write is given utterances alone, and the ear keeps
	// its connection alive between them. It is the same for as long as the ear is open.
	Continuous() bool
	// Transcripts is what is understood, as it comes; it is closed when the ear is.
	Transcripts() <-chan Transcript
	// Close ends what is under way, and returns when nothing is left running.
	Close()
}

// Transcript is what was understood of an utterance, or of the turn that it is a part of.
type Transcript struct {
	Utterance int    // counts the utterances of the ear, from 0
	Text      string // of the whole utterance so far, not of the vendor's turn; "" where only Turn is told
	Final     bool
	Err       error // an *Error: the utterance was lost; it is final then, and the ear goes on with the next one
	// Turn is what an ear that finds turns says of the present one, with the text as it then is; "" for nothing. The
	// utterance is the one that was under way in the sound which the vendor speaks of, or the latest that it can be.
	Turn Turn
}

// Turn is what an ear says of who has the word. A turn is started, may be thought to be over and then go on any number
// of times, and has ended.
type Turn string

// What is said of turns, in the order in which it may be: Started, then Eager, Resumed, Eager, … as often as may be, then
// Ended, with or without an Eager right before it.
const (
	TurnStarted Turn = "started" // somebody has begun to speak
	TurnEager   Turn = "eager"   // they may have finished: a reply can be thought of
	TurnResumed Turn = "resumed" // they had not
	TurnEnded   Turn = "ended"   // they have
)
