package voice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
	"parley/internal/turn"
)

var (
	errNoSound = errors.New("the synthesizer gave no sound")
	errStalled = errors.New("the synthesizer sent nothing for too long")
	errLost    = errors.New("the recognizer is gone")
	errPanic   = errors.New("the session panicked")
)

// Prepare makes the greeting's sound before the call is answered, and keeps it in the Cache: a greeting that is there is heard at once.
// An error says that the voice doesn't work; the call may be tried all the same.
func (s *Session) Prepare(ctx context.Context, rate audio.Rate) error {
	p := &s.Persona
	if s.Cache == nil {
		s.Cache = new(Cache)
	}
	if p.Assistant == nil || p.Synthesizer == nil {
		return fmt.Errorf("prepare a greeting: %w", errNoSound)
	}
	m := newMouth(*p, rate)
	speech := m.speech(lang.Speakable(p.Initial, p.Language, m.pronounced))
	key, ok := keyOf(p.Synthesizer, speech)
	if speech.Text == "" || !ok {
		return nil
	}
	if err := s.Cache.load(ctx, key); err != nil {
		return fmt.Errorf("prepare a greeting: %w", err)
	}
	return nil
}

// Run holds the conversation, and blocks until it is over: the far end left, the session hung up, or ctx ended. Then nothing is left
// running. It starts the leg, and the time since the answer counts from here. A session runs once.
func (s *Session) Run(ctx context.Context, leg audio.Leg) Result {
	p := s.Persona
	if p.Assistant == nil || p.Think == nil || p.Synthesizer == nil || p.Recognizer == nil {
		return Result{Reason: parley.ProviderFailure, AnsweredBy: parley.AnsweredUnknown, Turns: []parley.CallTurn{},
			Err: errors.New("the persona has no assistant, brain, voice or ear")}
	}
	if s.Cache == nil {
		s.Cache = new(Cache)
	}
	r := &run{Session: s, leg: leg, rate: leg.Rate(), start: time.Now(), answeredBy: parley.AnsweredUnknown}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	r.book = book{rate: r.rate, tell: s.Tell}
	r.m = turn.New(r.mannerOf(&p))
	return r.hold(ctx)
}

// run is a session under way. Whatever happens takes the lock, steps the machine, and does what it says.
type run struct {
	*Session
	ctx    context.Context // the call's
	cancel context.CancelCauseFunc
	leg    audio.Leg
	rate   audio.Rate
	start  time.Time
	wg     sync.WaitGroup // all that was started

	mu     sync.Mutex
	ticked time.Duration // since start: when the leg last ticked
	stood  time.Duration // how long it stood still so far

	m          *turn.Machine
	over       bool   // it has said its last word
	utterances int    // that it opened the ear for
	mouth      *mouth // who speaks
	ear        *hearing
	out        playout
	book       book
	reply      *answer // the present one
	next       *heir   // who speaks after it

	met          []int64 // assistants that have introduced themselves
	thinking     *thinking
	drained      chan struct{} // tells who waits for the present reply to be played
	collected    chan keys     // and who waits for keys
	transferring chan struct{} // closed when a transfer that is under way has come to something
	asides       asides

	peer       peer
	recording  *recording
	reason     parley.EndedReason
	answeredBy parley.AnsweredBy
	usage      ai.Usage
	errs       []error
	broken     struct{ fatal, thought, heard error } // what failed and has not worked since
}

// hold is the call from its answer to its end.
func (r *run) hold(ctx context.Context) Result {
	p := r.Persona
	r.mouth = newMouth(p, r.rate)
	r.peer.init(r)
	if r.Record != nil {
		rec, err := newRecording(r.Record, r.rate, &r.wg)
		if err != nil {
			r.note(fmt.Errorf("begin the recording: %w", err)) // the call goes on without
		} else {
			r.recording = rec
		}
	}
	legErr := r.converse(p)

	r.mu.Lock()
	transfer, over := r.transferring, r.over
	r.mu.Unlock()
	if transfer != nil && !over { // the far end may leave because it was sent elsewhere
		select {
		case <-transfer:
		case <-time.After(transferTime):
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	if !r.over {
		r.step(turn.Event{Kind: turn.End, Reason: r.verdict(ctx, legErr)})
	}
	r.out.clear()
	ear, heir, reason := r.ear, r.next, r.reason
	r.mu.Unlock()
	r.cancel(reason)
	if ear != nil {
		ear.Close()
	}
	if heir != nil {
		heir.ear.Close()
	}
	if r.recording != nil {
		r.recording.close()
	}
	r.wg.Wait()
	if r.recording != nil && r.recording.err != nil {
		r.note(fmt.Errorf("record the call: %w", r.recording.err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.book.settle()
	return Result{
		Reason: r.reason, Turns: r.book.turns(), Calls: r.book.calls(), AnsweredBy: r.answeredBy, Usage: r.usage, Err: errors.Join(r.errs...),
		Failure: r.failure(),
	}
}

// failure is the vendor's failure that the call came to, nil for none: an utterance alone that was not understood breaks no call.
func (r *run) failure() error {
	switch b := &r.broken; {
	case b.fatal != nil:
		return b.fatal
	case b.thought != nil:
		return b.thought
	case r.reason == parley.ProviderFailure:
		return b.heard
	}
	return nil
}

// transferTime is how long a far end that left in the middle of a transfer may take to say that it went there.
const transferTime = 2 * time.Second

// converse opens the ear, begins, and runs the leg until it ends.
func (r *run) converse(p Persona) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
		}
	}()
	ear, err := r.listenWith(p)
	if err != nil {
		r.fail(fmt.Errorf("open an ear: %w", err))
		return nil
	}
	r.mu.Lock()
	r.attach(ear, 0)
	r.met = append(r.met, p.Assistant.ID)
	for _, a := range slices.Clone(r.m.Start(r.now())) {
		r.do(a)
	}
	r.mu.Unlock()
	r.warm(p)
	// A leg that doesn't tick has no time. The call ends all the same.
	limit := time.AfterFunc(time.Duration(p.Assistant.MaxDuration)*time.Second+time.Second, func() { r.post(turn.Event{Kind: turn.End, Reason: parley.MaxDuration}) })
	defer limit.Stop()
	return r.leg.Run(r.ctx, &r.peer)
}

// verdict is why a call is over that the session didn't end.
func (r *run) verdict(ctx context.Context, legErr error) parley.EndedReason {
	if reason, ok := errors.AsType[parley.EndedReason](context.Cause(ctx)); ok {
		return reason
	}
	if reason, ok := errors.AsType[parley.EndedReason](legErr); ok {
		return reason
	}
	switch {
	case ctx.Err() != nil:
		return parley.Shutdown
	case legErr == nil:
		return parley.CustomerHangup
	}
	r.errs = append(r.errs, fmt.Errorf("the leg: %w", legErr))
	return parley.MediaTimeout
}

// now is the time since the answer as the conversation has it: it stands still while the leg does, whose far end holds the call. The lock is held.
func (r *run) now() time.Duration { return min(time.Since(r.start), r.ticked+standing) - r.stood }

// standing is how late a leg's tick may be before the leg stands still: a busy machine is no hold.
const standing = time.Second

// tickedNow moves the time on.
func (r *run) tickedNow() {
	since := time.Since(r.start)
	r.stood += max(since-r.ticked-standing, 0)
	r.ticked = since
}

// post tells the machine of something.
func (r *run) post(e turn.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step(e)
}

// step gives the machine an event, and does what it says. The lock is held.
func (r *run) step(e turn.Event) {
	if r.over {
		return
	}
	e.At = r.now()
	for _, a := range r.m.Step(e) {
		r.do(a)
	}
}

// do does what the machine says. Nothing here may block, or step the machine.
func (r *run) do(a turn.Action) {
	switch a.Kind {
	case turn.OpenEar:
		r.utterances = a.N + 1
		r.peer.openEar()
	case turn.CloseEar:
		r.peer.closeEar()
	case turn.Think:
		r.beginThinking(a)
	case turn.Say:
		r.say(r.answer(a.Reply, a.Purpose), a.Purpose)
	case turn.Speak:
		if r.reply != nil && r.reply.id == a.Reply {
			r.enqueue(r.reply, &part{text: a.Text})
		}
	case turn.Hold:
		r.out.pause()
	case turn.Resume:
		r.out.resume()
	case turn.Flush:
		r.out.clear()
	case turn.GiveUp:
		if r.reply != nil && r.reply.think != nil {
			if r.reply.think.ctx.Err() == nil && r.broken.thought == nil {
				r.broken.thought = &ai.Error{Part: ai.TheModel, Kind: ai.Stalled, Err: errStalled}
			}
			r.reply.think.cancel(errStalled)
		}
	case turn.Commit:
		r.commit(a.Reply)
	case turn.Cut, turn.Finish:
		r.endReply(a)
	case turn.Drained:
		if r.drained != nil {
			close(r.drained)
			r.drained = nil
		}
	case turn.Collected:
		if r.collected != nil {
			r.collected <- keys{a.Text, a.Pressed}
			r.collected = nil
		}
	case turn.Note:
		r.book.customer(a.Text, a.From)
		r.book.settle()
	case turn.AnsweredBy:
		r.answeredBy = parley.AnsweredHuman
		if a.Machine {
			r.answeredBy = parley.AnsweredMachine
		}
		r.told(Event{Kind: Answerer, AnsweredBy: r.answeredBy})
	case turn.Enter:
		r.enter()
	case turn.Partial:
		r.told(Event{Kind: PartialHeard, Text: a.Text})
	case turn.IgnoreTones:
		r.peer.signals = nil
	case turn.HangUp:
		r.over = true
		r.reason = a.Reason
		r.book.settle()
		r.cancel(a.Reason)
	}
}

// answer is the session's side of the machine's present reply.
func (r *run) answer(id int, w turn.Purpose) *answer {
	if r.reply == nil || r.reply.id != id {
		r.reply = &answer{id: id, what: w, anchor: -1, thought: true}
		r.book.assistant(r.reply)
	}
	return r.reply
}

// endReply is the end of a reply: cut off, or played.
func (r *run) endReply(a turn.Action) {
	if r.reply == nil || r.reply.id != a.Reply {
		return
	}
	w := r.reply
	r.reply = nil
	w.cut, w.over = a.Kind == turn.Cut && w.sounded, true
	w.thought = w.thought || a.Over // then only what was not heard to its end counts as cut off
	r.out.clear()
	if w.speech != nil {
		w.speech.cancel(context.Canceled)
	}
	if w.think != nil {
		w.think.cancel(context.Canceled)
	}
	if a.Join && w.anchor >= 0 {
		r.book.join()
	}
	if a.Join {
		for _, p := range w.parts {
			p.played, p.cut = 0, true
		}
	}
	r.book.settle()
}

func (r *run) told(e Event) {
	if r.Tell != nil {
		r.Tell(e)
	}
}

// fail ends the call because a vendor failed.
func (r *run) fail(err error) {
	r.note(err)
	r.mu.Lock()
	r.broken.fatal = err
	r.mu.Unlock()
	r.post(turn.Event{Kind: turn.End, Reason: parley.ProviderFailure})
}

// note keeps what went wrong for the log.
func (r *run) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted(err)
}

func (r *run) noted(err error) {
	if len(r.errs) < 20 {
		r.errs = append(r.errs, err)
	}
}

// panicked ends this call, and this call alone.
func (r *run) panicked(v any) {
	slog.ErrorContext(r.ctx, "call panicked", "panic", v, "stack", string(debug.Stack()))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted(fmt.Errorf("%w: %v", errPanic, v))
	if !r.over {
		r.over = true
		r.reason = parley.ProviderFailure
	}
	r.cancel(parley.ProviderFailure)
}

// safely runs f in a goroutine that the session waits for.
func (r *run) safely(f func()) {
	r.wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				r.panicked(v)
			}
		}()
		f()
	})
}

// warm makes the sounds of what is to be said at once when it is said: fillers. Who failed will be seen when it is needed.
func (r *run) warm(p Persona) {
	a := p.Assistant
	if !a.Fillers {
		return
	}
	mouth := newMouth(p, r.rate)
	r.safely(func() {
		c := &a.FillerConfig
		all := slices.Concat(c.Neutral, c.Question, c.Positive, c.Negative)
		for _, text := range all[:min(len(all), 16)] {
			key, ok := keyOf(p.Synthesizer, mouth.speech(lang.Speakable(text, p.Language, mouth.pronounced)))
			if !ok || key.speech.Text == "" || r.Cache.load(r.ctx, key) != nil {
				return
			}
		}
	})
}
