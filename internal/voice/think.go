package voice

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/lang"
	"parley/internal/turn"
)

// thinking is a turn of the agent's that is under way.
type thinking struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	before *thinking     // an earlier one, which may be finishing a tool
	done   chan struct{} // it has returned
	err    error         // why it failed

	committed chan struct{} // closed when tools may run
	early     bool          // it isn't yet
}

// beginThinking answers the customer, or says something of its own accord.
func (r *run) beginThinking(act turn.Action) {
	a := &answer{id: act.Reply, purpose: act.Purpose, anchor: -1}
	if act.Purpose == turn.Reengagement {
		a.quiet = act.Last - act.From
	}
	if act.Purpose == turn.Answer {
		a.anchor = act.Last
		if !act.Early {
			a.marks.EndpointMS = since(r.clock.now(), act.Last)
		}
		a.marks.TranscriptMS = since(max(r.ear.final, act.Last), act.Last)
		r.book.customer(act.Text, act.From)
	}
	r.book.assistant(a)
	r.book.settle()
	r.reply = a
	t := &thinking{before: r.thinking, done: make(chan struct{}), committed: make(chan struct{}), early: act.Early}
	if !t.early {
		close(t.committed)
	}
	t.ctx, t.cancel = context.WithCancelCause(r.ctx)
	a.think, r.thinking = t, t
	mouth := r.mouth
	r.safely(func() {
		defer close(t.done)
		defer t.cancel(nil)
		r.think(a, t, mouth)
	})
}

// commit lets the tools of an early reply run: the turn that it answers has ended.
func (r *run) commit(id int) {
	if a := r.reply; a != nil && a.id == id && a.think != nil && a.think.early {
		a.think.early = false
		close(a.think.committed)
		a.marks.EndpointMS = since(r.clock.now(), a.anchor)
	}
}

// think runs the turn. What an earlier one is still doing comes to its end first: an order that is being placed is not placed twice.
func (r *run) think(a *answer, t *thinking, m *mouth) {
	if t.before != nil {
		select {
		case <-t.before.done:
		default:
			r.happens(turn.Event{Kind: turn.ToolBegan, Reply: a.id})
			<-t.before.done
			r.happens(turn.Event{Kind: turn.ToolEnded, Reply: a.id})
		}
		t.before = nil
	}
	var history []ai.Message
	r.inbox.ask(func() { history = r.history(a) })
	if t.ctx.Err() != nil {
		return
	}
	if text := instruction(a, m); text != "" {
		history = append(history, ai.Message{Role: ai.User, Text: text})
	}
	s := &sink{r: r, a: a, split: lang.Splitter{Language: m.Language}}
	thought := m.Think(history, s)
	thought.Tools = r.committed(append(r.outlasting(thought.Tools), r.builtIn(a, m)...), t)
	reply, err := thought.Run(t.ctx)

	r.inbox.ask(func() { r.thought(a, t, s, reply, err) })
}

// history is what the model is told before it answers.
func (r *run) history(a *answer) []ai.Message {
	history := r.book.history()
	if len(a.parts) > 0 && a.parts[0].initial { // the answer begins with the greeting
		history = slices.Insert(history, len(history)-1, ai.Message{Role: ai.Assistant, Text: a.parts[0].text})
	}
	return history
}

// thought is the end of a turn of thinking.
func (r *run) thought(a *answer, t *thinking, s *sink, reply agent.Reply, err error) {
	r.usage.Add(reply.Usage)
	stopped := t.ctx.Err() != nil
	if err == nil || !stopped {
		s.flush()
	}
	a.thought = a.thought || err == nil
	switch {
	case err == nil:
		r.broken.thought = nil
	case !stopped:
		r.noted(fmt.Errorf("reply %d: %w", a.id, err))
		t.err, r.broken.thought = err, err
	}
	r.step(turn.Event{Kind: turn.Thought, Reply: a.id, Failed: err != nil})
}

// instruction is what the model is told when it is to speak though nobody said anything.
func instruction(a *answer, m *mouth) string {
	switch a.purpose {
	case turn.Reengagement:
		return fmt.Sprintf("[The customer has said nothing for %d seconds. %s Say something fitting, in one or two sentences, in the language of the conversation.]", int(a.quiet.Seconds()), m.Reengagement)
	case turn.Entrance:
		return "[You have just taken over this conversation from another assistant. Go on with it: say who you are, and help with what the customer wants.]"
	}
	return ""
}

// failureText says that the model failed.
func (r *run) failureText() string {
	if l := lang.Of(r.mouth.Language); !l.English {
		return l.Phrases.Failure
	}
	if r.reply != nil && r.reply.think != nil && r.reply.think.err != nil {
		return agent.Sentence(r.reply.think.err)
	}
	return agent.Sentence(nil)
}

// sink takes a reply as it forms to the owner, who makes sentences of it.
type sink struct {
	r     *run
	a     *answer
	split lang.Splitter // the owner's
}

// Text implements agent.Sink.
func (s *sink) Text(delta string) { s.r.inbox.post(func() { s.wrote(delta) }) }

func (s *sink) wrote(delta string) {
	r := s.r
	if s.a.over {
		return
	}
	s.a.wrote()
	r.broken.thought = nil
	if s.a.marks.FirstTokenMS == 0 && s.a.anchor >= 0 {
		s.a.marks.FirstTokenMS = since(r.clock.now(), s.a.anchor)
	}
	r.step(turn.Event{Kind: turn.Token, Reply: s.a.id})
	for _, text := range s.split.Push(delta) {
		s.sentence(text)
	}
}

// sentence gives one to the machine.
func (s *sink) sentence(text string) {
	text = parley.CleanText(text)
	if strings.TrimSpace(text) == "" {
		return
	}
	if s.a.marks.FirstSentenceMS == 0 && s.a.anchor >= 0 {
		s.a.marks.FirstSentenceMS = since(s.r.clock.now(), s.a.anchor)
	}
	s.r.step(turn.Event{Kind: turn.Sentence, Reply: s.a.id, Text: text})
}

// flush gives out what is no whole sentence.
func (s *sink) flush() {
	if text := s.split.Flush(); !s.a.over {
		s.sentence(text)
	}
}

// ToolStarted implements agent.Sink.
func (s *sink) ToolStarted(agent.Call) {
	s.r.inbox.post(func() {
		s.flush()
		s.a.called()
		s.r.step(turn.Event{Kind: turn.ToolBegan, Reply: s.a.id})
	})
}

// ToolFinished implements agent.Sink.
func (s *sink) ToolFinished(c agent.Call) {
	s.r.inbox.post(func() {
		if s.a.think.early { // it was given up: nothing was done
			s.a.runs--
			return
		}
		s.a.finished(c)
		s.r.told(Event{Kind: ToolUsed, Call: c})
		s.r.step(turn.Event{Kind: turn.ToolEnded, Reply: s.a.id})
	})
}
