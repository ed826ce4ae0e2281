package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"parley/internal/call"
	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/sip"
	"parley/internal/stir"
)

// verifier checks who calls; nil where that is off.
func (s *Settings) verifier(guard *egress.Guard) (*stir.Verifier, error) {
	roots, err := s.stirRoots()
	switch {
	case err != nil:
		return nil, err
	case s.STIRClockSkew < 0 || s.STIRClockSkew > 300:
		return nil, fmt.Errorf("PARLEY_STIR_CLOCK_SKEW: %d is no number of seconds from 0 to 300", s.STIRClockSkew)
	case s.STIRVerify != "on":
		return nil, nil
	}
	return stir.NewVerifier(guard.Client(0), roots, time.Duration(s.STIRClockSkew)*time.Second), nil
}

// stirRoots are the authorities whose certificates may sign calls; nil without any.
func (s *Settings) stirRoots() (*x509.CertPool, error) {
	if s.STIRRoots == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.STIRRoots)
	if err != nil {
		return nil, fmt.Errorf("PARLEY_STIR_ROOTS: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("PARLEY_STIR_ROOTS: %s holds no certificates in PEM format", s.STIRRoots)
	}
	return roots, nil
}

// signer signs outgoing calls; nil where no certificate is set.
func (s *Settings) signer() (*stir.Signer, error) {
	switch {
	case s.STIRCert == "" && s.STIRKey == "":
		return nil, nil
	case s.STIRCert == "" || s.STIRKey == "":
		return nil, errors.New("PARLEY_STIR_CERT and PARLEY_STIR_KEY belong together: the address of the certificate, " +
			"and the file of its private key")
	}
	key, err := os.ReadFile(s.STIRKey)
	if err != nil {
		return nil, fmt.Errorf("PARLEY_STIR_KEY: %w", err)
	}
	out, err := stir.NewSigner(s.STIRCert, key)
	if err != nil {
		return nil, fmt.Errorf("PARLEY_STIR_CERT, PARLEY_STIR_KEY: %w", err)
	}
	return out, nil
}

// close ends what the line has begun beside calls.
func (p *telephone) close() {
	if p.verifier != nil {
		p.verifier.Close()
	}
}

// attest is what is known of the number that a call shows (RFC 8588, section 4): A, it is the account's own, rented here
// or proved by it; B, the account says so; C, it is a customer's, whose call is forwarded. It is "" where calls are not signed.
func (p *telephone) attest(ctx context.Context, r call.Route, t *sip.Trunk) (string, error) {
	n := &r.Number
	switch {
	case !p.signs || !t.Sign:
		return "", nil
	case r.From != "" && r.From != n.PhoneNumber:
		return "C", nil
	case n.Type == parley.NumberNormal:
		return "A", nil
	}
	proved, err := p.db.ProvedNumber(ctx, n.UserID, n.PhoneNumber)
	if err != nil || !proved {
		return "B", err
	}
	return "A", nil
}

// checkSTIR says whether callers can be verified, and whether certificate, key and address of those who sign agree.
func checkSTIR(ctx context.Context, s *Settings) []finding {
	const verify, sign = "verified callers", "signed calls"
	guard := egress.New([]netip.Addr{s.ExternalIP}, s.EgressAllow...)
	defer guard.Close()
	list := []finding{{"ok", verify, "calls are verified (STIR/SHAKEN) by the authorities of " + s.STIRRoots}}
	v, err := s.verifier(guard)
	switch {
	case err != nil:
		list[0] = finding{"FAIL", verify, err.Error()}
	case v == nil:
		list[0] = finding{"note", verify, "off (PARLEY_STIR_VERIFY): only what carriers say about callers is recorded"}
	case v.Roots == nil:
		list[0] = finding{"note", verify,
			"no caller counts as verified by this server: set PARLEY_STIR_ROOTS to a file of the authorities that may sign calls (STIR/SHAKEN)"}
	}
	if v != nil {
		v.Close()
	}
	signer, err := s.signer()
	if err == nil && signer == nil {
		return append(list, finding{"note", sign, "none: set PARLEY_STIR_CERT and PARLEY_STIR_KEY to sign calls (STIR/SHAKEN)"})
	}
	var chain *stir.Chain
	if err == nil {
		chain, _, err = stir.Fetch(ctx, guard.Client(0), signer.URL)
	}
	if err == nil {
		err = signer.Agrees(chain)
	}
	if err != nil {
		return append(list, finding{"FAIL", sign, fmt.Sprintf("PARLEY_STIR_CERT: %v", err)})
	}
	return append(list,
		finding{"ok", sign, fmt.Sprintf("with the certificate of %s, valid until %s", chain.Names, chain.Leaf.NotAfter.Format(time.DateOnly))})
}
