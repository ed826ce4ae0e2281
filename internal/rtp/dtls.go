package rtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/logging"
	"github.com/pion/transport/v4/packetio"

	"parley/internal/crash"
)

// DTLS is how both ends find keys by themselves (DTLS-SRTP, RFC 5763 and 5764): by a handshake on the way of the sound,
// in which each end shows a certificate. The signalling has its fingerprint.
type DTLS struct {
	Active bool   // we begin
	Hash   string // of the far end's fingerprint, such as sha-256
	Print  string // octets in hexadecimal, with colons
	Own    *Identity
	Round  int // another one calls for a new handshake
}

// Identity is a certificate of ours, and its fingerprint by SHA-256.
type Identity struct {
	Print       string
	certificate tls.Certificate
}

// NewIdentity makes one that signs itself.
func NewIdentity() (*Identity, error) {
	c, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return nil, fmt.Errorf("make a certificate for DTLS: %w", err)
	}
	print, err := printOf(c.Certificate[0], "sha-256")
	return &Identity{print, c}, err
}

// ValidPrint reports whether a fingerprint can be checked: it is one of its hash, and that is a safe one.
func ValidPrint(hash, print string) bool {
	sizes := map[string]int{"sha-256": 32, "sha-384": 48, "sha-512": 64}
	octets, err := hex.DecodeString(strings.ReplaceAll(print, ":", ""))
	return err == nil && len(octets) == sizes[hash] && len(print) == 3*len(octets)-1
}

func printOf(der []byte, hash string) (string, error) {
	h, err := fingerprint.HashFromString(hash)
	if err != nil {
		return "", err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return "", err
	}
	print, err := fingerprint.Fingerprint(cert, h)
	return strings.ToUpper(print), err
}

// unknown stands for a key that is being found: until then nothing is said or heard.
var unknown = Key{Suite: AES80}

const (
	handshakeTime = 10 * time.Second // after that the far end does not know how, or a firewall is in between
	maxFlight     = 64               // packets of a handshake that wait
)

// isHandshake tells DTLS from RTP (RFC 7983).
func isHandshake(data []byte) bool { return len(data) > 0 && data[0] >= 20 && data[0] <= 63 }

// handshake is one with the far end. It goes over one of the session's sockets, and is a net.PacketConn to the library.
type handshake struct {
	session *Session
	of      DTLS
	told    netip.AddrPort
	control bool // it is for RTCP on its own port, which has keys of its own (RFC 5764, section 3)
	in      *packetio.Buffer
	cancel  context.CancelFunc
}

// secure adopts keys, or begins to find them. The caller holds the lock.
func (s *Session) secure(a *Agreement) {
	if h := s.shaking[false]; a.DTLS == nil || h != nil && (h.of != *a.DTLS || h.told != a.Told) {
		s.unshake(false)
		s.unshake(true)
	}
	if a.DTLS == nil {
		s.cover.agree(a.In, a.Out)
		return
	}
	s.shake(a, a.Told, false)
	if a.Mux {
		s.unshake(true)
	} else {
		s.shake(a, a.control(), true)
	}
}

// shake begins a handshake, if there is none yet.
func (s *Session) shake(a *Agreement, told netip.AddrPort, control bool) {
	if s.shaking[control] != nil {
		return
	}
	s.failed = nil
	h := &handshake{session: s, of: *a.DTLS, told: told, control: control, in: packetio.NewBuffer()}
	h.in.SetLimitCount(maxFlight)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	h.cancel, s.shaking[control] = cancel, h
	h.cover().agree(unknown, unknown)
	crash.Go(&s.shakers, func() {
		defer cancel()
		if err := h.run(ctx); err != nil {
			h.fail(err)
		}
	}, s.crashed)
}

// unshake ends a handshake, or the connection that came of it. The caller holds the lock.
func (s *Session) unshake(control bool) {
	if h := s.shaking[control]; h != nil {
		delete(s.shaking, control)
		h.cancel()
		h.in.Close()
	}
}

// fail notes that no keys were found, if the session still wants them. A call without reports goes on.
func (h *handshake) fail(err error) {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.shaking[h.control] != h: // another has its place
	case h.control:
		slog.Warn("RTCP could not be encrypted: its DTLS handshake failed", "peer", h.told, "error", err)
	default:
		s.failed = fmt.Errorf("the DTLS handshake with %s failed: %w", h.told, err)
	}
}

// Failed says why the sound can't be encrypted, or what panic ended the session; nil while nothing is wrong.
func (s *Session) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// cover is what the keys are for.
func (h *handshake) cover() *cover {
	if h.control {
		return &h.session.reports.cover
	}
	return &h.session.cover
}

var errPrint = errors.New("the far end's certificate is not the one that it has named")

func (h *handshake) run(ctx context.Context) error {
	conn, err := h.open()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	in, out, err := h.keys(conn)
	if err != nil {
		return err
	}
	h.found(in, out)
	for buf := make([]byte, maxPacket); ; { // it may ask for our last words again
		if _, err := conn.Read(buf); err != nil {
			return nil //nolint:nilerr // it is over
		}
	}
}

// open makes the connection on which the handshake is held.
func (h *handshake) open() (*dtls.Conn, error) {
	common := []dtls.Option{dtls.WithCertificates(h.of.Own.certificate),
		dtls.WithInsecureSkipVerify(true), // the fingerprint says whose a certificate is
		dtls.WithVerifyPeerCertificate(h.verify),
		// Some ask for a certificate of certain authorities, and mean any: linphone.
		dtls.WithGetClientCertificate(func(*dtls.CertificateRequestInfo) (*tls.Certificate, error) { return &h.of.Own.certificate, nil }),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AES128_CM_HMAC_SHA1_80, dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_32),
		dtls.WithLoggerFactory(&logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled})}
	if h.of.Active {
		var all []dtls.ClientOption
		for _, o := range common {
			all = append(all, o)
		}
		return dtls.ClientWithOptions(h, h.RemoteAddr(), all...)
	}
	all := []dtls.ServerOption{dtls.WithClientAuth(dtls.RequireAnyClientCert)}
	for _, o := range common {
		all = append(all, o)
	}
	return dtls.ServerWithOptions(h, h.RemoteAddr(), all...)
}

// verify holds the far end's certificate to its fingerprint.
func (h *handshake) verify(certs [][]byte, _ [][]*x509.Certificate) error {
	if len(certs) == 0 {
		return errPrint
	}
	print, err := printOf(certs[0], h.of.Hash)
	if err == nil && print != h.of.Print {
		err = errPrint
	}
	return err
}

var profiles = map[dtls.SRTPProtectionProfile]Suite{dtls.SRTP_AES128_CM_HMAC_SHA1_80: AES80,
	dtls.SRTP_AEAD_AES_128_GCM: AESGCM, dtls.SRTP_AES128_CM_HMAC_SHA1_32: AES32}

// keys are what came of the handshake (RFC 5764, section 4.2).
func (h *handshake) keys(conn *dtls.Conn) (in, out Key, err error) {
	profile, _ := conn.SelectedSRTPProtectionProfile()
	suite := profiles[profile]
	state, ok := conn.ConnectionState()
	if suite == "" || !ok {
		return in, out, errors.New("no way to encrypt sound was agreed on")
	}
	k, salt := suites[suite].key, suites[suite].salt
	m, err := state.ExportKeyingMaterial("EXTRACTOR-dtls_srtp", nil, 2*(k+salt))
	if err != nil {
		return in, out, err
	}
	client := Key{Suite: suite, Secret: string(m[:k]) + string(m[2*k:2*k+salt])}
	server := Key{Suite: suite, Secret: string(m[k:2*k]) + string(m[2*k+salt:])}
	if h.of.Active {
		return server, client, nil
	}
	return client, server, nil
}

// found adopts the keys, if the session still wants them.
func (h *handshake) found(in, out Key) {
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	if h.session.shaking[h.control] == h {
		h.cover().agree(in, out)
	}
}

// feed takes a packet of a handshake. The caller holds the lock.
func (s *Session) feed(data []byte, from netip.AddrPort, at time.Duration, control bool) {
	if h := s.shaking[control]; h != nil && h.latch().accept(from, at, 0, 0) {
		_, _ = h.in.Write(data) // one that finds no room is sent again
	}
}

func (h *handshake) latch() *latch {
	if h.control {
		return &h.session.reports.latch
	}
	return &h.session.latch
}

func (h *handshake) socket() *net.UDPConn {
	if h.control {
		return h.session.socket.rtcp
	}
	return h.session.socket.rtp
}

// ReadFrom implements net.PacketConn.
func (h *handshake) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := h.in.Read(b)
	return n, h.RemoteAddr(), err
}

// WriteTo implements net.PacketConn.
func (h *handshake) WriteTo(b []byte, _ net.Addr) (int, error) {
	s := h.session
	s.mu.Lock()
	to := h.latch().to()
	s.mu.Unlock()
	_, _ = h.socket().WriteToUDPAddrPort(b, to) // one that is lost is sent again
	return len(b), nil
}

// RemoteAddr is the far end's address as it was told: where it really is, the latch knows.
func (h *handshake) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(h.told) }

// LocalAddr implements net.PacketConn.
func (h *handshake) LocalAddr() net.Addr { return h.socket().LocalAddr() }

// Close implements net.PacketConn.
func (h *handshake) Close() error { return h.in.Close() }

// SetDeadline implements net.PacketConn.
func (h *handshake) SetDeadline(t time.Time) error { return h.in.SetReadDeadline(t) }

// SetReadDeadline implements net.PacketConn.
func (h *handshake) SetReadDeadline(t time.Time) error { return h.in.SetReadDeadline(t) }

// SetWriteDeadline implements net.PacketConn: writing never waits.
func (h *handshake) SetWriteDeadline(time.Time) error { return nil }
