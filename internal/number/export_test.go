package number

import (
	"context"

	"parley/internal/parley"
)

// Sweep finishes what was started before a time and has not ended.
func (d *Pool) Sweep(ctx context.Context, before parley.Time) error { return d.sweep(ctx, before) }

// Grace is how long unpaid numbers are kept.
const Grace = grace

// Settles is how long after its cancellation an order is looked for at the carrier.
const Settles = settles
