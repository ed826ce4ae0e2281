package voice

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/turn"
)

// asking is a response requested from the model.
type asking struct {
	n           int
	a           *answer
	instruction string
	words       bool  // it may call no tools
	step        int   // of the answer's; -1: nothing was said yet
	part        *part // its sound; nil where there is none
	split       lang.Splitter
	text        string
	calls       []ai.ToolCall
	making      bool // its calls are being made
	done        bool // the model has nothing to add
	over        bool // and nobody would hear it
}

// ask asks the model for a response.
func (d *realtime) ask(a *answer, instruction string, words bool) {
	instruction = d.dated(instruction)
	d.n++
	q := &asking{n: d.n, a: a, instruction: instruction, words: words, step: -1,
		split: lang.Splitter{Language: d.Language}}
	a.asked = append(a.asked, q)
	d.asked[q.n] = q
	if d.link != nil {
		d.link.Respond(q.n, instruction, words)
	}
}

// begun is called when a model that decides by itself has begun to say something, or calls a tool. It belongs to the reply that is not
// complete, or is a new one.
func (d *realtime) begun() {
	if a := d.r.reply; a != nil && a.think != nil && !a.thought && a.think.ctx.Err() == nil {
		d.ask(a, "", false)
		return
	}
	d.r.step(turn.Event{Kind: turn.Speaks})
}

// pending reports whether more of a reply is to come than what the model has said: a tool runs, or more was begun.
func (a *answer) pending() bool {
	return slices.ContainsFunc(a.asked, func(q *asking) bool { return !q.done || q.making })
}

// dated adds the time to an instruction once midnight has passed, or the clocks have changed: the session's prompt has the time at
// which it was opened.
func (d *realtime) dated(instruction string) string {
	const changed = "The date has changed. "
	t := d.Think(nil, nil)
	if t.Now == "" || t.Day == d.day || strings.HasPrefix(instruction, changed) {
		return instruction
	}
	return strings.TrimSpace(changed + t.Now + "\n" + instruction)
}

// ofReply takes the model's output.
func (d *realtime) ofReply(q *asking, e ai.RealtimeEvent) {
	r := d.r
	if q.over || q.a.over || r.over || r.ctx.Err() != nil {
		r.usage.Add(e.Usage)
		if e.Kind == ai.RealtimeDone {
			delete(d.asked, q.n)
		}
		return
	}
	d.tries = 0
	switch e.Kind {
	case ai.RealtimeSound:
		d.sound(q, e.PCM)
	case ai.RealtimeText:
		d.write(q, e.Text, e.At)
	case ai.RealtimeCall:
		q.calls = append(q.calls, *e.Call)
	case ai.RealtimeDone:
		d.done(q, e.Usage, e.Err)
	}
}

// begin notes that a response has begun.
func (d *realtime) begin(q *asking) bool {
	if !d.r.wrote(q.a) {
		return false
	}
	if q.step < 0 {
		q.step = q.a.step
	}
	return true
}

// sound adds to a response's audio. All that the model sends is kept: it belongs to the current reply alone.
func (d *realtime) sound(q *asking, pcm []int16) {
	if !d.begin(q) {
		return
	}
	d.voiced(q)
	if d.r.out.fill(q.part, pcm) {
		d.r.audible(q.a, q.part, d.r.clock.now())
	}
}

// voiced gives a response a part in the playout.
func (d *realtime) voiced(q *asking) {
	r := d.r
	if q.part != nil {
		return
	}
	p := &part{reply: q.a.id, step: q.a.step}
	q.part = p
	q.a.parts = append(q.a.parts, p)
	r.out.add(p)
	if q.a.marks.FirstSentenceMS == 0 && q.a.anchor >= 0 {
		q.a.marks.FirstSentenceMS = since(r.clock.now(), q.a.anchor)
	}
	r.step(turn.Event{Kind: turn.Spoken, Reply: q.a.id})
}

// write adds to a response's text, which has been said at a time of its sound, if that is known.
func (d *realtime) write(q *asking, text string, at time.Duration) {
	if text = parley.CleanText(text); text == "" || !d.begin(q) {
		return
	}
	if q.text == "" && len(q.a.said()) > 0 {
		text = "\n" + text // a step's text is a sentence of its own
	}
	q.text += text
	if !d.Writes {
		d.voiced(q)
		d.r.out.write(q.part, text, at)
		return
	}
	for _, sentence := range q.split.Push(text) {
		d.sentence(q, sentence)
	}
}

// sentence has a sentence of a response spoken, in its own language.
func (d *realtime) sentence(q *asking, text string) {
	d.writes(text)
	d.r.sentence(q.a, text)
}

// done ends a response: its calls are made, or the reply is complete.
func (d *realtime) done(q *asking, used ai.Usage, err error) {
	r, a := d.r, q.a
	q.done = true
	delete(d.asked, q.n)
	d.finish(q)
	if d.Writes {
		d.sentence(q, q.split.Flush())
	} else {
		d.writes(q.text)
	}
	if len(q.calls) > 0 && err == nil {
		r.usage.Add(used)
		d.run(q)
		return
	}
	if d.Decides {
		if a.pending() {
			r.usage.Add(used)
			if err != nil {
				r.noted(fmt.Errorf("reply %d: %w", a.id, err))
			}
			return
		}
		if ai.KindOf(err) == ai.Stalled && (a.used || len(a.said()) > 0) {
			err = nil // it has nothing to add
		}
	}
	if err == nil && strings.TrimSpace(q.text) == "" && q.part == nil && !a.used && !d.Decides {
		err = ai.TheModel.Of(&ai.Error{Kind: ai.Malformed, Err: errors.New("the reply is empty")})
	}
	d.thought(a, q.text, used, err)
}

// thought reports that all of a reply is there.
func (d *realtime) thought(a *answer, text string, used ai.Usage, err error) {
	r := d.r
	r.usage.Add(used)
	err = ai.TheModel.Of(err)
	a.thought = a.thought || err == nil
	d.synthesis.allSaid(a)
	if err == nil {
		r.broken.thought = nil
	} else {
		r.noted(fmt.Errorf("reply %d: %w", a.id, err))
		a.failed, r.broken.thought = err, err
	}
	r.step(turn.Event{Kind: turn.Thought, Reply: a.id, Failed: err != nil, Text: strings.TrimSpace(text)})
}

// finish notes that all of a response's audio is there.
func (d *realtime) finish(q *asking) {
	if q.part != nil && !d.Writes {
		d.r.out.finish(q.part)
	}
}

// run makes a response's calls, tells the model their results, and asks it to go on.
func (d *realtime) run(q *asking) {
	r, a := d.r, q.a
	l, t, calls := d.link, a.think, d.turn(a)
	before, done := r.busy, make(chan struct{})
	r.busy = done
	q.making = true
	a.rounds++
	r.safely(func() {
		defer close(done)
		if before != nil { // of another response of this reply
			<-before
		}
		records, ended, err := calls.Call(t.ctx, q.calls)
		r.inbox.ask(func() {
			q.making = false
			for _, c := range records {
				d.result(l, c)
			}
			if d.Decides && len(records) == 0 { // it would wait for them
				for _, c := range q.calls {
					d.result(l, agent.ToolCall{ID: c.ID, Name: c.Name, Result: "It was not done."})
				}
			}
			switch {
			case a.over || a.thought || t.ctx.Err() != nil:
			case ended || err != nil:
				d.thought(a, "", ai.Usage{}, err)
			default:
				d.ask(a, "", a.rounds >= agent.DefaultSteps-1)
			}
		})
	})
}

// result tells the model the result of a call; a session that doesn't know about the call is told about that too.
func (d *realtime) result(l *link, c agent.ToolCall) {
	switch {
	case d.link == nil: // the next one reads the transcript
	case d.link == l:
		l.Result(c.ID, c.Result)
	default:
		d.n++
		d.link.Add(d.n, agent.Trim(agent.Replay("", []agent.ToolCall{c}), budget)...)
	}
}

// turn holds the tools that a reply may call; it is the same one throughout a reply.
func (d *realtime) turn(a *answer) *agent.Turn {
	if a.think.calls == nil {
		a.think.calls = d.Think(nil, &deeds{d.r, a})
		a.think.calls.Tools = a.think.held(append(d.r.outlasting(a.think.calls.Tools), d.r.builtIn(a, &d.Persona)...))
	}
	return a.think.calls
}

// deeds takes the outcome of a reply's calls.
type deeds struct {
	r *run
	a *answer
}

// Text implements agent.Sink.
func (*deeds) Text(string) {}

// ToolStarted implements agent.Sink.
func (s *deeds) ToolStarted(c agent.ToolCall) { s.r.inbox.post(func() { s.r.toolBegan(s.a, c) }) }

// ToolFinished implements agent.Sink.
func (s *deeds) ToolFinished(c agent.ToolCall) {
	s.r.inbox.post(func() { s.r.toolEnded(s.a, c, !s.a.think.early) })
}

// said lists the parts of a reply that its model has said so far.
func (a *answer) said() []*part {
	return slices.DeleteFunc(slices.Clone(a.parts), func(p *part) bool { return p.keep || p.aside || p.text == "" })
}

// whole reports whether all of a response was heard.
func (d *realtime) whole(q *asking) bool {
	parts := d.partsOf(q)
	if !q.done || len(parts) == 0 && strings.TrimSpace(q.text) != "" {
		return false
	}
	for _, p := range parts {
		if d.audible(p) != p.text {
			return false
		}
	}
	return true
}

// partsOf lists the parts in which a response is heard.
func (d *realtime) partsOf(q *asking) (list []*part) {
	if q.part != nil {
		return []*part{q.part}
	}
	for _, p := range q.a.parts {
		if p.step == q.step && !p.aside && !p.keep {
			list = append(list, p)
		}
	}
	return list
}

// cut tells the model how much of a response was heard.
func (d *realtime) cut(q *asking) {
	if d.link == nil {
		return
	}
	var heard time.Duration
	var text strings.Builder
	if q.a.sounded {
		for _, p := range d.partsOf(q) {
			text.WriteString(d.audible(p))
			heard += d.r.out.position(p)
		}
	}
	d.link.Cut(q.n, heard, strings.TrimSpace(text.String()))
}

// resume asks a new session for what the previous one owed. What that one already said of a response is heard, and the
// new one continues from there; its calls were not made, and are forgotten.
func (d *realtime) resume() {
	l := d.link
	for _, n := range slices.Sorted(maps.Keys(d.asked)) {
		q := d.asked[n]
		if q.over || q.done || q.a.over {
			delete(d.asked, n)
			continue
		}
		heard := d.broke(q)
		if q.calls = nil; heard == "" {
			l.Respond(q.n, q.instruction, q.words)
			continue
		}
		delete(d.asked, n)
		q.done = true
		d.finish(q)
		d.ask(q.a, strings.TrimSpace(q.instruction+"\n[The line broke off in the middle of your answer. The customer has heard"+
			heard+". Go on exactly after that, and repeat nothing.]"), q.words)
	}
}

// broke leaves of a response what the customer hears of it, as no more will come, and says what that is: its words, or how long its sound
// is where its words are not known; "" where there is nothing.
func (d *realtime) broke(q *asking) string {
	q.text = strings.TrimSuffix(q.text, q.split.Flush()) // a sentence that has no end was not spoken
	var sound time.Duration
	if q.part != nil {
		q.text, sound = d.r.out.broke(q.part)
	}
	q.split = lang.Splitter{Language: d.Language}
	switch said := strings.TrimSpace(q.text); {
	case said != "":
		return ": “" + said + "”"
	case sound > 0:
		return fmt.Sprintf(" its first %.1f seconds", sound.Seconds())
	}
	return ""
}
