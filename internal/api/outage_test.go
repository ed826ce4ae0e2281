package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"parley/internal/store"
)

// readOnly has every further write to a SQLite database fail.
func readOnly(t *testing.T, db *store.DB) {
	t.Helper()
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.SQL().NewRaw("PRAGMA query_only = 1").Exec(ctx) // of the only connection that writes
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// While nothing can be written, writes are answered 503 with when to try again, and reads as ever.
func TestWritesDuringAnOutage(t *testing.T) {
	h := lite(t, nil)
	readOnly(t, h.db)
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
