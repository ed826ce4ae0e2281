package parley

import (
	"encoding/json"
	"sync/atomic"
	"time"
)

// Time is an instant in microseconds since 1970 UTC: an integer in both databases, so that both order and compare it
// alike and no column has a time zone of its own. In JSON it is `2026-01-31T09:30:00.000000Z` (the contract's
// <iso_timestamp>). Zero is no time: null.
type Time int64

const (
	isoLayout      = "2006-01-02T15:04:05.000000Z"
	datetimeLayout = "2006-01-02 15:04:05"
)

// At is t as a Time.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMicro())
}

// Now is the present instant: by this machine's clock, or by that of the database that Follow was told.
func Now() Time {
	if m := followed.Load(); m != nil {
		return m.now(time.Now())
	}
	return At(time.Now())
}

// mark is an instant by the database's clock and by this process's, which no change of the machine's clock touches.
type mark struct {
	theirs Time
	ours   time.Time
}

func (m *mark) now(at time.Time) Time { return m.theirs.Add(at.Sub(m.ours)) }

var followed atomic.Pointer[mark]

// closely is how far Now may be from the database's clock before it is set anew, beside what the asking took.
const closely = 100 * time.Millisecond

// Follow has Now go by the clock of the database that several processes share: theirs is what it showed between two
// instants of this process. A reading that took long, or that agrees with Now, changes nothing.
func Follow(theirs Time, asked, answered time.Time) {
	took := answered.Sub(asked)
	next := &mark{theirs, asked.Add(took / 2)}
	for {
		was := followed.Load()
		if was != nil && was.now(next.ours).Sub(theirs).Abs() <= closely+took/2 {
			return
		}
		if followed.CompareAndSwap(was, next) {
			return
		}
	}
}

// Time is t in UTC; the zero Time is the zero time.Time.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Add is t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub is how long t is after u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

func (t Time) String() string { return t.Time().Format(isoLayout) }

// MarshalJSON writes the contract's <iso_timestamp>, or null for no time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return t.Time().AppendFormat(make([]byte, 0, 32), `"`+isoLayout+`"`), nil
}

// UnmarshalJSON reads an RFC 3339 time or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	var v *time.Time
	if err := json.Unmarshal(b, &v); err != nil || v == nil {
		*t = 0
		return err
	}
	*t = At(*v)
	return nil
}

// DateTime is a Time that the contract writes as `2026-01-31 09:30:00` (its <datetime>), in UTC.
type DateTime Time

// MarshalJSON writes the contract's <datetime>, or null for no time.
func (t DateTime) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return Time(t).Time().AppendFormat(make([]byte, 0, 24), `"`+datetimeLayout+`"`), nil
}

// UnmarshalJSON reads a <datetime> or null.
func (t *DateTime) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = 0
		return nil
	}
	v, err := time.Parse(`"`+datetimeLayout+`"`, string(b))
	*t = DateTime(At(v))
	return err
}

// clock returns the minute of the day that HH:MM is, 0 for another text.
func clock(text string) int {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0
	}
	return t.Hour()*60 + t.Minute()
}
