package rtc

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/turn/v5"
)

// ICEServer is a server that helps a browser to connect, as RTCPeerConnection takes it.
type ICEServer struct {
	URLs     []string `json:"urls"`
	Username string   `json:"username,omitempty"`
	Password string   `json:"credential,omitempty"`
}

const (
	realm = "parley"

	maxRelays  = 4                // that a call may have at once: one, and those of connections that have just been lost
	relayIdle  = 2 * time.Minute  // without a packet, after which a connection is closed
	relayStart = 10 * time.Second // for a connection's first packets
)

// relay is a TURN server (RFC 8656) for browsers whose network lets nothing but HTTPS through. It has no port of its
// own: the HTTPS server hands it the connections. It lets in the calls that are there, by a name and a password that
// each was given with its answer, and reaches the media port and nothing else.
type relay struct {
	turn  *turn.Server
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once

	media    []netip.AddrPort // where the media port listens
	external netip.Addr

	mu    sync.Mutex
	open  map[string]string // the passwords of calls, by name
	taken map[string]int    // their relays
	kept  map[*framed]bool
	work  sync.WaitGroup // connections
}

func newRelay(media []netip.AddrPort, external netip.Addr, log logging.LoggerFactory) (*relay, error) {
	r := &relay{conns: make(chan net.Conn), done: make(chan struct{}), media: media, external: external,
		open: map[string]string{}, taken: map[string]int{}, kept: map[*framed]bool{}}
	var err error
	r.turn, err = turn.NewServer(turn.ServerConfig{Realm: realm, LoggerFactory: log, AuthHandler: r.key, QuotaHandler: r.quota,
		EventHandler: turn.EventHandler{
			OnAllocationCreated: func(_, _ net.Addr, _, name, _ string, _ net.Addr, _ int) { r.count(name, 1) },
			OnAllocationDeleted: func(_, _ net.Addr, _, name, _ string) { r.count(name, -1) },
		},
		ListenerConfigs: []turn.ListenerConfig{{Listener: relayConns{r}, RelayAddressGenerator: r,
			PermissionHandler: func(_ net.Addr, peer net.IP) bool { return r.reaches(peer) }}},
	})
	return r, err
}

// admit gives a call a name and a password.
func (r *relay) admit() (name, password string) {
	name, password = rand.Text(), rand.Text()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[name] = password
	return name, password
}

// dismiss ends the right of a call: what it has relayed until now ends by itself, with the browser's connection.
func (r *relay) dismiss(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, name)
}

// key implements turn.AuthHandler.
func (r *relay) key(a *turn.RequestAttributes) (name string, key []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	password, ok := r.open[a.Username]
	if !ok {
		return "", nil, false
	}
	return a.Username, turn.GenerateAuthKey(a.Username, a.Realm, password), true
}

// quota implements turn.QuotaHandler.
func (r *relay) quota(name, _ string, _ net.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken[name] < maxRelays
}

func (r *relay) count(name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[name] += n; r.taken[name] <= 0 {
		delete(r.taken, name)
	}
}

// reaches reports whether an address is one at which browsers are told to find the media port.
func (r *relay) reaches(ip net.IP) bool {
	addr, ok := netip.AddrFromSlice(ip)
	_, here := r.port(addr.Unmap())
	return ok && here
}

// port is where the media port listens that browsers are told to find at an address.
func (r *relay) port(addr netip.Addr) (at netip.AddrPort, ok bool) {
	for _, m := range r.media {
		if m.Addr() == addr || addr == r.external && m.Addr().Is4() == addr.Is4() {
			return m, true
		}
	}
	return at, false
}

// close ends the connections, and waits until nobody reads from them any more.
func (r *relay) close() error {
	err := r.turn.Close()
	r.mu.Lock()
	for c := range r.kept {
		c.Conn.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
	return err
}

// relayConns are the connections that the HTTPS server has handed over.
type relayConns struct{ *relay }

func (c relayConns) Accept() (net.Conn, error) {
	select {
	case conn := <-c.conns:
		return conn, nil
	case <-c.done:
		return nil, net.ErrClosed
	}
}

func (c relayConns) Close() error {
	c.mu.Lock() // see keep
	defer c.mu.Unlock()
	c.once.Do(func() { close(c.done) })
	return nil
}

func (c relayConns) Addr() net.Addr { return &net.TCPAddr{} }

// Relay takes a connection on which a browser speaks TURN. It closes the connection when nothing comes any more.
func (s *Server) Relay(c net.Conn) {
	r := s.relay
	if r == nil {
		c.Close()
		return
	}
	f := &framed{Conn: c, wait: relayStart, relay: r}
	if !r.keep(f) {
		c.Close()
		return
	}
	select {
	case r.conns <- f:
	case <-r.done:
		f.Close()
	}
}

// keep notes a connection until it is closed; false where the relay closes.
func (r *relay) keep(f *framed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.done:
		return false
	default:
	}
	r.kept[f] = true
	r.work.Add(1)
	return true
}

// framed is a connection on which whole messages come, from time to time.
type framed struct {
	net.Conn
	relay *relay
	reads int
	wait  time.Duration
	buf   []byte // what was read of the stream, and not yet returned
	frame int    // how many octets of it are the message that is returned
	gone  sync.Once
}

// Close closes the connection.
func (c *framed) Close() error {
	err := c.Conn.Close()
	c.gone.Do(func() {
		c.relay.mu.Lock()
		delete(c.relay.kept, c)
		c.relay.mu.Unlock()
		c.relay.work.Done()
	})
	return err
}

// maxFrame is more than a message with a packet of sound or of a handshake has.
const maxFrame = 1500

var errFrame = errors.New("no message of TURN, or a longer one than is relayed")

// size is how long a message is that begins with a header of four octets: one of STUN (RFC 8489, section 5), or of a
// channel, which is padded (RFC 8656, section 12.5).
func size(header []byte) (int, error) {
	n := int(binary.BigEndian.Uint16(header[2:]))
	switch {
	case header[0] < 0x40 && n%4 == 0:
		n += 20
	case header[0] >= 0x40 && header[0] < 0x50:
		n = 4 + (n+3)/4*4
	default:
		return 0, errFrame
	}
	if n > maxFrame {
		return 0, errFrame
	}
	return n, nil
}

// Read returns what is there of one whole message. A message of another length than one can have ends the connection: the library
// that reads from us would read it for ever. The first messages agree on the relay; then sound flows.
func (c *framed) Read(b []byte) (int, error) {
	for c.frame == 0 {
		if len(c.buf) >= 4 {
			n, err := size(c.buf)
			if err != nil {
				return 0, err
			}
			if len(c.buf) >= n {
				c.frame = n
				break
			}
		}
		if c.reads++; c.reads == 16 {
			c.wait = relayIdle
		}
		if err := c.SetReadDeadline(time.Now().Add(c.wait)); err != nil {
			return 0, err
		}
		had := len(c.buf)
		c.buf = slices.Grow(c.buf, maxFrame)
		n, err := c.Conn.Read(c.buf[had : had+maxFrame])
		c.buf = c.buf[:had+n]
		if n == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(b, c.buf[:c.frame])
	c.frame -= n
	c.buf = append(c.buf[:0], c.buf[n:]...)
	return n, nil
}

// Write doesn't wait for a browser that takes nothing: its connection is closed.
func (c *framed) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(relayStart)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		c.Conn.Close() // its reader sees it
	}
	return n, err
}

// Validate implements turn.RelayAddressGenerator.
func (r *relay) Validate() error { return nil }

var errOnlyMedia = errors.New("only the media port is relayed to, by UDP")

// AllocateListener implements turn.RelayAddressGenerator.
func (r *relay) AllocateListener(turn.AllocateListenerConfig) (net.Listener, net.Addr, error) {
	return nil, nil, errOnlyMedia
}

// AllocateConn implements turn.RelayAddressGenerator.
func (r *relay) AllocateConn(turn.AllocateConnConfig) (net.Conn, error) { return nil, errOnlyMedia }

// AllocatePacketConn implements turn.RelayAddressGenerator. The address that a browser is told is of no use to anybody:
// nothing but the media port reaches the socket.
func (r *relay) AllocatePacketConn(c turn.AllocateListenerConfig) (net.PacketConn, net.Addr, error) {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, nil, err
	}
	told := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: socket.LocalAddr().(*net.UDPAddr).Port}
	if c.Network == "udp6" {
		told.IP = net.IPv6loopback
	}
	return &way{UDPConn: socket, relay: r, names: map[netip.AddrPort]net.Addr{}}, told, nil
}

// way is a browser's socket to the media port. A browser knows the port by the address that it is reached by from
// outside, which may not lead to it from here.
type way struct {
	*net.UDPConn
	relay *relay

	mu    sync.Mutex
	names map[netip.AddrPort]net.Addr // what the browser calls what it has reached
}

// WriteTo sends a packet of the browser's. What is not for the media port goes nowhere.
func (w *way) WriteTo(b []byte, to net.Addr) (int, error) {
	name, ok := to.(*net.UDPAddr)
	if !ok {
		return len(b), nil
	}
	called := name.AddrPort()
	at, ok := w.relay.port(called.Addr().Unmap())
	if !ok || called.Port() != at.Port() {
		return len(b), nil
	}
	w.mu.Lock()
	w.names[at] = to
	w.mu.Unlock()
	return w.WriteToUDPAddrPort(b, at)
}

// ReadFrom waits for a packet from the media port.
func (w *way) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := w.ReadFromUDPAddrPort(b)
		if err != nil {
			return n, nil, err
		}
		w.mu.Lock()
		name, ok := w.names[netip.AddrPortFrom(from.Addr().Unmap(), from.Port())]
		w.mu.Unlock()
		if ok {
			return n, name, nil
		}
	}
}
