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
type Ear interface {
	// Write takes the next sound of the present utterance, of any length; the slice may be used until Write returns.
	// The first one after End, and the first of all, begin an utterance.
	Write(pcm []int16)
	// End says that the utterance is over. Exactly one final Transcript follows for each End (unless the ear closes
	// first), in order; its text is "" where nothing was understood. An utterance may begin while the former one's
	// text is still being found.
	End()
	// Transcripts is what is understood, as it comes; it is closed when the ear is.
	Transcripts() <-chan Transcript
	// Close ends what is under way, and returns when nothing is left running.
	Close()
}

// Transcript is what was understood of an utterance.
type Transcript struct {
	Utterance int    // counts the utterances of the ear, from 0
	Text      string // of the whole utterance so far
	Final     bool
	Err       error // an *Error: the utterance was lost; it is final then, and the ear goes on with the next one
}
