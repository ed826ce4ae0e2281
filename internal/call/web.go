package call

import (
	"context"

	"parley"
	"parley/internal/audio"
	"parley/internal/store"
)

// Visit is a call from a browser that was let in, before its sound is there. Either Begin or Drop must follow.
type Visit struct {
	ID int64 // of the call
	l  *live
}

// Web lets a call from a browser begin, to an assistant whoever owns it. The error is what the caller may be told: errors of want of money
// (Payment) or room (Forbidden).
func (d *Desk) Web(ctx context.Context, a *parley.Assistant, vars map[string]string) (*Visit, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	c := &parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.CallWeb, Status: parley.CallInitiated, InputVariables: vars,
		MaxDuration: a.MaxDuration, AssistantRate: d.Prices.Calls.Assistant}
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return d.admit(ctx, tx, a.UserID, c) })
	if err != nil {
		d.wg.Done()
		return nil, err
	}
	return &Visit{c.ID, d.begin(c, a)}, nil
}

// Begin has the conversation on a leg. It doesn't wait: the desk does.
func (v *Visit) Begin(leg audio.Leg) {
	go v.l.run(func() error {
		s, err := v.l.session()
		if err != nil {
			return v.l.unready(err)
		}
		return v.l.talk(s, leg)
	})
}

// Drop ends a visit that came to nothing.
func (v *Visit) Drop(cause error) {
	v.l.run(func() error { return cause })
}

// Hangup ends the call from the browser's side.
func (v *Visit) Hangup() { v.l.cancel(parley.CustomerHangup) }

// Done is closed when the conversation is to end.
func (v *Visit) Done() <-chan struct{} { return v.l.ctx.Done() }
