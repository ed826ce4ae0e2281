package sip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/rtp"
)

// Server is this process's telephone line.
type Server struct {
	config Config

	addr      netip.AddrPort
	udp       *net.UDPConn
	tcp       *net.TCPListener
	secure    *net.TCPListener // for TLS; nil: none
	transport *sipgo.TransportLayer
	txs       *sipgo.TransactionLayer
	streams   map[way]*streams
	opened    map[netip.AddrPort]*connection // by us
	strangers atomic.Int32                   // connections that have brought nothing yet
	ports     *rtp.Ports
	identity  *rtp.Identity // of our sound

	mark     string // is in the branch of every request that we send, so that answers are told from forgeries
	firewall *firewall
	turned   *turned // incoming calls
	digest   *digestAuth
	index    atomic.Pointer[index]

	// ctx ends when the server stops, with parley.Shutdown.
	ctx     context.Context
	stop    context.CancelCauseFunc
	refresh chan struct{}
	ready   chan struct{}  // closed when messages can be sent
	readers sync.WaitGroup // of the sockets

	mu       sync.Mutex
	work     int  // what must end before the sockets close
	stopping bool // no work comes from us any more
	closed   bool // there is none left
	idle     chan struct{}
	refusing bool
	live     int                // calls, in every state
	invites  map[string]*Invite // by Call-ID and the caller's tag
	legs     map[string]*leg    // by Call-ID and our tag
	regs     map[int64]*registration
	dials    map[netip.AddrPort]chan struct{} // TCP connections that are being opened
	shunned  map[netip.AddrPort]time.Time     // places that failed, and when
	several  map[int64]inUse                  // trunks with several places, by id
	deaf     deaf                             // to TCP
	carrier  carrierPlaces
	from     map[netip.Addr]int // TCP connections that came, by place

	looking sync.Mutex // for the carrier
	hosts   hostBook
	ladders ladders

	silent    time.Duration // without RTP a call is over
	longest   time.Duration // of a hold
	patient   time.Duration // for those who don't answer when the server stops
	asking    time.Duration // for a trunk's answer to Check
	idling    time.Duration // of a TCP connection that came, without a message or a call
	alive     time.Duration // between two signs of life to a registrar
	surveying time.Duration // between two questions to places whether they are there
	hostAge   time.Duration // after which the name of a place that calls come from is looked up again
	passing   time.Duration // for the first word of a place when there is another
	least     time.Duration // that a session timer may have

	resolver *net.Resolver
}

// New makes a server. It does nothing before Listen and Run.
func New(c Config) *Server {
	s := &Server{config: c, ports: rtp.NewPorts(c.Ports[0], c.Ports[1]), mark: token(12), firewall: newFirewall(), turned: newTurned(),
		digest:  newDigestAuth(),
		refresh: make(chan struct{}, 1), ready: make(chan struct{}), idle: make(chan struct{}),
		invites: map[string]*Invite{}, legs: map[string]*leg{}, regs: map[int64]*registration{},
		dials: map[netip.AddrPort]chan struct{}{}, shunned: map[netip.AddrPort]time.Time{},
		carrier: carrierPlaces{seen: map[netip.AddrPort]time.Time{}},
		from:    map[netip.Addr]int{}, opened: map[netip.AddrPort]*connection{}, ladders: ladders{all: map[string]*ladder{}},
		silent: 30 * time.Second, longest: 10 * time.Minute, patient: 2 * time.Second, asking: 5 * time.Second,
		idling: 15 * time.Minute, alive: keepAlive, surveying: surveyEvery, several: map[int64]inUse{},
		hostAge: hostAge, passing: 2 * time.Second, least: minInterval, resolver: net.DefaultResolver}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.index.Store(&index{})
	return s
}

func (s *Server) off() bool { return s.config.Listen == "off" }

// Listen opens the sockets.
func (s *Server) Listen() error {
	if s.off() {
		return nil
	}
	var err error
	if s.identity, err = rtp.NewIdentity(); err != nil {
		return err
	}
	if s.ports.Len() == 0 {
		return errors.New("PARLEY_RTP_PORTS has no pair of ports: give a range such as 10000-19999")
	}
	want, err := net.ResolveUDPAddr("udp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("PARLEY_SIP_LISTEN must be host:port, such as 0.0.0.0:5060, or off: %w", err)
	}
	for try := 0; ; try++ {
		err := s.bind(want)
		if err == nil {
			break
		}
		if want.Port == 0 && try < 20 && errors.Is(err, syscall.EADDRINUSE) {
			continue // the free UDP port is somebody's TCP port
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen for SIP on %s: another program has that port; stop it, or set PARLEY_SIP_LISTEN to another one, "+
				"or to off for no telephone: %w", want, err)
		}
		return fmt.Errorf("listen for SIP on %s (PARLEY_SIP_LISTEN): %w", want, err)
	}
	if s.config.Secure != "" {
		if err := s.listenSecure(); err != nil {
			s.udp.Close()
			s.tcp.Close()
			return err
		}
	}
	s.streams = map[way]*streams{}
	for _, w := range []way{overTCP, overTLS} {
		s.streams[w] = &streams{conns: make(chan *connection), done: make(chan struct{}), addr: s.tcp.Addr()}
	}
	s.transport = sipgo.NewTransportLayer(net.DefaultResolver, sipgo.NewParser(), nil,
		sipgo.WithTransportLayerLogger(quiet),
		sipgo.WithTransportLayerTransports(sipgo.TransportsConfig{TCP: &sipgo.TransportTCP{DialerCreate: noDial},
			TLS: &sipgo.TransportTLS{TransportTCP: &sipgo.TransportTCP{DialerCreate: noDial}}}))
	s.txs = sipgo.NewTransactionLayer(s.transport, sipgo.WithTransactionLayerLogger(quiet),
		sipgo.WithTransactionLayerUnhandledResponseHandler(s.stray))
	s.txs.OnRequest(s.serve)
	return nil
}

func (s *Server) bind(want *net.UDPAddr) (err error) {
	if s.udp, err = net.ListenUDP("udp", want); err != nil {
		return err
	}
	_ = s.udp.SetReadBuffer(1 << 20) // for bursts; the kernel may allow less
	s.addr = s.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	s.addr = netip.AddrPortFrom(s.addr.Addr().Unmap(), s.addr.Port())
	if s.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(s.addr)); err != nil {
		s.udp.Close()
	}
	return err
}

func (s *Server) listenSecure() error {
	if s.config.TLS == nil {
		return errors.New("PARLEY_SIP_TLS_LISTEN needs a certificate: set PARLEY_SIP_TLS_CERT and PARLEY_SIP_TLS_KEY, " +
			"or PARLEY_TLS_CERT and PARLEY_TLS_KEY")
	}
	at, err := net.ResolveTCPAddr("tcp", s.config.Secure)
	if err != nil {
		return fmt.Errorf("PARLEY_SIP_TLS_LISTEN must be host:port, such as 0.0.0.0:5061: %w", err)
	}
	if s.secure, err = net.ListenTCP("tcp", at); err != nil {
		return fmt.Errorf("listen for SIP over TLS on %s (PARLEY_SIP_TLS_LISTEN): %w", at, err)
	}
	return nil
}

// Addr is where the server listens, for both UDP and TCP. It is invalid before Listen, and when telephony is off.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Secure says whether the server listens for SIP over TLS.
func (s *Server) Secure() bool { return s.secure != nil }

// Run serves until ctx ends: it registers with trunks and takes calls. Live calls end with ctx too. When it returns
// everything is over, provided that those who run legs return when these end.
func (s *Server) Run(ctx context.Context) error {
	if s.off() {
		<-ctx.Done()
		return nil
	}
	s.loadTrunks(ctx)
	s.readers.Go(func() { _ = s.transport.ServeUDP(&datagrams{UDPConn: s.udp, server: s}) })
	s.readers.Go(func() { _ = s.transport.ServeTCP(s.streams[overTCP]) })
	s.readers.Go(func() { _ = s.transport.ServeTLS(s.streams[overTLS]) })
	s.readers.Go(func() { s.listenTCP(s.tcp, overTCP) })
	if s.secure != nil {
		s.readers.Go(func() { s.listenTCP(s.secure, overTLS) })
	}
	if s.config.Refused != nil {
		s.readers.Go(func() { s.tell(ctx) })
	}
	s.watch(ctx)

	s.Refuse()
	s.stop(parley.Shutdown)
	s.endAll()
	s.mu.Lock()
	s.stopping = true
	s.closeIdle()
	s.mu.Unlock()
	<-s.idle

	s.txs.Close()
	for _, l := range s.streams {
		close(l.done)
	}
	s.tcp.Close()
	if s.secure != nil {
		s.secure.Close()
	}
	s.udp.Close()
	_ = s.transport.Close()
	s.readers.Wait()
	s.forgetLost(0)
	return nil
}

// watch keeps the trunks up to date until ctx ends.
func (s *Server) watch(ctx context.Context) {
	poll := time.NewTicker(5 * time.Second)
	defer poll.Stop()
	look := time.NewTicker(s.surveying)
	defer look.Stop()
	var looking sync.WaitGroup
	defer looking.Wait()
	var busy atomic.Bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.refresh:
		case <-poll.C:
			s.sweep()
		case <-look.C:
			if busy.CompareAndSwap(false, true) {
				crash.Go(&looking, func() {
					defer busy.Store(false)
					s.survey(ctx)
				}, crash.Log("the look at the places of trunks"))
			}
			continue
		}
		s.loadTrunks(ctx)
	}
}

// sweep forgets what is over.
func (s *Server) sweep() {
	defer crash.Contain(crash.Log("the sweep of the telephone"))
	s.digest.sweep(time.Now())
	s.forgetLost(5 * time.Second)
	s.sweepLadders()
}

// endAll ends every call.
func (s *Server) endAll() {
	s.mu.Lock()
	var legs []*leg
	for _, l := range s.legs {
		legs = append(legs, l)
	}
	s.mu.Unlock()
	for _, l := range legs {
		l.state.Lock()
		early := l.early // those that aren't answered are taken back
		l.state.Unlock()
		if !early {
			l.end(parley.Shutdown, true)
		}
	}
}

// Refuse rejects new calls with 503 from now on, as the first of two steps of stopping. Live calls go on.
func (s *Server) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = true
}

// refuses says whether new calls are rejected since Refuse.
func (s *Server) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusing
}

// Refresh says that trunks have changed.
func (s *Server) Refresh() {
	select {
	case s.refresh <- struct{}{}:
	default:
	}
}

// begin runs f in a goroutine that Run waits for. Run waits for the caller, too.
func (s *Server) begin(f func()) {
	s.mu.Lock()
	s.work++
	s.mu.Unlock()
	go func() {
		defer s.leave()
		defer crash.Contain(crash.Log("the exchange of SIP messages"))
		f()
	}()
}

// enter makes Run wait until leave is called. It is false once the server has stopped.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work--
	s.closeIdle()
}

// closeIdle ends a server that is stopping and has nothing left to do. The caller holds mu.
func (s *Server) closeIdle() {
	if s.stopping && s.work == 0 && !s.closed {
		s.closed = true
		close(s.idle)
	}
}

// most is how many calls there may be.
func (s *Server) most() int {
	if n := s.config.MaxCalls; n > 0 {
		return min(n, s.ports.Len())
	}
	return s.ports.Len()
}

// take makes room for a call, which free gives back.
func (s *Server) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live >= s.most() {
		return false
	}
	s.live++
	return true
}

func (s *Server) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live--
}

// local reports whether an address is a softphone's: this machine's own.
func (s *Server) local(a netip.Addr) bool {
	return s.config.Softphone && (a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback())
}
