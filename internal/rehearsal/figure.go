package rehearsal

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Figures are what was measured in a case, or in several.
type Figures struct {
	Replies   []time.Duration // from the caller's last voiced packet to the first of the reply
	Greeting  time.Duration   // from the answer to the first sound
	Cutoffs   int             // replies into a pause of the caller's
	Yields    []time.Duration // from an interruption to silence
	Kept      int             // interruptions that did not silence the assistant
	Backed    int             // backchannels
	Paused    int             // at which the assistant fell silent
	Resumed   int             // after which it went on, or had not stopped
	Missed    int             // turns without a reply
	DeadAir   time.Duration   // the longest wait
	Dead      int             // waits of more than 2 s
	Stale     int             // packets
	Tools     int             // calls of tools
	Wanted    int             // those that were expected
	Forgotten int             // and did not come
	Values    int             // that were to be extracted
	Right     int             // and were, as expected
	Words     int             // that the caller said
	Wrong     int             // of which the server understood others, or none
	Cost      float64
	Waterfall []Latency
	Tau       Tau
}

// unknown is what is not measured in a case that calls a SIP address.
var unknown = []string{"waterfall", "tools", "values", "misheard", "cost"}

const longWait = 2 * time.Second

// Figures measures a call or chat.
func (c *Case) Figures(t *Timeline, r *Record) (f Figures) {
	f.Tools, f.Cost = len(r.FunctionCalls), r.TotalCost
	if c.Channel == Chat {
		for _, text := range t.Texts {
			if text.Step >= 0 {
				f.Replies = append(f.Replies, text.Took)
			}
		}
		return f
	}
	f.Greeting, _ = t.firstAfter(0)
	f.DeadAir, f.Tau = t.deadAir(), t.Tau()
	for _, reply := range t.Replies() {
		a := t.Acts[reply.Act]
		switch {
		case reply.None:
			if reply.Act == len(t.Acts)-1 && t.By != "assistant" || reply.Act < len(t.Acts)-1 {
				f.Missed++
			}
		case !reply.Early:
			f.Replies = append(f.Replies, reply.Took)
			if reply.Took > longWait {
				f.Dead++
			}
		}
		f.Cutoffs += len(t.cutoffs(a))
	}
	for i, a := range t.Acts {
		y := t.yield(i)
		switch {
		case a.Kind == Interrupt && y.over && y.yielded:
			f.Yields = append(f.Yields, y.silent)
			f.Stale += y.stale
		case a.Kind == Interrupt && y.over:
			f.Kept++
		case a.Kind == Backchannel && y.over:
			f.Backed++
			if y.yielded {
				f.Paused++
			}
			if !y.yielded || y.again {
				f.Resumed++
			}
		}
	}
	for _, turn := range r.Turns {
		if turn.Latency != nil {
			f.Waterfall = append(f.Waterfall, *turn.Latency)
		}
	}
	if !c.Stranger() {
		f.Words, f.Wrong = misheard(t, r)
	}
	return f
}

// count counts what was expected.
func (f *Figures) count(verdicts []Verdict) {
	for _, v := range verdicts {
		switch {
		case v.Of == ofTool && !v.OK:
			f.Forgotten++
			fallthrough
		case v.Of == ofTool:
			f.Wanted++
		case v.Of == ofValue && v.OK:
			f.Right++
			fallthrough
		case v.Of == ofValue:
			f.Values++
		}
	}
}

func (f *Figures) misheard() float64 {
	if f.Words == 0 {
		return 0
	}
	return float64(f.Wrong) / float64(f.Words)
}

// add sums figures up.
func (f *Figures) add(o Figures) {
	f.Replies, f.Yields = append(f.Replies, o.Replies...), append(f.Yields, o.Yields...)
	f.Waterfall = append(f.Waterfall, o.Waterfall...)
	f.Greeting, f.DeadAir = max(f.Greeting, o.Greeting), max(f.DeadAir, o.DeadAir)
	f.Cutoffs += o.Cutoffs
	f.Kept += o.Kept
	f.Backed += o.Backed
	f.Paused += o.Paused
	f.Resumed += o.Resumed
	f.Missed += o.Missed
	f.Dead += o.Dead
	f.Stale += o.Stale
	f.Tools += o.Tools
	f.Wanted += o.Wanted
	f.Forgotten += o.Forgotten
	f.Values += o.Values
	f.Right += o.Right
	f.Words += o.Words
	f.Wrong += o.Wrong
	f.Cost += o.Cost
	f.Tau.add(o.Tau)
}

// Reply is the reply that such a share of the replies took no longer than.
func (f *Figures) Reply(share float64) time.Duration { return quantile(f.Replies, share) }

// quantile is the smallest time that a share of all is not above, 0 of none.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// misheard counts the words that the caller said, and those of them that were understood otherwise: the word errors of
// the whole call, as recognizers are measured. Backchannels are left out, as they need not stand as turns.
func misheard(t *Timeline, r *Record) (words, wrong int) {
	var said, got []string
	for _, a := range t.Acts {
		if a.Kind == Say || a.Kind == Interrupt {
			said = append(said, strings.Fields(plain(pausing.ReplaceAllString(a.Text, " ")))...)
		}
	}
	for _, turn := range r.Turns {
		if turn.Speaker == "customer" {
			got = append(got, strings.Fields(plain(turn.Text))...)
		}
	}
	return len(said), min(len(said), distance(said, got))
}

// distance is how many words must be changed, added or left out.
func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		last := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := last
			if x != y {
				cost = min(last, row[j], row[j+1]) + 1
			}
			last, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
