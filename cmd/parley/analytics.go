package main

import (
	"context"
	"log/slog"
	"time"

	"parley/internal/search"
)

// countAgain is how often it is looked for what analytics do not have yet.
const countAgain = 10 * time.Second

// count keeps analytics complete: what was there before there were any, and calls that a node of a former version ends.
func (h *server) count(ctx context.Context) error {
	for wait := time.Duration(0); ; wait = countAgain {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		left, err := h.db.CallsLeft(ctx)
		if err == nil && (left || wait == 0) {
			err = h.db.CountLeft(ctx)
		}
		if err != nil && ctx.Err() == nil {
			slog.Error("count calls for analytics; it is tried again", "error", err)
		}
	}
}

// indexAgain is how often it is looked for what was said and can't be searched yet.
const indexAgain = time.Second

// index keeps the search in transcripts complete.
func (h *server) index(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(indexAgain):
		}
		left, err := h.db.TranscriptsLeft(ctx)
		if err == nil && left {
			err = search.IndexTranscripts(ctx, h.db)
		}
		if err != nil && ctx.Err() == nil {
			slog.Error("index transcripts; it is tried again", "error", err)
		}
	}
}
