package voice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/parley"
	"parley/internal/turn"
)

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
	if history := agent.Trim(r.transcript.history(), budget); len(history) > 0 {
		d.n++
		l.Add(d.n, history...)
	}
	for p, w := range d.texts {
		l.Add(w.n, ai.Message{Role: ai.Assistant, Text: p.text})
	}
	for _, u := range d.said {
		switch {
		case u.final && r.transcript.has(u.n):
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
	if d.tries > maxLinks || l == nil && ai.KindOf(err) == ai.Config {
		d.bye(fmt.Errorf("after %d sessions: %w", d.tries, err))
		return
	}
	d.connect(pauseBefore(d.tries, err))
}

// pauseBefore is how long to wait before something that is lost is opened again for the nth time, after an error.
func pauseBefore(n int, err error) time.Duration {
	if n <= 1 {
		return 0
	}
	pause := linkPause << (n - 2)
	if e, ok := errors.AsType[*ai.Error](err); ok {
		pause = max(pause, min(e.RetryAfter, 5*time.Second))
	}
	return pause
}

// bye ends the call, as no session can be had any more. A reply that is owed becomes an apology, if somebody else speaks
// it.
func (d *realtime) bye(err error) {
	r, a := d.r, d.r.reply
	if a == nil || d.synthesis.itself() {
		r.fail(err)
		return
	}
	r.noted(err)
	r.broken.fatal = err
	d.closed = true // nothing is opened any more
	r.inbox.post(func() {
		r.step(turn.Event{Kind: turn.Leave, Reply: a.id, Reason: parley.ProviderFailure})
		switch {
		case a.over:
			r.step(turn.Event{Kind: turn.End, Reason: parley.ProviderFailure})
		case a.think != nil && !a.thought:
			d.thought(a, "", ai.Usage{}, err)
		default: // it was said by somebody else, or all of it is there
			r.say(a, turn.Failure)
			r.step(turn.Event{Kind: turn.Spoken, Reply: a.id})
			d.synthesis.allSaid(a)
		}
	})
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
	case ai.RealtimeBegan:
		d.begun()
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
