package call

import (
	"context"
	"time"
)

// ReportAgain sets after how long a report is tried again.
func (d *Center) ReportAgain(pauses ...time.Duration) { d.again = pauses }

// ConnectTime is how long the way to the far end may take.
const ConnectTime = connectTime

// Together runs some at once.
var Together = together

// RecordingName is a recording's name in blob storage.
func (d *Center) RecordingName(id int64) string { return d.recordingName(id) }

// Pulse gives signs of life and closes lost calls, and nothing else.
func (d *Center) Pulse(ctx context.Context) { d.beat(ctx) }

// Node is what a Center goes by in rows.
func (d *Center) Node() string { return d.node }
