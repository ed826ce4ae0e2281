package call

import "time"

// ReportAgain sets after how long a report is tried again.
func (d *Desk) ReportAgain(pauses ...time.Duration) { d.again = pauses }

// Node is how a desk is called in rows.
func (d *Desk) Node() string { return d.node }
