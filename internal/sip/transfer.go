package sip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

// frag is what a NOTIFY says about a transfer.
type frag struct {
	code   int
	reason string
	over   bool // no more will come
}

// transferTime is how long a far end may take to reach the target.
const transferTime = 2 * time.Minute

// neverRefers are the answers to REFER of who does not take it at all, whoever the target is.
var neverRefers = []int{403, 405, 501, 603}

// Transfer asks the far end to call somebody else in our place (RFC 3515): an E.164 number at the far end's own host,
// or a sip: address. It returns nil when somebody has answered there, and a *Refused if not; in that case the call goes
// on. Afterwards either side hangs up. Only one can be under way at a time.
func (l *leg) Transfer(ctx context.Context, to string) error {
	target, err := l.referTo(to)
	if err != nil {
		return err
	}
	st := &l.state
	st.Lock()
	if st.refer != nil || st.going != nil {
		st.Unlock()
		return errors.New("transfer: one is under way already")
	}
	told := make(chan frag, 16)
	st.refer = told
	st.Unlock()
	defer func() {
		st.Lock()
		st.refer = nil
		st.Unlock()
	}()
	if !l.server.enter() {
		return parley.Shutdown
	}
	defer l.server.leave()
	ctx, cancel := context.WithTimeoutCause(ctx, transferTime,
		fmt.Errorf("the far end didn't tell within %s whether it reached %s", transferTime, to))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(l.server.ctx, func() { stop(parley.Shutdown) })()

	if l.lacks(sipgo.REFER) {
		return fmt.Errorf("transfer to %s: %w: it does not allow REFER", to, parley.ErrNoRefer)
	}
	req := l.request(sipgo.REFER)
	req.AppendHeader(sipgo.NewHeader("Refer-To", "<"+target.String()+">"))
	req.AppendHeader(sipgo.NewHeader("Referred-By", "<"+req.From().Address.String()+">"))
	res, err := l.ask(ctx, req)
	if err != nil {
		return fmt.Errorf("transfer to %s: %w", to, err)
	}
	if slices.Contains(neverRefers, res.StatusCode) {
		return fmt.Errorf("transfer to %s: %w: %w", to, parley.ErrNoRefer, refusedBy(res))
	}
	if !res.IsSuccess() {
		return fmt.Errorf("transfer to %s: %w", to, refusedBy(res))
	}
	l.hand(true)
	if h := res.GetHeader("Refer-Sub"); h != nil && strings.HasPrefix(strings.TrimSpace(h.Value()), "false") {
		return nil // nothing more will be told (RFC 4488)
	}
	if err := l.follow(ctx, told); err != nil {
		l.hand(false)
		return fmt.Errorf("transfer to %s: %w", to, err)
	}
	return nil
}

// hand notes whether the far end is on its way elsewhere: a BYE then means that it has got there.
func (l *leg) hand(handed bool) {
	l.state.Lock()
	defer l.state.Unlock()
	l.state.handed = handed
}

// follow waits for the outcome of a transfer.
func (l *leg) follow(ctx context.Context, told <-chan frag) error {
	for {
		select {
		case f := <-told:
			switch {
			case f.code >= 200 && f.code < 300:
				return nil
			case f.code >= 300:
				return &Refused{Code: f.code, Reason: f.reason}
			case f.over:
				return errors.New("the far end stopped telling before it reached anybody")
			}
		case <-l.done:
			if l.cause == error(parley.Transferred) {
				return nil
			}
			return l.cause
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// referTo is the address of a transfer's target.
func (l *leg) referTo(to string) (sipgo.Uri, error) {
	if strings.HasPrefix(to, "sip:") || strings.HasPrefix(to, "sips:") {
		var u sipgo.Uri
		if err := sipgo.ParseUri(to, &u); err != nil || u.Host == "" || strings.ContainsAny(to, "\r\n<>\" ") {
			return u, fmt.Errorf("transfer: %q is not a SIP address", to)
		}
		return u, nil
	}
	if len(to) < 2 || strings.Trim(strings.TrimPrefix(to, "+"), "0123456789*#") != "" {
		return sipgo.Uri{}, fmt.Errorf("transfer: %q is neither a number nor a sip: address", to)
	}
	l.mu.Lock()
	u := sipgo.Uri{Scheme: "sip", User: escape(to), Host: l.target.Host, Port: l.target.Port}
	l.mu.Unlock()
	if l.trunk != nil && l.trunk.Address != "" {
		if host, port, err := hostPort(l.trunk.Address); err == nil {
			u.Host, u.Port = host, port
		}
	}
	return u, nil
}

// notified takes a NOTIFY and returns the status to answer it with.
func (l *leg) notified(req *sipgo.Request) int {
	event := ""
	if h := req.GetHeader("Event"); h != nil {
		event, _, _ = strings.Cut(h.Value(), ";")
	} else if h := req.GetHeader("o"); h != nil {
		event, _, _ = strings.Cut(h.Value(), ";")
	}
	if strings.TrimSpace(event) != "refer" {
		return 489
	}
	l.state.Lock()
	told := l.state.refer
	l.state.Unlock()
	if told == nil {
		return 200 // of one that is over
	}
	var f frag
	f.code, f.reason = fragment(req.Body())
	if h := req.GetHeader("Subscription-State"); h != nil {
		f.over = strings.HasPrefix(strings.TrimSpace(h.Value()), "terminated")
	}
	if f.code > 0 && f.code < 300 {
		l.hand(true) // which the answer to REFER says too, and may say later
	}
	select {
	case told <- f:
	default: // nobody sends so many
	}
	return 200
}
