// Package stirtest has, for tests, an authority of STIR/SHAKEN, its certificates, and a server that they are fetched from.
package stirtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Authority issues certificates by a root and an intermediate one.
type Authority struct {
	Root *x509.Certificate

	t       testing.TB
	between *x509.Certificate
	key     *ecdsa.PrivateKey // of between
}

// New makes an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	rootKey := a.newKey(elliptic.P256())
	a.Root = a.issue(ca("Root"), nil, rootKey, rootKey)
	a.key = a.newKey(elliptic.P256())
	a.between = a.issue(ca("Intermediate"), a.Root, a.key, rootKey)
	return a
}

func ca(name string) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
}

func (a *Authority) newKey(curve elliptic.Curve) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *Authority) issue(c, parent *x509.Certificate, own, by *ecdsa.PrivateKey) *x509.Certificate {
	c.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<60))
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &own.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// Pool holds the root.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Root)
	return p
}

// RootPEM is the root in PEM.
func (a *Authority) RootPEM() []byte { return encode(a.Root) }

// Issued is a certificate and its key.
type Issued struct {
	Key   *ecdsa.PrivateKey
	Chain []byte // PEM: the certificate, and the intermediate one
	Leaf  *x509.Certificate
}

// KeyPEM is the key in PEM.
func (i *Issued) KeyPEM() []byte {
	der, err := x509.MarshalECPrivateKey(i.Key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// Issue makes the certificate of a service provider, code 1234, as change makes it another; change may be nil.
func (a *Authority) Issue(change func(*x509.Certificate)) *Issued {
	return a.IssueOn(elliptic.P256(), change)
}

// IssueOn is Issue with a key of a curve.
func (a *Authority) IssueOn(curve elliptic.Curve, change func(*x509.Certificate)) *Issued {
	a.t.Helper()
	key := a.newKey(curve)
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "SHAKEN 1234", Organization: []string{"Example Telecom"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{TNAuthList(Code("1234"))}}
	if change != nil {
		change(c)
	}
	leaf := a.issue(c, a.between, key, a.key)
	return &Issued{Key: key, Leaf: leaf, Chain: append(encode(leaf), encode(a.between)...)}
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// TNAuthList is the extension with entries (RFC 8226, section 9).
func TNAuthList(entries ...asn1.RawValue) pkix.Extension {
	value, err := asn1.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 26}, Value: value}
}

// Code is the entry of a service provider.
func Code(code string) asn1.RawValue { return entry(0, code, "ia5") }

// One is the entry of one number.
func One(number string) asn1.RawValue { return entry(2, number, "ia5") }

// Range is the entry of numbers that follow one another.
func Range(start string, count int) asn1.RawValue {
	return entry(1, struct {
		Start string `asn1:"ia5"`
		Count int
	}{start, count}, "")
}

func entry(tag int, v any, params string) asn1.RawValue {
	inside, err := asn1.MarshalWithParams(v, params)
	if err != nil {
		panic(err)
	}
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, IsCompound: true, Bytes: inside}
}

// Server has certificates at https addresses.
type Server struct {
	*httptest.Server

	mu    sync.Mutex
	at    map[string]func(http.ResponseWriter, *http.Request)
	asked map[string]int
}

// Serve makes a server.
func Serve(t testing.TB) *Server {
	s := &Server{at: map[string]func(http.ResponseWriter, *http.Request){}, asked: map[string]int{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.Path]++
		answer := s.at[r.URL.Path]
		s.mu.Unlock()
		if answer == nil {
			http.NotFound(w, r)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Server.Close)
	return s
}

// Put puts something at a path, and returns its address.
func (s *Server) Put(path string, body []byte) string {
	return s.Do(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
}

// Do has a path answered by a function, and returns its address.
func (s *Server) Do(path string, answer func(http.ResponseWriter, *http.Request)) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[path] = answer
	return s.URL + path
}

// Asked is how often a path was asked for.
func (s *Server) Asked(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}
