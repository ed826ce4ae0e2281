package ai

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Recognizer understands speech. It is safe for concurrent use.
type Recognizer interface {
	// Listen begins to hear one person, until ctx ends or the Hearing is closed. It doesn't wait for the vendor: what is said meanwhile is
	// kept. The error is an *Error, unless ctx has ended.
	Listen(ctx context.Context, l Listening) (Hearing, error)
}

// Listening is how a person is to be heard.
type Listening struct {
	Rate     int      // Hz of what will be written: 8000 or 16000
	Language string   // ISO 639-1; "" leaves it to the vendor
	Keywords []string // words to be heard better, by vendors that can
}

// Hearing hears one person. Who speaks is cut into utterances by who writes. Write and Finish come from one goroutine, Next from one, which
// may be another; Close may come from anywhere, and must.
type Hearing interface {
	// Write takes the next samples, mono 16-bit PCM. It never waits and keeps nothing of the slice. An error means that the hearing is
	// over, for the reason that Next gives.
	Write(pcm []int16) error
	// Finish ends an utterance, where the person has fallen silent: exactly one Heard with Final follows for it, also when nothing was
	// said. It never waits; the next Write begins the next utterance.
	Finish() error
	// Next waits for what was heard. The error ends the hearing: an *Error, context.Cause of Listen's context, or ErrClosed.
	Next() (Heard, error)
	// Close ends the hearing and waits until nothing of it is left running.
	Close() error
}

// Heard is the text of an utterance as far as it was understood: lower case or as the vendor writes it, "" where nothing was.
type Heard struct {
	Text string
	// Final says that it is the whole utterance's; until then each Heard replaces the one before.
	Final bool
}

// ErrClosed is what a Hearing answers after Close.
var ErrClosed = errors.New("the hearing is closed")

const (
	maxBehind = 15 * time.Second // of sound that a recognizer may be behind
	maxEnds   = 32               // utterances that it may be behind
)

// Intake is where a vendor's side of a Hearing gets its sound. The side of who writes is the Hearing that Hear returns.
type Intake struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  int           // samples
	done   chan struct{} // closed when the vendor's side has returned

	mu    sync.Mutex
	pcm   []int16 // written, not yet taken
	ends  []int   // where in pcm utterances end, ascending
	heard []Heard // not yet fetched by Next; only the last may be no Final
	err   error   // why it is over

	filled, spoken chan struct{} // something was written; something was heard
}

// Hear makes a Hearing of a vendor's side: run takes sound and tells what it heard until Take fails, whose error it returns. What it starts
// has ended when it returns.
func Hear(ctx context.Context, rate int, run func(ctx context.Context, in *Intake) error) Hearing {
	ctx, cancel := context.WithCancelCause(ctx)
	in := &Intake{ctx: ctx, cancel: cancel, limit: int(maxBehind.Seconds()) * rate, done: make(chan struct{}),
		filled: make(chan struct{}, 1), spoken: make(chan struct{}, 1)}
	go func() {
		defer close(in.done)
		err := run(ctx, in)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = &Error{Kind: Interrupted, Err: errors.New("the recognizer stopped listening")}
		}
		in.fail(err)
		cancel(err)
	}()
	return (*hearing)(in)
}

// Take waits for sound and moves some of it to the beginning of dst, all of one utterance. end says that the utterance ends after it. The
// error says that the hearing is over.
func (in *Intake) Take(dst []int16) (n int, end bool, err error) {
	for {
		in.mu.Lock()
		if in.ctx.Err() == nil && (len(in.pcm) > 0 || len(in.ends) > 0) {
			have := in.pcm
			if len(in.ends) > 0 {
				have = have[:in.ends[0]]
			}
			n = copy(dst, have)
			end = len(in.ends) > 0 && n == in.ends[0]
			if end {
				in.ends = in.ends[:copy(in.ends, in.ends[1:])]
			}
			for i := range in.ends {
				in.ends[i] -= n
			}
			in.pcm = in.pcm[:copy(in.pcm, in.pcm[n:])]
			in.mu.Unlock()
			return n, end, nil
		}
		in.mu.Unlock()
		select {
		case <-in.filled:
		case <-in.ctx.Done():
			return 0, false, context.Cause(in.ctx)
		}
	}
}

// Tell hands over what was heard. A text that is not final takes the place of one before it that nobody has fetched.
func (in *Intake) Tell(h Heard) {
	in.mu.Lock()
	if last := len(in.heard) - 1; last >= 0 && !in.heard[last].Final {
		in.heard[last] = h
	} else {
		in.heard = append(in.heard, h) // as many as ends were taken, and one: maxEnds bounds those that are not fetched
	}
	in.mu.Unlock()
	wake(in.spoken)
}

func (in *Intake) fail(err error) {
	in.mu.Lock()
	if in.err == nil {
		in.err = err
		if in.ctx.Err() != nil { // from outside: nobody wants to know any more
			in.heard = nil
		}
	}
	in.mu.Unlock()
	wake(in.spoken)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// hearing is the writer's side of an Intake.
type hearing Intake

func (h *hearing) Write(pcm []int16) error {
	return h.add(func() error {
		if len(h.pcm)+len(pcm) > h.limit {
			return fmt.Errorf("it is more than %v behind", maxBehind)
		}
		h.pcm = append(h.pcm, pcm...)
		return nil
	})
}

func (h *hearing) Finish() error {
	return h.add(func() error {
		if len(h.ends)+len(h.heard) >= maxEnds {
			return fmt.Errorf("it is %d utterances behind", maxEnds)
		}
		h.ends = append(h.ends, len(h.pcm))
		return nil
	})
}

func (h *hearing) add(put func() error) error {
	h.mu.Lock()
	err := h.err
	if err == nil && h.ctx.Err() != nil {
		err = context.Cause(h.ctx)
	}
	if err == nil {
		if behind := put(); behind != nil {
			err = &Error{Kind: Stalled, Err: fmt.Errorf("recognizer: %w", behind)}
			h.err = err
			defer h.cancel(err)
		}
	}
	h.mu.Unlock()
	if err == nil {
		wake(h.filled)
	}
	return err
}

// Next gives what was heard before the vendor failed, then why it did.
func (h *hearing) Next() (Heard, error) {
	for {
		h.mu.Lock()
		if len(h.heard) > 0 && (h.ctx.Err() == nil || h.err != nil) {
			first := h.heard[0]
			h.heard = h.heard[:copy(h.heard, h.heard[1:])]
			h.mu.Unlock()
			return first, nil
		}
		err := h.err
		h.mu.Unlock()
		if err != nil {
			wake(h.spoken) // the next Next finds it too
			return Heard{}, err
		}
		select {
		case <-h.spoken:
		case <-h.ctx.Done():
			(*Intake)(h).fail(context.Cause(h.ctx))
		}
	}
}

func (h *hearing) Close() error {
	h.cancel(ErrClosed)
	<-h.done
	return nil
}
