package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/cert"
	"parley/internal/detector"
	"parley/internal/egress"
	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/preset"
	"parley/internal/provider"
	"parley/internal/provider/local"
	"parley/internal/rtp"
	"parley/internal/simulator"
	"parley/internal/sip"
	"parley/internal/stir"
	"parley/internal/store"
)

// sipListen is where the telephone listens when nobody says otherwise.
const sipListen = "127.0.0.1:5060"

// limits are what may be called, and what that may cost an account a day.
func (s *Settings) limits() (d call.Destinations, spend parley.Money, err error) {
	if d, err = call.ParseDestinations(s.CallPrefixes); err != nil {
		return d, 0, fmt.Errorf("PARLEY_CALL_PREFIXES: %w", err)
	}
	if spend, err = parley.ParseMoney(s.CallDailySpend); err != nil || spend < 0 {
		return d, 0, fmt.Errorf("PARLEY_CALL_DAILY_SPEND: %q is not an amount of USD such as 50; 0 sets no limit",
			s.CallDailySpend)
	}
	return d, spend, nil
}

// forgetOldCalls removes recordings and calls that are past their time now.
func (s *Settings) forgetOldCalls(ctx context.Context, calls *call.Center) error {
	before := func(days int) parley.Time {
		if days <= 0 {
			return 0
		}
		return parley.Now().Add(-time.Duration(days) * 24 * time.Hour)
	}
	return calls.Forget(ctx, before(s.KeepRecordings), before(s.KeepCalls))
}

// telephone joins the call center to the ways out and in: the SIP line, and in its place the far end in this process.
type telephone struct {
	db      *store.DB
	node    *node.Node  // says which registrations are this process's; nil: all
	line    *sip.Server // nil: there is none
	most    int         // calls that it has ports for
	off     bool        // this process takes no calls: others do
	carrier *sip.Trunk  // nil: there is none
	sandbox bool        // numbers that no trunk belongs to are made up: so is who answers there
	voices  *provider.Set
	lines   simulator.Lines
	rules   parley.TrunkRules

	verifier *stir.Verifier // nil: nobody looks at who calls
	signs    bool           // there is a certificate to sign calls with

	incoming func(context.Context, call.Arrival) // while it runs
}

// telephone opens the line. With the default address, one that is taken is no reason not to start.
func (s *Settings) telephone(db *store.DB, own *node.Node, sandbox bool, providers *provider.Set,
	guard *egress.Guard, pace *rtp.Pace) (p *telephone, err error) {
	p = &telephone{db: db, node: own, voices: providers, sandbox: sandbox, off: !own.Does(parley.RoleCalls)}
	if p.carrier, err = s.carrierTrunk(); err != nil {
		return nil, err
	}
	if p.rules, err = s.trunkRules(); err != nil {
		return nil, err
	}
	config, err := s.sipConfig()
	if err != nil {
		return nil, err
	}
	if config.Listen == "off" || p.off {
		return p, nil
	}
	if config.Verifier, err = s.verifier(guard); err != nil {
		return nil, err
	}
	p.verifier = config.Verifier
	if config.Signer, err = s.signer(); err != nil {
		return nil, err
	}
	p.signs = config.Signer != nil
	config.Trunks = p.trunks
	if s.TrunkPrivate == "off" {
		config.Reach = guard.Check
	}
	config.Refused = func(ctx context.Context, list []parley.TrunkRefusal) {
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.KeepRefusals(ctx, list) })
		if err != nil {
			slog.Error("keep the calls that were refused", "calls", len(list), "error", err)
		}
	}
	config.Answer = func(ctx context.Context, in *sip.Invite) {
		a := call.Arrival{Ringer: in, From: in.From, To: in.To, AssistantID: in.AssistantID, Signalling: &in.Signalling}
		if in.Trunk != nil {
			a.TrunkID = in.Trunk.ID
		}
		p.incoming(ctx, a)
	}
	secret, err := s.secret()
	if err != nil {
		return nil, err
	}
	config.Pace, config.Contact = pace, contactAt(secret)
	sipLine := sip.New(config)
	if err := sipLine.Listen(); err != nil {
		if config.Listen == sipListen && errors.Is(err, syscall.EADDRINUSE) {
			slog.Warn("telephony is not running: its address is in use. Stop the program that uses it, "+
				"choose another address with PARLEY_SIP_LISTEN, or turn telephony off with PARLEY_SIP_LISTEN=off", "address", sipListen)
			return p, nil
		}
		return nil, fmt.Errorf("open the telephone line: %w", err)
	}
	p.line, p.most = sipLine, pairs(config.Ports)
	return p, nil
}

// contactAt is the contact of this machine at a trunk's registrar: the same after a restart, as a registrar may allow one alone.
func contactAt(secret []byte) func(trunk int64) string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return func(trunk int64) string {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "the contact of %s at trunk %d", machine, trunk)
		return fmt.Sprintf("p%x", mac.Sum(nil)[:16])
	}
}

// at is where this machine's softphones call; the zero value where there is no line.
func (p *telephone) at(s *Settings) netip.AddrPort {
	if p.line == nil || s.Softphone != "on" {
		return netip.AddrPort{}
	}
	at := p.line.Addr()
	if at.Addr().IsUnspecified() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return at
}

// check is the line as those see it who look after trunks, nil where there is none.
func (p *telephone) check() call.Line {
	if p.line == nil && !p.off {
		return nil
	}
	return p
}

// calls says whether calls can be made in this process.
func (p *telephone) calls() bool { return !p.off && (p.line != nil || p.sandbox && p.carrier == nil) }

// sipConfig reads the settings of the line.
func (s *Settings) sipConfig() (c sip.Config, err error) {
	c = sip.Config{Listen: s.SIPListen, Softphone: s.Softphone == "on", External: s.ExternalIP,
		Loose: s.RTPSource == "any", Session: time.Duration(s.SIPSession) * time.Second}
	if c.Listen == "off" {
		return c, nil
	}
	if s.SIPSession != 0 && (s.SIPSession < 90 || s.SIPSession > 86400) {
		return c, fmt.Errorf("PARLEY_SIP_SESSION: %d is neither 0 nor a number of seconds from 90 to 86400", s.SIPSession)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return c, fmt.Errorf("PARLEY_SIP_LISTEN: %q is neither an address such as 0.0.0.0:5060 nor off", c.Listen)
	}
	first, last, ok := strings.Cut(s.RTPPorts, "-")
	a, errA := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	b, errB := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	if !ok || errA != nil || errB != nil || a == 0 || b <= a {
		return c, fmt.Errorf("PARLEY_RTP_PORTS: %q is not a range of ports such as 10000-19999", s.RTPPorts)
	}
	c.Ports = [2]int{int(a), int(b)}
	return c, s.sipTLS(&c)
}

// sipTLS reads how the line proves who it is. A certificate without an address to listen on is for trunks that ask for it.
func (s *Settings) sipTLS(c *sip.Config) error {
	certFile, keyFile := cmp.Or(s.SIPTLSCert, s.TLSCert), cmp.Or(s.SIPTLSKey, s.TLSKey)
	if s.SIPTLSListen != "off" && s.SIPTLSListen != "" {
		c.Secure = s.SIPTLSListen
		if _, _, err := net.SplitHostPort(c.Secure); err != nil {
			return fmt.Errorf("PARLEY_SIP_TLS_LISTEN: %q is neither an address such as 0.0.0.0:5061 nor off", c.Secure)
		}
		if certFile == "" || keyFile == "" {
			return errors.New("PARLEY_SIP_TLS_LISTEN needs a certificate: set PARLEY_SIP_TLS_CERT and PARLEY_SIP_TLS_KEY, " +
				"or PARLEY_TLS_CERT and PARLEY_TLS_KEY")
		}
	} else if s.SIPTLSCert == "" {
		return nil
	}
	files, err := cert.Open(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("PARLEY_SIP_TLS_CERT: %w", err)
	}
	c.TLS = files.Server()
	if s.SIPTLSClientCA == "" {
		return nil
	}
	text, err := os.ReadFile(s.SIPTLSClientCA)
	if err != nil {
		return fmt.Errorf("PARLEY_SIP_TLS_CLIENT_CA: %w", err)
	}
	c.TLS.ClientAuth, c.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !c.TLS.ClientCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("PARLEY_SIP_TLS_CLIENT_CA: %s holds no certificates in PEM format", s.SIPTLSClientCA)
	}
	return nil
}

// dial takes the way that a number has: its own trunk, the carrier's, or where there is no carrier the far end in
// this process.
func (p *telephone) dial(ctx context.Context, r call.Route, ringing func()) (leg audio.Leg, err error) {
	d := sip.Dialling{To: r.To, From: cmp.Or(r.From, r.Number.PhoneNumber), Ringing: ringing, Early: r.Early, May: r.May}
	if s := r.Signalling; s != nil {
		d.Withheld, d.Headers = s.Withheld, s.Headers
	}
	switch {
	case r.Trunk != nil:
		t, err := p.trunk(r.Trunk)
		if err != nil {
			return nil, failed(r, err)
		}
		d.Trunk = t
	case p.carrier != nil:
		d.Trunk = *p.carrier
	case p.sandbox && !p.off:
		synthesizer, err := p.voices.Synthesizer(local.FliteCode)
		if err != nil {
			synthesizer = nil // it makes do
		}
		return simulator.Dial(ctx, simulator.Options{To: r.To, Synthesizer: synthesizer, Voice: "slt",
			Lines: &p.lines}, ringing)
	default:
		return nil, failed(r, errors.New("the carrier's numbers have no SIP trunk: set PARLEY_CARRIER_SIP_ADDRESS"))
	}
	if d.Attest, err = p.attest(ctx, r, &d.Trunk); err != nil {
		return nil, err
	}
	d.Origin = strconv.FormatInt(r.Number.UserID, 10)
	if p.line == nil {
		return nil, failed(r, errors.New("telephony is not running: see PARLEY_SIP_LISTEN"))
	}
	leg, err = p.line.Dial(ctx, d)
	return leg, explained(unassigned(err), r.Trunk == nil)
}

// room is how many calls may begin in this process while so many are live: each takes a pair of ports, or is counted
// as if it did.
func (p *telephone) room(live int) int {
	if p.line == nil {
		return math.MaxInt
	}
	return max(0, p.most-live)
}

// pairs is how many pairs of ports there are in a range: each begins with an even one.
func pairs(ports [2]int) int {
	return (ports[1] - (ports[0] + ports[0]&1) + 1) / 2
}

// checkTrunk is what a process is asked that holds the registration of a trunk, or has a line.
const checkTrunk = "check-trunk"

// checked is its answer.
type checked struct {
	Health call.Health
	Wrong  string // "": nothing is
}

// Check implements call.Line. The process that holds the trunk's registration knows best, if there is one.
func (p *telephone) Check(ctx context.Context, t *parley.Trunk) (call.Health, error) {
	if p.line != nil && (!t.Register || p.node.Holds(t.ID)) {
		return p.checkHere(ctx, t)
	}
	at, _ := p.node.Holder(t.ID)
	if at == "" {
		if p.line != nil {
			return p.checkHere(ctx, t)
		}
		var err error
		if at, err = p.node.Pick(parley.RoleCalls); err != nil {
			return call.Health{}, err
		}
	}
	var is checked
	err := p.node.Ask(ctx, at, t.UserID, checkTrunk, t.ID, &is)
	if err == nil && is.Wrong != "" {
		err = errors.New(is.Wrong)
	}
	return is.Health, err
}

// answerCheck does what another process asks by checkTrunk.
func (p *telephone) answerCheck(ctx context.Context, userID int64, body []byte) (any, error) {
	var id int64
	if err := json.Unmarshal(body, &id); err != nil {
		return nil, err
	}
	t, err := p.db.Trunk(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	if p.line == nil {
		return nil, node.ErrNone
	}
	var is checked
	if is.Health, err = p.checkHere(ctx, t); err != nil {
		is.Wrong = err.Error()
	}
	return is, nil
}

// checkHere looks from this process.
func (p *telephone) checkHere(ctx context.Context, t *parley.Trunk) (call.Health, error) {
	to, err := p.trunk(t)
	if err != nil {
		return call.Health{}, err
	}
	h, err := p.line.Check(ctx, to)
	if err == nil && len(to.Allowed) < len(t.AllowedInboundIPs) {
		err = fmt.Errorf("it answers, but some of its allowed_inbound_ips are too wide to accept calls from: "+
			"use networks of /%d or narrower (IPv6: /%d)", p.rules.IPv4, p.rules.IPv6)
	}
	for _, hint := range preset.Hints(t) {
		h.Findings = append(h.Findings, parley.TrunkFinding{Topic: "preset", State: parley.FindingNote, Text: hint})
	}
	return call.Health{Registered: h.Registered, OptionsMS: h.OptionsMS, Findings: h.Findings}, err
}

// Registered implements call.Line.
func (p *telephone) Registered(id int64) bool {
	if p.node.Holds(id) {
		return p.registered(id)
	}
	_, registered := p.node.Holder(id)
	return registered
}

// registered says whether this process is.
func (p *telephone) registered(id int64) bool { return p.line != nil && p.line.Registered(id) }

// Secure implements call.Line. Of other processes it is not known, and taken to be so.
func (p *telephone) Secure() bool { return p.line == nil || p.line.Secure() }

// Refresh has the line look at the trunks again.
func (p *telephone) Refresh() {
	if p.line != nil {
		p.line.Refresh()
	}
}

// Run serves the line until ctx ends, and gives incoming what comes in.
func (p *telephone) Run(ctx context.Context, incoming func(context.Context, call.Arrival)) error {
	if p.line == nil {
		return nil
	}
	p.incoming = incoming
	if err := p.line.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// Refuse turns new calls away: the server stops.
func (p *telephone) Refuse() {
	if p.line != nil {
		p.line.Refuse()
	}
}

// softphone is the address at which a softphone on this machine reaches an assistant, "" where it can't.
func (p *telephone) softphone(s *Settings, assistant int64) string {
	if p.line == nil || s.Softphone != "on" {
		return ""
	}
	at := p.line.Addr()
	host := at.Addr()
	if host.IsUnspecified() {
		host = netip.MustParseAddr("127.0.0.1")
	}
	if !host.IsLoopback() {
		return ""
	}
	return fmt.Sprintf("sip:%d@%s", assistant, netip.AddrPortFrom(host, at.Port()))
}

// checkTelephone looks whether the line could be opened with these settings.
func checkTelephone(s *Settings) (list []finding) {
	const what = "telephone"
	config, err := s.sipConfig()
	if err == nil {
		_, err = s.carrierTrunk()
	}
	if err == nil && config.Listen != "off" {
		_, err = s.trunkRules()
	}
	switch {
	case err != nil:
		return []finding{{"FAIL", what, err.Error()}}
	case config.Listen == "off":
		return []finding{{"note", what, "off (PARLEY_SIP_LISTEN): no calls come in or go out over SIP"}}
	}
	for _, probe := range []func() (interface{ Close() error }, error){
		func() (interface{ Close() error }, error) { return net.ListenPacket("udp", config.Listen) },
		func() (interface{ Close() error }, error) { return net.Listen("tcp", config.Listen) },
		func() (interface{ Close() error }, error) {
			return net.Listen("tcp", cmp.Or(config.Secure, "127.0.0.1:0"))
		},
	} {
		l, err := probe()
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			list = append(list, finding{"note", what, strings.TrimSuffix(config.Listen+" or "+config.Secure, " or ") +
				" is in use: a server is running there already, or choose another with PARLEY_SIP_LISTEN or PARLEY_SIP_TLS_LISTEN"})
		case err != nil:
			list = append(list, finding{"FAIL", what,
				fmt.Sprintf("%v: choose another address with PARLEY_SIP_LISTEN", err)})
		default:
			l.Close()
			continue
		}
		return append(list, s.checkExternal(config), s.checkCarrierTrunk(), s.checkTrunks())
	}
	list = append(list, finding{"ok", what, fmt.Sprintf("%s is free, for UDP and TCP; sound on UDP ports %s",
		config.Listen, s.RTPPorts)})
	return append(list, s.checkExternal(config), s.checkCarrierTrunk(), s.checkTrunks())
}

// checkExternal says what others are told to send sound to.
func (s *Settings) checkExternal(c sip.Config) finding {
	const what = "external ip"
	host, _, _ := net.SplitHostPort(c.Listen)
	at, err := netip.ParseAddr(host)
	switch {
	case c.External.IsValid() && (c.External.IsUnspecified() || c.External.IsLoopback()):
		return finding{"FAIL", what,
			fmt.Sprintf("PARLEY_EXTERNAL_IP is %s, which nobody else can reach: set the public address, or leave it unset", c.External)}
	case c.External.IsValid():
		return finding{"ok", what, fmt.Sprintf("%s; forward UDP %s and the port of %s to this machine",
			c.External, s.RTPPorts, c.Listen)}
	case err == nil && at.IsLoopback():
		return finding{"ok", what, "not needed: SIP listens on this machine only. Set PARLEY_SIP_LISTEN=0.0.0.0:5060 for trunks elsewhere"}
	}
	return finding{"note", what, "not set: fine without NAT. Behind NAT, set PARLEY_EXTERNAL_IP to the public address, or calls have no sound"}
}

// callMetrics tells of calls at /metrics.
type callMetrics struct {
	calls *call.Center
	pace  *rtp.Pace
	judge *detector.Detector // nil for none
}

var (
	liveCalls  = prometheus.NewDesc("parley_calls_live", "Calls that are live in this process.", nil, nil)
	endedCalls = prometheus.NewDesc("parley_calls_total", "Calls that ended in this process, by status.",
		[]string{"status"}, nil)
	soundFrames = prometheus.NewDesc("parley_sound_frames_total", "Frames of sound (20 ms) that calls of this process were sent.", nil, nil)
	lateFrames  = prometheus.NewDesc("parley_sound_late_frames_total",
		"Of these, those that were sent later than PARLEY_MAX_LATE.", nil, nil)
	tooManyCalls  = prometheus.NewDesc("parley_calls_refused", "1 while new calls are refused because sound is late.", nil, nil)
	turnQuestions = prometheus.NewDesc("parley_turn_detector_total", "Questions to the external turn detector, by outcome.",
		[]string{"outcome"}, nil)
)

// Describe implements prometheus.Collector.
func (m callMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- liveCalls
	out <- endedCalls
	out <- turnQuestions
	out <- soundFrames
	out <- lateFrames
	out <- tooManyCalls
}

// Collect implements prometheus.Collector.
func (m callMetrics) Collect(out chan<- prometheus.Metric) {
	stats := m.calls.Stats()
	out <- prometheus.MustNewConstMetric(liveCalls, prometheus.GaugeValue, float64(stats.Live))
	for status, n := range stats.Ended {
		out <- prometheus.MustNewConstMetric(endedCalls, prometheus.CounterValue, float64(n), string(status))
	}
	frames, late := m.pace.Counts()
	out <- prometheus.MustNewConstMetric(soundFrames, prometheus.CounterValue, float64(frames))
	out <- prometheus.MustNewConstMetric(lateFrames, prometheus.CounterValue, float64(late))
	behind := 0.0
	if m.pace.Behind() {
		behind = 1
	}
	out <- prometheus.MustNewConstMetric(tooManyCalls, prometheus.GaugeValue, behind)
	if m.judge != nil {
		answered, failed := m.judge.Counts()
		out <- prometheus.MustNewConstMetric(turnQuestions, prometheus.CounterValue, float64(answered), "answered")
		out <- prometheus.MustNewConstMetric(turnQuestions, prometheus.CounterValue, float64(failed), "failed")
	}
}
