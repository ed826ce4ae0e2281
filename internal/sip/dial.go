package sip

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/audio"
	"parley/internal/parley"
)

// maxRing is how long a call may ring if nobody cancels it.
const maxRing = 5 * time.Minute

// Dial calls somebody. It returns when they have answered, or with a *Refused, or with an error that is
// parley.Unreachable. If ctx ends first, the call is cancelled and the error is ctx's cause. The leg must be Run.
func (s *Server) Dial(ctx context.Context, d Dialling) (audio.Leg, error) {
	if s.off() {
		return nil, fmt.Errorf("%w: telephony is off (PARLEY_SIP_LISTEN)", parley.Unreachable)
	}
	for _, n := range []string{d.To, d.From} {
		if strings.ContainsAny(n, "\r\n<>\"@ ") || n == "" {
			return nil, fmt.Errorf("%w: %q is not a number to call to or from", parley.Unreachable, n)
		}
	}
	if s.ctx.Err() != nil || !s.enter() {
		return nil, parley.Shutdown
	}
	defer s.leave()
	if d.Ringing != nil {
		d.Ringing = sync.OnceFunc(d.Ringing)
	}
	id, tag := token(26), token(16) // at every place: it is the same call
	if d.Trunk.kept() {
		s.ladders.begin(id)
	}
	var l *leg
	err := s.try(ctx, &d.Trunk, func(h hop, patience time.Duration) (err error) {
		l, err = s.dialAt(ctx, &d, h, patience, id, tag)
		return err
	})
	if err != nil {
		return nil, unreached{fmt.Errorf("call %s: %w", d.To, err), s.ladders.find(id)}
	}
	return l, nil
}

// dialAt calls somebody at one place.
func (s *Server) dialAt(ctx context.Context, d *Dialling, h hop, patience time.Duration, id, tag string) (*leg, error) {
	if !s.take() {
		return nil, errLines
	}
	l, err := s.newLeg(h.addr)
	if err != nil {
		s.free()
		return nil, because(fmt.Errorf("%w: %w", parley.Unreachable, err),
			"This server had no port left for the sound of the call. Try again in a moment.")
	}
	l.callID, l.local.tag, l.ladder = id, tag, s.ladders.find(id)
	early := d.Early
	if d.Trunk.NoEarly {
		early = nil
	}
	a := &attempt{leg: l, sign: d.signature(s.config.Signer), ringing: d.Ringing, early: early, patience: patience, called: d.To,
		may: d.May, home: h.addr}
	a.describe(d, h)
	l.add()
	if err := a.run(ctx, h); err != nil {
		l.end(err, false)
		return nil, err
	}
	return l, nil
}

func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// attempt is an outgoing call until it is answered.
type attempt struct {
	leg      *leg
	sign     func(*sipgo.Request) error // proves who calls, at each place anew: proofs are soon too old; nil: nobody does
	ringing  func()
	early    func(audio.Rate) audio.Peer // as Dialling has it
	heard    *overture                   // nil: what comes early is thrown away
	drained  func()                      // ends that
	patience time.Duration               // for its first word; 0: as long as it takes
	invite   *sipgo.Request
	offer    *ours
	// the session's interval, and the shortest that the far end accepts
	every, least time.Duration

	called string                // who
	may    func(to string) error // whether the call may be sent on there; nil: nowhere
	home   netip.AddrPort        // of the trunk
	onward onward
}

// describe fills in what is known of the dialog, and writes the INVITE.
func (a *attempt) describe(d *Dialling, h hop) {
	l, t := a.leg, &d.Trunk
	s := l.server
	l.trunk = t
	host, port, _ := hostPort(t.Address)
	to := t.uri(t.dialled(d.To), host, port)
	from := t.uri(t.caller(d.From), cmp.Or(t.FromDomain, host), 0)
	l.local.uri, l.remote = from, name{uri: *to.Clone()}
	l.remote.uri.Port = 0
	if h.way == overTLS {
		to.UriParams.Add("transport", "tls") // some tell calls apart by it
	}
	l.hop, l.target, l.seq = h, to, 1
	l.login = t.login()
	l.contact = s.contactOf(t, escape(t.written(d.From)), h)
	if d.Withheld && t.Privacy != "id" {
		l.local.uri, l.contact.User = nobody, nobody.User
	}
	if t.Proxy != "" {
		host, port, _ := hostPort(t.Proxy)
		proxy := sipgo.Uri{Scheme: "sip", Host: host, Port: port}
		proxy.UriParams.Add("lr", "")
		if h.way.stream() {
			proxy.UriParams.Add("transport", strings.ToLower(h.transport()))
		}
		l.route = []sipgo.Uri{proxy}
	}
	l.caller = true
	a.invite = l.build(sipgo.INVITE, l.seq)
	able(a.invite)
	a.every = s.config.Session
	askTimer(a.invite, a.every, 0, false)
	d.dress(a.invite, t.uri(t.written(d.From), from.Host, 0))
	a.offer = l.offer(d.Trunk.offered())
	withSDP(a.invite, l.offerLocked(a.offer, directions["sendrecv"]))
}

// run sends the INVITE until there is a final answer.
func (a *attempt) run(ctx context.Context, h hop) error {
	l := a.leg
	ctx, cancel := context.WithTimeoutCause(ctx, maxRing, parley.NoAnswer)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(l.server.ctx, func() { stop(parley.Shutdown) })()
	a.drained = l.socket.Drain()
	defer func() { a.hush() }()
	a.onward.seen = []string{strings.ToLower(a.invite.Recipient.String())}
	for {
		try, res, err := a.send(ctx, h)
		if err == nil && res.IsSuccess() {
			a.hush()
			return a.answered(try, res)
		}
		a.hush()
		a.drained = l.socket.Drain()
		again, final := false, ctx.Err() != nil
		if err == nil {
			again, err = a.refused(res)
			final = res.StatusCode >= 600
		}
		if again {
			a.invite.CSeq().SeqNo = l.number()
			continue
		}
		next, ok := hop{}, false
		if !final {
			next, ok = a.goOn(ctx, h)
		}
		if !ok {
			return err
		}
		h = next
	}
}

// refused takes a refusal. Either the INVITE was changed and is to be sent there again, or the error says why not.
func (a *attempt) refused(res *sipgo.Response) (again bool, err error) {
	no := refusedBy(res)
	no.Secrecy = string(a.leg.secrecy())
	err = no
	switch code := res.StatusCode; code {
	case 300, 301, 302:
		return false, a.sentOn(res)
	case 401, 407:
		if bad := a.leg.login.answer(a.invite, res); bad != nil {
			return false, fmt.Errorf("%w (%w)", err, bad)
		}
		return true, nil
	case 420:
		return a.without(res), err
	case 422:
		if a.longer(res) {
			askTimer(a.invite, a.every, a.least, false)
			return true, nil
		}
	}
	return false, err
}

// without takes the extensions that the far end refuses out of the INVITE. It is false if there is nothing to take out.
func (a *attempt) without(res *sipgo.Response) (changed bool) {
	for _, bad := range valuesOf(res, "Unsupported") {
		has := valuesOf(a.invite, "Supported")
		left := slices.DeleteFunc(slices.Clone(has), func(v string) bool { return strings.EqualFold(v, bad) })
		if len(left) == len(has) {
			continue
		}
		changed = true
		a.invite.RemoveHeader("Supported")
		if len(left) > 0 {
			a.invite.AppendHeader(sipgo.NewHeader("Supported", strings.Join(left, ", ")))
		}
		if strings.EqualFold(bad, "timer") {
			a.every = 0
			askTimer(a.invite, 0, 0, false)
		}
	}
	return changed
}

// once sends the INVITE over one hop and returns it with its final answer. Its first word must come within the
// patience, if there is one.
func (a *attempt) once(ctx context.Context, h hop, patience time.Duration) (*sipgo.Request, *sipgo.Response, error) {
	try := a.invite.Clone()
	a.leg.server.address(try, h)
	tx, err := a.transact(ctx, try, h, patience)
	if err != nil {
		return nil, nil, orCause(ctx, err)
	}
	res, err := a.wait(ctx, tx, try, h, patience)
	if err == nil && res.IsSuccess() {
		tx.Terminate() // repeated answers go to stray
	}
	return try, res, err
}

// longer notes that the far end refuses our session timer as too short, and wants a longer one.
func (a *attempt) longer(res *sipgo.Response) (ok bool) {
	a.every, a.least, ok = longer(res, a.every, a.least)
	return ok
}

// transact sends the INVITE.
func (a *attempt) transact(ctx context.Context, try *sipgo.Request, h hop, patience time.Duration) (*sipgo.ClientTx, error) {
	if patience > 0 {
		limited, cancel := context.WithTimeout(ctx, patience) // to connect
		defer cancel()
		ctx = limited
	}
	return a.leg.server.transact(ctx, try, h)
}

// wait returns the final answer to an INVITE. When ctx or the patience ends, it leaves the call to a goroutine that
// cancels it.
func (a *attempt) wait(ctx context.Context, tx *sipgo.ClientTx, try *sipgo.Request, h hop,
	patience time.Duration) (*sipgo.Response, error) {
	provisional := false
	takeBack := func(why string) {
		l := a.leg
		l.begin(func() { l.server.takeBack(l, tx, try, h, provisional, why) })
	}
	var silent <-chan time.Time
	if patience > 0 {
		t := time.NewTimer(patience)
		defer t.Stop()
		silent = t.C
	}
	for {
		select {
		case res := <-tx.Responses():
			if !res.IsProvisional() {
				return res, nil
			}
			provisional, silent = true, nil
			a.progress(res)
		case <-tx.Done():
			return nil, lost(tx.Err(), h)
		case <-silent:
			takeBack("")
			return nil, silence(h)
		case <-ctx.Done():
			takeBack(reasonFor(context.Cause(ctx)))
			return nil, context.Cause(ctx)
		}
	}
}

// progress takes a provisional answer: ringing, or early media.
func (a *attempt) progress(res *sipgo.Response) {
	f := a.leg.provisional(res)
	if text, ok := sdpOf(res); f != nil && ok && len(text) > 0 {
		if d, err := parseSDP(text); err == nil {
			a.leg.state.Lock()
			f.description = d
			a.leg.state.Unlock()
			a.listen(d)
		}
	}
	if res.StatusCode >= 180 && a.ringing != nil {
		a.ringing()
		a.ringing = nil
	}
}

// answered makes the dialog from a 2xx, and confirms it.
func (a *attempt) answered(invite *sipgo.Request, res *sipgo.Response) error {
	l := a.leg
	l.invite.Store(invite)
	l.mu.Lock()
	l.remote.tag = tagOf(res.To().Params)
	l.route = recordRoute(res, true)
	f := l.forks[l.remote.tag]
	if f != nil {
		f.mu.Lock()
		l.theirs = f.theirs
		f.mu.Unlock()
	}
	l.forks = nil
	if from := addrPort(res.Source()); from.IsValid() {
		l.hop.addr = from
	}
	l.mu.Unlock()
	l.learn(res)
	l.renewed(res)
	l.sendACK(invite)
	close(l.acked)
	text, ok := sdpOf(res)
	d, err := parseSDP(text)
	early, updated := f.agreed()
	if len(text) == 0 && ok && early != nil || updated { // it has said it before
		d, err = early, nil
	}
	if err == nil {
		c, fits := d.audio(0, a.offer, l.secrecy())
		if updated {
			c, fits = f.choice, true
		}
		if fits {
			l.state.Lock()
			if !updated {
				d.streams[c.place].mux = d.streams[c.place].mux && a.offer.dtls // otherwise we did not offer it
			}
			l.agreeLocked(d, c)
			l.early = false
			l.state.Unlock()
			if l.server.ctx.Err() == nil {
				return nil
			}
			l.end(parley.Shutdown, true)
			return parley.Shutdown
		}
		err = errNoCodec
	}
	says := "The trunk answered with sound that this server does not speak: have it take G.711 or G.722."
	switch l.secrecy() {
	case srtpDTLS:
		says = "The trunk answered without encryption of the sound by DTLS-SRTP, which its srtp asks for: have it do that, " +
			"or set srtp to optional."
	case srtpRequired:
		says = "The trunk answered without encryption of the sound that this server knows, and its srtp is required: " +
			"have it encrypt by SRTP with keys in the description (SDES), or set srtp to optional."
	}
	err = because(fmt.Errorf("%w: %w", parley.Unreachable, err), "%s", says)
	l.end(err, true)
	return err
}

// sendACK confirms the far end's 2xx.
func (l *leg) sendACK(invite *sipgo.Request) { l.ack.Store(l.confirm2xx(invite)) }

// confirm2xx sends the ACK, with the same credentials as the INVITE (RFC 3261, section 22.1).
func (d *dialog) confirm2xx(invite *sipgo.Request) *sipgo.Request {
	d.mu.Lock()
	ack := d.build(sipgo.ACK, invite.CSeq().SeqNo)
	d.mu.Unlock()
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		for _, h := range invite.GetHeaders(name) {
			ack.AppendHeader(sipgo.NewHeader(name, h.Value()))
		}
	}
	d.server.address(ack, d.next(d.server.ctx))
	_ = d.server.transport.WriteMsg(ack.Clone()) // a lost one is asked for by repeating the 2xx
	return ack
}

// stray takes answers that belong to no transaction: a 2xx that is retransmitted because our ACK was lost.
func (s *Server) stray(res *sipgo.Response) {
	if !s.enter() {
		return
	}
	defer s.leave()
	if c := res.CSeq(); c == nil || c.MethodName != sipgo.INVITE || !res.IsSuccess() {
		return
	}
	s.mu.Lock()
	l := s.legs[res.CallID().Value()+" "+tagOf(res.From().Params)]
	s.mu.Unlock()
	if l == nil {
		return
	}
	switch tag := l.remoteTag(); {
	case tag == "": // not answered yet, as far as we know: it comes again
		return
	case tagOf(res.To().Params) != tag:
		l.lost(res)
		return
	}
	if ack := l.ack.Load(); ack != nil && ack.CSeq().SeqNo == res.CSeq().SeqNo {
		_ = s.transport.WriteMsg(ack.Clone())
	}
}

// takeBack cancels an INVITE. CANCEL must not overtake it, so it waits for a first answer (RFC 3261, section 9.1). If a
// 2xx crosses the CANCEL, it is confirmed and the call is hung up at once.
func (s *Server) takeBack(l *leg, tx *sipgo.ClientTx, invite *sipgo.Request, h hop, provisional bool, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), 64*sipgo.T1)
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(s.patient, cancel) })()
	cancelled := make(chan struct{})
	send := func() {
		s.begin(func() { defer close(cancelled); s.cancel(ctx, invite, h, why) })
	}
	if provisional {
		send()
	}
	defer func() {
		if provisional {
			<-cancelled
		}
	}()
	for {
		select {
		case res := <-tx.Responses():
			switch {
			case !res.IsProvisional() && res.IsSuccess():
				tx.Terminate()
				l.abandon(ctx, invite, res, why)
				return
			case !res.IsProvisional():
				return // the transaction confirms it
			case !provisional:
				provisional = true
				send()
			}
		case <-tx.Done():
			return
		case <-ctx.Done():
			tx.Terminate()
			return
		}
	}
}

func (s *Server) cancel(ctx context.Context, invite *sipgo.Request, h hop, why string) {
	req := sipgo.NewRequest(sipgo.CANCEL, *invite.Recipient.Clone())
	req.AppendHeader(invite.Via().Clone()) // by which the INVITE is found
	for _, n := range []string{"Route", "From", "To", "Call-ID"} {
		sipgo.CopyHeaders(n, invite, req)
	}
	forwards := sipgo.MaxForwardsHeader(70)
	req.AppendHeader(&forwards)
	req.AppendHeader(&sipgo.CSeqHeader{SeqNo: invite.CSeq().SeqNo, MethodName: sipgo.CANCEL})
	withReason(req, why).SetBody(nil)
	req.SetTransport(h.transport())
	req.SetDestination(h.addr.String())
	req.Laddr = invite.Laddr
	tx, err := s.transact(ctx, req, h)
	if err == nil {
		_, _ = final(ctx, tx, h) // what it is answered doesn't matter: the INVITE's answer does
	}
}

// abandon confirms a 2xx that is no longer wanted, and hangs up. The call itself may be on its way elsewhere.
func (l *leg) abandon(ctx context.Context, invite *sipgo.Request, res *sipgo.Response, why string) {
	f := l.branch(res)
	f.confirm2xx(invite)
	f.ask(ctx, withReason(f.request(sipgo.BYE), why))
}
