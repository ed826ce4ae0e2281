package voice

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/lang"
	"parley/internal/telemetry"
	"parley/internal/turn"
)

// thinking is an agent turn that is under way.
type thinking struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	committed chan struct{} // closed when tools may run
	early     bool          // it isn't yet
	span      trace.Span
	calls     *agent.Turn // of a model that hears and speaks: it knows which calls did not fit
}

// think implements thinker.
func (d *pipeline) think(a *answer, early bool) {
	r := d.r
	t := &thinking{committed: make(chan struct{}), early: early}
	if !early {
		close(t.committed)
	}
	t.ctx, t.cancel = context.WithCancelCause(r.ctx)
	t.ctx, t.span = telemetry.Start(t.ctx, "reply", trace.SpanKindInternal, attribute.Bool("parley.reply.early", early))
	a.think = t
	before, done := r.busy, make(chan struct{})
	r.busy = done
	m := d.synthesis
	r.safely(func() {
		defer close(done)
		defer t.span.End()
		defer t.cancel(nil)
		m.answer(a, t, before)
	})
}

// commit implements thinker: it lets the tools of an early reply run.
func (d *pipeline) commit(a *answer) {
	if a.think != nil && a.think.early {
		a.think.early = false
		close(a.think.committed)
	}
}

// giveUp implements thinker.
func (d *pipeline) giveUp(a *answer) {
	if a.think == nil {
		return
	}
	if a.think.ctx.Err() == nil && d.r.broken.thought == nil {
		d.r.broken.thought = &ai.Error{Part: ai.TheModel, Kind: ai.Stalled, Err: errStalled}
	}
	a.think.cancel(errStalled)
}

// answer runs the turn. Whatever an earlier one is still doing finishes first, so that an order being placed is not
// placed twice.
func (m *synthesis) answer(a *answer, t *thinking, before <-chan struct{}) {
	r := m.r
	if before != nil {
		select {
		case <-before:
		default:
			r.happens(turn.Event{Kind: turn.ToolBegan, Reply: a.id})
			<-before
			r.happens(turn.Event{Kind: turn.ToolEnded, Reply: a.id})
		}
	}
	var history []ai.Message
	r.inbox.ask(func() { history = r.history(a) })
	if t.ctx.Err() != nil {
		return
	}
	if text := instruction(a, m.Reengagement); text != "" {
		history = append(history, ai.Message{Role: ai.User, Text: text})
	}
	s := &sink{r: r, a: a, split: lang.Splitter{Language: m.Language}}
	turn := m.Think(history, s)
	turn.System += m.polyglot(m.Language)
	turn.Tools = t.held(append(r.outlasting(turn.Tools), r.builtIn(a, &m.Persona)...))
	reply, err := turn.Run(t.ctx)
	if err != nil && t.ctx.Err() == nil {
		t.span.SetStatus(codes.Error, string(ai.KindOf(err)))
	}

	r.inbox.ask(func() {
		stopped := t.ctx.Err() != nil
		if err == nil || !stopped {
			s.flush()
		}
		r.thought(a, reply.Usage, err, stopped)
		m.allSaid(a)
	})
}

// held wraps tools so that they wait until the turn being answered has ended.
func (t *thinking) held(tools []agent.Tool) []agent.Tool {
	for i := range tools {
		run := tools[i].Run
		tools[i].Run = func(ctx context.Context, arguments json.RawMessage) (string, error) {
			select {
			case <-t.committed:
				return run(ctx, arguments)
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
	}
	return tools
}

// sink passes a reply to the owner as it forms, split into sentences.
type sink struct {
	r     *run
	a     *answer
	split lang.Splitter // the owner's
}

// Text implements agent.Sink.
func (s *sink) Text(delta string) {
	s.r.inbox.post(func() {
		if !s.r.wrote(s.a) {
			return
		}
		for _, text := range s.split.Push(delta) {
			s.r.sentence(s.a, text)
		}
	})
}

// flush passes on what is not a whole sentence.
func (s *sink) flush() { s.r.sentence(s.a, s.split.Flush()) }

// ToolStarted implements agent.Sink.
func (s *sink) ToolStarted(c agent.ToolCall) {
	s.r.inbox.post(func() {
		s.flush()
		s.r.toolBegan(s.a, c)
	})
}

// ToolFinished implements agent.Sink.
func (s *sink) ToolFinished(c agent.ToolCall) {
	s.r.inbox.post(func() { s.r.toolEnded(s.a, c, !s.a.think.early) })
}
