package call

import (
	"context"
	"time"
)

// ReportAgain sets the pauses before a report is retried.
func (d *Center) ReportAgain(pauses ...time.Duration) { d.again = pauses }

// ConnectTime is how long connecting to the far end may take.
const ConnectTime = connectTime

// Together runs functions at once.
var Together = together

// RecordingName is a recording's name in blob storage.
func (d *Center) RecordingName(id int64) string { return d.recordingName(id) }

// Pulse gives signs of life and closes lost calls, and nothing else.
func (d *Center) Pulse(ctx context.Context) { d.beat(ctx) }

// Node is the name of a Center in rows.
func (d *Center) Node() string { return d.node }

// ReportShare is how the free places are shared.
func ReportShare(most, each int, under map[int64]int, due []int64) map[int64]int {
	d := newDesk(most, each)
	for user, n := range under {
		for range n {
			d.take(user)
		}
	}
	return d.share(due)
}
