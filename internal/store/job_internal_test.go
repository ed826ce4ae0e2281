package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Only what the end of a context leaves behind is kept out of the log.
func TestQuiet(t *testing.T) {
	over, stop := context.WithCancel(t.Context())
	stop()
	for _, test := range []struct {
		text   string
		ctx    context.Context
		err    error
		logged bool
	}{
		{"a cancelled context", over, context.Canceled, false},
		{"the connection that pgx closes on it", over, errors.New("failed to deallocate cached statement(s): conn closed"), false},
		{"another error while the context ends", over, &pgconn.PgError{Severity: "ERROR", Message: "disk full"}, true},
		{"a connection lost before the stop", t.Context(), errors.New("failed to deallocate cached statement(s): conn closed"), true},
	} {
		var log bytes.Buffer
		slog.New(quiet{slog.NewTextHandler(&log, nil)}).ErrorContext(test.ctx, "Error committing transaction", "error", test.err.Error())
		if logged := log.Len() > 0; logged != test.logged {
			t.Errorf("%s: logged is %v", test.text, logged)
		}
	}
}
