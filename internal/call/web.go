package call

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/telemetry"
	"parley/internal/voice"
)

// room reports whether a user's call could begin now; the errors are those of admit. It reserves nothing.
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
	if err := d.hasRoom(ctx, d.DB.Query, u, c); err != nil {
		return err
	}
	free, err := d.DB.Free(ctx, userID)
	if err == nil && !c.Test && free < c.Possible() {
		err = store.Insufficient
	}
	return err
}

// WebCall is a browser that wants to call but is not connected yet. It holds no line and no money, as someone who asks
// and never comes must not take anybody else's. It must be followed by Enter and Begin, or by Drop.
type WebCall struct {
	ID int64 // of the call, after Enter

	center *Center
	a      *parley.Assistant
	call   parley.Call
	l      *live // nil before Enter

	// What is prepared while the browser connects.
	persona voice.Persona
	unready error
	greeted *greeting // nil where none is
}

// Web prepares a call from a browser to an assistant, whoever owns it. If a call could not begin now, the error is what
// the caller may be told: lack of money (Payment) or room (Forbidden). The variables listed in visitors came from the
// visitor, not from the assistant's owner.
func (d *Center) Web(ctx context.Context, a *parley.Assistant, vars map[string]string,
	visitors ...string) (*WebCall, error) {
	return d.web(ctx, a, false, vars, visitors)
}

// WebTest is Web for a test call: it costs nothing, and a plan allows so many of them, and so many minutes, a day.
func (d *Center) WebTest(ctx context.Context, a *parley.Assistant, vars map[string]string,
	visitors ...string) (*WebCall, error) {
	return d.web(ctx, a, true, vars, visitors)
}

func (d *Center) web(ctx context.Context, a *parley.Assistant, test bool, vars map[string]string,
	visitors []string) (*WebCall, error) {
	v := &WebCall{center: d, a: a, call: parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.CallWeb,
		Status: parley.CallInitiated, Test: test,
		InputVariables: vars, VisitorNames: visitors, MaxDuration: a.MaxDuration,
		AssistantRate: d.Prices.Calls.Assistant}}
	if err := d.room(ctx, &v.call, a.UserID); err != nil {
		return nil, err
	}
	v.unready = crash.Run(func() (err error) {
		v.persona, err = d.persona(a, occasion(&v.call))
		return err
	})
	if v.unready == nil && len(vars) == 0 { // the same for everybody: who asks without end has it made once
		v.greeted = prepare(d.ctx, &voice.Session{Persona: v.persona, Cache: &d.cache}, audio.Wide)
	}
	return v, nil
}

// Enter lets the call of a connected browser begin. The errors are those of Web; after an error the visit must be
// dropped.
func (v *WebCall) Enter(ctx context.Context) error {
	d := v.center
	if err := d.enter(); err != nil {
		return err
	}
	c := &v.call
	traced := d.traced(c, v.a)
	err := d.write(ctx, func(ctx context.Context, tx *store.Tx) error { return d.admit(ctx, tx, v.a.UserID, c) })
	if err != nil {
		telemetry.End(trace.SpanFromContext(traced), "not admitted")
		d.wg.Done()
		return err
	}
	v.ID, v.l = c.ID, d.begin(traced, c, v.a)
	return nil
}

// Begin holds the conversation on a leg. It returns at once; the center waits for the call.
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
