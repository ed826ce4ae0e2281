package sip

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

var errSlow = errors.New("no answer in time")

// Check tests whether a trunk can be reached, and whether we are registered with it. The error tells its owner what is
// wrong and how to fix it. The address may be anybody's, so if no SIP answer comes, the error does not say what is
// there instead, and always takes the same time; only who has answered is told about.
func (s *Server) Check(ctx context.Context, t Trunk) (Health, error) {
	health := Health{Registered: s.Registered(t.ID)}
	if s.off() {
		return health, errors.New("the telephone is off: set PARLEY_SIP_LISTEN to an address such as 0.0.0.0:5060")
	}
	if !s.enter() {
		return health, parley.Shutdown
	}
	defer s.leave()
	if t.Silent {
		return s.unasked(t, health)
	}
	asking, cancel := context.WithTimeoutCause(ctx, s.asking, errSlow)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	began := time.Now()
	x := &examination{s: s, t: &t}
	err := x.options(asking)
	var told *why
	switch {
	case errors.Is(err, errPassword):
		return health, fmt.Errorf("%s is there, but the password was refused: check the user name and password",
			t.place())
	case errors.As(err, &told):
		return health, errors.New(told.text)
	case err != nil && x.res == nil:
		<-asking.Done()
		return health, fmt.Errorf("no answer from %s within %s: check the address and the transport (%s), and that it lets this server in",
			t.place(), s.asking, t.way())
	}
	health.OptionsMS = max(time.Since(began).Milliseconds(), 1)
	x.took = health.OptionsMS
	x.examine(ctx)
	health.Findings = x.found
	if x.res.StatusCode == 503 {
		return health, fmt.Errorf("%s is there, but takes no calls now (503 %s)", t.place(), x.res.Reason)
	}
	if t.Register && !health.Registered {
		return health, s.unregistered(t.ID)
	}
	return health, nil
}

// unasked is the check of a trunk that is sent no OPTIONS: only its registration tells whether it is there.
func (s *Server) unasked(t Trunk, health Health) (Health, error) {
	if t.Register && !health.Registered {
		return health, s.unregistered(t.ID)
	}
	x := &examination{s: s, t: &t}
	x.note("options", parley.FindingNote, "The trunk is not asked whether it is there (options is false): a test call tells more.")
	if t.Register {
		x.note("registration", parley.FindingOK, "This server is registered with the trunk.")
	}
	health.Findings = x.found
	return health, nil
}

// examination is a check of a trunk that has answered.
type examination struct {
	s     *Server
	t     *Trunk
	hops  []hop
	res   *sipgo.Response
	took  int64 // ms
	found []parley.TrunkFinding
}

func (x *examination) note(topic string, state parley.FindingState, format string, a ...any) {
	x.found = append(x.found, parley.TrunkFinding{Topic: topic, State: state, Text: fmt.Sprintf(format, a...)})
}

// options sends the trunk OPTIONS.
func (x *examination) options(ctx context.Context) (err error) {
	s, t := x.s, x.t
	if x.hops, err = s.hops(ctx, t); err != nil {
		return err
	}
	x.res, err = s.ask(ctx, s.options(t, x.hops[0]), x.hops[0], t.asked())
	return err
}

// examine says everything that the answer tells, in the order in which things go wrong.
func (x *examination) examine(ctx context.Context) {
	x.places(ctx)
	x.answer()
	x.certificate()
	x.registration()
	x.nat()
	x.codecs()
}

// places tells what the trunk's name stands for.
func (x *examination) places(ctx context.Context) {
	host, port, _ := hostPort(x.t.place())
	if isAddr(host) {
		x.note("dns", parley.FindingOK, "%s is an address: no name had to be looked up.", host)
		return
	}
	var list []string
	for _, h := range x.hops {
		list = append(list, h.addr.String())
	}
	by := "by its addresses"
	if service, proto := x.t.way().service(); port == 0 && strings.Contains(strings.TrimSuffix(host, "."), ".") {
		limited, cancel := context.WithTimeout(ctx, spareTime)
		defer cancel()
		if _, records, err := x.s.resolver.LookupSRV(limited, service, proto, host); err == nil && len(records) > 0 {
			by = fmt.Sprintf("by SRV records (_%s._%s.%s)", service, proto, host)
		}
	}
	more := ""
	if len(list) > 1 {
		more = " The first one was asked; if it fails in a call, the next one is tried."
	}
	x.note("dns", parley.FindingOK, "%s is at %s, %s.%s", host, strings.Join(list, ", "), by, more)
}

// service names the SRV records of a transport (RFC 3263, section 4.1).
func (w way) service() (service, proto string) {
	switch w {
	case overTCP:
		return "sip", "tcp"
	case overTLS:
		return "sips", "tcp"
	}
	return "sip", "udp"
}

func (x *examination) answer() {
	as := ""
	for _, name := range []string{"Server", "User-Agent"} {
		if h := x.res.GetHeader(name); h != nil && as == "" {
			as = ", as " + parley.VisitorText(h.Value(), false)
		}
	}
	said := strings.TrimSpace(strconv.Itoa(x.res.StatusCode) + " " + parley.VisitorText(x.res.Reason, false))
	switch code := x.res.StatusCode; {
	case code == 503:
		x.note("options", parley.FindingFail, "It answers in %d ms%s, but takes no calls now (%s).", x.took, as, said)
	case code >= 300:
		x.note("options", parley.FindingNote,
			"It answers in %d ms%s, with %s. Many trunks answer OPTIONS like that, and take calls all the same: a test call tells.",
			x.took, as, said)
	default:
		x.note("options", parley.FindingOK, "It answers in %d ms%s (%s).", x.took, as, said)
	}
}

// expiring is when a certificate's end is worth a word.
const expiring = 14 * 24 * time.Hour

func (x *examination) certificate() {
	if x.t.way() != overTLS {
		if s := secrecy(x.t.SRTP); s == srtpOptional || s == srtpRequired {
			x.note("encryption", parley.FindingNote,
				"Sound is encrypted, but its keys go over %s, where whoever is on the way can read them: use TLS.", x.t.way())
		}
		return
	}
	x.s.mu.Lock()
	c := x.s.opened[x.hops[0].addr]
	x.s.mu.Unlock()
	if c == nil {
		return
	}
	conn, is := c.Conn.(*tls.Conn)
	if !is || len(conn.ConnectionState().PeerCertificates) == 0 {
		return
	}
	state := conn.ConnectionState()
	leaf := state.PeerCertificates[0]
	by := cmp.Or(leaf.Issuer.CommonName, strings.Join(leaf.Issuer.Organization, ", "), "somebody without a name")
	if leaf.Issuer.String() == leaf.Subject.String() {
		by = "itself"
	}
	left := time.Until(leaf.NotAfter)
	text := fmt.Sprintf("%s. The certificate is for %s, signed by %s, and valid until %s (%d days).", tls.VersionName(state.Version),
		x.hops[0].name, by, leaf.NotAfter.UTC().Format(time.DateOnly), int(left.Hours()/24))
	if left < expiring {
		x.note("tls", parley.FindingNote, "%s Have it renewed soon: without a valid one no call goes over this trunk.", text)
		return
	}
	x.note("tls", parley.FindingOK, "%s", text)
}

func (x *examination) registration() {
	if !x.t.Register {
		if x.t.ByIP {
			x.note("registration", parley.FindingOK,
				"No registration: the trunk has to know where this server is, and its calls are known by their address.")
		} else {
			x.note("registration", parley.FindingNote,
				"No registration: the trunk has to know where this server is, and prove with each call that it knows the password.")
		}
		return
	}
	x.s.mu.Lock()
	r := x.s.regs[x.t.ID]
	x.s.mu.Unlock()
	if r != nil {
		r.mu.Lock()
		holds, left, home := r.holds(), time.Until(r.until), r.home
		r.mu.Unlock()
		if holds {
			x.note("registration", parley.FindingOK, "Registered at %s, and renewed before the %d minutes are over that it still lasts.", home,
				int(left.Minutes())+1)
			return
		}
	}
	x.note("registration", parley.FindingFail, "Not registered: %s.",
		strings.TrimPrefix(strings.TrimPrefix(x.s.unregistered(x.t.ID).Error(), "it answers, but "), "it answers; "))
}

// nat compares the address that the trunk is told with the one at which it sees us (RFC 3581).
func (x *examination) nat() {
	via := x.res.Via()
	if via == nil {
		return
	}
	h := x.hops[0]
	told := x.s.shown(h.addr.Addr())
	port, _ := via.Params.Get("rport")
	seen := told
	if text, ok := via.Params.Get("received"); ok {
		a, err := netip.ParseAddr(strings.Trim(text, "[]"))
		if err != nil {
			return
		}
		seen = a.Unmap()
	} else if port == "" {
		x.note("nat", parley.FindingNote, "The trunk doesn't say at which address it sees this server. "+
			"It is told %s, for calls and for sound.", told)
		return
	}
	switch {
	case seen != told && inside(seen) == inside(told):
		x.note("nat", parley.FindingFail, "The trunk sees this server at %s, but is told %s: there is a NAT in between. "+
			"Set PARLEY_EXTERNAL_IP=%s, or there will be no sound.", seen, told, seen)
	case seen != told:
		x.note("nat", parley.FindingFail, "The trunk sees this server at %s, but is told %s, which it can't reach. "+
			"Set PARLEY_EXTERNAL_IP=%s and forward the ports, or there will be no sound.", seen, told, seen)
	case !h.way.stream() && port != "" && port != strconv.Itoa(x.s.port(h.way)):
		x.note("nat", parley.FindingNote, "The trunk sees this server at %s, port %s instead of %d: a NAT changes ports. "+
			"Calls still come in over a registration; for sound, forward PARLEY_RTP_PORTS unchanged.", seen, port, x.s.port(h.way))
	default:
		x.note("nat", parley.FindingOK, "The trunk sees this server at %s, as it is told: no NAT gets in the way of sound.", seen)
	}
}

// codecs tells what the trunk takes, where it says so (RFC 3261, section 11.2).
func (x *examination) codecs() {
	text, ok := sdpOf(x.res)
	d, err := parseSDP(text)
	if !ok || err != nil || len(d.streams) == 0 {
		x.note("codecs", parley.FindingNote,
			"It doesn't say which codecs it takes, like most trunks that are asked without a call. A test call tells.")
		return
	}
	var names []string
	common := false
	for i := range d.streams {
		m := &d.streams[i]
		if m.kind != "audio" {
			continue
		}
		for _, pt := range m.formats {
			name := m.names[pt]
			if format, event, known := m.encoding(pt); known && event == 0 {
				name, common = format.String(), true
			} else if event > 0 {
				name = "keys (RFC 4733)"
			}
			name, _, _ = strings.Cut(cmp.Or(name, "payload type "+pt), "/")
			if name = parley.VisitorText(name, false); !slices.Contains(names, name) && len(names) < maxFormats {
				names = append(names, name)
			}
		}
	}
	if !common {
		x.note("codecs", parley.FindingFail, "It takes %s, and none of them is spoken here: have it take G.711 or G.722.",
			strings.Join(names, ", "))
		return
	}
	x.note("codecs", parley.FindingOK, "It takes %s.", strings.Join(names, ", "))
}

// unregistered says why we are not registered with a trunk.
func (s *Server) unregistered(id int64) error {
	s.mu.Lock()
	r := s.regs[id]
	s.mu.Unlock()
	if r == nil {
		return errors.New("it answers; the registration has not begun yet")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	refused, isRefused := errors.AsType[*Refused](r.err)
	switch {
	case errors.Is(r.err, errPassword):
		return errors.New("it answers, but the registration fails: the password was refused; check the user name and password")
	case errors.Is(r.err, errForbidden):
		return errors.New("it answers, but forbids the registration (403): the user name or the password may be wrong, " +
			"or it has as many registrations of this user as it allows (Asterisk: max_contacts, with remove_existing=yes)")
	case errors.Is(r.err, errNoLogin):
		return errors.New("it answers, but the registration fails: a password is asked for, and the trunk has none")
	case isRefused:
		return fmt.Errorf("it answers, but refuses the registration: %d %s", refused.Code, refused.Reason)
	}
	return errors.New("it answers; the registration is under way")
}
