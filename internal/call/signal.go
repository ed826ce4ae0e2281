package call

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley"
	"parley/internal/store"
)

// A telephone call keeps how its sound was and what was said of it in signalling, for who wants to know why it went
// as it did. Browsers' calls and the sandbox's have neither.

// measured is a leg that knows how its sound was.
type measured interface{ Media() *parley.CallMedia }

// signalled is a leg, or the error of a call that came to none, that knows what was said in SIP.
type signalled interface{ Ladder() []parley.SIPMessage }

// signalled is who knows it of this call, nil for nobody.
func (l *live) signalled(cause error) signalled {
	l.mu.Lock()
	known := l.sip
	l.mu.Unlock()
	if known == nil {
		errors.As(cause, &known)
	}
	return known
}

// keepSIP stores what was said in SIP. A call whose server dies just then is without.
func (l *live) keepSIP(list []parley.SIPMessage) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := l.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.KeepSIP(ctx, l.id, list)
	}); err != nil {
		slog.Error("store the SIP messages of a call", "call", l.id, "error", err)
	}
}
