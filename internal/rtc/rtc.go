// Package rtc is the browser's leg: WebRTC on one port, by ICE-lite (RFC 8445, section 2.7). Browsers reach the port by
// UDP, or by TCP where their network lets no UDP through (RFC 6544), or else by TURN over the connections that the HTTPS
// server takes, or by the operator's own TURN server. A browser sends Opus, which we decode, and hears G.722, which we
// encode, both in Go. The package knows nothing of users and assistants; its handshake is WHIP's (RFC 9725), and the
// HTTP of that is in internal/api.
package rtc

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/pion/ice/v4"
	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"

	"parley/internal/parley"
	"parley/internal/rtp"
)

// Config is what a server needs. Nothing of it changes afterwards.
type Config struct {
	Listen   string     // host:port, for UDP and TCP; port 0 takes any
	External netip.Addr // what browsers reach us by, where it isn't the socket's own address (NAT)
	MaxCalls int        // of browsers that are connected; more are refused; 0 is 1000
	Pace     *rtp.Pace  // of the sound of all calls: while it is behind, new ones are refused; nil: nobody measures

	// Connect is how long a browser may take from our answer to the first contact (0: 15 s), Silence how long it may
	// send no sound (0: 30 s), Lost how long it may be out of reach (0: 15 s).
	Connect, Silence, Lost time.Duration

	Relays bool                            // the HTTPS server hands over connections on which TURN is spoken: see Relay
	TURN   TURN                            // the operator's own servers
	Bound  func(net.Listener) net.Listener // limits the connections of an address; nil: nothing does
}

// TURN says which TURN servers browsers may use, and how they prove it: by a user and a password, or by names that
// expire, made with a secret (coturn's use-auth-secret).
type TURN struct {
	URLs                   []string
	User, Password, Secret string
}

// Server is the port that browsers call.
type Server struct {
	Config
	engine webrtc.SettingEngine // of all connections
	media  *webrtc.MediaEngine
	mux    ice.UDPMux
	tcp    ice.TCPMux
	relay  *relay // nil: no connections are handed over
	began  time.Time
	ctx    context.Context // ends when the server closes
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // legs

	mu      sync.Mutex
	closing bool
	legs    map[string]*Leg
	waiting []*Leg              // of these: for their browser to connect, the oldest first
	talking int                 // of these: connected
	proof   *webrtc.Certificate // what we prove with that it is us, in all calls
	fresh   time.Time           // when it was made
}

// New makes a server; Listen opens its port.
func New(c Config) *Server {
	c.MaxCalls = cmp.Or(c.MaxCalls, 1000)
	c.Connect, c.Silence, c.Lost = cmp.Or(c.Connect, 15*time.Second), cmp.Or(c.Silence, 30*time.Second),
		cmp.Or(c.Lost, 15*time.Second)
	s := &Server{Config: c, began: time.Now(), legs: map[string]*Leg{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// Listen opens the port.
func (s *Server) Listen() error {
	at, err := net.ResolveUDPAddr("udp", s.Config.Listen)
	if err != nil {
		return fmt.Errorf("listen for browsers on %q: %w", s.Config.Listen, err)
	}
	// it speaks of every stranger's packet
	quiet := &logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled}
	sockets, err := listen(at)
	muxes := make([]ice.UDPMux, len(sockets))
	for i, socket := range sockets {
		muxes[i] = ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: &gate{UDPConn: socket,
			seen: map[netip.AddrPort]int{}}, Logger: quiet.NewLogger("ice")})
	}
	if err != nil {
		return fmt.Errorf("listen for browsers: %w", err)
	}
	s.mux = ice.NewMultiUDPMuxDefault(muxes...)
	if err := s.listenTCP(at, quiet); err != nil {
		return errors.Join(fmt.Errorf("listen for browsers by TCP: %w", err), s.mux.Close())
	}
	if s.Relays {
		var media []netip.AddrPort
		for _, socket := range sockets {
			own := socket.LocalAddr().(*net.UDPAddr).AddrPort()
			media = append(media, netip.AddrPortFrom(own.Addr().Unmap(), own.Port()))
		}
		if s.relay, err = newRelay(media, s.External, quiet); err != nil {
			return errors.Join(err, s.closeSockets())
		}
	}
	e := &s.engine
	e.LoggerFactory = quiet
	e.SetLite(true)
	e.SetICEUDPMux(s.mux)
	e.SetIncludeLoopbackCandidate(at.IP == nil || at.IP.IsUnspecified() || at.IP.IsLoopback())
	e.SetICETCPMux(s.tcp)
	e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6, webrtc.NetworkTypeTCP4,
		webrtc.NetworkTypeTCP6})
	e.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	e.DisableActiveTCP(true)
	e.SetICETimeouts(s.Lost*2/3, s.Lost/3, 2*time.Second) // browsers ask every few seconds whether we are there
	e.SetAnsweringDTLSRole(webrtc.DTLSRoleServer)         // the browser begins: it knows when its way is open
	e.SetReceiveMTU(maxPacket)
	e.SetSCTPMaxReceiveBufferSize(64 << 10) // browsers send keys
	if s.External.IsValid() {
		err = e.SetICEAddressRewriteRules(webrtc.ICEAddressRewriteRule{External: []string{s.External.String()},
			AsCandidateType: webrtc.ICECandidateTypeHost})
	}
	s.media = new(webrtc.MediaEngine)
	for _, c := range codecs {
		err = errors.Join(err, s.media.RegisterCodec(c, webrtc.RTPCodecTypeAudio))
	}
	if err != nil {
		return errors.Join(err, s.closeSockets())
	}
	return nil
}

const (
	tcpStart  = 10 * time.Second // for a connection to say which call it is for
	tcpBuffer = 64 << 10         // bytes that a browser may be behind; what is beyond is dropped, as packets are
)

// listenTCP opens the same port for TCP.
func (s *Server) listenTCP(at *net.UDPAddr, log logging.LoggerFactory) error {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: at.IP, Port: at.Port, Zone: at.Zone})
	if err != nil {
		return err
	}
	var bound net.Listener = l
	if s.Bound != nil {
		bound = s.Bound(l)
	}
	s.tcp = ice.NewTCPMuxDefault(ice.TCPMuxParams{Listener: bound, Logger: log.NewLogger("ice"), ReadBufferSize: 64,
		WriteBufferSize: tcpBuffer, FirstStunBindTimeout: tcpStart, AliveDurationForConnFromStun: tcpStart})
	return nil
}

// closeSockets closes the port.
func (s *Server) closeSockets() (err error) {
	if s.relay != nil {
		err = s.relay.close()
	}
	if e := s.tcp.Close(); !errors.Is(e, net.ErrClosed) { // closed before
		err = errors.Join(err, e)
	}
	return errors.Join(err, s.mux.Close())
}

// The codecs, with the payload types that offers usually have; an offer's own count.
var codecs = []webrtc.RTPCodecParameters{
	{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2},
		PayloadType: 111},
	{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeG722, ClockRate: 8000}, PayloadType: 9},
}

// Addr is where the server listens; of several addresses the first.
func (s *Server) Addr() net.Addr { return s.mux.GetListenAddresses()[0] }

// Close hangs up, waits for what is under way, and closes the port.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.cancel(parley.Shutdown)
	s.work.Wait()
	if s.tcp == nil {
		return nil
	}
	return s.closeSockets()
}

// certificate is made anew before browsers could take it for too old.
func (s *Server) certificate() (webrtc.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proof == nil || time.Since(s.fresh) > 7*24*time.Hour {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return webrtc.Certificate{}, err
		}
		if s.proof, err = webrtc.GenerateCertificate(key); err != nil {
			return webrtc.Certificate{}, err
		}
		s.fresh = time.Now()
	}
	return *s.proof, nil
}

// Hangup ends the leg with an id, for the browser; false where there is none.
func (s *Server) Hangup(id string) bool {
	l := s.Leg(id)
	if l != nil {
		l.end(parley.CustomerHangup)
	}
	return l != nil
}

// Leg is the one with an id; nil where there is none.
func (s *Server) Leg(id string) *Leg {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.legs[id]
}

// errFull is the refusal of a call for which there is no room.
var errFull error = full{}

type full struct{}

func (full) Error() string { return "The server is busy. Please try again in a moment." }

// Wait is after how many seconds one may try again.
func (full) Wait() int { return 10 }

// Unwrap gives it its kind.
func (e full) Unwrap() error { return parley.Errorf(parley.Unavailable, "%s", e.Error()) }

// Offers that nobody follows up cost memory until Connect is over, and nothing else: they take nobody's line.
const (
	maxOffers     = 200 // at once; of more, the oldest gives way: who means it connects in a second
	maxOffersFrom = 6   // of one address, at once
)

// ErrMany is the refusal of an address that offers calls and does not take them up.
var ErrMany = errors.New("too many offers of this address wait for their browsers")

// Answer takes a browser's offer, and gives our answer. then is called once, in a goroutine that Close waits for:
// when sound can flow, and the leg must be run; or with the error that says why it won't.
func (s *Server) Answer(ctx context.Context, o *Offer, then func(*Leg, error)) (*Leg, string, error) {
	l := &Leg{server: s, ID: uuid.NewString(), from: o.From, open: make(chan struct{}), done: make(chan struct{}),
		voice: &voice{}}
	if o.Tools {
		l.results = make(chan ToolResult, maxResults)
	}
	if err := s.admit(l); err != nil {
		return nil, "", err
	}
	attended := false
	defer func() { // also when what a stranger wrote makes somebody panic
		if !attended {
			l.release()
		}
	}()
	answer, err := l.answer(ctx, o)
	if err != nil {
		return nil, "", err
	}
	attended = true
	go l.attend(then)
	return l, answer, nil
}

// admit makes an offer's leg one that waits for its browser.
func (s *Server) admit(l *Leg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := 0
	for _, w := range s.waiting {
		if l.from != "" && w.from == l.from {
			same++
		}
	}
	switch {
	case s.closing:
		return parley.Errorf(parley.Unavailable, "The server is restarting. Please try again in a moment.")
	case s.talking >= s.MaxCalls || s.Pace.Behind():
		return errFull
	case same >= maxOffersFrom:
		return ErrMany
	case len(s.waiting) >= maxOffers:
		s.waiting[0].end(parley.Unreachable)
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
	s.legs[l.ID], s.waiting = l, append(s.waiting, l)
	s.work.Add(1)
	return nil
}

// connect lets a leg whose browser is connected begin; false where there is no room any more.
func (s *Server) connect(l *Leg) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, l)
	if i < 0 || s.talking >= s.MaxCalls {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.talking++
	l.talks = true
	return true
}

// maxMedia is how many media an offer may have: each that is refused costs as well.
const maxMedia = 8

// Offer is a browser's description of the call that it wants, looked through.
type Offer struct {
	From  string // whom it is counted against: an address or a network; "": nobody
	Tools bool   // the browser runs tools: Leg.Results has what they answer

	text  string
	opus  string // its payload type
	lone  string // the name of its sound, where it is in no bundle
	begin bool   // we must begin the handshake: the sender waits
}

// Text is the offer as it was read.
func (o *Offer) Text() string { return o.text }

// ReadOffer looks an offer through. The error is what its sender may read.
func ReadOffer(text string) (*Offer, error) {
	refuse := func(why string) (*Offer, error) {
		return nil, parley.Errorf(parley.Invalid, "The SDP offer can't be answered: %s.", why)
	}
	desc := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: text}
	parsed, err := desc.Unmarshal()
	if err != nil {
		return refuse("it can't be read")
	}
	if len(parsed.MediaDescriptions) > maxMedia {
		return refuse(fmt.Sprintf("it may have at most %d media", maxMedia))
	}
	o := &Offer{text: text}
	for _, m := range parsed.MediaDescriptions {
		if m.MediaName.Media != "audio" || m.MediaName.Port.Value == 0 {
			continue
		}
		g722 := false
		for _, a := range m.Attributes {
			pt, codec, _ := strings.Cut(a.Value, " ")
			name := strings.ToLower(codec)
			if a.Key == "rtpmap" && strings.HasPrefix(name, "opus/48000") && o.opus == "" {
				o.opus = pt
			}
			g722 = g722 || a.Key == "rtpmap" && strings.HasPrefix(name, "g722/8000")
		}
		if o.opus == "" || !g722 {
			return refuse("its audio must offer Opus, which we hear, and G.722, which we speak")
		}
		setup, said := m.Attribute("setup")
		if !said {
			setup, _ = parsed.Attribute("setup")
		}
		if setup == "holdconn" {
			return refuse("a=setup:holdconn leaves no way to find keys: active, passive and actpass do")
		}
		o.begin = setup == "passive"
		o.lone, _ = m.Attribute("mid")
		for _, a := range parsed.Attributes {
			if a.Key == "group" && strings.HasPrefix(a.Value, "BUNDLE") {
				o.lone = ""
			}
		}
		return o, nil
	}
	return refuse("it has no audio")
}
