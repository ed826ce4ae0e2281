package sip

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/parley"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = nil, newKey(t)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pair is a certificate for some names and addresses, and its key, as PEM.
func (a *authority) pair(t testing.TB, until time.Time, names ...string) (cert, key string) {
	t.Helper()
	of := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			of.IPAddresses = append(of.IPAddresses, ip)
		} else {
			of.DNSNames = append(of.DNSNames, n)
		}
	}
	k := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, of, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// config returns a TLS configuration with a certificate for some names.
func (a *authority) config(t testing.TB, until time.Time, names ...string) *tls.Config {
	t.Helper()
	cert, key := a.pair(t, until, names...)
	c, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c, nil }}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

var tomorrow = time.Now().Add(24 * time.Hour)

// over returns the address where a server listens for TLS.
func (s *Server) over() string { return s.secure.Addr().String() }

func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	a := newAnswerer(1000)
	callee := start(t, Config{Secure: "127.0.0.1:0", TLS: ca.config(t, tomorrow, "127.0.0.1"), Answer: a.answer,
		Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback, SRTP: "required"})})
	for _, listens := range []bool{true, false} {
		c := Config{}
		if listens {
			c.Secure, c.TLS = "127.0.0.1:0", ca.config(t, tomorrow, "127.0.0.1")
		}
		caller := start(t, c)
		trunk := Trunk{ID: 7, Number: "+15550002222", Address: callee.over(), Transport: "tls", CA: ca.pem, SRTP: "required"}
		if _, err := caller.Check(soon(t), trunk); err != nil {
			t.Error(err)
		}
		for _, first := range []bool{true, false} { // who hangs up
			l, err := caller.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
			if err != nil {
				t.Fatal(err)
			}
			out, in := run(l, newPhone(440)), a.next(t)
			out.phone.hears(t, 1000)
			in.phone.hears(t, 440)
			contact := in.leg.(*leg).target
			if v, _ := contact.UriParams.Get("transport"); v != "tls" || listens && contact.Port != caller.port(overTLS) {
				t.Errorf("its contact is %s", contact.String())
			}
			if first {
				out.hangUp(t)
				in.ends(t, parley.CustomerHangup)
			} else {
				in.hangUp(t)
				out.ends(t, parley.CustomerHangup)
			}
		}
	}
}

// TestCertificates: which certificates are trusted, and what the trunk's owner is told about the others.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	serve := func(c *tls.Config) string {
		return start(t, Config{Secure: "127.0.0.1:0", TLS: c,
			Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})}).over()
	}
	mutual := ca.config(t, tomorrow, "127.0.0.1")
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, c := range map[string]struct {
		at   string
		own  *tls.Config
		says string
	}{
		"good":             {at: serve(ca.config(t, tomorrow, "127.0.0.1"))},
		"of another name":  {at: serve(ca.config(t, tomorrow, "pbx.example")), says: "another name"},
		"expired":          {at: serve(ca.config(t, time.Now().Add(-time.Minute), "127.0.0.1")), says: "expired"},
		"of a stranger":    {at: serve(other.config(t, tomorrow, "127.0.0.1")), says: "tls_ca"},
		"asks for ours":    {at: serve(mutual), own: ca.config(t, tomorrow, "127.0.0.1")},
		"asks, in vain":    {at: serve(mutual), says: "no answer"},
		"asks for another": {at: serve(mutual), own: other.config(t, tomorrow, "127.0.0.1"), says: "no answer"},
		"who says nothing": {at: silent.Addr().String(), says: "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, Config{TLS: c.own})
			s.asking = 2 * time.Second
			launch(t, s)
			_, err := s.Check(soon(t), Trunk{ID: 7, Number: "+15550002222", Address: c.at, Transport: "tls", CA: ca.pem})
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the check says %v, want %q", err, c.says)
			}
		})
	}
}

// TestServerName: the trunk's name is sent with the first message (SNI), so that a host with several names shows the
// right certificate; an address is not sent. Calls verify the certificate as checks do.
func TestServerName(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	config := ca.config(t, tomorrow, "localhost", "127.0.0.1")
	other := ca.config(t, tomorrow, "else.test").GetCertificate
	expired := ca.config(t, time.Now().Add(-time.Minute), "localhost").GetCertificate
	show, asked := config.GetCertificate, make(chan string, 9)
	var now atomic.Pointer[func(*tls.ClientHelloInfo) (*tls.Certificate, error)]
	now.Store(&show)
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		asked <- hello.ServerName
		return (*now.Load())(hello)
	}
	a := newAnswerer(0)
	callee := start(t, Config{Secure: "127.0.0.1:0", TLS: config, Answer: a.answer,
		Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	_, port, _ := net.SplitHostPort(callee.over())
	for _, c := range []struct {
		host, name, says string
		show             func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	}{{"localhost", "localhost", "", show}, {"127.0.0.1", "", "", show}, {"localhost", "localhost", "another name", other},
		{"localhost", "localhost", "expired", expired}} {
		now.Store(&c.show)
		caller := start(t, Config{})
		l, err := caller.Dial(soon(t), Dialling{To: "+15550001111", From: "+15550002222", Trunk: Trunk{ID: 7, Number: "+15550002222",
			Address: net.JoinHostPort(c.host, port), Transport: "tls", CA: ca.pem}})
		if name := get(t, asked); name != c.name {
			t.Errorf("%s: it asks for %q", c.host, name)
		}
		if c.says != "" {
			if err == nil || !strings.Contains(parley.Explanation(err), c.says) {
				t.Errorf("%s: the call ends with %v, want %q", c.host, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out, in := run(l, newPhone(0)), a.next(t)
		out.hangUp(t)
		in.ends(t, parley.CustomerHangup)
	}
}

// TestSharedPlace: a connection that was verified for one name is not used for a trunk that requires another.
func TestSharedPlace(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	callee := start(t, Config{Secure: "127.0.0.1:0", TLS: ca.config(t, tomorrow, "one.test", "127.0.0.1"),
		Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	caller := start(t, Config{})
	at, _ := netip.ParseAddrPort(callee.over())
	ask := func(name, ca string) error {
		return caller.connect(soon(t), hop{at, overTLS, name, ca})
	}
	for _, name := range []string{"one.test", "127.0.0.1", "one.test", ""} {
		if err := ask(name, ca.pem); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := ask("two.test", ca.pem); err == nil || !strings.Contains(parley.Explanation(err), "another name") {
		t.Errorf("another name: %v", err)
	}
	if err := ask("one.test", newAuthority(t).pem); err == nil {
		t.Error("by another authority it is believed")
	}
}

// TestStrangersTLS: a stranger on the TLS port, and a client that does not speak TLS.
func TestStrangersTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	s := start(t, Config{Secure: "127.0.0.1:0", TLS: ca.config(t, tomorrow, "127.0.0.1"),
		Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	c, err := d.DialContext(soon(t), "tcp", s.over())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(hang))
	if err := tls.Client(c, &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1"}).HandshakeContext(soon(t)); err == nil {
		t.Error("a stranger sees the certificate")
	}
	plain, err := net.Dial("tcp", s.over())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(hang))
	if _, err := io.WriteString(plain, "OPTIONS sip:x@y SIP/2.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(plain); strings.Contains(string(b), "SIP") {
		t.Errorf("it answers %q", b)
	}
}

// TestKeepAlive: a registration over a connection keeps it alive, and opens another when it is lost.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", ca.config(t, tomorrow, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := prepare(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Address: l.Addr().String(),
		Transport: "tls", CA: ca.pem, Username: "alice", Password: "secret", Register: true})})
	s.alive = 20 * time.Millisecond
	launch(t, s)
	for range 2 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(hang))
		r := &reader{c: c}
		req := r.message(t)
		if !strings.HasPrefix(req, "REGISTER ") || !strings.Contains(req, ";transport=tls>") {
			t.Fatalf("it sends %q", req)
		}
		res := strings.Replace(req, req[:strings.Index(req, "\r\n")], "SIP/2.0 200 OK", 1)
		if _, err := io.WriteString(c, res); err != nil {
			t.Fatal(err)
		}
		ping := make([]byte, 4)
		if _, err := io.ReadFull(c, ping); err != nil || string(ping) != "\r\n\r\n" {
			t.Fatalf("it sends %q, %v", ping, err)
		}
		if !s.Registered(1) {
			t.Error("it is not registered")
		}
		c.Close()
	}
}

// reader reads messages without a body from a connection.
type reader struct {
	c   net.Conn
	buf []byte
}

func (r *reader) message(t *testing.T) string {
	t.Helper()
	b := make([]byte, 1)
	for !strings.HasSuffix(string(r.buf), "\r\n\r\n") {
		if _, err := r.c.Read(b); err != nil {
			t.Fatal(err)
		}
		r.buf = append(r.buf, b...)
	}
	m := string(r.buf)
	r.buf = nil
	return m
}
