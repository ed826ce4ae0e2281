package sip

import (
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
)

// A caller may take the place of the far end in a call of ours (Replaces, RFC 3891): somebody spoke with the assistant,
// and then joins it to somebody else. The conversation goes on with the same sound, and does not know of it.

// replaces names a call: its Call-ID, our tag and the far end's.
type replaces struct {
	callID, ours, theirs string
	early                bool // only if it isn't answered yet
}

// replacesOf parses a Replaces header.
func replacesOf(value string) (r replaces, ok bool) {
	parts := strings.Split(value, ";")
	r.callID = strings.TrimSpace(parts[0])
	for _, p := range parts[1:] {
		name, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "to-tag":
			r.ours = strings.TrimSpace(v)
		case "from-tag":
			r.theirs = strings.TrimSpace(v)
		case "early-only":
			r.early = true
		}
	}
	return r, r.callID != "" && r.ours != "" && r.theirs != ""
}

// replaced finds the call whose far end this one wants to be, nil if it is a call like any other. code is the status to
// refuse it with, or 0. It must have come over the same trunk as that call, with the proof that the trunk demands: a
// call's tags are no secret to those on its way. The carrier's calls are of many users, and are never replaced.
func (in *Invite) replaced() (old *leg, code int) {
	list := in.req.GetHeaders("Replaces")
	if len(list) == 0 || in.Trunk != nil && in.Trunk.Number == "" {
		return nil, 0
	}
	r, ok := replacesOf(list[0].Value())
	if !ok || len(list) > 1 {
		return nil, 400
	}
	s := in.server
	s.mu.Lock()
	l := s.legs[r.callID+" "+r.ours]
	s.mu.Unlock()
	if l == nil || l.remoteTag() != r.theirs || (l.trunk == nil) != (in.Trunk == nil) ||
		in.Trunk != nil && l.trunkID() != in.Trunk.ID {
		return nil, 481
	}
	l.state.Lock()
	defer l.state.Unlock()
	switch {
	case l.state.ended:
		return nil, 603
	case l.early:
		return nil, 481
	case r.early:
		return nil, 486
	case l.state.offering, l.state.pending != nil, l.state.refer != nil, l.state.going != nil:
		return nil, 491
	}
	return l, 0
}

// takeOver gives a call this one's far end, and hangs up on the former one.
func (in *Invite) takeOver(l *leg) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := in.leg
	in.final = true
	n.end(errFinal, false) // its ports are not needed: the sound stays where it is
	text, _ := sdpOf(in.req)
	st := &l.state
	st.Lock()
	defer st.Unlock()
	var d *description
	var c choice
	code := 0
	switch {
	case st.ended:
		code = 603
	case st.offering, st.pending != nil:
		code = 491
	case len(text) > 0:
		d, c, code = l.read(text)
	}
	if code != 0 {
		_ = in.tx.Respond(respond(in.req, code, unfit(code, text, in.leg.secrecy())...))
		return
	}
	former := l.become(n)
	res := respond(in.req, 200, in.timer.headers...)
	able(res)
	res.AppendHeader(l.ownContact())
	var offered *ours
	if d == nil {
		offered = l.offer(l.again())
		withSDP(res, l.offerLocked(offered, directions["sendrecv"]))
	} else {
		withSDP(res, l.answerLocked(d, c))
	}
	st.handed = false
	l.session.Store(newSession(in.timer.every, in.timer.least, in.timer.ours, time.Now()))
	p := &pending{seq: in.req.CSeq().SeqNo, offer: offered, acked: make(chan struct{})}
	st.pending = p
	_ = in.tx.Respond(res) // a lost one is sent again
	l.begin(func() { l.confirm(in.tx, res, p) })
	l.begin(func() { _, _ = former.ask(l.server.ctx, former.request(sipgo.BYE)) })
}

// become makes another dialog the call's, and returns the former one.
func (l *leg) become(n *leg) (former *dialog) {
	s := l.server
	s.ladders.join(n.callID, l.ladder)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	former = &dialog{server: s, trunk: l.trunk, callID: l.callID, local: l.local, remote: l.remote, login: l.login,
		contact: l.contact, caller: l.caller, target: l.target, route: l.route, hop: l.hop, seq: l.seq}
	delete(s.legs, l.key())
	l.round++
	l.callID, l.local, l.remote, l.contact, l.caller = n.callID, n.local, n.remote, n.contact, n.caller
	l.target, l.route, l.hop, l.seq = n.target, n.route, n.hop, n.seq
	l.theirs, l.allow, l.login = n.theirs, n.allow, n.login
	s.legs[l.key()] = l
	return former
}
