package voice

import (
	"fmt"
	"runtime/debug"
	"time"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/turn"
)

// preroll is how much audio from before the detector noticed the speech goes to the recognizer.
const preroll = 300 * time.Millisecond

// own is the goroutine that owns a call. It takes what comes from the leg, the vendors and the tools, one event at a
// time, until the inbox is closed. When several are ready at once, frames come first, then what was played, then what
// was posted.
func (r *run) own() {
	defer close(r.inbox.done)
	for {
		select {
		case f := <-r.frames:
			r.hear(f)
		case <-r.inbox.bell:
			for len(r.frames) > 0 {
				r.hear(<-r.frames)
			}
			r.played()
			for {
				f, over := r.inbox.next()
				if over {
					return
				}
				if f == nil {
					break
				}
				r.take(f)
			}
		}
	}
}

// guard ends the call when the current work panics. The owner goes on: it still has to report on the call.
func (r *run) guard() {
	if v := recover(); v != nil {
		r.panicked(&crash.Error{Value: v, Stack: debug.Stack()})
	}
}

// take runs what was posted.
func (r *run) take(f func()) {
	defer r.guard()
	f()
}

// hear takes a frame from the far end.
func (r *run) hear(f *frame) {
	defer r.guard()
	r.stepAt(f.at, turn.Event{Kind: turn.Voice, Speech: f.speech, Voiced: f.voiced, Sure: f.sure, Silences: f.silences,
		Words: f.words, Sound: f.sound,
		Cadence: f.cadence})
	if f.silences {
		r.out.judged()
	}
	signal := f.signal
	if r.cast.listener != nil {
		r.cast.hear(f, r.open)
	}
	if r.open {
		r.free <- f
	} else {
		r.remember(f)
	}
	switch signal {
	case audio.Beep:
		r.step(turn.Event{Kind: turn.Beep})
	case audio.Fax:
		r.step(turn.Event{Kind: turn.FaxTone})
	case audio.Music:
		r.step(turn.Event{Kind: turn.Music})
	}
}

// remember keeps a frame for a recognizer that may open soon.
func (r *run) remember(f *frame) {
	if len(r.before) == int(preroll/audio.FrameTime) {
		r.free <- r.before[0]
		copy(r.before, r.before[1:])
		r.before = r.before[:len(r.before)-1]
	}
	r.before = append(r.before, f)
}

// openRecognition begins an utterance with the audio heard just before it.
func (r *run) openRecognition(n int) {
	r.open, r.utterances = true, n+1
	r.peer.open.Store(true)
	r.cast.utterance(r.before)
	for _, f := range r.before {
		r.free <- f
	}
	r.before = r.before[:0]
}

func (r *run) closeRecognition() {
	r.open = false
	r.peer.open.Store(false)
	r.cast.endUtterance()
}

// played takes what the leg has pulled, and advances the time.
func (r *run) played() {
	defer r.guard()
	r.notes = r.out.told(r.notes[:0])
	for _, n := range r.notes {
		a := r.reply
		switch {
		case a == nil || a.id != n.part.reply: // it was cut off meanwhile
		case n.ended:
			r.step(turn.Event{Kind: turn.Played, Reply: a.id})
		default:
			r.sounded(a, n)
		}
	}
	if r.ticked.Swap(false) {
		r.step(turn.Event{Kind: turn.Tick})
	}
}

// sounded notes the first audio of a part, and tells the machine about the first of the reply.
func (r *run) sounded(a *answer, n note) {
	if !a.sounded {
		a.sounded, a.from = true, n.at
		r.step(turn.Event{Kind: turn.Sounded, Reply: a.id})
		r.transcript.settle()
	}
	if !n.part.aside && a.anchor >= 0 && a.marks.FirstPacketMS == 0 {
		a.marks.FirstPacketMS = since(n.at, a.anchor)
	}
}

// since is a mark of the waterfall: at least 1, as 0 means that there was none.
func since(now, anchor time.Duration) int64 { return max((now - anchor).Milliseconds(), 1) }

// happens posts an event.
func (r *run) happens(e turn.Event) { r.inbox.post(func() { r.step(e) }) }

// step gives the machine an event that happens now, and does what the machine says.
func (r *run) step(e turn.Event) { r.stepAt(r.clock.now(), e) }

func (r *run) stepAt(at time.Duration, e turn.Event) {
	if r.over {
		return
	}
	e.At = at
	r.do(r.m.Step(e))
}

// do does what the machine says. Nothing here may wait, or step the machine: events for the machine are posted.
func (r *run) do(actions []turn.Action) {
	for _, a := range actions {
		r.act(a)
	}
	r.peer.reply.Store(r.reply != nil)
}

func (r *run) act(a turn.Action) {
	switch a.Kind {
	case turn.OpenRecognizer:
		r.openRecognition(a.N)
	case turn.CloseRecognizer:
		r.closeRecognition()
	case turn.Think:
		r.think(a)
	case turn.Say:
		r.say(r.answer(a.Reply, a.Purpose), a.Purpose)
	case turn.Speak:
		if r.reply != nil && r.reply.id == a.Reply {
			r.enqueue(r.reply, &part{text: a.Text})
		}
	case turn.Arm, turn.Disarm:
		r.out.arm(a.Kind == turn.Arm)
	case turn.Hold, turn.Resume:
		r.out.pause(a.Kind == turn.Hold)
	case turn.Flush:
		r.out.clear()
	case turn.GiveUp:
		if r.reply != nil {
			r.cast.giveUp(r.reply)
		}
	case turn.Commit:
		r.commit(a.Reply)
	case turn.Cut, turn.Finish:
		r.endReply(a)
	case turn.Drained:
		r.wake()
	case turn.Collected:
		if r.collected != nil {
			r.collected <- keys{a.Text, a.Pressed}
			r.collected = nil
		}
	case turn.Forget:
		if r.cast.keeper != nil {
			r.cast.forget(a.N)
		}
	case turn.Note:
		r.transcript.customer(a)
		r.transcript.settle()
	case turn.Partial:
		r.told(Event{Kind: PartialHeard, Text: a.Text})
		r.judge(a.Text)
	case turn.AnsweredBy:
		r.verdict(a)
	case turn.Press:
		r.safely(func() { r.press(a.Text) })
	case turn.Nod:
		if r.cast.nodder != nil {
			r.cast.nod()
		}
	case turn.IgnoreTones:
		r.peer.plain.Store(true)
	case turn.Enter:
		if r.next != nil {
			r.enter(r.next)
			r.next = nil
		}
	case turn.HangUp:
		r.over = true
		r.reason = a.Reason
		r.transcript.settle()
		r.cancel(a.Reason)
	}
}

// maxVerdicts is how many verdicts a call's record keeps.
const maxVerdicts = 50

// verdict notes who has answered the call.
func (r *run) verdict(a turn.Action) {
	r.answeredBy = parley.AnsweredHuman
	if a.Machine {
		r.answeredBy = parley.AnsweredMachine
	}
	v := parley.CallVerdict{Kind: a.Who.Kind(), Reason: a.Text, AtMS: since(r.clock.now(), 0)}
	if len(r.verdicts) < maxVerdicts {
		r.verdicts = append(r.verdicts, v)
	}
	r.told(Event{Kind: Answerer, AnsweredBy: r.answeredBy, Verdict: v})
}

// press presses keys for a menu.
func (r *run) press(keys string) {
	if err := r.leg.Dial(keys); err != nil {
		r.note(fmt.Errorf("press keys in a menu: %w", err))
	}
}

// wake tells who waits for the present reply to be played that it was.
func (r *run) wake() {
	if r.drained != nil {
		close(r.drained)
		r.drained = nil
	}
}

// endReply ends a reply: it was cut off, or played to its end.
func (r *run) endReply(a turn.Action) {
	if r.reply == nil || r.reply.id != a.Reply {
		return
	}
	w := r.reply
	r.reply = nil
	w.cut, w.over = a.Kind == turn.Cut && w.sounded, true
	w.thought = w.thought || a.Over // then only what was not heard to its end counts as cut off
	r.out.clear()
	r.missed = r.missed || w.think != nil && w.think.early
	if r.cast.speaker != nil {
		r.cast.stop(w)
	}
	if a.Join && w.anchor >= 0 {
		r.transcript.join()
	}
	if a.Join {
		for _, p := range w.parts {
			r.out.unheard(p)
		}
	}
	r.transcript.settle()
}

func (r *run) told(e Event) {
	if r.Tell != nil {
		r.Tell(e)
	}
}

// note keeps an error for the log.
func (r *run) note(err error) { r.inbox.post(func() { r.noted(err) }) }

func (r *run) noted(err error) {
	if len(r.errs) < 20 {
		r.errs = append(r.errs, err)
	}
}

// fail ends the call because a vendor failed.
func (r *run) fail(err error) {
	r.inbox.post(func() {
		r.noted(err)
		r.broken.fatal = err
		r.step(turn.Event{Kind: turn.End, Reason: parley.ProviderFailure})
	})
}

// panicked ends this call, and this call alone. Its owner logs what happened (Result.Err).
func (r *run) panicked(err error) {
	r.noted(fmt.Errorf("%w: %w", errPanic, err))
	if !r.over {
		r.over = true
		r.reason = parley.ProviderFailure
	}
	r.cancel(parley.ProviderFailure)
}

// escaped is deferred by code that doesn't run on the owner's goroutine: its panic ends the call too.
func (r *run) escaped() {
	if v := recover(); v != nil {
		err := &crash.Error{Value: v, Stack: debug.Stack()}
		r.inbox.post(func() { r.panicked(err) })
	}
}

// safely runs f in a goroutine that the session waits for.
func (r *run) safely(f func()) {
	r.wg.Go(func() {
		defer r.escaped()
		f()
	})
}
