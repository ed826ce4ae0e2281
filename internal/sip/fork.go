package sip

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
)

// A call may ring at several places, because a proxy forks it. Each place that speaks up has an early dialog with us
// (RFC 3261, section 12.1). The one that answers first gets the call; later answers are confirmed and hung up.

// maxForks is how many places of one call we remember.
const maxForks = 16

// fork is one early dialog of a call of ours.
type fork struct {
	dialog
	leg  *leg
	rseq uint32 // of the last reliable provisional answer; 0: there was none

	// What was agreed on early: the answer to our offer, or later an offer of the far end's that we answered.
	description *description
	choice      choice
	updated     bool // the latter
}

// branch makes the dialog of one of the places where a call of ours rings.
func (l *leg) branch(res *sipgo.Response) *fork {
	l.mu.Lock()
	f := &fork{leg: l, dialog: dialog{server: l.server, trunk: l.trunk, callID: l.callID, local: l.local,
		remote: name{l.remote.uri, tagOf(res.To().Params)}, login: l.login, contact: l.contact, caller: true,
		target: l.target, route: recordRoute(res, true), hop: l.hop}}
	l.mu.Unlock()
	f.learn(res)
	return f
}

// request makes a request to this place. All places share the call's numbers, which only have to grow.
func (f *fork) request(method sipgo.RequestMethod) *sipgo.Request {
	number := f.leg.number()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.build(method, number)
}

// ask sends one.
func (f *fork) ask(ctx context.Context, req *sipgo.Request) {
	l := f.leg.credentials()
	_, _ = f.server.ask(ctx, req, f.next(ctx), l) // nothing depends on the answer
}

// forkOf is the early dialog with a tag of the far end's, nil if there is none.
func (l *leg) forkOf(tag string) *fork {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forks[tag]
}

// came notes that a request of the far end's came, in the dialog that it belongs to.
func (l *leg) came(req *sipgo.Request) {
	switch tag := tagOf(req.From().Params); {
	case l.remoteTag() == tag:
		l.arrives(req)
	default:
		if f := l.forkOf(tag); f != nil {
			f.arrives(req)
		}
	}
}

// provisional takes a provisional answer to our INVITE; it is nil where the answer opens no dialog, or must be ignored.
func (l *leg) provisional(res *sipgo.Response) *fork {
	tag := tagOf(res.To().Params)
	if tag == "" || res.StatusCode == 100 {
		return nil
	}
	f := l.forkOf(tag)
	if f == nil {
		f = l.branch(res)
		l.mu.Lock()
		if l.forks == nil {
			l.forks = map[string]*fork{}
		}
		if len(l.forks) < maxForks {
			l.forks[tag] = f
		}
		l.mu.Unlock()
	} else {
		f.learn(res)
	}
	rseq, reliable := rseqOf(res)
	if !reliable {
		return f
	}
	if f.rseq != 0 && rseq != f.rseq+1 { // it came before, or one before it is missing (RFC 3262, section 4)
		return nil
	}
	f.rseq = rseq
	req := f.request(sipgo.PRACK)
	req.AppendHeader(sipgo.NewHeader("RAck", strconv.FormatUint(uint64(rseq), 10)+" "+res.CSeq().Value()))
	f.leg.begin(func() { f.ask(f.server.ctx, req) })
	return f
}

// rseqOf is the number of a reliable provisional answer.
func rseqOf(res *sipgo.Response) (n uint32, ok bool) {
	needed := slices.ContainsFunc(valuesOf(res, "Require"), func(v string) bool { return strings.EqualFold(v, "100rel") })
	h := res.GetHeader("RSeq")
	if !needed || h == nil {
		return 0, false
	}
	v, err := strconv.ParseUint(strings.TrimSpace(h.Value()), 10, 32)
	return uint32(v), err == nil && v > 0
}

// handle takes a request of the far end's in an early dialog.
func (f *fork) handle(req *sipgo.Request, tx *sipgo.ServerTx) {
	if bad := required(req); bad != "" {
		_ = tx.Respond(respond(req, 420, "Unsupported", bad))
		return
	}
	switch req.Method {
	case sipgo.UPDATE:
		f.update(req, tx)
	case sipgo.INFO, sipgo.OPTIONS:
		_ = tx.Respond(respond(req, 200, "Allow", allowed, "Accept", "application/sdp"))
	default:
		_ = tx.Respond(respond(req, 481))
	}
}

// update takes a change of what was agreed on early (RFC 3311), which it can be only after our own offer was answered.
func (f *fork) update(req *sipgo.Request, tx *sipgo.ServerTx) {
	l := f.leg
	text, ok := sdpOf(req)
	if !ok {
		_ = tx.Respond(respond(req, 415, "Accept", "application/sdp"))
		return
	}
	l.state.Lock()
	defer l.state.Unlock()
	if len(text) > 0 && f.description == nil {
		_ = tx.Respond(respond(req, 491))
		return
	}
	res := respond(req, 200)
	able(res)
	res.AppendHeader(l.ownContact())
	if len(text) > 0 {
		d, c, code := l.read(text)
		if code != 0 {
			_ = tx.Respond(respond(req, code, unfit(code, text, l.secrecy())...))
			return
		}
		c = l.shake(d, l.keyed(c))
		f.description, f.choice, f.updated = d, c, true
		withSDP(res, l.own.answer(d, c, d.streams[c.place].mirror()))
	}
	f.learn(req)
	_ = tx.Respond(res)
}

// agreed is what was agreed on early.
func (f *fork) agreed() (d *description, updated bool) {
	if f == nil {
		return nil, false
	}
	f.leg.state.Lock()
	defer f.leg.state.Unlock()
	return f.description, f.updated
}

// lost confirms and hangs up the answer of a place that was too late.
func (l *leg) lost(res *sipgo.Response) {
	invite := l.invite.Load()
	tag := tagOf(res.To().Params)
	if invite == nil || invite.CSeq().SeqNo != res.CSeq().SeqNo {
		return
	}
	l.mu.Lock()
	ack, known := l.losers[tag]
	full := len(l.losers) >= maxForks
	if !known && !full {
		if l.losers == nil {
			l.losers = map[string]*sipgo.Request{}
		}
		l.losers[tag] = nil
	}
	l.mu.Unlock()
	switch {
	case ack != nil: // the first one was lost
		_ = l.server.transport.WriteMsg(ack.Clone())
	case known || full:
	default:
		f := l.branch(res)
		ack := f.confirm2xx(invite)
		l.mu.Lock()
		l.losers[tag] = ack
		l.mu.Unlock()
		l.begin(func() { f.ask(f.server.ctx, withReason(f.request(sipgo.BYE), tookElsewhere)) })
	}
}

// reliable is a provisional answer of ours that the caller must acknowledge (RFC 3262).
type reliable struct {
	rseq  uint32
	offer *ours         // what it offered, where the PRACK brings the answer
	sound bool          // it has our answer to their offer (early media)
	acked chan struct{} // closed when it was acknowledged
}

// pracked takes a PRACK.
func (l *leg) pracked(req *sipgo.Request, tx *sipgo.ServerTx) {
	st := &l.state
	st.Lock()
	r := st.reliable
	number, rest, _ := strings.Cut(headerOf(req, "RAck"), " ")
	invite := ""
	if r != nil {
		invite = l.incoming.req.CSeq().Value()
	}
	if r == nil || number != strconv.FormatUint(uint64(r.rseq), 10) || strings.Join(strings.Fields(rest), " ") != invite {
		st.Unlock()
		_ = tx.Respond(respond(req, 481))
		return
	}
	text, _ := sdpOf(req)
	var bad error
	switch {
	case acked(r):
	case r.offer != nil:
		bad = l.answeredLocked(req, r.offer)
	case len(text) > 0: // their first offer is not answered yet
		st.Unlock()
		_ = tx.Respond(respond(req, 500, "Retry-After", "1"))
		return
	}
	if bad == nil && !acked(r) {
		close(r.acked)
	}
	st.Unlock()
	if bad != nil {
		_ = tx.Respond(respond(req, 488, unfit(488, text, l.secrecy())...))
		_ = l.incoming.Refuse(488)
		l.incoming.cancel(bad)
		return
	}
	_ = tx.Respond(respond(req, 200))
}

// settled reports whether both ends know of an answer before the call is answered.
func (r *reliable) settled() bool { return r != nil && (r.offer != nil || r.sound) && acked(r) }

func acked(r *reliable) bool {
	select {
	case <-r.acked:
		return true
	default:
		return false
	}
}

// headerOf is the value of a header, "" if it isn't there.
func headerOf(m sipgo.Message, name string) string {
	if list := m.GetHeaders(name); len(list) > 0 {
		return strings.TrimSpace(list[0].Value())
	}
	return ""
}

// insist sends a reliable provisional answer until it is acknowledged. A caller that never does so is refused.
func (in *Invite) insist(r *reliable, res *sipgo.Response) {
	every, give := sipgo.T1, time.NewTimer(64*sipgo.T1)
	defer give.Stop()
	again := time.NewTimer(every)
	defer again.Stop()
	for {
		select {
		case <-r.acked:
			return
		case <-in.ctx.Done():
			return
		case <-again.C:
			in.mu.Lock()
			final := in.final
			if !final {
				_ = in.tx.Respond(res)
			}
			in.mu.Unlock()
			if final {
				return
			}
			every *= 2
			again.Reset(every)
		case <-give.C:
			_ = in.Refuse(504)
			in.cancel(errNoPRACK)
			return
		}
	}
}
