package call

import (
	"context"
	"time"
)

// ReportAgain sets after how long a report is tried again.
func (d *Desk) ReportAgain(pauses ...time.Duration) { d.again = pauses }

// ConnectTime is how long the way to the far end may take.
const ConnectTime = connectTime

// Together runs some at once.
var Together = together

// RecordingName is a recording's name in blob storage.
func (d *Desk) RecordingName(id int64) string { return d.recordingName(id) }

// Pulse gives signs of life and closes lost calls, and nothing else.
func (d *Desk) Pulse(ctx context.Context) { d.beat(ctx) }

// Node is how a desk is called in rows.
func (d *Desk) Node() string { return d.node }
