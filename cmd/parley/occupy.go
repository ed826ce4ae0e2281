package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockFile is the file of the data directory that a server locks for as long as it runs on the embedded database. It stays there.
const lockFile = "serve.lock"

// occupy refuses to start a second server on an embedded database: each would take the other's calls and jobs for those of a
// process that was killed. A file system without locks is no reason not to start. An error says what to do.
func (h *server) occupy() error {
	if h.Database != "" {
		return nil
	}
	if err := os.MkdirAll(h.Data, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(h.Data, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for end := time.Now().Add(listenAgain); ; time.Sleep(50 * time.Millisecond) {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) &&
			!errors.Is(err, syscall.EINTR) {
			if err != nil {
				slog.Warn("the data directory can't be locked: see to it that no other server runs on it", "directory", h.Data, "error", err)
			}
			h.closers = append(h.closers, f.Close)
			return nil
		}
		if time.Now().After(end) {
			f.Close()
			return fmt.Errorf("another server is running on the data directory %s: stop it, or give this one a directory of its own "+
				"(--data, PARLEY_DATA); several servers share a PostgreSQL database", h.Data)
		}
	}
}
