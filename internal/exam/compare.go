package exam

import (
	"fmt"

	"parley/internal/parley"
)

// Change is what became better or worse of a test since it was performed before.
type Change struct {
	TestID   int64            `json:"test_id"`
	Name     string           `json:"name"`
	ResultID int64            `json:"result_id" doc:"Of this run."`
	Before   parley.TestState `json:"before"`
	Now      parley.TestState `json:"now"`
	Better   bool             `json:"better" doc:"false if it became worse."`
	// what else differs, where the state is the same
	Figures []FigureChange `json:"figures"`
}

// FigureChange is a figure that differs by more than chance usually makes it.
type FigureChange struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	Now    float64 `json:"now"`
	Better bool    `json:"better"`
}

// Compare says what became better and worse of performances since those before. What is new, or as it was, is no change.
func Compare(now, before []parley.TestResult) []Change {
	type key struct {
		test int64
		name string
	}
	old := map[key]*parley.TestResult{}
	for i := range before {
		if r := &before[i]; r.TestID != nil {
			old[key{*r.TestID, r.Name}] = r
		}
	}
	changes := []Change{}
	for i := range now {
		r := &now[i]
		if r.TestID == nil || r.State != parley.TestPassed && r.State != parley.TestFailed {
			continue
		}
		was := old[key{*r.TestID, r.Name}]
		if was == nil {
			continue
		}
		c := Change{TestID: *r.TestID, Name: r.Name, ResultID: r.ID, Before: was.State, Now: r.State,
			Figures: figureChanges(r.Figures, was.Figures)}
		if r.State != was.State {
			c.Better = r.State == parley.TestPassed
			changes = append(changes, c)
			continue
		}
		better, worse := 0, 0
		for _, f := range c.Figures {
			if f.Better {
				better++
			} else {
				worse++
			}
		}
		if better+worse > 0 {
			c.Better = worse == 0
			changes = append(changes, c)
		}
	}
	return changes
}

// figureChanges are the figures that differ. A time does by a fifth and 150 ms at least, costs by a fifth, what is
// counted by one.
func figureChanges(now, before *parley.TestFigures) []FigureChange {
	list := []FigureChange{}
	if now == nil || before == nil {
		return list
	}
	add := func(name string, was, is, least, share float64) {
		if d := max(is-was, was-is); d >= least && d > 0 && d >= share*max(was, is) {
			list = append(list, FigureChange{name, was, is, is < was})
		}
	}
	add("reply_p50_ms", float64(before.ReplyP50MS), float64(now.ReplyP50MS), 150, 0.2)
	add("reply_p95_ms", float64(before.ReplyP95MS), float64(now.ReplyP95MS), 150, 0.2)
	add("greeting_ms", float64(before.GreetingMS), float64(now.GreetingMS), 150, 0.2)
	add("dead_air_ms", float64(before.DeadAirMS), float64(now.DeadAirMS), 500, 0.2)
	add("false_cutoffs", float64(before.FalseCutoffs), float64(now.FalseCutoffs), 1, 0)
	add("missed_turns", float64(before.MissedTurns), float64(now.MissedTurns), 1, 0)
	add("stale_packets", float64(before.StalePackets), float64(now.StalePackets), 1, 0)
	add("misheard", float64(before.Misheard), float64(now.Misheard), 1, 0)
	add("cost", before.Cost, now.Cost, 0.0001, 0.2)
	return list
}

var figureLabels = map[string]string{"reply_p50_ms": "Half of the replies within", "reply_p95_ms": "95 % of the replies within",
	"greeting_ms": "Greeting", "dead_air_ms": "Longest silence", "false_cutoffs": "False cut-offs", "missed_turns": "Turns without a reply",
	"stale_packets": "Stale packets", "misheard": "Words misheard", "cost": "Cost"}

// Text says the change to people.
func (f FigureChange) Text() string {
	unit := func(v float64) string {
		switch f.Name {
		case "cost":
			return fmt.Sprintf("%.4f USD", v)
		case "false_cutoffs", "missed_turns", "stale_packets", "misheard":
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprintf("%.0f ms", v)
	}
	return figureLabels[f.Name] + ": " + unit(f.Before) + " before, now " + unit(f.Now)
}
