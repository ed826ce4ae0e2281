package stir

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// tnAuthList is the extension that says whose numbers a certificate speaks for (RFC 8226, section 9).
var tnAuthList = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 26}

// Authority is whose numbers a certificate speaks for.
type Authority struct {
	Codes  []string // of service providers
	Ranges []Range
}

// Range are numbers that follow one another.
type Range struct {
	Start string // digits
	Count uint64
}

// maxEntries bounds what is read of a list.
const maxEntries = 10000

// parseAuthority reads the value of a TNAuthList.
func parseAuthority(der []byte) (a Authority, err error) {
	var list []asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &list); err != nil || len(rest) > 0 || len(list) == 0 || len(list) > maxEntries {
		return a, errors.New("the certificate's TNAuthList can't be read")
	}
	for _, e := range list {
		bad := fmt.Errorf("an entry of the certificate's TNAuthList can't be read (tag %d)", e.Tag)
		if e.Class != asn1.ClassContextSpecific || !e.IsCompound {
			return a, bad
		}
		var text string
		switch e.Tag {
		case 0:
			if _, err := asn1.UnmarshalWithParams(e.Bytes, &text, "ia5"); err != nil {
				return a, bad
			}
			a.Codes = append(a.Codes, text)
		case 1:
			var r struct {
				Start string `asn1:"ia5"`
				Count int64
			}
			if _, err := asn1.Unmarshal(e.Bytes, &r); err != nil || r.Count < 1 || canonicalNumber(r.Start) == "" {
				return a, bad
			}
			a.Ranges = append(a.Ranges, Range{canonicalNumber(r.Start), uint64(r.Count)})
		case 2:
			if _, err := asn1.UnmarshalWithParams(e.Bytes, &text, "ia5"); err != nil || canonicalNumber(text) == "" {
				return a, bad
			}
			a.Ranges = append(a.Ranges, Range{canonicalNumber(text), 1})
		default:
			return a, bad
		}
	}
	return a, nil
}

// covers reports whether a certificate speaks for a number. Which numbers a service provider has, nobody can look up.
func (a *Authority) covers(number string) bool {
	if len(a.Codes) > 0 {
		return true
	}
	n, err := strconv.ParseUint(number, 10, 64)
	for _, r := range a.Ranges {
		first, bad := strconv.ParseUint(r.Start, 10, 64)
		if err == nil && bad == nil && len(r.Start) == len(number) && n >= first && n-first < r.Count || r.Start == number {
			return true
		}
	}
	return false
}

// Chain is a certificate with those that lead to its root, as they are at an address.
type Chain struct {
	Leaf  *x509.Certificate
	Key   *ecdsa.PublicKey
	Names string // whose it is, for people
	// whose numbers it speaks for; nil: it doesn't say
	Authority *Authority

	between *x509.CertPool
}

// maxCertificates is how many a chain may have.
const maxCertificates = 10

// ParseChain reads certificates in PEM, the signer's first, or one in DER.
func ParseChain(data []byte) (*Chain, error) {
	var list []*x509.Certificate
	if block, _ := pem.Decode(data); block == nil {
		one, err := x509.ParseCertificate(data)
		if err != nil {
			return nil, errors.New("there is no certificate in PEM or DER")
		}
		list = []*x509.Certificate{one}
	}
	for rest := data; len(list) < maxCertificates; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a certificate can't be read: %w", err)
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, errors.New("there is no certificate in PEM or DER")
	}
	c := &Chain{Leaf: list[0], Names: list[0].Subject.CommonName, between: x509.NewCertPool()}
	if o := list[0].Subject.Organization; len(o) > 0 {
		c.Names = strings.TrimSpace(o[0] + ", " + c.Names)
	}
	for _, other := range list[1:] {
		c.between.AddCert(other)
	}
	key, ok := c.Leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the certificate's key is not of the curve P-256")
	}
	c.Key = key
	for _, e := range c.Leaf.Extensions {
		if !e.Id.Equal(tnAuthList) {
			continue
		}
		a, err := parseAuthority(e.Value)
		if err != nil {
			return nil, err
		}
		c.Authority = &a
		for i, id := range c.Leaf.UnhandledCriticalExtensions {
			if id.Equal(tnAuthList) {
				c.Leaf.UnhandledCriticalExtensions = append(c.Leaf.UnhandledCriticalExtensions[:i:i], c.Leaf.UnhandledCriticalExtensions[i+1:]...)
				break
			}
		}
	}
	return c, nil
}

// valid says why a certificate must not be believed at a time, by its own dates.
func (c *Chain) valid(now time.Time) error {
	switch {
	case now.Before(c.Leaf.NotBefore):
		return errors.New("the certificate is not valid yet")
	case now.After(c.Leaf.NotAfter):
		return errors.New("the certificate has expired")
	}
	return nil
}

// trusted says why nobody of some roots vouches for a certificate, or why it does not speak for a caller.
func (c *Chain) trusted(roots *x509.CertPool, orig Party, now time.Time) error {
	_, err := c.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: c.between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	switch {
	case err != nil:
		return errors.New("no trusted authority vouches for the certificate")
	case orig.TN == "":
		_, host, _ := strings.Cut(canonicalURI(orig.URI), "@")
		if h, _, ok := strings.Cut(host, ":"); ok {
			host = h
		}
		if host == "" || c.Leaf.VerifyHostname(host) != nil {
			return errors.New("the certificate is not the caller's domain's")
		}
	case c.Authority == nil:
		return errors.New("the certificate does not say whose numbers it speaks for (TNAuthList)")
	case !c.Authority.covers(canonicalNumber(orig.TN)):
		return errors.New("the certificate does not speak for the caller's number")
	}
	return nil
}
