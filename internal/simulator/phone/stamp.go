package phone

import "time"

// arrival is when a packet that was just read arrived, on the clock of time.Now.
func arrival(control []byte) time.Time {
	now := time.Now()
	if at := KernelTime(control); !at.IsZero() {
		if waited := now.Sub(at); waited > 0 && waited < time.Second { // else somebody has set the clock
			return now.Add(-waited)
		}
	}
	return now
}
