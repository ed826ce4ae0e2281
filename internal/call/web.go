package call

import (
	"context"

	"parley"
	"parley/internal/audio"
	"parley/internal/store"
	"parley/internal/voice"
)

// room says whether a call of a user's could begin now; the errors are those of admit. Nothing is held.
func (d *Center) room(ctx context.Context, c *parley.Call, userID int64) error {
	d.mu.Lock()
	stopping := d.stopping
	d.mu.Unlock()
	if stopping {
		return ErrStopping
	}
	u, err := d.DB.User(ctx, userID)
	if err != nil {
		return err
	}
	if u.DisabledAt != 0 {
		return errDisabled
	}
	live, err := d.DB.LiveCalls(ctx, userID)
	if err != nil {
		return err
	}
	if live >= d.Prices.Plan(u.Plan).ParallelCalls {
		return ErrFull
	}
	free, err := d.DB.Free(ctx, userID)
	if err == nil && free < c.Possible() {
		err = store.Insufficient
	}
	return err
}

// WebCall is a browser that wants to call, and is not connected yet: it holds no line and no money, since who only
// asks and never comes must take nobody's. Either Enter and Begin must follow, or Drop.
type WebCall struct {
	ID int64 // of the call, after Enter

	center *Center
	a      *parley.Assistant
	call   parley.Call
	l      *live // nil before Enter

	// What is readied while the browser connects.
	persona voice.Persona
	unready error
	greeted *greeting // nil where none is
}

// Web readies a call from a browser to an assistant, whoever owns it. The error is what the caller may be told where
// a call could not begin now: want of money (Payment) or room (Forbidden). The visitor, and not the assistant's
// owner, gave the variables that visitors names.
func (d *Center) Web(ctx context.Context, a *parley.Assistant, vars map[string]string,
	visitors ...string) (*WebCall, error) {
	v := &WebCall{center: d, a: a, call: parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.CallWeb,
		Status:         parley.CallInitiated,
		InputVariables: vars, VisitorNames: visitors, MaxDuration: a.MaxDuration,
		AssistantRate: d.Prices.Calls.Assistant}}
	if err := d.room(ctx, &v.call, a.UserID); err != nil {
		return nil, err
	}
	v.unready = survive(func() (err error) {
		v.persona, err = d.persona(a, occasion(&v.call))
		return err
	})
	if v.unready == nil && len(vars) == 0 { // the same for everybody: who asks without end has it made once
		v.greeted = prepare(d.ctx, &voice.Session{Persona: v.persona, Cache: &d.cache}, audio.Wide)
	}
	return v, nil
}

// Enter lets the call of a browser that is connected begin; the errors are those of Web, and the visit is to be
// dropped then.
func (v *WebCall) Enter(ctx context.Context) error {
	d := v.center
	if err := d.enter(); err != nil {
		return err
	}
	c := &v.call
	err := d.write(ctx, func(ctx context.Context, tx *store.Tx) error { return d.admit(ctx, tx, v.a.UserID, c) })
	if err != nil {
		d.wg.Done()
		return err
	}
	v.ID, v.l = c.ID, d.begin(c, v.a)
	return nil
}

// Begin has the conversation on a leg. It doesn't wait: the center does.
func (v *WebCall) Begin(leg audio.Leg) {
	go v.l.run(func() error {
		defer leg.Hangup()
		defer v.greeted.stop()
		if v.unready != nil {
			return v.l.unready(v.unready)
		}
		return v.l.talk(v.l.session(v.persona), leg)
	})
}

// Drop ends a visit that came to nothing.
func (v *WebCall) Drop(cause error) {
	v.greeted.stop()
	if v.l != nil {
		v.l.run(func() error { return cause })
	}
}

// Done is closed when the conversation is to end.
func (v *WebCall) Done() <-chan struct{} { return v.l.ctx.Done() }
