package egress

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

// Refused is a request that the guard did not let out. Its text is meant for the tenant: it names no address that a
// name was resolved to, and says what the operator can do where something can be done.
type Refused struct {
	Reason string
	Addr   netip.Addr // the address at fault, if it was one; for the operator only
}

func (e *Refused) Error() string { return "refused: " + e.Reason }

func refuse(reason string) *Refused { return &Refused{Reason: reason} }

// Explain says in plain words why an exchange failed. The words hold no URL, address or header, so that they can be
// shown to a tenant, a model or a customer.
func Explain(err error) string {
	var (
		refused     *Refused
		timeout     net.Error
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		op          *net.OpError
	)
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.Is(err, context.Canceled):
		return "the request was canceled"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the server's name could not be found"
	case errors.As(err, &dns):
		return "the server's name could not be looked up"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the server took too long"
	case errors.As(err, &certificate):
		return explainCertificate(certificate.Err)
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "the server does not speak https there"
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"): // a TLS alert, theirs or ours
		return "no secure connection could be made with the server"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the server does not accept connections there"
	case errors.As(err, &op) && op.Op == "dial":
		return "the server could not be reached"
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection broke off"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)):
		return "the server's answer is badly compressed"
	}
	return "the server's answer could not be understood"
}

func explainCertificate(err error) string {
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &name):
		return "the server's certificate is for another name"
	case errors.As(err, &unknown):
		return "the server's certificate is from an unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not valid yet"
	}
	return "the server's certificate is not valid"
}
