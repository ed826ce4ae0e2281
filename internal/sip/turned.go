package sip

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/crash"
	"parley/internal/parley"
)

// Calls over users' trunks that are refused are told to the trunks' owners. Anybody can send a call to the number of a
// trunk with a password, so what is told is limited by address, by trunk and in all, and those who come from a trunk's own
// addresses are counted apart.

const (
	tellEvery   = time.Second
	toldFor     = 40 * time.Second // for so long a repetition is the same call
	maxTold     = 512              // that wait to be told
	maxAsked    = 2048             // calls that were asked for a password
	maxAskedOf  = 64               // over one trunk, from its addresses or from others
	maxGates    = 4096
	maxShared   = 4   // trunks of one account at an address that are told
	maxOfCaller = 200 // bytes of who called
)

// turned are the refusals of a server's incoming calls.
type turned struct {
	mu        sync.Mutex
	list      []parley.TrunkRefusal
	asked     map[string]challenged
	waiting   map[turnedGate]int   // of asked, by trunk
	told      map[string]time.Time // by call
	gates     map[turnedGate]*rate.Limiter
	strangers *rate.Limiter
	looks     map[bool]*rate.Limiter // at refused messages, of trunks' addresses and of others

	challengeFor time.Duration // by then a caller has answered a challenge
}

// challenged is a call that was asked for a password, and has not told one yet.
type challenged struct {
	since time.Time
	list  []parley.TrunkRefusal
}

// turnedGate limits what is told of a trunk: from its own addresses, from others, and from one of these.
type turnedGate struct {
	trunk int64
	known bool
	place netip.Addr
}

func newTurned() *turned {
	return &turned{asked: map[string]challenged{}, waiting: map[turnedGate]int{}, told: map[string]time.Time{},
		gates:     map[turnedGate]*rate.Limiter{},
		strangers: rate.NewLimiter(5, 50), looks: map[bool]*rate.Limiter{true: rate.NewLimiter(100, 400), false: rate.NewLimiter(50, 200)},
		challengeFor: 8 * time.Second}
}

// add notes refusals of one call, unless there are too many.
func (l *turned) add(call string, list []parley.TrunkRefusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addLocked(call, list, time.Now())
}

func (l *turned) addLocked(call string, list []parley.TrunkRefusal, now time.Time) {
	if _, again := l.told[call]; again || len(list) == 0 {
		return
	}
	for _, r := range list {
		if len(l.list) < maxTold && l.allow(&r, now) {
			l.list = append(l.list, r)
			l.told[call] = now // as few as are told
		}
	}
}

// allow reports whether another refusal may be told.
func (l *turned) allow(r *parley.TrunkRefusal, now time.Time) bool {
	if r.Known {
		g := l.gate(turnedGate{trunk: r.TrunkID, known: true}, rate.Every(2*time.Second), parley.MaxRefusals)
		return g != nil && g.AllowN(now, 1)
	}
	place, _ := netip.ParseAddr(r.Place)
	one := l.gate(turnedGate{trunk: r.TrunkID, place: place}, rate.Every(5*time.Minute), parley.MaxRefusalsOfPlace)
	all := l.gate(turnedGate{trunk: r.TrunkID}, rate.Every(10*time.Second), parley.MaxRefusals)
	return one != nil && all != nil && one.AllowN(now, 1) && all.AllowN(now, 1) && l.strangers.AllowN(now, 1)
}

// gate is a limit, made where there is none yet; nil for a stranger's when too many are remembered already.
func (l *turned) gate(key turnedGate, every rate.Limit, burst int) *rate.Limiter {
	g := l.gates[key]
	if g == nil {
		if len(l.gates) >= maxGates && !key.known {
			return nil
		}
		g = rate.NewLimiter(every, burst)
		l.gates[key] = g
	}
	return g
}

// ask notes a call that was asked for a password: it is told if no password follows.
func (l *turned) ask(call string, list []parley.TrunkRefusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(list) == 0 || len(l.asked) >= maxAsked {
		return
	}
	c := challenged{time.Now(), list}
	if _, again := l.asked[call]; !again && l.waiting[c.gate()] < maxAskedOf {
		l.asked[call] = c
		l.waiting[c.gate()]++
	}
}

func (c *challenged) gate() turnedGate {
	return turnedGate{trunk: c.list[0].TrunkID, known: c.list[0].Known}
}

// answered forgets that a call was asked for a password.
func (l *turned) answered(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeLocked(call)
}

// takeLocked forgets that a call was asked for a password, and returns what would have been told.
func (l *turned) takeLocked(call string) []parley.TrunkRefusal {
	c, ok := l.asked[call]
	if !ok {
		return nil
	}
	delete(l.asked, call)
	if l.waiting[c.gate()]--; l.waiting[c.gate()] == 0 {
		delete(l.waiting, c.gate())
	}
	return c.list
}

// due is what is to be told now.
func (l *turned) due(now time.Time) []parley.TrunkRefusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	for call, c := range l.asked {
		if now.Sub(c.since) >= l.challengeFor {
			l.addLocked(call, l.takeLocked(call), now)
		}
	}
	for call, at := range l.told {
		if now.Sub(at) >= toldFor {
			delete(l.told, call)
		}
	}
	if len(l.gates) >= maxGates/2 {
		for key, g := range l.gates {
			if g.TokensAt(now) >= float64(g.Burst()) {
				delete(l.gates, key)
			}
		}
	}
	list := l.list
	l.list = nil
	return list
}

// tell hands over what was refused, until ctx ends.
func (s *Server) tell(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		if list := s.turned.due(time.Now()); len(list) > 0 {
			func() {
				defer crash.Contain(crash.Log("the telling of refused calls"))
				s.config.Refused(context.WithoutCancel(ctx), list)
			}()
		}
	}
}

// turn notes that a call was refused which belongs to trunks.
func (s *Server) turn(m *turnedCall, trunks []*Trunk, known bool, code int, why string) {
	if s.looksAt(known) {
		s.turned.add(m.call, m.refusals(trunks, known, code, why))
	}
}

// looksAt reports whether a refused call is looked at further.
func (s *Server) looksAt(known bool) bool {
	return s.config.Refused != nil && s.turned.looks[known].Allow()
}

// turnedCall is a refused call's INVITE as it came.
type turnedCall struct {
	call string // its Call-ID and the caller's tag
	user string // who calls, as the trunk asserts; "" where that can't be read
	text []byte
	from netip.AddrPort
	way  way
}

// refusals are what each of some trunks is told; the carrier's and softphones' are told to nobody.
func (m *turnedCall) refusals(trunks []*Trunk, known bool, code int, why string) (list []parley.TrunkRefusal) {
	for _, t := range trunks {
		if t == nil || t.Number == "" || len(list) == maxShared {
			continue
		}
		list = append(list, parley.TrunkRefusal{TrunkID: t.ID, At: parley.Now(), Status: code, Known: known,
			Place: place(m.from.Addr()).String(), Peer: m.from.String(), Transport: strings.ToLower(string(m.way)),
			Caller: cut(numberIn(m.user, t.Number, t.Country), maxOfCaller)})
	}
	if len(list) == 0 {
		return nil
	}
	why, text := cut(why, parley.MaxRefusedReason), cut(redacted(m.text), parley.MaxRefusedText)
	for i := range list {
		list[i].Reason, list[i].Text = why, text
	}
	return list
}

// cut is at most so many bytes of a text, without what a database refuses.
func cut(s string, most int) string {
	if s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", ""); len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

// call is the INVITE at the firewall.
func (g *ingress) call() *turnedCall {
	m := &turnedCall{text: g.raw, from: g.from, way: overUDP}
	if g.stream != nil {
		m.way = g.stream.way
	}
	if req := g.req; req != nil && req.CallID() != nil && req.From() != nil {
		m.call, m.user = callOf(req), callerOf(req)
	} else {
		m.call = callIDOf(g.raw)
	}
	return m
}

// callerOf is the user part of who calls, whether or not that is to be shown.
func callerOf(req *sipgo.Request) string {
	who, _ := asserted(req, party{uri: req.From().Address}, false)
	return userOf(&who.uri)
}

// callOf is the same for an INVITE and those that answer challenges to it.
func callOf(req *sipgo.Request) string { return req.CallID().Value() + " " + tagOf(req.From().Params) }

// turn notes that the call was refused.
func (g *ingress) turn(trunks []*Trunk, code int, why string) {
	g.s.turn(g.call(), trunks, g.friend, code, why)
}

// turnHere is turn for a call of which nothing but its address tells whose it is.
func (g *ingress) turnHere(x *index, code int, why string) {
	if g.friend && g.s.looksAt(true) {
		g.turn(x.of(g.from.Addr()), code, why)
	}
}

// of are the trunks that a call from an address belongs to, whose number is not known here: those at the address, unless
// it may be another account's or the carrier's.
func (x *index) of(from netip.Addr) (found []*Trunk) {
	var may []*Trunk // whose it may be
	for _, t := range x.byID {
		here := x.from(t, from)
		if here {
			found = append(found, t)
		}
		if here || t.Number != "" && t.mayTry(from) || t.Number == "" && t.allows(from) {
			may = append(may, t)
		}
	}
	if oneOwner(may) == nil || slices.ContainsFunc(may, func(t *Trunk) bool { return t.Number == "" }) {
		return nil
	}
	slices.SortFunc(found, func(a, b *Trunk) int { return int(a.ID - b.ID) })
	return found
}

// oneOwner are some trunks if they are all one account's.
func oneOwner(list []*Trunk) []*Trunk {
	for _, t := range list {
		if t.Owner != list[0].Owner {
			return nil
		}
	}
	return list
}

// asked notes that the caller was asked for the password of trunks.
func (g *ingress) asked(trunks []*Trunk) {
	if trunks = oneOwner(trunks); len(trunks) > 0 && g.s.looksAt(g.friend) {
		m := g.call()
		g.s.turned.ask(m.call, m.refusals(trunks, g.friend, 401, noLogin))
	}
}

// nobody says that no trunk has the number called.
func (g *ingress) nobody(x *index) string {
	if list := x.calledIn(g.req).anyone; strings.Join(list, "") == "" {
		return "The call named no number: neither its Request-URI nor its To has a user part. " +
			"Have the provider send the number called, such as sip:+4930901820@HOST."
	}
	return "The call was for " + strings.Join(x.calledIn(g.req).anyone, " and ") +
		", and no trunk that takes calls from here has that number. Add it to the trunk's numbers, " +
		"or set where the provider names the number called (called_number_from)."
}

// unread says why a call could not be read.
func unread(code int, bad string) string {
	if code == 416 {
		return "The call was for an address that is no telephone's: the provider must send it to a sip: or tel: address."
	}
	return "The provider's message could not be read: " + bad
}

// What owners are told of refused calls.
const (
	noLogin = "The caller was asked for the trunk's user name and password, and sent none. " +
		"Enter them at the provider, or let calls in by the provider's addresses (allowed_inbound_ips)."
	wrongLogin = "The user name or the password was wrong. Enter the trunk's at the provider, " +
		"or let calls in by the provider's addresses (allowed_inbound_ips)."
	tooMany = "More calls began at once over this trunk, or over all of them, than this server takes. " +
		"The caller may try again after a few seconds."
	allBusy = "All lines of this server were in use, or it was stopping."
)

// turn notes that a call which was let in is refused.
func (in *Invite) turn(code int, why string) {
	if in.Trunk == nil || why == "" {
		return
	}
	m := &turnedCall{call: callOf(in.req), user: callerOf(in.req), text: []byte(in.req.String()), from: addrPort(in.req.Source()),
		way: way(strings.ToUpper(in.req.Transport()))}
	for _, came := range in.server.ladders.find(in.req.CallID().Value()).messages() {
		if came.Direction == "in" {
			m.text = []byte(came.Text)
			break
		}
	}
	in.server.turn(m, []*Trunk{in.Trunk}, in.server.index.Load().known(m.from.Addr()), code, why)
}

// Tell has the trunk's owner told why the call is about to be refused, where no call of theirs will show it.
func (in *Invite) Tell(code int, why string) { in.turn(code, why) }

// unfitText says why an offer was refused, "" for what the caller mends by itself.
func unfitText(code int, headers []string) string {
	switch code {
	case 400:
		return "The session description (SDP) of the call could not be read."
	case 415:
		return "The call came with a body that is no session description (application/sdp)."
	case 420:
		return "The caller requires an extension that is not known here: " + strings.Join(headers[1:], ", ") + "."
	case 488:
		_, why, _ := strings.Cut(strings.Join(headers, " "), `"`)
		return "What the caller offered does not fit: " + strings.Trim(why, `"`) + "."
	}
	return ""
}
