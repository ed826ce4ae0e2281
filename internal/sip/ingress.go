package sip

import (
	"bytes"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/crash"
)

// admit appends to dst a message that may go on to the transactions, as the parser reads it; nil if it may not. It runs
// before anything is remembered or answered: a message that matches no trunk and no call leaves no trace, challenges and
// refusals are sent from here without any state, and only as many calls begin as there is room for. stream is nil for
// UDP.
func (s *Server) admit(dst, data []byte, from netip.AddrPort, stream *connection) (out []byte) {
	defer crash.Contain(func(err error) { // a message that it panics on is dropped
		out = nil
		slog.Error("the firewall panicked on a SIP message", "from", from, "error", err)
	})
	data = bytes.TrimLeft(data, " \t\r\n\x00")
	if len(data) == 0 {
		return nil // a keep-alive
	}
	if isVersion(data) {
		// Answers belong to requests of ours: they carry our branch.
		if bytes.Contains(data, []byte(s.mark)) {
			if res, text, _ := read(tidy(dst, data)); whole(res) {
				return text
			}
		}
		s.firewall.turnAway(from)
		return nil
	}
	x, local := s.index.Load(), s.local(from.Addr())
	friend := local || x.known(from.Addr())
	if !friend && !x.open(from.Addr()) && !s.busy() || !s.firewall.knock(from.Addr(), friend) {
		s.firewall.turnAway(from)
		return nil
	}
	g := ingress{s: s, raw: data, from: from, stream: stream, friend: friend, local: local}
	text := tidy(dst, data)
	m, text, bad := read(text)
	req, ok := m.(*sipgo.Request)
	if ok {
		g.req = req
		ok = g.admit(x)
	} else if friend && text != nil {
		if code := g.refuseUnread(text, bad); code != 0 && bytes.HasPrefix(text, []byte("INVITE ")) {
			g.turnHere(x, code, unread(code, bad))
		}
	}
	if ok {
		return text
	}
	if !g.answered && !friend || req == nil {
		s.firewall.turnAway(from)
	}
	return nil
}

// whole reports whether an answer has what every one must have.
func whole(m sipgo.Message) bool {
	res, ok := m.(*sipgo.Response)
	return ok && res.Via() != nil && res.CSeq() != nil && res.From() != nil && res.To() != nil && res.CallID() != nil &&
		res.StatusCode >= 100 && res.StatusCode <= 699
}

// busy reports whether there are calls, to which strangers' messages might belong.
func (s *Server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.legs)+len(s.invites) > 0
}

// ingress is a request at the firewall.
type ingress struct {
	s             *Server
	raw           []byte // as it came
	req           *sipgo.Request
	from          netip.AddrPort
	stream        *connection
	friend, local bool
	answered      bool
}

func (g *ingress) admit(x *index) bool {
	req := g.req
	if bad := flaw(req); bad != "" {
		if g.friend && req.Via() != nil && req.Method != sipgo.ACK {
			g.reply(400, "Warning", warningOf(bad))
			if req.Method == sipgo.INVITE {
				g.turnHere(x, 400, unread(400, bad))
			}
		}
		return false
	}
	if req.SipVersion != "SIP/2.0" {
		if g.friend && req.Method != sipgo.ACK {
			g.reply(505)
			if req.Method == sipgo.INVITE {
				g.turnHere(x, 505, "The message is not SIP/2.0.")
			}
		}
		return false
	}
	g.s.mu.Lock()
	leg, in := g.s.legs[req.CallID().Value()+" "+tagOf(req.To().Params)], g.s.invites[inviteKey(req)]
	g.s.mu.Unlock()
	if in != nil && !g.friend && in.from != g.from.Addr() {
		in = nil
	}
	tagged := tagOf(req.To().Params) != ""
	if tagged && leg != nil && req.Method != sipgo.ACK && req.Method != sipgo.CANCEL {
		leg.came(req)
	}
	switch {
	case tagged && leg != nil, in != nil && req.Method == sipgo.ACK, in != nil && !tagged && req.Method == sipgo.INVITE:
		return true
	case in != nil && !tagged && req.Method == sipgo.CANCEL:
		return in.begun.Load()
	case req.Method == sipgo.ACK:
		return false
	case !tagged && req.Method == sipgo.INVITE:
		return g.invite(x)
	case g.friend:
		g.serve(tagged)
	}
	return false
}

// serve answers what belongs to no call, without a transaction: those are remembered for 32 s, which would add up.
func (g *ingress) serve(tagged bool) {
	switch method := g.req.Method; {
	case tagged || method == sipgo.CANCEL:
		g.reply(481) // the call is over
	case method == sipgo.OPTIONS && foreign(&g.req.Recipient):
		g.reply(416)
	case method == sipgo.OPTIONS && required(g.req) != "":
		g.reply(420, "Unsupported", required(g.req))
	case method == sipgo.OPTIONS && g.s.refuses():
		g.reply(503, "Retry-After", "30") // a proxy before several servers gives calls to another one
	case method == sipgo.OPTIONS:
		g.reply(200, "Allow", allowed, "Accept", "application/sdp")
	case method == sipgo.REGISTER && g.local:
		g.req.SetSource(g.from.String())
		g.send(registered(g.req))
	case method == sipgo.REGISTER, method == sipgo.REFER:
		g.reply(403)
	case method == sipgo.BYE, method == sipgo.INFO, method == sipgo.NOTIFY, method == sipgo.PRACK,
		method == sipgo.UPDATE:
		g.reply(481)
	case method == sipgo.SUBSCRIBE, method == sipgo.PUBLISH:
		g.reply(489)
	default:
		g.reply(405, "Allow", allowed)
	}
}

// foreign reports whether an address is of a kind that no telephone has.
func foreign(u *sipgo.Uri) bool { return !slices.Contains([]string{"sip", "sips", "tel"}, u.Scheme) }

// registered answers a softphone that wants to register. It need not, as we never call it, but some won't call before.
func registered(req *sipgo.Request) *sipgo.Response {
	res := respond(req, 200)
	expires := "3600"
	if h := req.GetHeader("Expires"); h != nil {
		expires = strings.TrimSpace(h.Value())
	}
	for _, h := range req.GetHeaders("Contact") {
		c, ok := h.(*sipgo.ContactHeader)
		if !ok || c.Address.Wildcard {
			continue
		}
		granted := &sipgo.ContactHeader{Address: *c.Address.Clone(), Params: sipgo.HeaderParams{}}
		wanted := expires
		if v, has := c.Params.Get("expires"); has {
			wanted = v
		}
		if wanted == "0" {
			continue
		}
		granted.Params.Add("expires", wanted)
		res.AppendHeader(granted)
	}
	res.AppendHeader(sipgo.NewHeader("Expires", expires))
	return res
}

// invite examines a new call.
func (g *ingress) invite(x *index) bool {
	v := x.route(g.req, g.from, g.local)
	var proved []*Trunk
	if len(v.try) > 0 {
		if g.s.firewall.banned(g.from.Addr()) {
			return false
		}
		proof, t := g.s.digest.check(g.req, g.from.Addr(), v.try)
		switch proof {
		case noProof, staleProof:
			g.reply(401, g.s.digest.challenges(g.from.Addr(), proof == staleProof)...)
			g.asked(v.try)
			return false
		case wrongProof:
			g.s.firewall.failed(g.from.Addr())
			g.reply(403)
			g.s.turned.answered(callOf(g.req))
			g.turn(oneOwner(v.try), 403, wrongLogin)
			return false
		}
		g.s.firewall.passed(g.from.Addr())
		g.s.turned.answered(callOf(g.req))
		if t.Number == "" {
			v.trunk = t
		} else if to, ok := x.answers(t, x.calledIn(g.req)); ok {
			v.trunk, v.to = t, to
		} else {
			v.refuse = 404
			proved = []*Trunk{t}
		}
	}
	if v.refuse == 404 && foreign(&g.req.Recipient) {
		v.refuse = 416
	}
	switch {
	case v.refuse != 0:
		g.reply(v.refuse)
		if why := g.nobody(x); proved != nil {
			g.turn(proved, v.refuse, why)
		} else {
			g.turnHere(x, v.refuse, why)
		}
		return false
	case v.trunk == nil && v.assistant == 0:
		return false
	}
	return g.s.expect(g, v)
}

// expect makes room for a call that was let in.
func (s *Server) expect(g *ingress, v route) bool {
	over := int64(softphones)
	if v.trunk != nil {
		over = v.trunk.ID
	}
	if ok, answer := s.firewall.begin(over); !ok {
		if answer {
			g.reply(503, "Retry-After", "5")
			g.turn([]*Trunk{v.trunk}, 503, tooMany)
		}
		return false
	}
	s.mu.Lock()
	full := s.refusing || s.live >= s.most() || s.config.Pace.Behind()
	if !full {
		s.live++
		s.invites[inviteKey(g.req)] = newInvite(s, g.from.Addr(), v)
	}
	s.mu.Unlock()
	if !full && v.trunk.kept() {
		s.ladders.begin(g.req.CallID().Value())
	}
	if full && s.firewall.refusals.Allow() {
		g.reply(503, "Retry-After", "30")
		g.turn([]*Trunk{v.trunk}, 503, allBusy)
	}
	return !full
}

// forgetLost drops calls that were let in but have not reached a transaction after a while, which happens if a
// connection is lost in between.
func (s *Server) forgetLost(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, in := range s.invites {
		if !in.taken.Load() && time.Since(in.since) >= after {
			delete(s.invites, key)
			s.live--
		}
	}
}

// inviteKey is the same for an INVITE, its repetitions, its CANCEL and the ACK of a refusal.
func inviteKey(req *sipgo.Request) string {
	return req.CallID().Value() + " " + tagOf(req.From().Params) + " " +
		strconv.FormatUint(uint64(req.CSeq().SeqNo), 10)
}

// reply answers a request without remembering it: a retransmission is answered again.
func (g *ingress) reply(code int, headers ...string) {
	g.req.SetSource(g.from.String())
	g.send(respond(g.req, code, headers...))
}

func (g *ingress) send(res *sipgo.Response) {
	// RFC 3581, section 4; RFC 3261, section 18.2.2.
	to := g.from
	if via := g.req.Via(); !via.Params.Has("rport") {
		to = netip.AddrPortFrom(to.Addr(), answerPort(via))
	}
	g.write([]byte(res.String()), to)
}

// answerPort is where answers go over UDP that is not asked to send them to where the request came from.
func answerPort(via *sipgo.ViaHeader) uint16 {
	if via.Port <= 0 || via.Port > 65535 {
		return uint16(sipgo.DefaultUdpPort)
	}
	return uint16(via.Port)
}

// write sends an answer, over UDP to an address.
func (g *ingress) write(text []byte, to netip.AddrPort) {
	g.answered = true
	if g.stream != nil {
		_, _ = g.stream.Write(text) // a connection that can't be written to is found out by reading
		return
	}
	g.s.ladders.send(text, to, overUDP)
	_, _ = g.s.udp.WriteToUDPAddrPort(text, to)
}
