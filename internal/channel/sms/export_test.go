package sms

import (
	"context"

	"parley/internal/channel"
	"parley/internal/parley"
)

// Sweep finishes what was started before a time and has not ended.
func (c *Channel) Sweep(ctx context.Context, before parley.Time) error { return c.sweep(ctx, before) }

// Chunks splits a text into messages that carriers accept.
func Chunks(text string) []string { return channel.Parts(text, longest) }
