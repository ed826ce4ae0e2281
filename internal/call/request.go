package call

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/store"
)

// The process that has a call is the only one that can do something with it: another one asks it (node.Requests).

var (
	errDeaf = parley.Errorf(parley.Unavailable,
		"The node of the server that has this call does not answer. Nothing was done: try again in a moment.")
	errUnclear = parley.Errorf(parley.Unavailable,
		"The node of the server that has this call did not say in time whether it was done: look at the call before you try again.")
)

// asking is how processes ask each other about calls.
func (d *Center) asking() *node.Requests {
	return &node.Requests{DB: d.DB, In: store.CallRequests, Node: d.node, Look: min(250*time.Millisecond, d.Beat), Fulfil: d.fulfil,
		Idle: func() bool { return !d.Taken && len(d.all()) == 0 }, Deaf: errDeaf, Unclear: errUnclear,
		Failed: "Something went wrong on the node of the server that has this call. Its operator can find the reason in the log."}
}

// The kinds of requests, with their bodies.
const (
	askInvite    = "invite"    // Invitation
	askAttend    = "attend"    // Browser
	askMode      = "mode"      // aboutLeg
	askHangup    = "hangup"    // aboutLeg
	askReconnect = "reconnect" // BrowserChange
	askWhisper   = "whisper"   // string
	askDial      = "dial"      // nothing: the call's row says everything
)

type aboutLeg struct {
	Leg  int64
	Mode parley.LegMode
}

// elsewhere says that a call is on another node.
type elsewhere struct{ node string }

func (e *elsewhere) Error() string { return "the call is on node " + e.node }

// ask has the process that has a call do something with it. err is why this one can't: any other error than elsewhere is
// returned as it is.
func (d *Center) ask(ctx context.Context, err error, userID, id int64, kind string, body, answer any) error {
	var e *elsewhere
	if !errors.As(err, &e) {
		return err
	}
	return d.requests.Ask(ctx, store.Request{CallID: id, UserID: userID, Node: e.node, Kind: kind}, body, answer)
}

// fulfil does what a request asks for.
func (d *Center) fulfil(ctx context.Context, q *store.Request) (any, error) {
	read := func(body any) error { return json.Unmarshal([]byte(q.Body), body) }
	var a aboutLeg
	switch q.Kind {
	case askDial:
		return nil, d.take(ctx, q.UserID, q.CallID)
	case askInvite:
		var i Invitation
		if err := read(&i); err != nil {
			return nil, err
		}
		return d.Invite(ctx, q.UserID, q.CallID, i)
	case askAttend:
		var b Browser
		if err := read(&b); err != nil {
			return nil, err
		}
		return d.Attend(ctx, q.UserID, q.CallID, b)
	case askReconnect:
		var change BrowserChange
		if err := read(&change); err != nil {
			return nil, err
		}
		return d.Reconnect(ctx, q.UserID, q.CallID, change)
	case askMode:
		if err := read(&a); err != nil {
			return nil, err
		}
		return d.ChangeLeg(ctx, q.UserID, q.CallID, a.Leg, a.Mode)
	case askHangup:
		if err := read(&a); err != nil {
			return nil, err
		}
		return nil, d.HangupLeg(ctx, q.UserID, q.CallID, a.Leg)
	case askWhisper:
		var text string
		if err := read(&text); err != nil {
			return nil, err
		}
		return nil, d.Whisper(ctx, q.UserID, q.CallID, text)
	}
	return nil, parley.Errorf(parley.Unavailable, "The node of the server that has this call can't do that: it runs an older version.")
}
