package sip

import (
	"fmt"
	"strings"

	"parley/internal/rtp"
)

// DTLS-SRTP in session descriptions (RFC 5763): the fingerprints of certificates, and who begins the handshake.

// roles are what a description calls whoever begins, and whoever waits.
var roles = map[bool]string{true: "active", false: "passive"}

// fingerprint reads a=fingerprint. One that can't be checked counts as none.
func (m *stream) fingerprint(value string) {
	hash, print, _ := strings.Cut(strings.TrimSpace(value), " ")
	hash, print = strings.ToLower(hash), strings.ToUpper(strings.TrimSpace(print))
	if m.print != "" && m.hash == "sha-256" || !rtp.ValidPrint(hash, print) {
		return
	}
	m.hash, m.print = hash, print
}

// covered reports whether the stream's protocol is an encrypted one.
func (m *stream) covered() bool {
	return m.proto == "RTP/SAVP" || m.proto == "RTP/SAVPF" || m.overDTLS()
}

func (m *stream) overDTLS() bool {
	return m.proto == "UDP/TLS/RTP/SAVP" || m.proto == "UDP/TLS/RTP/SAVPF"
}

// handshake is how keys are found with the stream's owner. Whoever leaves it to us who begins is best served if we do
// (RFC 5763, section 5).
func (m *stream) handshake() (*rtp.DTLS, bool) {
	if m.print == "" || m.setup == "holdconn" {
		return nil, false
	}
	return &rtp.DTLS{Hash: m.hash, Print: m.print, Active: m.setup != "active"}, true
}

// shows writes our fingerprint and our part in the handshake.
func (l *local) shows(b *strings.Builder, role string) {
	fmt.Fprintf(b, "a=fingerprint:sha-256 %s\r\na=setup:%s\r\n", l.identity.Print, role)
}

// shake completes a choice: our certificate, and the part in the handshake that we have already, if the far end leaves
// it to us. The caller holds the state's lock.
func (l *leg) shake(d *description, c choice) choice {
	if c.dtls == nil {
		return c
	}
	own := *c.dtls
	own.Own, own.Round = l.own.identity, l.round
	if was := l.state.agreed.DTLS; was != nil && was.Print == own.Print && was.Round == own.Round &&
		d.streams[c.place].setup == "actpass" {
		own.Active = was.Active
	}
	c.dtls = &own
	return c
}
