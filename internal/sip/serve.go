package sip

import (
	"log/slog"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/crash"
	"parley/internal/parley"
)

// serve is called by the library, in its own goroutine, for every request that begins a transaction. The firewall lets
// in only what belongs to a call or begins one.
func (s *Server) serve(req *sipgo.Request, tx *sipgo.ServerTx) {
	if !s.enter() {
		tx.Terminate()
		return
	}
	defer s.leave()
	var l *leg
	defer crash.Contain(func(err error) {
		_ = tx.Respond(respond(req, 500))
		if l == nil {
			slog.Error("the handling of a SIP request panicked", "method", req.Method, "error", err)
			return
		}
		l.crashed(err)
	})
	if tag := tagOf(req.To().Params); tag != "" {
		s.mu.Lock()
		l = s.legs[req.CallID().Value()+" "+tag]
		s.mu.Unlock()
		s.within(l, req, tx)
	} else if req.Method == sipgo.INVITE {
		s.invited(req, tx)
	} else {
		tx.Terminate()
	}
}

// within handles a request within a call; l is nil when there is no such call.
func (s *Server) within(l *leg, req *sipgo.Request, tx *sipgo.ServerTx) {
	if req.Method == sipgo.ACK {
		if l != nil {
			l.acknowledge(req)
		}
		tx.Terminate()
		return
	}
	if req.Method != sipgo.INVITE {
		defer tx.TerminateGracefully()
	}
	if l != nil && req.Method != sipgo.INVITE && l.remoteTag() == "" { // a call of ours that nobody has answered yet
		if f := l.forkOf(tagOf(req.From().Params)); f != nil {
			if f.order(req) {
				f.handle(req, tx)
			} else {
				_ = tx.Respond(respond(req, 500))
			}
			return
		}
	}
	if l == nil || tagOf(req.From().Params) != l.remoteTag() || req.Method == sipgo.CANCEL {
		_ = tx.Respond(respond(req, 481))
		return
	}
	if !l.order(req) {
		_ = tx.Respond(respond(req, 500))
		return
	}
	l.moved(addrPort(req.Source()))
	l.handle(req, tx)
}

func (l *leg) remoteTag() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remote.tag
}

func (l *leg) handle(req *sipgo.Request, tx *sipgo.ServerTx) {
	if bad := required(req); bad != "" {
		_ = tx.Respond(respond(req, 420, "Unsupported", bad))
		return
	}
	switch req.Method {
	case sipgo.BYE:
		_ = tx.Respond(respond(req, 200))
		l.state.Lock()
		handed, early := l.state.handed, l.early
		if going := l.state.going; going != nil { // it is no part of what comes
			going.deserted = true
			l.state.Unlock()
			return
		}
		l.state.Unlock()
		if early && l.incoming != nil { // a caller that gives up in an unusual way (RFC 3261, section 15)
			_ = l.incoming.Refuse(487)
			l.incoming.cancel(leftWith(l.trunk, req, parley.CustomerHangup))
		} else if handed {
			l.end(parley.Transferred, false)
		} else {
			l.end(leftWith(l.trunk, req, parley.CustomerHangup), false)
		}
	case sipgo.INVITE:
		l.reinvite(req, tx)
	case sipgo.INFO:
		kind := ""
		if h := req.ContentType(); h != nil {
			kind = h.Value()
		}
		if len(req.Body()) == 0 {
			_ = tx.Respond(respond(req, 200)) // a keep-alive
			return
		}
		key, ok := infoKey(kind, req.Body())
		if !ok {
			_ = tx.Respond(respond(req, 415, "Accept", "application/dtmf-relay, application/dtmf"))
			return
		}
		if key != 0 {
			l.pressed(key) // before the answer, after which the next one may come
		}
		_ = tx.Respond(respond(req, 200))
	case sipgo.PRACK:
		l.pracked(req, tx)
	case sipgo.UPDATE:
		l.updated(req, tx)
	case sipgo.REFER:
		l.referred(req, tx)
	case sipgo.NOTIFY:
		_ = tx.Respond(respond(req, l.notified(req)))
	case sipgo.OPTIONS:
		_ = tx.Respond(respond(req, 200, "Allow", allowed, "Accept", "application/sdp"))
	default:
		_ = tx.Respond(respond(req, 405, "Allow", allowed))
	}
}

// reinvite changes the session: hold and resume, another address, another codec (RFC 3261, section 14.2).
func (l *leg) reinvite(req *sipgo.Request, tx *sipgo.ServerTx) {
	st := &l.state
	l.settle()
	st.Lock()
	defer st.Unlock()
	switch {
	case st.ended:
		_ = tx.Respond(respond(req, 481))
		return
	case l.early, st.offering, st.pending != nil: // ours, or theirs before it, is not done
		_ = tx.Respond(respond(req, 491))
		return
	}
	text, ok := sdpOf(req)
	g := timerOf(req).grant(l.server.config.Session, l.server.least)
	switch {
	case !ok:
		_ = tx.Respond(respond(req, 415, "Accept", "application/sdp"))
		return
	case g.tooShort:
		_ = tx.Respond(respond(req, 422, "Min-SE", seconds(l.server.least)))
		return
	}
	res := respond(req, 200, g.headers...)
	able(res)
	res.AppendHeader(l.ownContact())
	var offered *ours
	if len(text) == 0 {
		offered = l.offer(l.again())
		withSDP(res, l.offerLocked(offered, directions["sendrecv"]))
	} else {
		d, c, code := l.read(text)
		if code != 0 {
			_ = tx.Respond(respond(req, code, unfit(code, text, l.secrecy())...))
			return
		}
		withSDP(res, l.answerLocked(d, c))
	}
	l.learn(req)
	l.session.Store(newSession(g.every, g.least, g.ours, time.Now()))
	p := &pending{seq: req.CSeq().SeqNo, offer: offered, acked: make(chan struct{})}
	st.pending = p
	if tx.Respond(res) != nil {
		st.pending = nil
		return
	}
	l.begin(func() { l.confirm(tx, res, p) })
}

// settle ends whatever is still open from their last INVITE before a new one. A far end that sends a new one has our
// 2xx (section 14.1): its ACK is lost, or a moment late, since each message has its own goroutine. Only an ACK that
// brings an answer must be waited for.
func (l *leg) settle() {
	l.state.Lock()
	p := l.state.pending
	l.state.Unlock()
	switch {
	case p == nil:
	case p.offer == nil:
		l.acknowledged(p)
	default:
		late := time.NewTimer(sipgo.T1)
		defer late.Stop()
		select {
		case <-p.acked:
		case <-l.done:
		case <-late.C:
		}
	}
}
