// Package cert holds a certificate and its key, which are read from files. When they are renewed (mostly by ACME), the
// new files are read without a restart.
package cert

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files are the files of a certificate and its key.
type Files struct {
	cert, key string
	every     time.Duration // between two looks at the files

	mu     sync.Mutex
	pair   *tls.Certificate
	state  state // of the files when they were read last
	looked time.Time
}

// state tells changed files from unchanged ones.
type state [2]struct {
	at   time.Time
	size int64
}

// Open reads the files.
func Open(cert, key string) (*Files, error) {
	f := &Files{cert: cert, key: key, every: time.Second}
	f.state, f.looked = f.look(), time.Now()
	return f, f.read()
}

func (f *Files) look() (s state) {
	for i, path := range []string{f.cert, f.key} {
		if info, err := os.Stat(path); err == nil {
			s[i].at, s[i].size = info.ModTime(), info.Size()
		}
	}
	return s
}

func (f *Files) read() error {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("read the certificate %s with the key %s: %w", f.cert, f.key, err)
	}
	f.pair = &pair
	return nil
}

// Certificate is the one currently in the files. While they can't be read it is the last one that could be: when the
// two files are written one after the other, the first alone doesn't match the old second one.
func (f *Files) Certificate() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.looked) < f.every {
		return f.pair
	}
	f.looked = now
	s := f.look()
	if s == f.state {
		return f.pair
	}
	f.state = s
	if err := f.read(); err != nil {
		slog.Warn("a renewed certificate can't be used: the last one stays", "error", err)
	} else {
		slog.Info("a renewed certificate is used", "file", f.cert)
	}
	return f.pair
}

// Server is a TLS configuration that presents the certificate.
func (f *Files) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.Certificate(), nil }}
}
