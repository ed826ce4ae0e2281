package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
)

// Protocol is a vendor's listening protocol on one Conn. Its methods are called by one goroutine, the Recognition's. An error
// closes the recognizer.
type Protocol interface {
	// Sound sends a piece of sound: samples of 16 bits, the lower octet first.
	Sound(raw []byte) error
	// End is called when an utterance has ended and all its sound was sent. A vendor that can finalize is asked to.
	// lost is not nil if part of the utterance could not be sent: its final transcript then has this error.
	End(lost error) error
	// Message takes a message of the vendor's; it may be used until Message returns.
	Message(data []byte, text bool) error
	// Tick is called after every event, and when nothing has happened for as long as its last call asked for. It
	// settles utterances that the vendor doesn't answer, and keeps the connection alive.
	Tick(now time.Time) (next time.Duration, err error)
	// Waits names the oldest utterance without a final transcript, and says whether it has ended.
	Waits() (utterance int, ok bool)
	// Bye says goodbye to the vendor.
	Bye()
}

// Recognition is an ai.Recognition that sends audio on a Conn, by a vendor's Protocol. It closes with the Conn.
type Recognition struct {
	conn       *Conn
	protocol   Protocol
	tape       *audio.Tape
	rate       audio.Rate
	continuous bool
	cut        bool // the connection failed while the end of an utterance was sent

	ctx    context.Context
	cancel context.CancelCauseFunc
	out    chan ai.Transcript
	done   chan struct{}
}

// RecognitionOptions are how an Recognition listens.
type RecognitionOptions struct {
	Rate       audio.Rate
	Continuous bool
	Piece      time.Duration // of sound that is sent at once
}

const (
	// tapeTime is how far the vendor may lag behind the speaker. Sound that doesn't fit is lost.
	tapeTime = 20 * time.Second
	// maxUtterance is how much of an utterance is sent. The rest is not transcribed.
	maxUtterance = 60 * time.Second
)

// maxTold is how many transcripts may wait for the recognizer's user. When there are more, partial ones are dropped.
const maxTold = 64

// NewRecognition makes an Recognition, and the Protocol that speaks for it. It closes with ctx.
func NewRecognition(ctx context.Context, c *Conn, o RecognitionOptions, protocol func(*Recognition) Protocol) *Recognition {
	limit := maxUtterance
	if o.Continuous {
		limit = 0
	}
	e := &Recognition{conn: c, tape: audio.NewTape(o.Rate, tapeTime, o.Piece, limit), rate: o.Rate, continuous: o.Continuous,
		out: make(chan ai.Transcript, maxTold), done: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	e.protocol = protocol(e)
	go e.run()
	return e
}

// Write implements ai.Recognition.
func (e *Recognition) Write(pcm []int16) { e.tape.Write(pcm) }

// End implements ai.Recognition.
func (e *Recognition) End() {
	if e.ctx.Err() == nil {
		e.tape.End()
	}
}

// Continuous implements ai.Recognition.
func (e *Recognition) Continuous() bool { return e.continuous }

// Transcripts implements ai.Recognition.
func (e *Recognition) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Recognition.
func (e *Recognition) Close() {
	e.cancel(ErrClosed)
	<-e.done
}

// Tell passes on a transcript. The Protocol calls it.
func (e *Recognition) Tell(t ai.Transcript) {
	if !t.Final && t.Turn == "" {
		select {
		case e.out <- t:
		default: // there will be another
		}
		return
	}
	select {
	case e.out <- t:
	case <-e.ctx.Done():
	}
}

// run talks to the vendor until the recognizer or the connection is closed.
func (e *Recognition) run() {
	defer close(e.done)
	defer close(e.out)
	in, taken := make(chan message), make(chan struct{})
	var reading sync.WaitGroup
	crash.Go(&reading, func() { e.receive(in, taken) }, func(err error) {
		select {
		case in <- message{err: err}:
		case <-e.ctx.Done():
		}
	})
	err := crash.Run(func() error { return e.follow(in, taken) })
	if e.ctx.Err() != nil {
		e.protocol.Bye()
	} else if err != nil && !errors.Is(err, ErrClosed) {
		e.fail(err)
	}
	e.cancel(err)
	e.conn.Close()
	reading.Wait()
}

type message struct {
	data []byte
	text bool
	err  error
}

// receive passes every message to the recognizer's goroutine, and waits until it has been handled.
func (e *Recognition) receive(in chan<- message, taken <-chan struct{}) {
	for {
		var m message
		m.data, m.text, m.err = e.conn.Receive()
		select {
		case in <- m:
		case <-e.ctx.Done():
			return
		}
		if m.err != nil {
			return
		}
		select {
		case <-taken:
		case <-e.ctx.Done():
			return
		}
	}
}

func (e *Recognition) follow(in <-chan message, taken chan<- struct{}) error {
	var b buffer
	next, err := e.protocol.Tick(time.Now())
	if err != nil {
		return err
	}
	t := time.NewTimer(next)
	defer t.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return context.Cause(e.ctx)
		case m := <-in:
			if m.err != nil {
				return m.err
			}
			if err := e.protocol.Message(m.data, m.text); err != nil {
				return err
			}
			select {
			case taken <- struct{}{}:
			case <-e.ctx.Done():
			}
		case <-e.tape.Wake():
			if err := e.send(&b); err != nil {
				return err
			}
		case <-t.C:
		}
		next, err := e.protocol.Tick(time.Now())
		if err != nil {
			return err
		}
		t.Reset(next)
	}
}

// buffer holds the piece that is being sent.
type buffer struct {
	pcm []int16
	raw []byte
}

// send sends the waiting sound.
func (e *Recognition) send(b *buffer) error {
	for e.ctx.Err() == nil {
		p, ok := e.tape.Next(b.pcm[:0])
		b.pcm = p.PCM
		if !ok {
			return nil
		}
		e.cut = p.End
		if len(p.PCM) > 0 {
			b.raw = b.raw[:0]
			for _, s := range p.PCM {
				b.raw = binary.LittleEndian.AppendUint16(b.raw, uint16(s))
			}
			if err := e.protocol.Sound(b.raw); err != nil {
				return err
			}
		}
		if !p.End {
			continue
		}
		var lost error
		if p.Lost > 0 {
			lost = &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("%v of sound could not be sent",
				time.Duration(p.Lost)*time.Second/time.Duration(e.rate))}
		}
		if err := e.protocol.End(lost); err != nil {
			return err
		}
		e.cut = false
	}
	return nil
}

// fail reports why the awaited utterance is lost. The recognizer then closes.
func (e *Recognition) fail(err error) {
	if n, ok := e.protocol.Waits(); ok || e.cut || e.tape.Ending() {
		e.Tell(ai.Transcript{Utterance: n, Final: true, Err: err})
	}
}
