package ai

import (
	"context"
	"time"

	"parley/internal/audio"
)

// Synthesizer speaks. It is safe for concurrent use, and comparable: a cache keys audio by it.
type Synthesizer interface {
	// Speak says texts in one voice, one after the other as they come, until texts is closed, and blocks until all of
	// their audio is there. Each text is a sentence or a clause that is ready to be said: nothing is gained by holding
	// it back. Audio goes to yield as it arrives, in order and from the calling goroutine; yield must not keep it. A
	// slow yield slows the vendor down if its protocol allows that; otherwise audio is buffered, within bounds. A text
	// with nothing to say yields only its Last. Nothing is asked of the vendor before the first text.
	//
	// A Synthesizer reads the next text when it can take it, which may be long after it was offered, and reads nothing
	// once Speak has returned, so the sender must stop then.
	//
	// The error is an *Error, unless ctx ended or yield refused: then it is context.Cause(ctx), or yield's error. It
	// concerns the first text whose Last was not yielded; those before it are complete. When ctx ends the vendor is
	// told to stop, so that nothing more is made or paid for. When Speak returns, nothing of the request is left
	// running; a connection may be kept for the next one.
	Speak(ctx context.Context, as Speech, texts <-chan string, yield func(Sound) error) error
}

// Reader is what a Synthesizer may be that reads numbers, dates and amounts as people do. Any other is given them in
// words.
type Reader interface {
	// Reads reports whether it reads them as they are written.
	Reads() bool
}

// Reads reports whether a synthesizer, or what it is made of, reads numbers, dates and amounts as they are written.
func Reads(s any) bool {
	r, ok := s.(Reader)
	return ok && r.Reads()
}

// Speech is how something is said.
type Speech struct {
	Voice    string     // the vendor's own name of the voice
	Language string     // ISO 639-1
	Rate     audio.Rate // of the sound that is wanted
	Speed    float64    // 1 is the voice's own; 0 counts as 1
	// Stability and Similarity are 0 to 1, for vendors that have such settings.
	Stability, Similarity float64
}

// Sound is a piece of speech audio.
type Sound struct {
	Text  int     // which of the texts it is of, from 0; it never goes back
	PCM   []int16 // of any length; empty where there are only Words or Last to be told
	Words []Word  // the times that have become known, where the vendor tells them
	Last  bool    // all of this text's sound and words are there: each text has exactly one Last, in order
}

// Word says that the first Until octets of a text have been said at At, counted from the text's first sample. Over the
// words of a text Until grows, and At never falls.
type Word struct {
	Until int
	At    time.Duration
}

// Plain is a vendor that takes one whole text at a time.
type Plain interface {
	// Say turns a text into audio and blocks until all of it is there, as Synthesizer's Speak does for one text. It
	// yields no empty pieces, and nothing for a text with nothing to say.
	Say(ctx context.Context, as Speech, text string, yield func(pcm []int16) error) error
}

// Streamed makes a Synthesizer from a vendor that takes one text at a time. Those of equal vendors are equal.
func Streamed(p Plain) Synthesizer { return streamed{p} }

type streamed struct{ Plain }

// Reads implements Reader.
func (s streamed) Reads() bool { return Reads(s.Plain) }

// Speak implements Synthesizer.
func (s streamed) Speak(ctx context.Context, as Speech, texts <-chan string, yield func(Sound) error) error {
	for i := 0; ; i++ {
		text, ok, err := next(ctx, texts)
		if !ok {
			return err
		}
		err = s.Say(ctx, as, text, func(pcm []int16) error { return yield(Sound{Text: i, PCM: pcm}) })
		if err == nil {
			err = yield(Sound{Text: i, Last: true})
		}
		if err != nil {
			return err
		}
	}
}

// next waits for a text; it is false when there are no more, or ctx has ended.
func next(ctx context.Context, texts <-chan string) (text string, ok bool, err error) {
	if ctx.Err() != nil {
		return "", false, context.Cause(ctx)
	}
	select {
	case text, ok = <-texts:
		return text, ok, nil
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
	}
}

// Say has one text spoken, and yields only its audio.
func Say(ctx context.Context, s Synthesizer, as Speech, text string, yield func(pcm []int16) error) error {
	texts := make(chan string, 1)
	texts <- text
	close(texts)
	return s.Speak(ctx, as, texts, func(sound Sound) error {
		if len(sound.PCM) == 0 {
			return nil
		}
		return yield(sound.PCM)
	})
}
