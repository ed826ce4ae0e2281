package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"parley"
	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/store"
)

type serveCmd struct{}

// Run serves until a signal. It starts what others need first, and stops in the opposite order: it stops taking work, then stops doing
// it.
func (c *serveCmd) Run(s *Settings, t *terminal) (err error) {
	prices, err := s.prices()
	if err != nil {
		return err
	}
	db, err := s.open(t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	cat := s.catalog()
	if err := keepModels(t, db, cat); err != nil {
		return err
	}
	desk := &auth.Desk{DB: db, SessionFor: s.SessionFor}
	assistants := &assistant.Desk{DB: db, Catalog: cat}

	// The socket is open before anything is announced: an address that is taken is the commonest failure.
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s (choose another with --listen or PARLEY_LISTEN): %w", s.Listen, err)
	}
	defer l.Close()
	if err := firstStart(t, s, db, desk, assistants, l.Addr()); err != nil {
		return err
	}

	rates := api.Rates{API: s.RateAPI, Login: s.RateLogin, Create: s.RateCreate, Message: s.RateMessage, Reply: s.RateReply}
	if s.RatePublic == "off" {
		rates.Create, rates.Message = auth.Rate{}, auth.Rate{}
	}
	house := api.New(api.Config{DB: db, Auth: desk, Catalog: cat, Assistants: assistants, Prices: prices, PublicURL: s.publicURL(),
		TrustedProxies: s.TrustedProxies, Signup: s.Signup == "on", Rates: rates})
	srv := &http.Server{
		Handler:           s.root(db, house),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), // peers' broken handshakes
	}
	served := make(chan error, 1)
	go func() {
		if s.TLSCert != "" {
			served <- srv.ServeTLS(l, s.TLSCert, s.TLSKey)
		} else {
			served <- srv.Serve(l)
		}
	}()
	sweeping, stopSweeping := context.WithCancel(context.Background())
	swept := make(chan struct{})
	go func() { defer close(swept); sweep(sweeping, db) }()
	slog.Info("serving", "url", s.urlOf(l.Addr()), "database", engine(db))

	select {
	case err = <-served:
	case <-t.Done():
		slog.Info("stopping: finishing what is under way; a second signal cuts it", "wait", s.Drain)
		err = drain(t, srv, s.Drain)
	}
	stopSweeping()
	<-swept
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain lets requests finish, for as long as it may.
func drain(t *terminal, srv *http.Server, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	go func() {
		select {
		case <-t.Kill:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := srv.Shutdown(ctx); err != nil {
		return srv.Close()
	}
	return nil
}

// sweep removes what is past its time, every ten minutes.
func sweep(ctx context.Context, db *store.DB) {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.Expire(ctx, parley.Now()) })
		if err != nil && ctx.Err() == nil {
			slog.Error("remove what has expired", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func engine(db *store.DB) string {
	if db.SQLite() {
		return "sqlite"
	}
	return "postgres"
}
