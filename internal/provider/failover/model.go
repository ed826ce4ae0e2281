package failover

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/crash"
)

// ModelBudget is how long a model may take until its first word, if no setting says otherwise.
const ModelBudget = 2500 * time.Millisecond

// Model combines a list of models into one.
type Model struct {
	Links  []Link[ai.Model] // at least one
	Budget time.Duration    // to the first word; 0 is ModelBudget
}

// Generate implements ai.Model. Where a model breaks after it has said something, the next one is told what was said
// and goes on; where it has called a tool already, its reply ends with that.
func (m *Model) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &reply{queue: line(ai.TheModel, m.Links, ""), budget: budgetOr(m.Budget, ModelBudget), req: req, yield: yield,
		whole: req.Schema != nil, ctx: ctx, news: make(chan news), ends: make(chan *attempt, len(m.Links)+1)}
	defer r.wait()
	defer cancel(nil) // before the wait
	err := r.run()
	return r.got(), err
}

// reply is one reply that is generated, by however many.
type reply struct {
	*queue[ai.Model]
	budget time.Duration
	req    ai.Request
	yield  func(ai.Delta) error
	whole  bool // what comes is of no use before all of it is there: a document by a schema
	ctx    context.Context

	news  chan news
	ends  chan *attempt
	under []*attempt // requests that have not ended, and may still win, or have
	wg    sync.WaitGroup
	timer *time.Timer

	winner *attempt
	joint  *joint     // between what was said and what goes on; nil at the beginning
	held   []ai.Delta // of one that is whole
	said   strings.Builder
	calls  []ai.ToolCall
	finish ai.Finish
	usage  ai.Usage
	failed error // of the first that failed
}

// attempt is a request to one model.
type attempt struct {
	link   *Link[ai.Model]
	pass   *pass
	cancel context.CancelCauseFunc
	reply  ai.Reply
	err    error
}

type news struct {
	of *attempt
	ai.Delta
}

func (r *reply) run() error {
	r.timer = time.NewTimer(r.budget)
	defer r.timer.Stop()
	r.ask()
	for {
		select {
		case n := <-r.news:
			if r.winner == nil && slices.Contains(r.under, n.of) {
				r.wins(n.of)
			}
			if n.of != r.winner {
				continue
			}
			if err := r.take(n.Delta); err != nil {
				return err
			}
		case a := <-r.ends:
			if over, err := r.ended(a); over {
				return err
			}
		case <-r.timer.C:
			if r.winner == nil {
				r.tooLate()
			}
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// ask asks the next model; false when there is none.
func (r *reply) ask() bool {
	link, pass := r.pop()
	if link == nil {
		return false
	}
	ctx, cancel := context.WithCancelCause(r.ahead(r.ctx))
	a := &attempt{link: link, pass: pass, cancel: cancel}
	r.under = append(r.under, a)
	r.timer.Reset(budgetOr(link.Budget, r.budget))
	req := r.continued()
	r.wg.Go(func() {
		defer cancel(nil)
		a.err = crash.Run(func() (err error) {
			a.reply, err = link.Do.Generate(ctx, req, func(d ai.Delta) error {
				select {
				case r.news <- news{a, d}:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			return err
		})
		r.ends <- a
	})
	return true
}

// tooLate gives those that have sent nothing a rival.
func (r *reply) tooLate() {
	r.why = ai.Stalled
	for _, a := range r.under {
		a.pass.failed(late())
	}
	r.ask()
}

// wins lets one attempt go on alone.
func (r *reply) wins(a *attempt) {
	r.winner = a
	r.timer.Stop()
	for _, o := range r.under {
		if o != a {
			o.pass.void()
			o.cancel(errOver)
		}
	}
	r.under = []*attempt{a}
	r.acts(r.ctx, a.link.Name)
}

// take passes on what the winner sent.
func (r *reply) take(d ai.Delta) error {
	if r.whole {
		r.held = append(r.held, d)
		return nil
	}
	if r.joint != nil {
		if d.Call != nil {
			if err := r.give(ai.Delta{Text: r.joint.flush()}); err != nil {
				return err
			}
		}
		d.Text = r.joint.push(d.Text)
	}
	return r.give(d)
}

func (r *reply) give(d ai.Delta) error {
	if d.Text == "" && d.Call == nil {
		return nil
	}
	r.said.WriteString(d.Text)
	if d.Call != nil {
		r.calls = append(r.calls, *d.Call)
	}
	return r.yield(d)
}

// ended takes the end of a request; the reply is over when over is true.
func (r *reply) ended(a *attempt) (over bool, err error) {
	lost := !slices.Contains(r.under, a) // a race: all that counts is what it used
	r.under = slices.DeleteFunc(r.under, func(o *attempt) bool { return o == a })
	r.usage.Add(a.reply.Usage)
	if r.ctx.Err() != nil {
		r.leave(a)
		return true, context.Cause(r.ctx)
	}
	if lost {
		return false, nil
	}
	if a.err == nil {
		a.pass.well()
		if r.winner == nil { // it had nothing to say
			r.wins(a)
		}
		return true, r.close(a.reply.Finish)
	}
	a.pass.failed(a.err)
	r.failed = cmp.Or(r.failed, a.err)
	r.why = ai.KindOf(a.err)
	if !further(a.err) {
		return true, a.err
	}
	if r.winner == a {
		if len(r.calls) > 0 {
			return true, r.close(ai.ToolCalls)
		}
		if r.joint != nil {
			if err := r.give(ai.Delta{Text: r.joint.flush()}); err != nil {
				return true, err
			}
		}
		r.winner, r.held = nil, nil
	}
	if !r.ask() && len(r.under) == 0 {
		return true, r.failed
	}
	return false, nil
}

// close passes on what was held back.
func (r *reply) close(f ai.Finish) error {
	r.finish = f
	for _, d := range r.held {
		if err := r.give(d); err != nil {
			return err
		}
	}
	if r.joint != nil {
		return r.give(ai.Delta{Text: r.joint.flush()})
	}
	return nil
}

// goOn tells a model that it goes on in the middle of a reply.
const goOn = "[A technical fault cut your reply off after the words above; the customer has heard them. Go on exactly where they end, " +
	"in the same language, and repeat nothing of them. Do not mention the fault.]"

// continued is what the next model is asked: the same, and what has been said already.
func (r *reply) continued() ai.Request {
	said := r.said.String()
	if strings.TrimSpace(said) == "" {
		r.joint = nil
		return r.req
	}
	r.joint = newJoint(said)
	req := r.req
	req.Messages = append(slices.Clip(req.Messages), ai.Message{Role: ai.Assistant, Text: said},
		ai.Message{Role: ai.User, Text: goOn})
	return req
}

// wait returns when no request is left running.
func (r *reply) wait() {
	r.wg.Wait()
	for _, a := range r.under {
		r.leave(a)
	}
}

// leave releases an attempt that nobody waits for any more: if it has answered it did well.
func (r *reply) leave(a *attempt) {
	if a == r.winner {
		a.pass.well()
	}
	a.pass.void()
}

// got is the reply so far.
func (r *reply) got() ai.Reply {
	return ai.Reply{Text: r.said.String(), Calls: r.calls, Finish: r.finish, Usage: r.usage}
}
