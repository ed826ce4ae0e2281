package ai

import (
	"context"

	"parley/internal/audio"
)

// Recognizer turns speech into text. It is safe for concurrent use.
type Recognizer interface {
	// Listen opens a recognizer for one call. Nothing is heard, and nothing need be running, before the first Write. The
	// error is an *Error, unless ctx has ended: then it is context.Cause(ctx). When ctx ends the recognizer closes itself.
	Listen(ctx context.Context, h Hearing) (Recognition, error)
}

// Hearing describes what to listen for.
type Hearing struct {
	Language string     // ISO 639-1
	Others   []string   // further languages that may be spoken: a recognizer that knows how tells which one it heard
	Rate     audio.Rate // of the frames
	Keywords []string   // words to be heard better, where the vendor knows how
}

// Recognition hears one call, utterance by utterance: its user decides where one begins and ends. Its methods are called by one
// goroutine at a time, never block and never allocate per frame. Once the recognizer has closed, they do nothing. An utterance
// is bounded (60 s): anything said beyond that is not heard.
//
// A recognizer whose connection is lost closes its Transcripts; the user then opens another. A recognizer handles vendor limits
// that are known in advance, such as a session's length, by itself.
type Recognition interface {
	// Write takes the next audio, of any length; the slice may be used until Write returns. Audio after an End, or the
	// very first, begins an utterance.
	Write(pcm []int16)
	// End says that the utterance is over. Exactly one final Transcript follows for each End (unless the recognizer closes
	// first), in order; its text is what was said since the previous End, "" if nothing was understood. An utterance
	// may begin while the text of the previous one is still awaited. If the vendor can be asked to finish, it is; if
	// not, the recognizer answers with what it has understood so far.
	End()
	// Continuous reports whether Write must be given all audio from the call's beginning on, including silence: the
	// vendor finds turns by itself, and End stops nothing. Otherwise Write is given only utterances, and the recognizer keeps
	// its connection alive between them. It doesn't change while the recognizer is open.
	Continuous() bool
	// Transcripts is what is understood, as it comes; it is closed when the recognizer is.
	Transcripts() <-chan Transcript
	// Close ends what is under way, and returns when nothing is left running.
	Close()
}

// Transcript is what was understood of an utterance, or of the turn that it is part of.
type Transcript struct {
	Utterance int    // counts the utterances of the recognizer, from 0
	Text      string // of the whole utterance so far, not of the vendor's turn; "" where only Turn is told
	Language  string // in which most of it was said, ISO 639-1, where Others were asked for and the recognizer knows; else ""
	// NoSpeech is how likely nobody spoke, as a recognizer that knows says beside the text, from 0 to 1; 0 where it doesn't say.
	NoSpeech float64
	Final    bool
	Err      error // an *Error: the utterance was lost; it is final then, and the recognizer goes on with the next one
	// Turn is what a recognizer that finds turns says about the current one, with the text as it then is; "" for nothing. The
	// utterance is the one under way in the audio that the vendor refers to, or the latest that it can be.
	Turn Turn
}

// Turn is what a recognizer says about the customer's turn. A turn starts, may be thought to be over and then go on any
// number of times, and ends.
type Turn string

// The turn events, in the order in which they may come: Started, then Eager, Resumed, Eager, … any number of times,
// then Ended, with or without an Eager right before it.
const (
	TurnStarted Turn = "started" // somebody has begun to speak
	TurnEager   Turn = "eager"   // they may have finished: a reply can be thought of
	TurnResumed Turn = "resumed" // they had not
	TurnEnded   Turn = "ended"   // they have
)

// Teller is an Recognition that knows what to tell an assistant's owner about its vendor's failures.
type Teller interface{ Told(err error) error }

// ToldBy is the error of a transcript as its recognizer's owner is told it.
func ToldBy(e Recognition, err error) error {
	if t, ok := e.(Teller); ok && err != nil {
		return t.Told(err)
	}
	return err
}
