package sip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
)

// Invite is an incoming call that was let in, over a trunk or from a softphone on this machine.
type Invite struct {
	Trunk       *Trunk // nil from a softphone
	AssistantID int64  // from a softphone: whom it calls
	From, To    string // E.164 where they are phone numbers; From is "" for a caller who hides it
	Signalling  parley.CallSignalling

	server *Server
	since  time.Time
	from   netip.Addr
	taken  atomic.Bool // its transaction has begun
	begun  atomic.Bool // and may be cancelled
	req    *sipgo.Request
	tx     *sipgo.ServerTx
	tag    string
	ctx    context.Context
	cancel context.CancelCauseFunc

	shown string // the user part of who calls, also of one who hides it

	mu      sync.Mutex
	final   bool // was answered or refused
	leg     *leg
	offer   *description // nil where the caller leaves the offer to us
	choice  choice       // what we take of it
	timer   terms
	insists bool        // the caller requires provisional answers to be reliable
	keep    func() bool // of a leg that is heard before the answer: it outlives the caller's patience from now on
}

func newInvite(s *Server, from netip.Addr, v route) *Invite {
	in := &Invite{Trunk: v.trunk, AssistantID: v.assistant, To: v.to, server: s, from: from, since: time.Now()}
	in.ctx, in.cancel = context.WithCancelCause(s.ctx)
	return in
}

// Context ends with parley.CustomerHangup when the caller gives up before an answer, and when the server stops. After
// that the call can't be answered.
func (in *Invite) Context() context.Context { return in.ctx }

// Done is that of Context.
func (in *Invite) Done() <-chan struct{} { return in.ctx.Done() }

// Rate is the sample rate of the leg that Answer will return.
func (in *Invite) Rate() audio.Rate {
	if in.offer == nil {
		return audio.Narrow
	}
	return in.choice.codec.Format.Rate()
}

var errFinal = errors.New("the call was answered or refused already")

// Ring tells the caller that the call is ringing.
func (in *Invite) Ring() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.final {
		return errFinal
	}
	res := respond(in.req, 180)
	if in.insists {
		return in.ringReliably(res)
	}
	return in.respond(res)
}

// ringReliably rings where the caller requires that it knows. If it has left the offer to us, this answer must carry it
// (RFC 3262, section 5).
func (in *Invite) ringReliably(res *sipgo.Response) error {
	l := in.leg
	l.state.Lock()
	if l.state.reliable != nil {
		l.state.Unlock()
		return nil
	}
	r := &reliable{rseq: 1 + rand.Uint32N(1<<30), acked: make(chan struct{})}
	l.state.reliable = r
	if in.offer == nil {
		withSDP(res, in.offerLocked(&r.offer))
	}
	l.state.Unlock()
	return in.reliably(r, res)
}

// reliably sends a provisional answer until it is acknowledged.
func (in *Invite) reliably(r *reliable, res *sipgo.Response) error {
	addHeaders(res, []string{"Require", "100rel", "RSeq", strconv.FormatUint(uint64(r.rseq), 10)})
	in.leg.add() // PRACK is a request within the call
	if err := in.respond(res); err != nil {
		return err
	}
	in.leg.begin(func() { in.insist(r, res) })
	return nil
}

// offerLocked makes the offer that the caller leaves to us. Its choice comes later, but the rate must be known now: both
// ends have G.711.
func (in *Invite) offerLocked(offer **ours) []byte {
	l := in.leg
	*offer = l.offer(l.trunk.narrow())
	l.rate.Store(int32(audio.Narrow))
	l.state.agreed = rtp.Agreement{Codec: rtp.Codec{Format: audio.PCMU}, Direction: directions["sendrecv"]}
	switch l.secrecy() {
	case srtpDTLS:
		l.state.agreed.Out = rtp.Key{Suite: rtp.AES80}
	case srtpRequired: // nothing is said or heard in the clear meanwhile
		l.state.agreed.Out = (*offer).keys[0].key
	}
	return l.offerLocked(*offer, l.state.agreed.Direction)
}

var errNoPRACK = errors.New("the caller didn't confirm that it knows of the ringing: no PRACK came")

func (in *Invite) respond(res *sipgo.Response) error {
	if in.ctx.Err() != nil && in.server.ctx.Err() == nil {
		return context.Cause(in.ctx)
	}
	if v := in.Signalling.Verification; v != nil && v.Code != 0 && res.StatusCode > 100 { // RFC 9410
		res.AppendHeader(sipgo.NewHeader("Reason", fmt.Sprintf("STIR;cause=%d;text=%q", v.Code, phrase(v.Code))))
	}
	if code := res.StatusCode; code > 100 && code < 300 {
		res.AppendHeader(&sipgo.ContactHeader{Address: *in.leg.contact.Clone()})
		able(res)
	}
	return in.tx.Respond(res)
}

// Refuse rejects the call with a SIP status of 300 to 699.
func (in *Invite) Refuse(code int) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.final {
		return errFinal
	}
	if code < 300 || code > 699 {
		return errors.New("refuse a call: the status must be 300 to 699")
	}
	in.final = true
	return in.respond(respond(in.req, code))
}

// Answer takes the call. It returns as soon as the answer is sent, so that audio can start at the same time; the leg
// must be Run. If the caller doesn't confirm the answer, the leg ends.
func (in *Invite) Answer(ctx context.Context) (audio.Leg, error) {
	in.agree(ctx)
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.final:
		return nil, errFinal
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case in.ctx.Err() != nil:
		return nil, context.Cause(in.ctx)
	}
	if in.keep != nil && !in.keep() {
		return nil, parley.CustomerHangup
	}
	in.final = true
	l := in.leg
	var offered *ours
	res := respond(in.req, 200)
	l.state.Lock()
	switch r := l.state.reliable; {
	case in.keep != nil: // as it was sent
		withSDP(res, l.state.said)
	case in.offer != nil:
		withSDP(res, l.answerLocked(in.offer, in.choice))
	case r != nil && r.offer != nil: // it was answered by PRACK
	default:
		withSDP(res, in.offerLocked(&offered)) // to be answered by ACK
	}
	l.early, l.answered = false, time.Now()
	l.state.Unlock()
	addHeaders(res, in.timer.headers)
	l.session.Store(newSession(in.timer.every, in.timer.least, in.timer.ours, time.Now()))
	l.add()
	if err := in.confirmed(res, offered); err != nil {
		l.end(err, false)
		return nil, err
	}
	return l, nil
}

// agree waits for the answer to an offer that the ringing carried, or until the caller has ours: before that, the call
// can't be answered.
func (in *Invite) agree(ctx context.Context) {
	in.mu.Lock()
	l := in.leg
	in.mu.Unlock()
	if l == nil {
		return
	}
	l.state.Lock()
	r := l.state.reliable
	l.state.Unlock()
	if r == nil || r.offer == nil && !r.sound {
		return
	}
	in.await(ctx, r)
}

// await waits until a provisional answer is acknowledged.
func (in *Invite) await(ctx context.Context, r *reliable) {
	select {
	case <-r.acked:
	case <-ctx.Done():
	case <-in.ctx.Done():
	}
}

func (in *Invite) confirmed(res *sipgo.Response, offered *ours) error {
	l := in.leg
	p := l.expect(in.req.CSeq().SeqNo, offered, l.acked)
	if err := in.respond(res); err != nil {
		return err
	}
	l.begin(func() { l.confirm(in.tx, res, p) })
	return nil
}

// invited is called for an INVITE outside any call, which the firewall has let in.
func (s *Server) invited(req *sipgo.Request, tx *sipgo.ServerTx) {
	key := inviteKey(req)
	s.mu.Lock()
	in := s.invites[key]
	s.mu.Unlock()
	if in == nil {
		tx.Terminate()
		return
	}
	if !in.taken.CompareAndSwap(false, true) { // the same call by two ways (RFC 3261, section 8.2.2.2)
		_ = tx.Respond(respond(req, 482))
		return
	}
	in.req, in.tx, in.tag = req, tx, token(16)
	req.To().Params.Add("tag", in.tag) // in all answers to it
	forget := func(string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.invites, key)
	}
	if !tx.OnTerminate(forget) {
		forget("", nil)
	}
	if !tx.OnCancel(func(cancel *sipgo.Request) { in.cancel(leftWith(in.Trunk, cancel, parley.CustomerHangup)) }) {
		in.cancel(parley.CustomerHangup)
	}
	in.begun.Store(true)
	_ = tx.Respond(respond(req, 100)) // a lost one is asked for again
	in.take()
}

// take runs a call from its offer to its end.
func (in *Invite) take() {
	s := in.server
	defer in.cancel(errFinal)
	peer := addrPort(in.req.Source())
	l, err := s.newLeg(peer)
	if err != nil {
		s.free()
		_ = in.tx.Respond(respond(in.req, 503, "Retry-After", "30"))
		return
	}
	in.leg = l
	in.describe(peer)
	code, headers := in.look()
	if code == 0 {
		in.verify()
	}
	var old *leg
	if code == 0 {
		old, code = in.replaced()
	}
	switch {
	case code != 0:
		_ = in.tx.Respond(respond(in.req, code, headers...))
		in.turn(code, unfitText(code, headers))
		l.end(errFinal, false)
		return
	case old != nil:
		in.takeOver(old)
		return
	}
	if s.config.Answer != nil {
		s.config.Answer(in.ctx, in)
	}
	code = 480
	if s.ctx.Err() != nil {
		code = 503
	}
	in.mu.Lock()
	answered := in.final
	in.final = true
	in.mu.Unlock()
	if !answered {
		_ = in.tx.Respond(respond(in.req, code)) // where the caller has given up, 487 was sent, and this is not
	}
	l.end(parley.AssistantHangup, !l.early)
	in.mu.Lock()
	in.leg, in.offer = nil, nil // who repeats the INVITE is known for another 32 s
	in.mu.Unlock()
}

// describe fills in the dialog.
func (in *Invite) describe(peer netip.AddrPort) {
	l, req := in.leg, in.req
	l.trunk, l.incoming = in.Trunk, in
	l.callID = req.CallID().Value()
	l.ladder = in.server.ladders.find(l.callID)
	l.local = name{*req.To().Address.Clone(), in.tag}
	l.remote = name{*req.From().Address.Clone(), tagOf(req.From().Params)}
	l.hop = hop{addr: peer, way: way(strings.ToUpper(req.Transport()))}
	l.route = recordRoute(req, false)
	l.target = l.remote.uri
	l.learn(req)
	l.order(req)
	l.seq = 1
	user := "parley"
	if in.Trunk != nil {
		l.login = in.Trunk.login()
	} else {
		user = userOf(&req.Recipient)
	}
	l.contact = in.server.contactOf(in.Trunk, escape(user), l.hop)
	if req.Recipient.Scheme == "sips" { // so is what it leads to (RFC 3261, section 12.1.1)
		l.contact.Scheme, l.contact.UriParams = "sips", nil
	}
	in.identify()
}

// look reads the offer. It returns the status to refuse it with, 0 if there is something that we support.
func (in *Invite) look() (code int, headers []string) {
	if bad := required(in.req); bad != "" {
		return 420, []string{"Unsupported", bad}
	}
	in.insists = slices.ContainsFunc(valuesOf(in.req, "Require"), func(v string) bool { return strings.EqualFold(v, "100rel") })
	if in.timer = timerOf(in.req).grant(in.server.config.Session, in.server.least); in.timer.tooShort {
		return 422, []string{"Min-SE", seconds(in.server.least)}
	}
	text, ok := sdpOf(in.req)
	if !ok {
		return 415, []string{"Accept", "application/sdp"}
	}
	if len(text) == 0 {
		return 0, nil
	}
	d, err := parseSDP(text)
	if err != nil {
		return 400, nil
	}
	if own := in.Trunk.codecs(); len(own) > 0 {
		d.prefer(own)
	}
	c, ok := d.audio(0, nil, in.leg.secrecy())
	if !ok {
		return 488, unfit(488, text, in.leg.secrecy())
	}
	in.offer, in.choice = d, c
	return 0, nil
}
