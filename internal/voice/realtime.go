package voice

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/turn"
)

// realtime is the driver of a persona whose model hears for itself, and either speaks (multimodal) or writes text for a
// synthesizer to speak (dualplex). The turn machine decides when the model hears and answers, as everywhere: the
// vendor's own turn detection is off. The customer's speech goes to the model as it is heard. Nobody waits for its
// text, which comes later: for the transcript, and to tell what was not an interruption. How much of a reply was heard
// is known from its audio, and the model is told when it was cut off.
//
// realtime_link.go has its sessions, realtime_reply.go what the model says, realtime_sound.go its sound.
type realtime struct {
	r     *run
	setup ai.RealtimeSetup
	day   string // that the setup's prompt tells

	// Everything below belongs to the owner.
	Persona              // in the language that is spoken at present
	synthesis *synthesis // likewise: it speaks fixed sentences, and all that a model writes
	follower
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
	n    int
	a    *answer // that it belongs to; nil: keys that no reply answers yet
	text string  // of keys
}

var errGone = errors.New("the realtime session is gone")

// newRealtime starts connecting.
func newRealtime(r *run, p Persona) (*realtime, error) {
	if !p.complete() {
		return nil, errIncomplete
	}
	d := &realtime{r: r, Persona: p, synthesis: newSynthesis(r, p, r.rate), follower: follower{home: p}, asked: map[int]*asking{},
		texts: map[*part]*written{}}
	t := p.Think(nil, nil)
	d.day = t.Day
	d.setup = ai.RealtimeSetup{System: t.System + p.polyglot(""), Writes: p.Writes, Voice: p.Voice,
		Speed: p.Assistant.SpeechSpeed.Float(), Language: p.Language, Others: p.others(), Rate: r.rate,
		Keywords: p.Assistant.Keywords}
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

// hear implements listener. A new session takes over in a pause.
func (d *realtime) hear(f *frame, talking bool) {
	speaks := talking && d.speaking != nil
	if speaks {
		d.speaking.sound.put(f.pcm)
	}
	if d.link != nil && (speaks || d.Decides) {
		d.link.Write(f.pcm)
	}
	if d.spare != nil && !talking && d.r.reply == nil && !d.unanswered() {
		d.adopt(d.spare)
	}
}

// unanswered reports whether the customer has said something for which no reply is over yet.
func (d *realtime) unanswered() bool { return len(d.said) > 0 }

// utterance implements listener.
func (d *realtime) utterance(before []*frame) {
	s := &sounding{n: d.r.utterances - 1}
	d.speaking = s
	d.said = append(d.said, s)
	d.keys(d.r.m.Pressed(), nil)
	if d.link != nil {
		d.link.begin(s.n)
	}
	for _, f := range before {
		s.sound.put(f.pcm)
		if d.link != nil && !d.Decides { // which has heard it
			d.link.Write(f.pcm)
		}
	}
}

// endUtterance implements listener.
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

// forget implements keeper.
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

// heard takes what the model's recognizer understood.
func (d *realtime) heard(n int, e ai.RealtimeEvent) {
	for _, s := range d.said {
		if s.n == n {
			s.text, s.final = e.Text, e.Final && e.Err == nil
			if s.final {
				s.sound.drop()
			}
		}
	}
	t := ai.Transcript{Utterance: n, Text: e.Text, Language: e.Language, Final: e.Final, Err: e.Err}
	d.follows(t)
	d.r.understood(0, t)
}

// think implements thinker.
func (d *realtime) think(a *answer, early bool) {
	r := d.r
	t := &thinking{committed: make(chan struct{}), early: early}
	if !early {
		close(t.committed)
	}
	t.ctx, t.cancel = context.WithCancelCause(r.ctx)
	a.think = t
	ask := func() {
		d.keys(a.keys, a)
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

// keys tells the model about keys that were pressed, once, before it hears what was said after them; a is the reply that
// answers them, nil if none does yet.
func (d *realtime) keys(texts []string, a *answer) {
	var told, open []written // open: those that no reply answers yet
	for _, w := range d.pressed {
		if w.a == nil {
			open = append(open, w)
		} else {
			told = append(told, w)
		}
	}
	for _, text := range texts {
		i := slices.IndexFunc(open, func(w written) bool { return w.text == text })
		if i >= 0 {
			told = append(told, written{open[i].n, a, text})
			open = slices.Delete(open, i, i+1)
			continue
		}
		d.n++
		told = append(told, written{d.n, a, text})
		if d.link != nil {
			d.link.Add(d.n, ai.Message{Role: ai.User, Text: text})
		}
	}
	for _, w := range open { // more keys followed, and they were told together
		if d.link != nil {
			d.link.Cut(w.n, 0, "")
		}
	}
	d.pressed = told
}

// told implements keeper. A session that opens later reads it in the transcript.
func (d *realtime) told(m ai.Message) {
	if d.link != nil {
		d.n++
		d.link.Add(d.n, m)
	}
}

// commit implements thinker.
func (d *realtime) commit(a *answer) {
	if a.think != nil && a.think.early {
		a.think.early = false
		close(a.think.committed)
	}
}

// giveUp implements thinker.
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

// speak implements speaker: it has a text said as it is. The model is told about the text, unless it bridges a wait or
// is the model's own.
func (d *realtime) speak(a *answer, p *part) {
	if (!d.Writes || p.keep) && !p.aside && strings.TrimSpace(p.text) != "" {
		d.n++
		d.texts[p] = &written{n: d.n, a: a}
		if d.link != nil {
			d.link.Add(d.n, ai.Message{Role: ai.Assistant, Text: p.text})
		}
	}
	d.synthesis.speak(a, p)
}

// stop implements speaker: it tells the model how much of the reply was heard.
func (d *realtime) stop(a *answer) {
	if a.speech != nil {
		a.speech.cancel(context.Canceled)
	}
	if a.think != nil {
		a.think.cancel(context.Canceled)
	}
	for _, q := range a.asked {
		if !d.whole(q) || q.making && d.Decides { // such a session waits for the results of its calls
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
	d.pressed = slices.DeleteFunc(d.pressed, func(w written) bool { return w.a == a && a.sounded })
	for i := range d.pressed {
		if d.pressed[i].a == a { // nobody heard it: the next one answers them
			d.pressed[i].a = nil
		}
	}
	d.drop(func(s *sounding) bool { return s.ended && a.sounded && d.r.transcript.has(s.n) })
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
