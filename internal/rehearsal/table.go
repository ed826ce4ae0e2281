package rehearsal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Passed says whether all results are passes.
func Passed(results []Result) bool {
	for i := range results {
		if !results[i].Passed() {
			return false
		}
	}
	return true
}

// Broken says whether a case could not be performed.
func Broken(results []Result) bool {
	for i := range results {
		if results[i].Err != nil {
			return true
		}
	}
	return false
}

func state(r *Result) string {
	switch {
	case r.Err != nil:
		return "ERROR"
	case r.Passed():
		return "pass"
	}
	return "FAIL"
}

// Table writes the results for people.
func Table(w io.Writer, results []Result, again func(*Result) string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tcase\treply p50\tp95\tp99\tcut-offs\tyield p95\tfalse yields\tresumed\tmissed\tdead air\tstale\ttools\tnot "+
		"called\tvalues\tmisheard\tcost\ttook")
	var all Figures
	for i := range results {
		r := &results[i]
		if r.Err != nil {
			fmt.Fprintf(t, "%s\t%s%s\n", state(r), r.Title(), strings.Repeat("\t", 16))
			continue
		}
		row(t, state(r), r.Title(), &r.Figures, r.Took)
		all.add(r.Figures)
	}
	if len(results) > 1 {
		row(t, "", "all", &all, 0)
	}
	t.Flush()
	if n := len(all.Waterfall); n > 0 {
		fmt.Fprintf(w, "\nWhere the time of %d replies went, median after the last word: %s\n", n, waterfall(all.Waterfall))
	}
	if slices.ContainsFunc(results, func(r Result) bool { return r.Case.Stranger() }) {
		fmt.Fprintf(w, "\nOf calls to sip: addresses only the sound is known, and not: %s\n", strings.Join(unknown, ", "))
	}
	for i := range results {
		if !results[i].Passed() {
			explain(w, &results[i], again)
		}
	}
	passes(w, results)
}

func row(w io.Writer, state, title string, f *Figures, took time.Duration) {
	at := func(d time.Duration) string {
		if d == 0 {
			return "-"
		}
		return show(d)
	}
	share := func(n, of int) string {
		if of == 0 {
			return "-"
		}
		return fmt.Sprintf("%d/%d", n, of)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t%.4f\t%s\n", state, title,
		at(quantile(f.Replies, 0.5)), at(quantile(f.Replies, 0.95)), at(quantile(f.Replies, 0.99)), f.Cutoffs,
		at(quantile(f.Yields, 0.95)), share(f.Paused, f.Backed), share(f.Resumed, f.Backed), f.Missed, at(f.DeadAir), f.Stale,
		f.Tools, share(f.Forgotten, f.Wanted), share(f.Right, f.Values), share(f.Wrong, f.Words), f.Cost, at(took))
}

// waterfall is the median of each step of replies.
func waterfall(all []Latency) string {
	middle := func(of func(Latency) int64) string {
		var list []time.Duration
		for _, l := range all {
			if n := of(l); n > 0 {
				list = append(list, ms(n))
			}
		}
		return show(quantile(list, 0.5))
	}
	return fmt.Sprintf("turn over %s, text %s, first token %s, first sentence %s, first sound %s, first packet %s",
		middle(func(l Latency) int64 { return l.EndpointMS }), middle(func(l Latency) int64 { return l.TranscriptMS }),
		middle(func(l Latency) int64 { return l.FirstTokenMS }), middle(func(l Latency) int64 { return l.FirstSentenceMS }),
		middle(func(l Latency) int64 { return l.FirstAudioMS }), middle(func(l Latency) int64 { return l.FirstPacketMS }))
}

// explain says why a case failed and how to see that again.
func explain(w io.Writer, r *Result, again func(*Result) string) {
	fmt.Fprintf(w, "\n%s %s\n", state(r), r.Title())
	if r.Err != nil {
		fmt.Fprintf(w, "  %s: %v\n", r.Case.File, r.Err)
	}
	for _, v := range r.Failed() {
		fmt.Fprintf(w, "  %s:%d: expected: %s; %s (at %.2f s)\n", r.Case.File, v.Line, v.What, v.Got, v.At.Seconds())
	}
	if r.Record != nil && r.Record.Transcript != "" {
		fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(r.Record.Transcript, "\n", "\n    "))
	}
	for _, name := range r.Files {
		fmt.Fprintf(w, "  %s\n", name)
	}
	if again != nil {
		fmt.Fprintf(w, "  again: %s\n", again(r))
	}
}

// passes writes how many cases passed, and of those that were repeated how likely all k rounds of one pass.
func passes(w io.Writer, results []Result) {
	passed, broken := 0, 0
	type count struct{ passed, of int }
	var order []*Case
	counts := map[*Case]*count{}
	for i := range results {
		r := &results[i]
		n := counts[r.Case]
		if n == nil {
			n = &count{}
			counts[r.Case] = n
			order = append(order, r.Case)
		}
		if n.of++; r.Passed() {
			n.passed++
			passed++
		}
		if r.Err != nil {
			broken++
		}
	}
	for _, c := range order {
		if n := counts[c]; n.of > 1 {
			one := Result{Case: &Case{Name: c.Name, Values: c.Values}}
			fmt.Fprintf(w, "\n%s: %d of %d rounds passed; pass^%d %.2f", one.Title(), n.passed, n.of, n.of,
				PassHat(n.passed, n.of, n.of))
			if k := n.of / 2; k > 1 {
				fmt.Fprintf(w, ", pass^%d %.2f", k, PassHat(n.passed, n.of, k))
			}
		}
	}
	fmt.Fprintf(w, "\n%d of %d passed", passed, len(results))
	if broken > 0 {
		fmt.Fprintf(w, ", %d could not be performed", broken)
	}
	fmt.Fprintln(w)
}

// PassHat is the chance that k rounds, drawn of n of which c passed, all passed.
func PassHat(c, n, k int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(max(0, c-i)) / float64(n-i)
	}
	return p
}
