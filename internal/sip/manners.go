package sip

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/crash"
	"parley/internal/parley"
)

// Manners is how a trunk's provider wants to be talked to. The zero value is how most do.
type Manners struct {
	Format        string   // of numbers: +e164 (""), e164, national
	Prefix        string   // before each number that is called
	FromUser      string   // number (""), username, or a text
	AuthName      string   // the user name that a password is proved with; "": the trunk's
	NoEarly       bool     // nobody hears its sound before an answer
	FromDomain    string   // in From; "": the trunk's
	ContactDomain string   // in Contact; "": our address
	UserPhone     bool     // addresses that hold numbers say user=phone
	Identity      string   // which header tells who calls: pai (""), ppi, rpid, none
	Privacy       string   // how a call hides its number: anonymous (""), id: From stays
	CalledFrom    []string // which parts of an INVITE name the number called: request_uri, to, p-called-party-id, diversion
	Silent        bool     // it is sent no OPTIONS
	Name          string   // that calls show; "": none
	Sign          bool     // calls are signed
	RTPSource     string   // signalled, any; "": as the server does it
}

// written is a number as the trunk writes numbers.
func (t *Trunk) written(number string) string {
	return parley.WrittenNumber(number, t.Format, cmp.Or(t.Country, parley.PhoneCountry(t.Number)))
}

// authName is the user name that a password is proved with.
func (t *Trunk) authName() string { return cmp.Or(t.AuthName, t.Username) }

// login answers the trunk's challenges.
func (t *Trunk) login() login { return login{username: t.authName(), password: t.Password} }

// asked is login for one request.
func (t *Trunk) asked() *login {
	l := t.login()
	return &l
}

// dialled is whom the trunk is asked to call.
func (t *Trunk) dialled(to string) string {
	if strings.HasPrefix(to, "+") {
		return t.Prefix + t.written(to)
	}
	return to
}

// caller is the user part of From in a call from a number.
func (t *Trunk) caller(number string) string {
	switch t.FromUser {
	case "", "number":
		return t.written(number)
	case "username":
		user, _, _ := strings.Cut(t.Username, "@")
		return cmp.Or(user, t.written(number))
	}
	return t.FromUser
}

// uri is the address of somebody at the trunk.
func (t *Trunk) uri(user, host string, port int) sipgo.Uri {
	u := sipgo.Uri{Scheme: "sip", User: escape(user), Host: host, Port: port}
	if t.UserPhone && user != "" && strings.Trim(user, "+0123456789*#") == "" {
		u.UriParams.Add("user", "phone")
	}
	return u
}

// contactOf is our contact in messages to the trunk.
func (s *Server) contactOf(t *Trunk, user string, h hop) sipgo.Uri {
	u := s.contact(user, h)
	if t != nil && t.ContactDomain != "" {
		u.Host = t.ContactDomain
	}
	return u
}

// loose reports whether a call's sound is taken from addresses that the signalling does not name.
func (l *leg) loose() bool {
	if l.trunk != nil && l.trunk.RTPSource != "" {
		return l.trunk.RTPSource == "any"
	}
	return l.server.config.Loose
}

// identity adds to an INVITE the header that tells the network who calls, from an address.
func (d *Dialling) identity(invite *sipgo.Request, from sipgo.Uri) {
	who := "<" + from.String() + ">"
	if d.Trunk.Name != "" && !d.Withheld {
		who = `"` + d.Trunk.Name + `" ` + who
		invite.From().DisplayName = d.Trunk.Name
	}
	switch d.Trunk.Identity {
	case "", "pai":
		invite.AppendHeader(sipgo.NewHeader("P-Asserted-Identity", who))
	case "ppi":
		invite.AppendHeader(sipgo.NewHeader("P-Preferred-Identity", who))
	case "rpid":
		hidden := "off"
		if d.Withheld {
			hidden = "full"
		}
		invite.AppendHeader(sipgo.NewHeader("Remote-Party-ID", who+";party=calling;screen=yes;privacy="+hidden))
	}
}

// called are the users that an INVITE names as called.
type called struct {
	usual  []string            // by the Request-URI, and To
	parts  map[string][]string // by the part of the message
	anyone []string            // all of them
}

// calledIn reads who was called. Only trunks that ask for it have the other parts looked at.
func (x *index) calledIn(req *sipgo.Request) *called {
	c := &called{usual: calledOf(req)}
	if c.anyone = c.usual; !x.asking {
		return c
	}
	c.parts = map[string][]string{"request_uri": {userOf(&req.Recipient)}, "to": {userOf(&req.To().Address)}}
	for part, header := range map[string]string{"p-called-party-id": "P-Called-Party-ID", "diversion": "Diversion"} {
		if list := parties(req, header); len(list) > 0 { // the first one is the last to send the call on
			c.parts[part] = []string{userOf(&list[0].uri)}
		}
	}
	c.anyone = slices.Clone(c.usual)
	for _, part := range []string{"request_uri", "to", "p-called-party-id", "diversion"} {
		for _, u := range c.parts[part] {
			if !slices.Contains(c.anyone, u) {
				c.anyone = append(c.anyone, u)
			}
		}
	}
	return c
}

// by are the users called, as a trunk tells them.
func (c *called) by(t *Trunk) (list []string) {
	if len(t.CalledFrom) == 0 || c.parts == nil {
		return c.usual
	}
	for _, part := range t.CalledFrom {
		list = append(list, c.parts[part]...)
	}
	return list
}

// owned is a number of a trunk's.
type owned struct {
	trunk  *Trunk
	number string
}

// means reports whether a called user is that number: written in full, or as dialled in the trunk's country.
func (o *owned) means(user string, full bool) bool {
	whole := o.number == number(user, "")
	return whole == full && (full || numberIn(user, o.number, o.trunk.Country) == o.number)
}

// numberOf is the number of a trunk's that was called, by the part of the message that it asks for first; "" for none.
func (x *index) numberOf(t *Trunk, c *called) string { return x.numberAmong(t, c.by(t)) }

// registeredNumber is the number called in a call over a trunk's registration, of which the Request-URI tells only the
// trunk: what To or, in networks that keep To for themselves, P-Called-Party-ID names, and otherwise the trunk's own.
func (x *index) registeredNumber(t *Trunk, c *called, req *sipgo.Request) string {
	number := x.numberOf(t, c)
	if list := parties(req, "P-Called-Party-ID"); number == "" && len(t.CalledFrom) == 0 && len(list) > 0 {
		number = x.numberAmong(t, []string{userOf(&list[0].uri)})
	}
	return cmp.Or(number, t.Number)
}

func (x *index) numberAmong(t *Trunk, users []string) string {
	for _, u := range users {
		for _, o := range x.byTail[tail(u)] {
			if o.trunk == t && (o.means(u, true) || o.means(u, false)) {
				return o.number
			}
		}
	}
	return ""
}

// hostBook remembers at which addresses the names are that trunks' calls come from.
type hostBook struct {
	mu    sync.Mutex
	at    map[hostName]hostEntry
	lives bool // they are being looked up
}

// hostName is host[:port] as it is looked up for a transport.
type hostName struct {
	to string
	by way
}

type hostEntry struct {
	found []netip.Prefix
	asked time.Time
}

const (
	hostAge    = time.Minute // after which a name is looked up again
	hostAtOnce = 8
)

// withHosts are trunks that also let in the addresses of their names, and know where those of their provider lead. Names are looked up
// beside: an address is known at the next look at the trunks, which follows at once where something has changed.
func (s *Server) withHosts(trunks []Trunk) []Trunk {
	s.hosts.mu.Lock()
	defer s.hosts.mu.Unlock()
	if s.hosts.at == nil {
		s.hosts.at = map[hostName]hostEntry{}
	}
	out, used, old := slices.Clone(trunks), map[hostName]bool{}, map[hostName]bool{}
	find := func(to string, by way) []netip.Prefix {
		name := hostName{to, by}
		e := s.hosts.at[name]
		used[name] = true
		if time.Since(e.asked) >= s.hostAge {
			old[name] = true
		}
		return e.found
	}
	for i := range out {
		t := &out[i]
		if len(t.Hosts) > 0 {
			t.Allowed = slices.Clone(t.Allowed)
		}
		for _, name := range t.Hosts {
			t.Allowed = append(t.Allowed, find(name, overUDP)...)
		}
		if len(t.Hosts) > 0 && len(t.Allowed) == 0 { // nobody, rather than anybody
			t.Allowed = []netip.Prefix{{}}
		}
		for _, name := range t.domains() {
			for _, p := range find(name, t.way()) {
				if a := p.Addr(); !s.local(a) && s.allowed(t, netip.AddrPortFrom(a, 0)) == nil {
					t.provider = append(t.provider, a)
				}
			}
		}
	}
	for name := range s.hosts.at {
		if !used[name] {
			delete(s.hosts.at, name)
		}
	}
	if len(old) > 0 && !s.hosts.lives {
		s.hosts.lives = true
		s.begin(func() { s.lookUpHosts(old) })
	}
	return out
}

// domains are the names of a trunk's provider. Where it has an address alone, that is no name.
func (t *Trunk) domains() (list []string) {
	for _, to := range []string{t.Address, t.Proxy} {
		if host, _, err := hostPort(to); err == nil && host != "" && !isAddr(host) {
			list = append(list, to)
		}
	}
	return list
}

// lookUpHosts finds the addresses of names. One that can't be looked up keeps those that it had.
func (s *Server) lookUpHosts(names map[hostName]bool) {
	ctx, cancel := context.WithTimeout(s.ctx, 4*resolveTime)
	defer cancel()
	var looking sync.WaitGroup
	places := make(chan struct{}, hostAtOnce)
	changed := false
	for name := range names {
		places <- struct{}{}
		crash.Go(&looking, func() {
			defer func() { <-places }()
			list, err := s.resolve(ctx, name.to, name.by)
			var found []netip.Prefix
			for _, a := range list {
				if p := netip.PrefixFrom(a.Addr(), a.Addr().BitLen()); !slices.Contains(found, p) {
					found = append(found, p)
				}
			}
			s.hosts.mu.Lock()
			defer s.hosts.mu.Unlock()
			e := s.hosts.at[name]
			if err == nil && !slices.Equal(e.found, found) {
				e.found, changed = found, true
			}
			e.asked = time.Now()
			s.hosts.at[name] = e
		}, crash.Log("the look-up of a host of a trunk", "host", name.to))
	}
	looking.Wait()
	s.hosts.mu.Lock()
	s.hosts.lives = false
	s.hosts.mu.Unlock()
	if changed {
		s.Refresh()
	}
}
