package voice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
	"parley/internal/turn"
)

// realtime is the driver of a persona whose model hears for itself, and either speaks (multimodal) or writes text for a
// synthesizer to speak (dualplex). The turn machine decides when the model hears and answers, as everywhere: the
// vendor's own turn detection is off. The customer's speech goes to the model as it is heard. Nobody waits for its
// text, which comes later: for the transcript, and to tell what was not an interruption. How much of a reply was heard
// is known from its audio, and the model is told when it was cut off.
//
// realtime_link.go has its sessions, realtime_reply.go what the model says.
type realtime struct {
	r *run
	Persona
	setup ai.RealtimeSetup
	mouth *mouth // speaks fixed sentences, and all that a model writes; nil: the model speaks those too

	// Everything below belongs to the owner.
	link     *link // nil while there is no session
	spare    ai.RealtimeSession
	tries    int  // sessions that were lost, one after the other
	entered  bool // it is the session's driver
	closed   bool
	n        int                // numbers of responses and texts
	asked    map[int]*asking    // responses that may still say something
	said     []*sounding        // what the customer said that may have to be told again
	speaking *sounding          // the utterance that is under way
	texts    map[*part]*written // fixed sentences that the model was told of
	pressed  []written          // keys, likewise
}

// sounding is an utterance, with its audio until its text is known.
type sounding struct {
	n     int
	sound tape
	text  string
	ended bool
	final bool
}

// written is a text that was put into the model's conversation.
type written struct {
	n int
	a *answer
}

var errGone = errors.New("the realtime session is gone")

// newRealtime starts connecting.
func newRealtime(r *run, p Persona) (*realtime, error) {
	if !p.complete() {
		return nil, errIncomplete
	}
	d := &realtime{r: r, Persona: p, asked: map[int]*asking{}, texts: map[*part]*written{}}
	if p.Synthesizer != nil {
		d.mouth = newMouth(r, p, r.rate)
	}
	t := p.Think(nil, nil)
	d.setup = ai.RealtimeSetup{System: t.System, Writes: p.Writes, Voice: p.Voice,
		Speed: p.Assistant.SpeechSpeed.Float(), Language: p.Language, Rate: r.rate, Keywords: p.Assistant.Keywords}
	for _, tool := range append(slices.Clone(t.Tools), r.builtIn(&answer{}, &d.Persona)...) {
		d.setup.Tools = append(d.setup.Tools, tool.Tool)
	}
	d.connect(0)
	return d, nil
}

// enter implements driver. A session that opened before is told what was said only now, when all of it is known.
func (d *realtime) enter(int, bool) {
	d.entered = true
	if d.link == nil && d.spare != nil {
		d.adopt(d.spare)
	}
}

// hear implements driver. A new session takes over in a pause.
func (d *realtime) hear(pcm []int16, talking bool) {
	if talking && d.speaking != nil {
		d.speaking.sound.put(pcm)
		if d.link != nil {
			d.link.Write(pcm)
		}
	}
	if d.spare != nil && !talking && d.r.reply == nil && !d.unanswered() {
		d.adopt(d.spare)
	}
}

// unanswered reports whether the customer has said something for which no reply is over yet.
func (d *realtime) unanswered() bool { return len(d.said) > 0 }

// utterance implements driver.
func (d *realtime) utterance(before []*frame) {
	s := &sounding{n: d.r.utterances - 1}
	d.speaking = s
	d.said = append(d.said, s)
	if d.link != nil {
		d.link.begin(s.n)
	}
	for _, f := range before {
		s.sound.put(f.pcm)
		if d.link != nil {
			d.link.Write(f.pcm)
		}
	}
}

// endUtterance implements driver.
func (d *realtime) endUtterance() {
	s := d.speaking
	if s == nil {
		return
	}
	d.speaking, s.ended = nil, true
	if d.link != nil {
		d.link.End()
	}
}

// forget implements driver.
func (d *realtime) forget(n int) {
	d.drop(func(s *sounding) bool { return s.n == n })
	if d.link != nil {
		d.link.forget(n)
	}
}

// drop discards utterances.
func (d *realtime) drop(which func(*sounding) bool) {
	d.said = slices.DeleteFunc(d.said, func(s *sounding) bool {
		gone := which(s) && s != d.speaking
		if gone {
			s.sound.drop()
		}
		return gone
	})
}

// heard takes what the model's ear understood.
func (d *realtime) heard(n int, e ai.RealtimeEvent) {
	for _, s := range d.said {
		if s.n == n {
			s.text, s.final = e.Text, e.Final && e.Err == nil
			if s.final {
				s.sound.drop()
			}
		}
	}
	d.r.understood(0, ai.Transcript{Utterance: n, Text: e.Text, Final: e.Final, Err: e.Err})
}

// think implements driver.
func (d *realtime) think(a *answer, early bool) {
	r := d.r
	t := &thinking{committed: make(chan struct{}), early: early}
	if !early {
		close(t.committed)
	}
	t.ctx, t.cancel = context.WithCancelCause(r.ctx)
	a.think = t
	ask := func() {
		d.keys(a)
		d.ask(a, instruction(a, d.Reengagement), false)
	}
	before := r.busy
	if before != nil {
		select {
		case <-before:
			before = nil
		default:
		}
	}
	if before == nil {
		ask()
		return
	}
	// Whatever an earlier reply is still doing finishes first, so that an order being placed is not placed twice.
	r.happens(turn.Event{Kind: turn.ToolBegan, Reply: a.id})
	r.safely(func() {
		<-before
		r.inbox.post(func() {
			r.step(turn.Event{Kind: turn.ToolEnded, Reply: a.id})
			if !a.over && t.ctx.Err() == nil {
				ask()
			}
		})
	})
}

// keys tells the model about keys pressed: it hears everything else.
func (d *realtime) keys(a *answer) {
	for _, text := range a.keys {
		d.n++
		d.pressed = append(d.pressed, written{d.n, a})
		if d.link != nil {
			d.link.Add(d.n, ai.Message{Role: ai.User, Text: text})
		}
	}
}

// commit implements driver.
func (d *realtime) commit(a *answer) {
	if a.think != nil && a.think.early {
		a.think.early = false
		close(a.think.committed)
	}
}

// giveUp implements driver.
func (d *realtime) giveUp(a *answer) {
	if a.think == nil {
		return
	}
	if a.think.ctx.Err() == nil && d.r.broken.thought == nil {
		d.r.broken.thought = &ai.Error{Part: ai.TheModel, Kind: ai.Stalled, Err: errStalled}
	}
	a.think.cancel(errStalled)
	for _, q := range a.asked {
		if !q.over {
			d.cut(q)
			q.over = true
			d.finish(q)
		}
	}
}

// speak implements driver: it has a text said as it is. The model is told about the text, unless it bridges a wait or
// is the model's own.
func (d *realtime) speak(a *answer, p *part) {
	if d.Writes && !p.keep {
		d.mouth.speak(a, p)
		return
	}
	if !p.aside && strings.TrimSpace(p.text) != "" {
		d.n++
		d.texts[p] = &written{d.n, a}
		if d.link != nil {
			d.link.Add(d.n, ai.Message{Role: ai.Assistant, Text: p.text})
		}
	}
	if d.mouth != nil {
		d.mouth.speak(a, p)
		return
	}
	d.r.out.add(p)
	text := lang.Speakable(p.text, d.Language, nil)
	if text == "" {
		d.r.out.finish(p)
		return
	}
	d.n++
	q := &asking{n: d.n, a: a, part: p, verbatim: text}
	a.asked = append(a.asked, q)
	d.asked[q.n] = q
	if d.link != nil {
		d.link.Say(q.n, text)
	}
}

// stop implements driver: it tells the model how much of the reply was heard.
func (d *realtime) stop(a *answer) {
	if a.speech != nil {
		a.speech.cancel(context.Canceled)
	}
	if a.think != nil {
		a.think.cancel(context.Canceled)
	}
	for _, q := range a.asked {
		if !q.over || !d.whole(q) {
			d.cut(q)
		}
		q.over = true
		if q.done {
			delete(d.asked, q.n)
		}
	}
	for p, w := range d.texts {
		if w.a != a {
			continue
		}
		if text := d.audible(p); text != p.text && d.link != nil {
			d.link.Cut(w.n, 0, text)
		}
		p.told = false
		delete(d.texts, p)
	}
	for _, w := range d.pressed { // of a reply that was not heard they are told again
		if w.a == a && !a.sounded && d.link != nil {
			d.link.Cut(w.n, 0, "")
		}
	}
	d.pressed = slices.DeleteFunc(d.pressed, func(w written) bool { return w.a == a })
	d.drop(func(s *sounding) bool { return s.ended && a.sounded && d.r.book.has(s.n) })
}

// audible is the part of a text that was heard.
func (d *realtime) audible(p *part) string { return d.r.out.heard(p) }

// close implements driver.
func (d *realtime) close() {
	d.closed = true
	for _, s := range []ai.RealtimeSession{d.session(), d.spare} {
		if s != nil {
			d.r.safely(s.Close)
		}
	}
	d.link, d.spare = nil, nil
	d.speaking = nil
	d.drop(func(*sounding) bool { return true })
}

// session is the open one, nil if there is none.
func (d *realtime) session() ai.RealtimeSession {
	if d.link == nil {
		return nil
	}
	return d.link.RealtimeSession
}

// turn holds the tools that a reply may call.
func (d *realtime) turn(a *answer) *agent.Turn {
	t := d.Think(nil, &deeds{d.r, a})
	t.Tools = a.think.held(append(d.r.outlasting(t.Tools), d.r.builtIn(a, &d.Persona)...))
	return t
}

// deeds takes the outcome of a reply's calls.
type deeds struct {
	r *run
	a *answer
}

// Text implements agent.Sink.
func (*deeds) Text(string) {}

// ToolStarted implements agent.Sink.
func (s *deeds) ToolStarted(agent.ToolCall) { s.r.inbox.post(func() { s.r.toolBegan(s.a) }) }

// ToolFinished implements agent.Sink.
func (s *deeds) ToolFinished(c agent.ToolCall) {
	s.r.inbox.post(func() { s.r.toolEnded(s.a, c, !s.a.think.early) })
}

// link is an open session.
type link struct {
	ai.RealtimeSession
	order []int // the run's numbers of its utterances
}

func (l *link) begin(n int) { l.order = append(l.order, n) }

func (l *link) forget(n int) {
	if i := slices.Index(l.order, n); i >= 0 {
		l.Forget(i)
	}
}

const (
	maxLinks  = 3                      // how often a session that is lost is opened again, one after the other
	linkPause = 300 * time.Millisecond // before the second attempt
	budget    = 16_000                 // tokens of what was said before that another session is told
)

// connect opens a session after a pause. The owner calls it, and adopts the session once it is open.
func (d *realtime) connect(after time.Duration) {
	r := d.r
	r.safely(func() {
		if !sleep(r.ctx, after) {
			return
		}
		s, err := d.Realtime.Connect(r.ctx, d.setup)
		late := true
		r.inbox.ask(func() {
			switch late = d.closed || r.over; {
			case late:
			case err != nil:
				d.lost(nil, err)
			case d.link == nil && d.entered:
				d.adopt(s)
			default:
				d.spare = s
			}
		})
		if late && s != nil {
			s.Close()
		}
	})
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// adopt lets a session continue where the previous one stopped: it is told what was said, hears what has not been
// understood yet, and is asked for what is missing.
func (d *realtime) adopt(s ai.RealtimeSession) {
	r := d.r
	if d.link != nil {
		r.safely(d.link.Close)
	}
	l := &link{RealtimeSession: s}
	d.link, d.spare = l, nil
	r.safely(func() { d.follow(l) })
	for p, w := range d.texts { // what is being said now is told whole
		p.told = true
		d.n++
		w.n = d.n
	}
	if history := agent.Trim(r.book.history(), budget); len(history) > 0 {
		d.n++
		l.Add(d.n, history...)
	}
	for p, w := range d.texts {
		l.Add(w.n, ai.Message{Role: ai.Assistant, Text: p.text})
	}
	for _, u := range d.said {
		switch {
		case u.final && r.book.has(u.n):
		case u.final && u.text != "":
			d.n++
			l.Add(d.n, ai.Message{Role: ai.User, Text: u.text})
		case !u.final:
			l.begin(u.n)
			u.sound.each(l.Write)
			if u.ended {
				l.End()
			}
		}
	}
	d.resume()
}

// lost handles the end of a session, or the failure to open one.
func (d *realtime) lost(l *link, err error) {
	if l != nil && l != d.link || d.closed || d.r.ctx.Err() != nil {
		return
	}
	if d.link != nil && l == nil { // another could not be opened; this one still serves
		d.r.noted(fmt.Errorf("open another session: %w", err))
		return
	}
	d.link = nil
	d.r.noted(fmt.Errorf("the session is lost: %w", err))
	if d.spare != nil {
		d.adopt(d.spare)
		return
	}
	d.tries++
	if d.tries > maxLinks || ai.KindOf(err) == ai.Config {
		d.r.fail(fmt.Errorf("after %d sessions: %w", d.tries, err))
		return
	}
	pause := time.Duration(0)
	if d.tries > 1 {
		pause = linkPause << (d.tries - 2)
		if e, ok := errors.AsType[*ai.Error](err); ok {
			pause = max(pause, min(e.RetryAfter, 5*time.Second))
		}
	}
	d.connect(pause)
}

// follow takes a session's events until it is closed.
func (d *realtime) follow(l *link) {
	var err error
	for e := range l.Events() {
		if e.Kind == ai.RealtimeLost {
			err = e.Err
			continue
		}
		d.r.inbox.post(func() { d.take(l, e) })
	}
	if err == nil {
		err = &ai.Error{Part: ai.TheModel, Kind: ai.Interrupted, Err: errGone}
	}
	d.r.inbox.post(func() { d.lost(l, err) })
	l.Close()
}

// take takes one event. For a session that has been replaced, only its usage still matters.
func (d *realtime) take(l *link, e ai.RealtimeEvent) {
	if l != d.link {
		d.r.usage.Add(e.Usage)
		return
	}
	switch e.Kind {
	case ai.RealtimeHeard:
		if e.N < len(l.order) {
			d.heard(l.order[e.N], e)
		}
	case ai.RealtimeExpiring:
		if d.spare == nil {
			d.connect(0)
		}
	default:
		if q := d.asked[e.N]; q != nil {
			d.ofReply(q, e)
		} else {
			d.r.usage.Add(e.Usage)
		}
	}
}

// soundingTime estimates how much of a text a sound of that many samples holds, to guess where it broke off.
func soundingTime(text string, samples int, rate audio.Rate) float64 {
	return float64(samples) * charsPerSecond / float64(max(len([]rune(text)), 1)*int(rate))
}
