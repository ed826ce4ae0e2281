package call

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"parley/internal/assistant"
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

	client *assistant.Client         // nil: the browser runs no tools
	asks   chan assistant.ClientCall // of it
}

// maxAsks is how many tools a browser is asked to run at a time.
const maxAsks = 8

// Visitor is what a browser brings to its call.
type Visitor struct {
	Variables map[string]string
	Names     []string // of those variables that are the visitor's, not the assistant's owner's
	Tools     []string // names of the tools of kind client that the page runs
}

// Web prepares a call from a browser to an assistant, whoever owns it. If a call could not begin now, the error is what
// the caller may be told: lack of money (Payment) or room (Forbidden).
func (d *Center) Web(ctx context.Context, a *parley.Assistant, in Visitor) (*WebCall, error) {
	return d.web(ctx, a, false, in)
}

// WebTest is Web for a test call: it costs nothing, and a plan allows so many of them, and so many minutes, a day.
func (d *Center) WebTest(ctx context.Context, a *parley.Assistant, in Visitor) (*WebCall, error) {
	return d.web(ctx, a, true, in)
}

func (d *Center) web(ctx context.Context, a *parley.Assistant, test bool, in Visitor) (*WebCall, error) {
	v := &WebCall{center: d, asks: make(chan assistant.ClientCall, maxAsks), a: a}
	v.call = parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.CallWeb,
		Status: parley.CallInitiated, Test: test,
		InputVariables: in.Variables, VisitorNames: in.Names, MaxDuration: a.MaxDuration,
		AssistantRate: d.Prices.Calls.Assistant}
	if err := d.room(ctx, &v.call, a.UserID); err != nil {
		return nil, err
	}
	if len(in.Tools) > 0 {
		v.client = assistant.NewClient(in.Tools, v.ask)
	}
	v.unready = crash.Run(func() (err error) {
		o := occasion(&v.call)
		o.Client = v.client
		v.persona, err = d.persona(a, o)
		return err
	})
	if v.unready == nil && len(in.Variables) == 0 { // the same for everybody: who asks without end has it made once
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
	v.ID, v.l = c.ID, d.begin(traced, c, v.a, v.client)
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

// ask hands a call of a tool to whoever reads Asks; false where it has too many.
func (v *WebCall) ask(call assistant.ClientCall) bool {
	select {
	case v.asks <- call:
		return true
	default:
		return false
	}
}

// Asks are the calls of tools that the browser is to run, each of which is to be answered by ToolAnswered.
func (v *WebCall) Asks() <-chan assistant.ClientCall { return v.asks }

// ToolAnswered takes the result of a tool that the browser has run.
func (v *WebCall) ToolAnswered(id string, result assistant.ClientResult) { v.client.Answer(id, result) }

// Done is closed when the conversation is to end.
func (v *WebCall) Done() <-chan struct{} { return v.l.ctx.Done() }
