package voice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/turn"
)

var (
	errNoSound = errors.New("the synthesizer gave no sound")
	// what it was given is not all there, and it says that nothing is wrong
	errUnfinished = errors.New("the synthesizer stopped before all was said")
	errStalled    = errors.New("the synthesizer sent nothing for too long")
	errLost       = errors.New("the recognizer is gone")
	errLate       = errors.New("the session was held up")
	errPanic      = errors.New("the session panicked")
)

// Prepare makes the greeting's audio before the call is answered and keeps it in the Cache, so that it can be played at
// once. An error means that the voice doesn't work; the call may still be tried.
func (s *Session) Prepare(ctx context.Context, rate audio.Rate) error {
	p := &s.Persona
	if s.Cache == nil {
		s.Cache = new(Cache)
	}
	if p.Assistant == nil || p.Synthesizer == nil {
		return fmt.Errorf("prepare a greeting: %w", errNoSound)
	}
	m := newSynthesis(nil, *p, rate)
	key, ok := m.key(m.spoken(p.Initial))
	if key.text == "" || !ok {
		return nil
	}
	if err := s.Cache.load(ctx, p.Synthesizer, key); err != nil {
		return fmt.Errorf("prepare a greeting: %w", err)
	}
	return nil
}

// Run holds the conversation and blocks until it is over: the far end left, the session hung up, or ctx ended. After
// that nothing is left running. It starts the leg, and the time since the answer counts from here. A session runs once.
func (s *Session) Run(ctx context.Context, leg audio.Leg) Result {
	p := s.Persona
	if s.Line == nil && !p.complete() {
		return Result{Reason: parley.ProviderFailure, AnsweredBy: parley.AnsweredUnknown,
			Turns: []parley.CallTurn{}, Err: errIncomplete}
	}
	if s.Cache == nil {
		s.Cache = new(Cache)
	}
	r := &run{
		Session: s, leg: leg, rate: leg.Rate(), clock: clock{start: time.Now()}, inbox: newInbox(),
		frames: make(chan *frame, maxFrames), free: make(chan *frame, maxFrames),
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	r.out.rate = r.rate
	r.owned = owned{
		m: turn.New(r.mannerOf(&p)), transcript: transcript{out: &r.out, tell: s.Tell, late: map[string]string{}},
		before:     make([]*frame, 0, preroll/audio.FrameTime),
		answeredBy: parley.AnsweredUnknown,
	}
	return r.hold(ctx)
}

// run is a session under way.
type run struct {
	*Session
	ctx    context.Context // the call's
	cancel context.CancelCauseFunc
	leg    audio.Leg
	rate   audio.Rate
	clock  clock
	wg     sync.WaitGroup // all that was started, but for the owner

	peer      peer
	recording *Recording // nil for none
	out       playout
	inbox     *inbox
	frames    chan *frame // on their way to the owner
	free      chan *frame // and back
	ticked    atomic.Bool // since the owner looked

	owned
}

// owned is what only the owner touches.
type owned struct {
	m          *turn.Machine
	over       bool     // it has said its last word
	utterances int      // that the recognizer was opened for
	open       bool     // the recognizer hears
	before     []*frame // what was heard before it does: the newest
	notes      []note

	cast       *cast // who listens and speaks; nil as long as nobody does
	next       *cast // who does when the present reply has been heard
	transcript transcript
	reply      *answer       // the present one
	final      time.Duration // when the last final text came

	met          []int64         // assistants that have introduced themselves
	busy         <-chan struct{} // closed when the latest thinking, and the tools that it ran, have come to their end
	drained      chan struct{}   // tells who waits for the present reply to be played
	collected    chan keys       // and who waits for keys
	transferring chan struct{}   // closed when a transfer that is under way has come to something
	bridge       *bridge         // others who are in the call; nil: there were none
	joined       bool            // with somebody who talks with the customer; the assistant has left
	lines        []Line          // of all others
	guests       []*Guest        // of these: who take part
	passing      bool            // the customer is being transferred
	asides       asides
	asyncs       []*asyncCall // asynchronous tools that run
	asyncNo      int          // how many have been started

	reason     parley.EndedReason
	answeredBy parley.AnsweredBy
	verdicts   []parley.CallVerdict
	usage      ai.Usage
	eager      Eager
	judging    judging
	missed     bool // a reply that was begun early has been given up since the last answer
	errs       []error
	broken     struct{ fatal, thought, heard error } // what failed and has not worked since
}

// hold runs the call from its answer to its end.
func (r *run) hold(ctx context.Context) Result {
	p := r.Persona
	r.peer.init(r)
	if r.Record != nil {
		rec, err := NewRecording(r.Record, r.rate)
		if err != nil {
			r.noted(fmt.Errorf("begin the recording: %w", err)) // the call goes on without
		} else {
			r.recording = rec
		}
	}
	go r.own()
	r.held.Store(r)
	legErr := r.converse(p)
	over := parley.Now()

	var transfer chan struct{}
	r.inbox.ask(func() {
		if !r.over {
			transfer = r.transferring
		}
	})
	if transfer != nil { // the far end may leave because it was sent elsewhere
		select {
		case <-transfer:
		case <-time.After(transferTime):
		case <-ctx.Done():
		}
	}
	r.inbox.ask(func() {
		if !r.over {
			r.step(turn.Event{Kind: turn.End, Reason: r.endReason(ctx, legErr)})
		}
		r.finish()
	})
	r.part()
	recorded := error(nil)
	if r.recording != nil {
		recorded = r.recording.Close()
	}
	r.wg.Wait()
	r.inbox.ask(r.abandon)
	r.inbox.ask(r.transcript.close)
	r.inbox.close()
	<-r.inbox.done
	if recorded != nil {
		r.noted(fmt.Errorf("record the call: %w", recorded))
	}
	if r.peer.lost > 0 {
		r.noted(fmt.Errorf("%d frames of the customer's were not listened to: %w", r.peer.lost, errLate))
	}
	return Result{
		Reason: r.reason, Turns: r.transcript.turns(), Calls: r.transcript.calls(), AnsweredBy: r.answeredBy, Verdicts: r.verdicts,
		Usage: r.usage, Eager: r.eager,
		Err:     errors.Join(r.errs...),
		Failure: r.failure(),
		Torn:    torn(legErr),
		Over:    over,
	}
}

// torn is the error of a leg that has something to tell its owner.
func torn(err error) error {
	if parley.Explanation(err) == "" {
		return nil
	}
	return err
}

// finish ends everything that is under way.
func (r *run) finish() {
	r.out.clear()
	r.cancel(r.reason)
	if r.cast != nil {
		r.cast.leave()
	}
	if r.next != nil {
		r.next.leave()
	}
}

// failure is the vendor failure that ended the call, nil if there was none. A single utterance that was not understood
// does not break a call, unless nothing ever was.
func (r *run) failure() error {
	switch b := &r.broken; {
	case b.fatal != nil:
		return b.fatal
	case b.thought != nil:
		return b.thought
	case r.reason == parley.ProviderFailure || !r.transcript.heardWords():
		return b.heard
	}
	return nil
}

// transferTime is how long a far end that left in the middle of a transfer may take to report that it got there.
const transferTime = 2 * time.Second

// converse opens the recognizer, begins, and runs the leg until it ends.
func (r *run) converse(p Persona) (err error) {
	defer r.escaped()
	if r.Line != nil {
		r.connect(r.Line)
	} else {
		first, err := r.engage(p)
		if err != nil {
			r.fail(fmt.Errorf("open an ear: %w", err))
			return nil
		}
		r.inbox.ask(func() {
			r.enter(first)
			r.met = append(r.met, p.Assistant.ID)
			r.do(r.m.Start(r.clock.now()))
		})
	}
	// A leg that doesn't tick has no time. The call must end all the same.
	limit := time.AfterFunc(time.Duration(p.Assistant.MaxDuration)*time.Second+time.Second, func() {
		r.happens(turn.Event{Kind: turn.End, Reason: parley.MaxDuration})
	})
	defer limit.Stop()
	return r.leg.Run(r.ctx, &r.peer)
}

// endReason says why a call is over that the session didn't end.
func (r *run) endReason(ctx context.Context, legErr error) parley.EndedReason {
	if reason, ok := errors.AsType[parley.EndedReason](context.Cause(ctx)); ok {
		return reason
	}
	if crash.Is(legErr) {
		r.noted(fmt.Errorf("the leg: %w", legErr))
	}
	if reason, ok := errors.AsType[parley.EndedReason](legErr); ok {
		if reason == parley.CustomerHangup {
			return r.hangup()
		}
		return reason
	}
	switch {
	case ctx.Err() != nil:
		return parley.Shutdown
	case legErr == nil:
		return r.hangup()
	}
	r.errs = append(r.errs, fmt.Errorf("the leg: %w", legErr))
	return parley.MediaTimeout
}

// hangup is the reason of a call that the customer ended: one who was talking with somebody else had been transferred.
func (r *run) hangup() parley.EndedReason {
	if r.joined {
		return parley.Transferred
	}
	return parley.CustomerHangup
}
