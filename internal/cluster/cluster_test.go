package cluster

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var table = flag.String("table", "", "simulate up to 50 nodes with 10,000 calls, and write the table into this file")

// populate starts a world's nodes, not all in the same moment, and waits until its campaigns have as many calls as they may.
func (w *world) populate() {
	w.Helper()
	for range w.size.nodes {
		w.begin()
		time.Sleep(97 * time.Millisecond)
	}
	for deadline := time.Now().Add(time.Minute); w.truth.lines() < w.size.calls()*98/100 && time.Now().Before(deadline); {
		time.Sleep(time.Second)
		w.database.load(w.truth.lines())
	}
	time.Sleep(16 * time.Second) // they judge others once they have been heard for as long
}

// killSome has those nodes fall silent for ever that have the most calls.
func (w *world) killSome(n int) func() {
	return func() {
		nodes := w.alive()
		slices.SortStableFunc(nodes, func(a, b *process) int { return b.calls.Stats().Live - a.calls.Stats().Live })
		for _, p := range nodes[:n] {
			w.kill(p)
		}
	}
}

// interrupt cuts the way of some nodes to the database for a while.
func (w *world) interrupt(n int, how cut, during time.Duration) func() {
	return func() {
		w.truth.disturb()
		nodes := w.alive()[:n]
		for _, p := range nodes {
			p.set(how)
		}
		time.AfterFunc(during, func() {
			for _, p := range nodes {
				p.set(whole)
			}
		})
	}
}

// slow has the database be slower than measured from now on.
func (w *world) slow(times float64) func() {
	return func() {
		w.database.mu.Lock()
		defer w.database.mu.Unlock()
		w.database.slower = times
	}
}

// move moves the database's clock.
func (w *world) move(by time.Duration) func() {
	return func() {
		w.database.mu.Lock()
		defer w.database.mu.Unlock()
		w.database.skew += by
	}
}

// Half of the nodes of an installation whose database is far away die, and later the database is away for longer than a node may be
// silent. The calls of the dead are closed in 30 seconds, and meanwhile the others' are heard of in time. Each trunk has a registration
// again, and no call of a live node is touched.
func TestNodesKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := usual
		h.trip = 12 * time.Millisecond
		w := open(t, size{nodes: 6, accounts: 10, parallel: 3, leads: 20, trunks: 30}, readCosts(t), h)
		w.populate()
		died := w.watch("three nodes die", 31*time.Second, w.killSome(3))
		if died.lost < 30 || died.trunks < 5 {
			t.Errorf("the nodes that died had %d calls and %d trunks: that tries little", died.lost, died.trunks)
		}
		if died.closed < 0 || died.closed > 30*time.Second {
			t.Errorf("the calls of dead nodes were closed after %v", died.closed)
		}
		if died.renew > 7500*time.Millisecond { // half of call.Config.Lost: who is later judges no other
			t.Errorf("a live node's calls were not heard of for %v", died.renew)
		}
		if died.held < 0 || died.held > 15*time.Second {
			t.Errorf("their trunks were registered again after %v", died.held)
		}
		away := w.watch("the database is away", 35*time.Second, w.interrupt(3, refused, 20*time.Second))
		for _, l := range []look{died, away} {
			if !l.none() || l.begun == 0 {
				t.Errorf("%s: %.1f calls begun a second; against the rules: %v %q", l.what, l.begun, l.faults, w.truth.said)
			}
		}
		if n := w.truth.lines(); n < w.calls()*9/10 {
			t.Errorf("%d calls are on the line after all that, of %d", n, w.size.calls())
		}
		w.close()
	})
}

// TestTable simulates what happens to many nodes, with -table, and writes what was seen (docs/lab/nodes.md).
func TestTable(t *testing.T) {
	if *table == "" {
		t.Skip("the table is made with -table (make simulate)")
	}
	var rows strings.Builder
	rows.WriteString(header)
	var costly string
	at := facts()
	write := func() {
		text, err := os.ReadFile(*table)
		if err != nil {
			t.Fatal(err)
		}
		before, _, ok := strings.Cut(string(text), marked)
		if !ok {
			t.Fatalf("%s has no line %q", *table, marked)
		}
		text = fmt.Appendf(nil, "%s%s\n%s.\n\n%s", before, marked, at, rows.String())
		if costly != "" {
			text = fmt.Appendf(text, "\nWhere the cores go in the row with 10,000 calls to which nothing happens: %s.\n", costly)
		}
		if err := os.WriteFile(*table, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	world := func(name string, fn func(*testing.T)) { t.Run(name, func(t *testing.T) { synctest.Test(t, fn) }) }
	say := func(l look) {
		if l.nodes == 50 && costly == "" {
			costly = l.costliest()
		}
		t.Log(realtime(), l, l.lost, l.trunks, l.costliest())
		rows.WriteString(l.String())
		write()
	}
	world("20 nodes", func(t *testing.T) {
		w := open(t, size{nodes: 20, accounts: 5, parallel: 50, leads: 200, trunks: 200}, readCosts(t), usual)
		w.populate()
		say(w.watch("nothing", 10*time.Second, func() {}))
		say(w.watch("the database refuses connections for 20 s", 45*time.Second, w.interrupt(20, refused, 20*time.Second)))
		say(w.watch("5 nodes are cut off from the database for 12 s, without a word", 40*time.Second, w.interrupt(5, silent, 12*time.Second)))
		say(w.watch("5 nodes are cut off for 40 s", 60*time.Second, w.interrupt(5, silent, 40*time.Second)))
		say(w.watch("the database's clock jumps a minute ahead", 40*time.Second, w.move(time.Minute)))
		say(w.watch("it jumps back, and a node dies", 90*time.Second, func() { w.move(-time.Minute)(); w.killSome(1)() }))
		w.close()
	})
	world("10 nodes", func(t *testing.T) {
		w := open(t, size{nodes: 10, accounts: 5, parallel: 60, leads: 200, trunks: 200}, readCosts(t), usual)
		w.populate()
		say(w.watch("5 of 10 nodes die at once", 40*time.Second, w.killSome(5)))
		w.close()
	})
	world("50 nodes", func(t *testing.T) {
		w := open(t, size{nodes: 50, accounts: 25, parallel: 100, leads: 200, trunks: 500}, readCosts(t), usual)
		w.populate()
		say(w.watch("nothing", 10*time.Second, func() {}))
		say(w.watch("5 nodes die at once", 26*time.Second, w.killSome(5)))
		say(w.watch("the database becomes four times slower", 15*time.Second, w.slow(4)))
		w.close()
	})
}

// marked begins what TestTable writes.
const marked = "## What was seen\n"
