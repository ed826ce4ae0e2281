package call

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// A telephone call keeps its audio quality and its SIP signalling, for anyone who wants to know why it went as it did.
// Browser and sandbox calls have neither.

// measured is a leg that knows its audio quality.
type measured interface{ Media() *parley.CallMedia }

// signalled is a leg, or the error of a call that never came about, that knows the SIP messages.
type signalled interface{ Ladder() []parley.SIPMessage }

// signalled returns whoever knows the SIP messages of this call, nil if nobody does.
func (l *live) signalled(cause error) signalled {
	l.mu.Lock()
	known := l.sip
	l.mu.Unlock()
	if known == nil {
		errors.As(cause, &known)
	}
	return known
}

// keepSIP stores the SIP messages. They are lost if the server dies at this moment.
func (l *live) keepSIP(list []parley.SIPMessage) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := l.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.KeepSIP(ctx, l.id, list)
	}); err != nil {
		slog.ErrorContext(l.ctx, "store the SIP messages of a call", "call", l.id, "error", err)
	}
}
