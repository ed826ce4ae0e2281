package sip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

// The far end may ask us to go on with somebody else in its place (REFER with Replaces, RFC 3515, 3891 and 5589): a
// person who speaks with the assistant has called somebody else meanwhile, and joins the two. We call that somebody,
// who knows by Replaces which of their calls this one is instead of, and the conversation goes on with the same sound.

// maxReferrals is how many times one call may be sent elsewhere.
const maxReferrals = 10

// referral is where the far end sends us.
type referral struct {
	leg      *leg
	seq      uint32 // of its REFER
	to       sipgo.Uri
	instead  replaces
	by       string // Referred-By (RFC 3892)
	told     bool   // the far end wants to know how it goes
	attempt  *attempt
	hop      hop
	deserted bool          // the far end has hung up meanwhile; under the leg's state lock
	trying   chan struct{} // closed when the far end knows that it is tried
}

// noticeGap is how long the NOTIFY of an outcome waits for the answer to the one before, so that it is not overtaken.
const noticeGap = time.Second

// MayRefer says why the far end may not send the call to an E.164 number or a sip: address. Until it is set, and for
// calls over the carrier and from softphones, the far end may send it nowhere.
func (l *leg) MayRefer(may func(to string) error) { l.referable.Store(&may) }

// referred takes a REFER.
func (l *leg) referred(req *sipgo.Request, tx *sipgo.ServerTx) {
	r, code := l.referral(req)
	if code == 0 {
		code = r.prepare(addrPort(req.Source()))
	}
	if code == 0 {
		code = r.begin()
	}
	if code != 0 {
		_ = tx.Respond(respond(req, code))
		return
	}
	res := respond(req, 202)
	if !r.told {
		addHeaders(res, []string{"Refer-Sub", "false"})
	}
	res.AppendHeader(l.ownContact())
	_ = tx.Respond(res)
	l.begin(r.run)
}

// referral reads a REFER. A transfer without Replaces is refused: whom we call is the trunk's owner's to say, and not
// everybody's who happens to be on the line.
func (l *leg) referral(req *sipgo.Request) (r *referral, code int) {
	list := append(parties(req, "Refer-To"), parties(req, "r")...)
	if len(list) != 1 {
		return nil, 400
	}
	r = &referral{leg: l, seq: req.CSeq().SeqNo, to: list[0].uri,
		told: !strings.EqualFold(headerOf(req, "Refer-Sub"), "false")}
	if method, ok := r.to.UriParams.Get("method"); ok && !strings.EqualFold(method, "INVITE") {
		return nil, 603
	}
	value, ok := r.to.Headers.Get("Replaces")
	if !ok {
		return nil, 403
	}
	if r.instead, ok = replacesOf(unescape(value)); !ok || !r.instead.plain() {
		return nil, 400
	}
	if by := append(parties(req, "Referred-By"), parties(req, "b")...); len(by) > 0 {
		r.by = "<" + by[0].uri.String() + ">"
	}
	return r, 0
}

// plain reports whether the parts of a Replaces header can be written into one of ours.
func (r *replaces) plain() bool {
	return !strings.ContainsFunc(r.callID+r.ours+r.theirs,
		func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`;,<>"`, c) })
}

func (r *replaces) String() string {
	text := r.callID + ";to-tag=" + r.ours + ";from-tag=" + r.theirs
	if r.early {
		text += ";early-only"
	}
	return text
}

// prepare decides whether we may go there, and makes the leg that does: the rules are those of redirects. code is the
// status to refuse with, or 0.
func (r *referral) prepare(from netip.AddrPort) (code int) {
	l := r.leg
	may := l.referable.Load()
	if may == nil || l.trunk == nil || l.trunk.Number == "" || from.Addr() != l.peer() {
		return 403
	}
	s := l.server
	ctx, cancel := context.WithTimeout(s.ctx, resolveTime)
	defer cancel()
	if !s.take() {
		return 503
	}
	n, err := s.newLeg(l.hopNow().addr)
	if err != nil {
		s.free()
		return 503
	}
	n.trunk, n.callID, n.local.tag = l.trunk, token(26), token(16)
	a := &attempt{leg: n, may: *may}
	if l.calls() { // otherwise it is not sure that this is where the trunk's password belongs
		a.home = l.hopNow().addr
	}
	if r.to, err = a.mayGo(&r.to); err == nil {
		r.hop, err = a.hopTo(ctx, &r.to, l.hopNow())
	}
	if err != nil {
		slog.Debug("a call is not sent elsewhere", "trunk", l.trunkID(), "error", err)
		n.release()
		return 403
	}
	r.attempt = a
	return 0
}

func (d *dialog) hopNow() hop {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hop
}

// begin notes that the call is on its way elsewhere.
func (r *referral) begin() (code int) {
	st := &r.leg.state
	st.Lock()
	defer st.Unlock()
	switch {
	case st.ended:
		code = 481
	case r.leg.early, st.offering, st.pending != nil, st.refer != nil, st.going != nil:
		code = 491
	case st.referrals >= maxReferrals:
		code = 603
	}
	if code != 0 {
		r.attempt.leg.release()
		return code
	}
	st.going = r
	st.referrals++
	return 0
}

// run goes there, and tells the far end how it went.
func (r *referral) run() {
	l := r.leg
	ctx, stop := context.WithTimeoutCause(l.server.ctx, transferTime, parley.NoAnswer)
	defer stop()
	l.begin(func() {
		select {
		case <-l.done:
			stop()
		case <-ctx.Done():
		}
	})
	trying := r.notice(&l.dialog, 100, phrase(100), false)
	r.trying = make(chan struct{})
	l.begin(func() { defer close(r.trying); trying() })
	if err := r.call(ctx); err != nil {
		r.failed(err)
		return
	}
	former, deserted := r.move()
	if former == nil || deserted {
		return
	}
	r.notice(former, 200, phrase(200), true)()
	_, _ = former.ask(l.server.ctx, former.request(sipgo.BYE)) // it may have done so itself
}

// failed goes on with the far end as before, if it is still there.
func (r *referral) failed(err error) {
	st := &r.leg.state
	st.Lock()
	st.going = nil
	ended := st.ended
	st.Unlock()
	switch {
	case ended:
		return
	case r.deserted:
		r.leg.end(parley.CustomerHangup, false)
		return
	}
	code, reason := 603, phrase(603)
	if refused, ok := errors.AsType[*Refused](err); ok {
		code, reason = refused.Code, refused.Reason
	}
	r.notice(&r.leg.dialog, code, reason, true)()
}

// call calls whom the far end names, for the ports of the call's sound.
func (r *referral) call(ctx context.Context) error {
	l, a := r.leg, r.attempt
	n := a.leg
	l.state.Lock()
	trunk := *l.trunk
	trunk.Codecs = l.again()
	n.round = l.round + 1
	n.own = local{id: uint64(rand.Uint32()), identity: l.server.identity,
		addr: netip.AddrPortFrom(l.server.shown(r.hop.addr.Addr()), l.own.addr.Port())}
	l.state.Unlock()
	a.describe(&Dialling{Trunk: trunk, To: userOf(&r.to), From: l.trunk.Number}, r.hop)
	a.direct(r.to, r.hop)
	a.invite.To().Address, n.remote.uri = *r.to.Clone(), r.to
	addHeaders(a.invite, []string{"Replaces", r.instead.String(), "Require", "replaces"})
	if r.by != "" {
		addHeaders(a.invite, []string{"Referred-By", r.by})
	}
	if l.ladder != nil {
		n.ladder = l.ladder
		l.server.ladders.share(n.callID, l.ladder)
	}
	n.add()
	err := a.run(ctx, r.hop)
	if err != nil {
		n.end(err, false)
	}
	return err
}

// move makes the new dialog the call's, and returns the former one, nil if the call is over; and whether the far end had
// left that one.
func (r *referral) move() (former *dialog, deserted bool) {
	l, n := r.leg, r.attempt.leg
	st := &l.state
	st.Lock()
	st.going = nil
	if st.ended {
		st.Unlock()
		n.end(parley.Canceled, true)
		return nil, false
	}
	n.state.Lock()
	agreed, said, as := n.state.agreed, n.state.said, n.state.as
	n.state.Unlock()
	former = l.become(n)
	st.agreed, st.said, st.as, l.own = agreed, said, as, n.own
	st.handed, st.byInfo = false, false
	l.ack.Store(n.ack.Load())
	l.invite.Store(n.invite.Load())
	l.session.Store(n.session.Load())
	l.apply()
	st.Unlock()
	if n.ended() { // whoever answered has hung up at once
		l.end(parley.CustomerHangup, false)
	}
	n.end(errFinal, false)
	return former, r.deserted
}

// notice makes a NOTIFY about how the transfer goes, and returns what sends it.
func (r *referral) notice(d *dialog, code int, reason string, over bool) (send func()) {
	if !r.told {
		return func() {}
	}
	state := "active;expires=" + strconv.Itoa(int(transferTime/time.Second))
	if over {
		state = "terminated;reason=noresource"
	}
	s := r.leg.server
	req := d.request(sipgo.NOTIFY)
	addHeaders(req, []string{"Event", "refer;id=" + strconv.FormatUint(uint64(r.seq), 10), "Subscription-State", state,
		"Content-Type", "message/sipfrag;version=2.0"})
	req.SetBody(fmt.Appendf(nil, "SIP/2.0 %d %s\r\n", code, reason))
	h, login := d.next(s.ctx), d.credentials() // now: the call may have another dialog soon
	return func() {
		if over {
			select {
			case <-r.trying:
			case <-time.After(noticeGap):
			}
		}
		_, _ = s.ask(s.ctx, req, h, login)
	}
}
