package ai

import (
	"context"

	"parley/internal/audio"
)

// Synthesizer speaks. It is safe for concurrent use.
type Synthesizer interface {
	// Speak turns a text into sound and blocks until all of it is there. What arrives goes to yield at once, in order
	// and from the calling goroutine, in pieces of any length; yield may keep nothing of a piece, and a slow yield
	// slows the vendor down. A text that is nothing to be said yields nothing.
	//
	// The error is an *Error, unless ctx ended or yield refused: then it is context.Cause(ctx), or yield's error.
	// When Speak returns, nothing of the request is left running.
	Speak(ctx context.Context, s Speech, yield func(pcm []int16) error) error
}

// Speech is what is to be said, and how.
type Speech struct {
	Text     string
	Voice    string     // the vendor's own name of the voice
	Language string     // ISO 639-1
	Rate     audio.Rate // of the sound that is wanted
	Speed    float64    // 1 is the voice's own; 0 counts as 1
	// Stability and Similarity are 0 to 1, for the vendors that have such.
	Stability, Similarity float64
}
