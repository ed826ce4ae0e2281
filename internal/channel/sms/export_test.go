package sms

import (
	"context"

	"parley"
	"parley/internal/channel"
)

// Sweep ends what was begun before a time and has not ended.
func (c *Channel) Sweep(ctx context.Context, before parley.Time) error { return c.sweep(ctx, before) }

// Chunks cuts a text into messages that carriers take.
func Chunks(text string) []string { return channel.Parts(text, longest) }
