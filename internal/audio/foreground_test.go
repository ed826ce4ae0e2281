package audio

import (
	"math"
	"testing"
	"time"
)

// line is a call as Foreground sees it: who speaks how loud, and when the assistant does.
type line struct {
	Foreground
	replies bool
}

// says has somebody speak, and returns for how long they were taken for the background, after how long.
func (l *line) says(db float64, d time.Duration, heard bool) (behind, first time.Duration) {
	first = -1
	for at := time.Duration(0); at < d; at += FrameTime {
		if heard {
			l.Spoken()
		}
		if l.Behind(math.Pow(10, db/10), true, l.replies, heard) {
			if behind += FrameTime; first < 0 {
				first = at
			}
		}
	}
	return behind, first
}

// waits lets time pass without speech.
func (l *line) waits(d time.Duration, heard bool) {
	for ; d > 0; d -= FrameTime {
		if heard {
			l.Spoken()
		}
		l.Behind(0, false, l.replies, heard)
	}
}

// answers has the assistant reply for a while; it goes on replying.
func (l *line) answers() {
	l.replies = true
	l.waits(time.Second, true)
}

// done has the reply end.
func (l *line) done() { l.replies = false }

// TestForeground has different people speak: who is heard, and who is not.
func TestForeground(t *testing.T) {
	const customer, second = 60, time.Second
	begin := func(db float64) *line { // a customer has asked something, and a reply is heard
		l := &line{}
		l.says(db, 1500*time.Millisecond, false)
		l.waits(600*time.Millisecond, false)
		l.answers()
		return l
	}
	for _, o := range []struct {
		name string
		want time.Duration // in the background
		run  func() (time.Duration, time.Duration)
	}{
		{"nobody has spoken yet", 0, func() (time.Duration, time.Duration) {
			l := &line{}
			l.answers()
			return l.says(customer-20, second, true)
		}},
		{"somebody has said one short word", 0, func() (time.Duration, time.Duration) {
			l := &line{}
			l.says(customer, 400*time.Millisecond, false)
			l.answers()
			return l.says(customer-20, second, true)
		}},
		{"several short words tell how loud they are", second, func() (time.Duration, time.Duration) {
			l := begin(customer - 20)
			for range 4 {
				l.done()
				l.says(customer, 400*time.Millisecond, false)
				l.answers()
			}
			return l.says(customer-20, second, true)
		}},
		{"the customer", 0, func() (time.Duration, time.Duration) { return begin(customer).says(customer, second, true) }},
		{"the customer in a soft voice", 0, func() (time.Duration, time.Duration) {
			return begin(customer).says(customer-8, second, true)
		}},
		{"a television", 2 * second, func() (time.Duration, time.Duration) {
			return begin(customer).says(customer-10, 2*second, true)
		}},
		{"a television before the sound of the reply", 2 * second, func() (time.Duration, time.Duration) {
			l := begin(customer)
			l.done()
			l.says(customer, second, false)
			l.waits(600*time.Millisecond, false)
			l.replies = true
			return l.says(customer-10, 2*second, false)
		}},
		{"the customer's last words, which are faint", 0, func() (time.Duration, time.Duration) {
			l := begin(customer)
			l.done()
			l.says(customer, second, false)
			return l.says(customer-15, 600*time.Millisecond, false)
		}},
		{"a television behind them", 3*second - 600*time.Millisecond, func() (time.Duration, time.Duration) {
			l := begin(customer)
			l.done()
			l.says(customer, second, false)
			return l.says(customer-15, 3*second-FrameTime, false)
		}},
		{"who has shouted once", 0, func() (time.Duration, time.Duration) {
			l := begin(customer)
			l.done()
			l.says(customer+12, second, false)
			l.answers()
			return l.says(customer, second, true)
		}},
		{"who has gone away, after the reply", 0, func() (time.Duration, time.Duration) {
			l := begin(customer)
			l.says(customer-20, 2*second, true)
			l.done()
			return l.says(customer-20, second, false)
		}},
		{"and in the next one", 0, func() (time.Duration, time.Duration) {
			l := begin(customer)
			l.done()
			l.waits(second, false)
			l.says(customer-20, second, false)
			l.answers()
			return l.says(customer-20, second, true)
		}},
		{"who takes the telephone while nobody replies", 1800 * time.Millisecond, func() (time.Duration, time.Duration) {
			l := begin(customer)
			l.done()
			l.says(customer, second, false)
			l.waits(1200*time.Millisecond, false)
			return l.says(customer-20, 5*second, false)
		}},
		{"who speaks over a long reply", 6 * second, func() (time.Duration, time.Duration) {
			return begin(customer).says(customer-20, 10*second, true)
		}},
		{"a television again, when the customer has come back twice", second, func() (time.Duration, time.Duration) {
			l := begin(customer)
			for _, db := range []float64{customer - 20, customer, customer} {
				l.done()
				l.waits(second, false)
				l.says(db, second, false)
				l.answers()
			}
			return l.says(customer-20, second, true)
		}},
	} {
		if behind, first := o.run(); behind < o.want-3*FrameTime || behind > o.want {
			t.Errorf("%s: %v taken for the background, from %v on, not %v", o.name, behind, first, o.want)
		}
	}
}

// It costs no memory to tell them apart.
func TestForegroundAllocates(t *testing.T) {
	var g Foreground
	i := 0
	quiet(t, "Foreground", func() {
		g.Spoken()
		g.Behind(float64(i*7919%100_000), true, i%100 > 50, i%100 > 70)
		i++
	})
}
