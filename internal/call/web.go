package call

import (
	"context"

	"parley"
	"parley/internal/audio"
	"parley/internal/store"
	"parley/internal/voice"
)

// Visit is a call from a browser that was let in, before its sound is there. Either Begin or Drop must follow.
type Visit struct {
	ID int64 // of the call
	l  *live

	// What is readied while the browser connects.
	s       *voice.Session
	unready error
	greeted *greeting // nil where unready says why
}

// Web lets a call from a browser begin, to an assistant whoever owns it. The error is what the caller may be told: errors of want of money
// (Payment) or room (Forbidden).
func (d *Desk) Web(ctx context.Context, a *parley.Assistant, vars map[string]string) (*Visit, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	c := &parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.CallWeb, Status: parley.CallInitiated, InputVariables: vars,
		MaxDuration: a.MaxDuration, AssistantRate: d.Prices.Calls.Assistant}
	err := d.write(ctx, func(ctx context.Context, tx *store.Tx) error { return d.admit(ctx, tx, a.UserID, c) })
	if err != nil {
		d.wg.Done()
		return nil, err
	}
	v := &Visit{ID: c.ID, l: d.begin(c, a)}
	v.unready = survive(func() (err error) {
		v.s, err = v.l.session()
		return err
	})
	if v.unready == nil {
		v.greeted = v.l.prepare(v.s, audio.Wide)
	}
	return v, nil
}

// Begin has the conversation on a leg. It doesn't wait: the desk does.
func (v *Visit) Begin(leg audio.Leg) {
	go v.l.run(func() error {
		if v.unready != nil {
			return v.l.unready(v.unready)
		}
		defer v.greeted.stop()
		return v.l.talk(v.s, leg)
	})
}

// Drop ends a visit that came to nothing.
func (v *Visit) Drop(cause error) {
	if v.greeted != nil {
		v.greeted.stop()
	}
	v.l.run(func() error { return cause })
}

// Hangup ends the call from the browser's side.
func (v *Visit) Hangup() { v.l.cancel(parley.CustomerHangup) }

// Done is closed when the conversation is to end.
func (v *Visit) Done() <-chan struct{} { return v.l.ctx.Done() }
