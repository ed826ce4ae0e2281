package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"parley/internal/store"
)

// While nothing can be written, writes are answered 503 with when to try again, and reads as ever.
func TestWritesDuringAnOutage(t *testing.T) {
	h := lite(t, nil)
	h.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.SQL().NewRaw("PRAGMA query_only = 1").Exec(ctx) // of the only connection that writes
		return err
	})
	log := new(bytes.Buffer)
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(slog.New(slog.DiscardHandler))
	got := h.post("/user/tools", map[string]any{"name": "look", "description": "Looks", "method": "GET", "endpoint": "https://example.com"},
		status(503))
	got.is(`{"message":"The server can't write to its database: its operator has to mend that. What was stored before can still be read.","retry_after":5}`)
	if after := got.header.Get("Retry-After"); after != "5" {
		t.Errorf("Retry-After is %q", after)
	}
	if text := log.String(); strings.Count(text, "request failed") != 1 || !strings.Contains(text, "readonly") {
		t.Errorf("the operator reads %q", text)
	}
	h.get("/user/tools", status(200))
}
