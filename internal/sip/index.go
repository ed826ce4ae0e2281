package sip

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"

	"parley/internal/parley"

	sipgo "github.com/emiago/sipgo/sip"
)

// index holds the trunks in the form that incoming messages are matched against. It is never changed, only replaced.
type index struct {
	byTail   map[string][]owned  // by the last digits of their numbers
	byInside map[string][]*Trunk // by extension
	byName   map[string][]*Trunk // by user name
	byID     map[int64]*Trunk
	carriers []*Trunk                 // who have many numbers
	friends  map[netip.Prefix]bool    // whence callers need not prove anything
	triers   map[netip.Prefix]bool    // whence they may prove that they know a password
	hosts    map[netip.Addr]bool      // of trunks and proxies
	homes    map[int64]netip.AddrPort // where the registrar of a trunk answers from, while we are registered
	tokens   map[string]int64         // trunk by the user part of the contact that we registered
	asking   bool                     // some trunk wants the number called from a part of its own choice
}

const tailDigits = 6

func newIndex(trunks []Trunk) *index {
	x := &index{byTail: map[string][]owned{}, byInside: map[string][]*Trunk{}, byName: map[string][]*Trunk{}, byID: map[int64]*Trunk{},
		friends: map[netip.Prefix]bool{}, triers: map[netip.Prefix]bool{},
		hosts: map[netip.Addr]bool{}, homes: map[int64]netip.AddrPort{}, tokens: map[string]int64{}}
	for i := range trunks {
		t := &trunks[i]
		x.byID[t.ID] = t
		x.asking = x.asking || len(t.CalledFrom) > 0
		switch {
		case t.Number == "":
			x.carriers = append(x.carriers, t)
		case t.Extension:
			x.byInside[t.Number] = append(x.byInside[t.Number], t)
			x.own(t, t.Further...)
		default:
			x.own(t, t.Number)
			x.own(t, t.Further...)
		}
		if t.Username != "" {
			x.byName[t.Username] = append(x.byName[t.Username], t)
		}
		from := t.Allowed
		if len(from) == 0 {
			from = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0),
				netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
		}
		for _, p := range from {
			if t.ByIP && len(t.Allowed) > 0 {
				x.friends[p] = true
			} else if t.provable() {
				x.triers[p] = true
			}
		}
	}
	return x
}

// own notes numbers of a trunk's.
func (x *index) own(t *Trunk, numbers ...string) {
	for _, n := range numbers {
		x.byTail[tail(n)] = append(x.byTail[tail(n)], owned{t, n})
	}
}

// tail is the end of a number, which is the same in every notation.
func tail(user string) string {
	b := make([]byte, 0, 32)
	for i := 0; i < len(user) && len(b) < cap(b); i++ {
		if user[i] >= '0' && user[i] <= '9' {
			b = append(b, user[i])
		}
	}
	return string(b[max(0, len(b)-tailDigits):])
}

// known reports whether an address belongs to a trunk.
func (x *index) known(a netip.Addr) bool { return x.hosts[a] || within(x.friends, a) }

// open reports whether somebody at an address may prove to be a trunk.
func (x *index) open(a netip.Addr) bool { return within(x.triers, a) }

func within(places map[netip.Prefix]bool, a netip.Addr) bool {
	for p := range places {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// provable reports whether a password tells the trunk from others.
func (t *Trunk) provable() bool { return !t.ByIP && t.authName() != "" && t.Password != "" }

// from reports whether an address is one of a trunk's provider.
func (x *index) from(t *Trunk, a netip.Addr) bool {
	return t.ByIP && t.allows(a) || slices.Contains(t.provider, a) || x.homes[t.ID].Addr() == a || slices.Contains(t.at, a)
}

func (t *Trunk) mayTry(a netip.Addr) bool {
	return t.provable() && (len(t.Allowed) == 0 || t.allows(a))
}

func (t *Trunk) allows(a netip.Addr) bool {
	return slices.ContainsFunc(t.Allowed, func(p netip.Prefix) bool { return p.Contains(a) })
}

// numbered lists the trunks of which a number was called, in the order of their creation. A number in full belongs to
// one trunk alone; as dialled within a trunk's own country it may belong to others in other countries.
func (x *index) numbered(c *called, full bool) (found []*Trunk) {
	for _, u := range c.anyone {
		for _, o := range x.byTail[tail(u)] {
			if o.means(u, full) && slices.Contains(c.by(o.trunk), u) && !slices.Contains(found, o.trunk) {
				found = append(found, o.trunk)
			}
		}
	}
	return found
}

// inside lists the trunks whose extension was called.
func (x *index) inside(c *called) (found []*Trunk) {
	for _, u := range c.anyone {
		for _, t := range x.byInside[u] {
			if slices.Contains(c.by(t), u) {
				found = append(found, t)
			}
		}
	}
	return found
}

// route says what to do with a new call.
type route struct {
	trunk     *Trunk // let in
	to        string // the number called
	assistant int64  // let in: a softphone
	try       []*Trunk
	refuse    int // known, but wrong: a SIP status
}

// judge says whom a call is for. local says that it comes from a softphone's place. For a stranger the route is empty.
//
// Anybody may name a trunk as they like, say that they may be called from any address, and have a number that looks
// like somebody else's where it is dialled in short. So a number that is called in full comes first: on this server
// it is one trunk's alone. Then come the carrier's, then numbers in short, and names last, which let nobody in
// without the password.
func (x *index) route(req *sipgo.Request, from netip.AddrPort, local bool) (v route) {
	c := x.calledIn(req)
	called := c.usual
	token, tokened := x.tokens[called[0]]
	// Calls from the registrar arrive over our registration, for which we have proved who we are.
	atHome := func(t *Trunk) bool {
		home, ok := x.homes[t.ID]
		return ok && (from == home || from.Addr() == home.Addr() && tokened && token == t.ID ||
			slices.Contains(t.provider, from.Addr()))
	}
	welcome := func(t *Trunk) bool { return t.ByIP && t.allows(from.Addr()) || atHome(t) }
	// look reports whether one of the given trunks lets the call in; the others may still be proved by a password.
	look := func(trunks []*Trunk) bool {
		for _, t := range trunks {
			if welcome(t) {
				v.trunk, v.try = t, nil
				return true
			}
			if t.mayTry(from.Addr()) && !slices.Contains(v.try, t) {
				v.try = append(v.try, t)
			}
		}
		return false
	}
	if t := x.byID[token]; tokened && t != nil && t.Number != "" && atHome(t) {
		return route{trunk: t, to: x.registeredNumber(t, c, req)}
	}
	if look(x.numbered(c, true)) {
		v.to = cmp.Or(x.numberOf(v.trunk, c), v.trunk.Number)
		return v
	}
	if len(v.try) > 0 {
		return v
	}
	if id, ok := extension(called[0]); local && ok {
		return route{assistant: id}
	}
	v.to = carried(called)
	if look(x.carriers) {
		return v
	}
	// A call that may be the carrier's, to one of its numbers, goes to nobody else before a password has shown who is
	// calling.
	if asked := len(v.try); asked == 0 || !strings.HasPrefix(v.to, "+") {
		// the first one that may be meant is taken: a later one must not get ahead of it
		for _, t := range append(x.numbered(c, false), x.inside(c)...) {
			if look([]*Trunk{t}) {
				v.to = cmp.Or(x.numberOf(t, c), t.Number)
				return v
			}
			if len(v.try) > asked {
				break
			}
		}
		if asked == 0 && len(v.try) > 0 {
			return v
		}
		if t := x.named(called, atHome); t != nil {
			return route{trunk: t, to: x.registeredNumber(t, c, req)}
		}
	}
	for _, u := range append(called, userOf(&req.From().Address)) {
		for _, t := range x.byName[u] {
			if t.mayTry(from.Addr()) && !slices.Contains(v.try, t) {
				v.try = append(v.try, t)
			}
		}
	}
	if len(v.try) == 0 && (local || within(x.friends, from.Addr())) {
		v.refuse = 404
	}
	return v
}

// named is the trunk whose user name was called by its provider; nil where another trunk of this server has the name too,
// wherever it is: anybody may name a trunk like another, and let its domain lead to that one's provider.
func (x *index) named(called []string, home func(*Trunk) bool) (found *Trunk) {
	for _, u := range called {
		for _, other := range x.byName[u] {
			if found != nil && found != other {
				return nil
			}
			found = other
		}
	}
	if found == nil || found.Number == "" || !home(found) {
		return nil
	}
	return found
}

// calledOf lists who was called, by the Request-URI, and if that has no full number, by To: To is what a distant caller
// may have written, and does not say where a call was sent.
func calledOf(req *sipgo.Request) []string {
	called := []string{userOf(&req.Recipient)}
	if to := userOf(&req.To().Address); to != called[0] && !strings.HasPrefix(number(called[0], ""), "+") {
		called = append(called, to)
	}
	return called
}

// answers is the number at which a trunk is called: one of its own, in whatever notation, and that of the trunk where
// its extension or its name was called. It is false where none was.
func (x *index) answers(t *Trunk, c *called) (string, bool) {
	if n := x.numberOf(t, c); n != "" {
		return n, true
	}
	return t.Number, slices.ContainsFunc(c.by(t), func(user string) bool {
		return user != "" && (user == t.Username || t.Extension && user == t.Number)
	})
}

// extension is the assistant that a softphone calls: a short number without a plus.
func extension(user string) (int64, bool) {
	if len(user) > 9 || strings.HasPrefix(user, "+") || strings.HasPrefix(user, "0") {
		return 0, false
	}
	id, err := strconv.ParseInt(user, 10, 64)
	return id, err == nil && id > 0
}

// carried is the phone number among those called.
func carried(called []string) string {
	for _, u := range called {
		if n := number(u, ""); strings.HasPrefix(n, "+") {
			return n
		}
	}
	return called[0]
}

// number is the E.164 form of a user part that is a phone number as dialled in the country of home, and otherwise the
// user part itself.
func number(user, home string) string { return numberIn(user, home, "") }

// numberIn is number where the country is named; "": that of home.
func numberIn(user, home, country string) string {
	if user == home {
		return user
	}
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -.()", r) {
			return -1
		}
		return r
	}, user)
	if n, ok := parley.NormalizePhone(digits); ok {
		return n
	}
	if len(digits) < 6 || len(digits) > 20 || strings.Trim(digits, "0123456789") != "" {
		return user
	}
	if region := cmp.Or(country, parley.PhoneCountry(home)); home != "" && region != "" {
		if n, err := phonenumbers.Parse(digits, region); err == nil && phonenumbers.IsValidNumber(n) {
			return phonenumbers.Format(n, phonenumbers.E164)
		}
	}
	if home != "" && digits == strings.TrimPrefix(home, "+") {
		return home
	}
	if n, ok := parley.NormalizePhone("+" + digits); ok {
		return n
	}
	return user
}
