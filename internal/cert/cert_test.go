package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issue writes a certificate with a serial number, and its key; later is how far in the future the files are dated.
func issue(t *testing.T, cert, key string, number int64, later time.Duration) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "x"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), later)
	if key != "" {
		write(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), later)
	}
}

func write(t *testing.T, path string, text []byte, later time.Duration) {
	t.Helper()
	at := time.Now().Add(later)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestRenewed(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	if _, err := Open(cert, key); err == nil {
		t.Error("what is not there was read")
	}
	issue(t, cert, key, 1, 0)
	f, err := Open(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	f.every = 0
	is := func(want int64) {
		t.Helper()
		c, err := f.Server().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Leaf.SerialNumber.Int64(); got != want {
			t.Errorf("certificate %d is shown, want %d", got, want)
		}
	}
	is(1)
	issue(t, cert, key, 2, time.Minute)
	is(2)
	issue(t, cert, "", 3, 2*time.Minute) // its key is not written yet
	is(2)
	issue(t, cert, key, 4, 3*time.Minute)
	is(4)
	if os.Remove(cert) != nil {
		t.Fatal()
	}
	is(4)
	f.every = time.Hour
	issue(t, cert, key, 5, 4*time.Minute)
	is(4)
}
