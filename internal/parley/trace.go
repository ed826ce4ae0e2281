package parley

import (
	"encoding/json"
	"strings"
)

// Trace is a span of OpenTelemetry as the value of a traceparent header (https://www.w3.org/TR/trace-context/): what comes
// later continues below it. "" where nothing is traced. In the API it is the id of its trace.
type Trace string

// ID returns the id of the trace, 32 hexadecimal digits; "" where there is none.
func (t Trace) ID() string {
	parts := strings.Split(string(t), "-")
	if len(parts) != 4 {
		return ""
	}
	return parts[1]
}

// MarshalJSON writes the id of the trace.
func (t Trace) MarshalJSON() ([]byte, error) { return json.Marshal(t.ID()) }
