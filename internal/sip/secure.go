package sip

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"parley/internal/parley"
)

// TLS to trunks (RFC 3261, section 26.2; RFC 5922): the server that answers must prove that it is the one in the
// trunk's address, which DNS alone does not prove.

// handshake turns a connection into a TLS one.
func (s *Server) handshake(ctx context.Context, raw net.Conn, h hop) (net.Conn, error) {
	config := &tls.Config{ServerName: h.name, MinVersion: tls.VersionTLS12}
	if h.ca != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(h.ca))
	}
	if own := s.config.TLS; own != nil { // for those who ask
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own.GetCertificate(&tls.ClientHelloInfo{ServerName: h.name})
		}
	}
	c := tls.Client(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, untrusted(h, err)
	}
	return c, nil
}

// untrusted tells the trunk's owner what is wrong with a certificate. Any other failure looks like silence.
func untrusted(h hop, err error) error {
	bad, is := errors.AsType[*tls.CertificateVerificationError](err)
	if !is {
		return fmt.Errorf("TLS with %s: %w", h.addr, err)
	}
	var reason string
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(bad.Err, &name):
		reason = "it is for another name: have the trunk's address be the name that the certificate is for"
	case errors.As(bad.Err, &invalid) && invalid.Reason == x509.Expired:
		reason = "it has expired, or is not valid yet"
	case errors.As(bad.Err, new(x509.UnknownAuthorityError)):
		reason = "nobody known here has signed it: put the certificate of who did, or its own, into the trunk's tls_ca"
	default:
		reason = "it is not valid"
	}
	return because(fmt.Errorf("%w: TLS with %s (%s): %w", parley.Unreachable, h.name, h.addr, err),
		"The trunk's TLS certificate can't be trusted: %s.", reason)
}

// proven reports whether the existing connection has proved the name that a hop requires: another trunk's connection
// may go to the same address and have proved less.
func (s *Server) proven(h hop) error {
	if h.way != overTLS || h.name == "" {
		return nil
	}
	s.mu.Lock()
	c := s.opened[h.addr]
	s.mu.Unlock()
	if c == nil { // it came to us, and has proved nothing
		return fmt.Errorf("TLS with %s: the connection from there can't be used", h.addr)
	}
	conn, is := c.Conn.(*tls.Conn)
	if !is {
		return fmt.Errorf("TLS with %s: the connection there is none", h.addr)
	}
	chain := conn.ConnectionState().PeerCertificates
	options := x509.VerifyOptions{DNSName: h.name, Intermediates: x509.NewCertPool()}
	if h.ca != "" {
		options.Roots = x509.NewCertPool()
		options.Roots.AppendCertsFromPEM([]byte(h.ca))
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return untrusted(h, &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: err})
	}
	return nil
}
