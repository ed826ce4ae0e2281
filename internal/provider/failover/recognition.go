package failover

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ai"
	"parley/internal/crash"
)

// RecognitionBudget is how long after the end of an utterance a recognizer may take for its text, if no setting says otherwise.
const RecognitionBudget = 3 * time.Second

// Recognizer combines a list of recognizers into one.
type Recognizer struct {
	Links  []Link[ai.Recognizer] // at least one
	Budget time.Duration         // to the final text after an utterance's end; 0 is RecognitionBudget
}

// errDeaf is what failed in a recognizer whose connection is lost.
var errDeaf = errors.New("the recognizer is gone")

// Listen implements ai.Recognizer. If a recognizer is lost, loses an utterance or is late with its text, the next one is
// opened in its place and is given the audio that has had no text yet; if there is no other, a lost recognizer closes.
// Continuous tells the caller about the first recognizer. If that one is continuous and the next one takes only utterances,
// the next one is given what is speech; the other way round, a recognizer that finds turns is given only utterances.
func (r *Recognizer) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	e := &recognition{links: r.Links, h: h, budget: budgetOr(r.Budget, RecognitionBudget), sound: newTape(h.Rate),
		out: make(chan ai.Transcript, 16)}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	begin := ai.TallyOf(ctx).Acting(ai.TheRecognizer, r.Links[0].Name)
	l, err := e.open(line(ai.TheRecognizer, r.Links, begin))
	if err != nil {
		e.cancel(nil)
		return nil, err
	}
	e.present, e.continuous = l, l.Continuous()
	e.timer = time.NewTimer(time.Hour)
	e.timer.Stop()
	crash.Go(&e.wg, func() { e.run(l) }, crash.Log("the listening of several vendors"))
	return e, nil
}

// recognition is the recognizers of several vendors, one after the other.
type recognition struct {
	links      []Link[ai.Recognizer]
	h          ai.Hearing
	budget     time.Duration
	continuous bool
	ctx        context.Context
	cancel     context.CancelCauseFunc
	out        chan ai.Transcript
	wg         sync.WaitGroup
	timer      *time.Timer  // until the oldest utterance that has ended without its text is late
	tries      atomic.Int32 // recognizers since a text came; run's alone writes it

	// The caller's goroutine writes, run puts another in the place of who listens. A vendor's Write and End never
	// block, so they are called with this held.
	mu      sync.Mutex
	present *listener
	sound   *tape
	ends    int // utterances that have ended
	closed  bool
}

// listener is one vendor's recognizer.
type listener struct {
	ai.Recognition
	link *Link[ai.Recognizer]
	pass *pass
	base int   // the number of its first utterance
	gate *gate // nil: it is given all that is written
}

func (l *listener) write(pcm []int16) {
	if l.gate != nil {
		l.gate.write(pcm, l.Recognition)
		return
	}
	l.Write(pcm)
}

func (l *listener) end() {
	l.End()
	if l.gate != nil {
		l.gate.open = false
	}
}

// open opens the next recognizer of a list; if none can be opened, the error is that of the first.
func (e *recognition) open(q *queue[ai.Recognizer]) (*listener, error) {
	var failed error
	for {
		link, pass := q.pop()
		if link == nil {
			return nil, cmp.Or(failed, error(errNobody))
		}
		inner, err := link.Do.Listen(ai.WithNext(e.ctx, func() bool { return e.another(link) }), e.h)
		if err == nil {
			q.acts(e.ctx, link.Name)
			return &listener{Recognition: inner, link: link, pass: pass}, nil
		}
		if e.ctx.Err() != nil {
			pass.void()
			return nil, context.Cause(e.ctx)
		}
		pass.failed(err)
		q.why = ai.KindOf(err)
		failed = cmp.Or(failed, err)
	}
}

// another reports whether another vendor would take over if this one failed now.
func (e *recognition) another(than *Link[ai.Recognizer]) bool {
	if int(e.tries.Load())+1 >= len(e.links) {
		return false
	}
	return slices.ContainsFunc(e.links, func(l Link[ai.Recognizer]) bool {
		return l.Name != than.Name && !l.Circuit.Open()
	})
}

var errNobody = errors.New("there is no other recognizer")

// Write implements ai.Recognition.
func (e *recognition) Write(pcm []int16) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.sound.write(pcm)
		e.present.write(pcm)
	}
}

// End implements ai.Recognition.
func (e *recognition) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if len(e.sound.marks) == 0 {
		e.timer.Reset(e.budget)
	}
	e.sound.ended(time.Now())
	e.ends++
	e.present.end()
}

// Continuous implements ai.Recognition.
func (e *recognition) Continuous() bool { return e.continuous }

// Transcripts implements ai.Recognition.
func (e *recognition) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Recognition.
func (e *recognition) Close() {
	e.cancel(nil)
	e.wg.Wait()
}

// run passes on what is understood, and switches to the next vendor if that breaks.
func (e *recognition) run(l *listener) {
	defer close(e.out)
	defer func() { e.finish(l) }()
	for {
		var failed error
		var lost *ai.Transcript // what is told where nobody else can be asked
		select {
		case t, ok := <-l.Transcripts():
			t.Err = ai.ToldBy(l.Recognition, t.Err)
			switch {
			case !ok:
				failed = &ai.Error{Kind: ai.Interrupted, Err: errDeaf}
			case t.Err != nil && further(t.Err):
				failed, lost = t.Err, &t
			default:
				e.tell(l, t)
				continue
			}
		case <-e.timer.C:
			failed, lost = late(), &ai.Transcript{}
		case <-e.ctx.Done():
			return
		}
		if e.ctx.Err() != nil {
			return
		}
		next := e.replace(l, failed)
		switch {
		case next != nil:
			l = next
		case lost == nil: // nobody listens any more
			return
		case lost.Err != nil:
			e.tell(l, *lost)
		}
	}
}

// finish closes the current recognizer.
func (e *recognition) finish(l *listener) {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel(nil)
	e.timer.Stop()
	l.Close()
	l.pass.void()
}

// tell passes on what was understood.
func (e *recognition) tell(l *listener, t ai.Transcript) {
	t.Utterance += l.base
	if t.Final {
		if t.Err == nil {
			l.pass.well()
		}
		l.pass.void()
		l.pass = l.link.Circuit.force()
		e.tries.Store(0)
		e.mu.Lock()
		e.sound.done()
		e.await()
		e.mu.Unlock()
	}
	select {
	case e.out <- t:
	case <-e.ctx.Done():
	}
}

// await waits for the text of the oldest utterance that has ended. It is called with mu held.
func (e *recognition) await() {
	if len(e.sound.marks) == 0 {
		e.timer.Stop()
		return
	}
	e.timer.Reset(time.Until(e.sound.marks[0].at.Add(e.budget)))
}

// replace has another listen in the place of one that failed, from the sound on that no text has come of; nil where
// there is no other.
func (e *recognition) replace(l *listener, failed error) *listener {
	l.pass.failed(failed)
	l.pass = l.link.Circuit.force()
	if int(e.tries.Add(1)) >= len(e.links) {
		return nil
	}
	q := line(ai.TheRecognizer, e.links, l.link.Name)
	q.next, q.given, q.why = 1, 1, ai.KindOf(failed) // one of the others
	next, err := e.open(q)
	if err != nil {
		return nil
	}
	if e.continuous && !next.Continuous() {
		next.gate = newGate(e.h.Rate)
	}
	e.mu.Lock()
	next.base = e.ends - len(e.sound.marks)
	e.present = next
	e.sound.replay(next.write, next.end)
	for i := range e.sound.marks {
		e.sound.marks[i].at = time.Now()
	}
	e.await()
	e.mu.Unlock()
	crash.Go(&e.wg, l.Close, crash.Log("the end of a vendor's listening", "vendor", l.link.Name))
	return next
}
