package voice

import (
	"testing"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
)

// A realtime session is told the time again once midnight has passed, with each response, and once in each.
func TestRealtimeIsDated(t *testing.T) {
	day, now := "Monday, 2 March 2026+01:00", "It is Monday."
	d := &realtime{day: day, Persona: Persona{Think: func([]ai.Message, agent.Sink) *agent.Turn { return &agent.Turn{Day: day, Now: now} }}}
	if got := d.dated("Say hello."); got != "Say hello." {
		t.Errorf("on the same day: %q", got)
	}
	day, now = "Tuesday, 3 March 2026+01:00", "It is Tuesday."
	if got := d.dated(""); got != "The date has changed. It is Tuesday." {
		t.Errorf("after midnight: %q", got)
	}
	once := d.dated("Say hello.")
	if once != "The date has changed. It is Tuesday.\nSay hello." || d.dated(once) != once {
		t.Errorf("with an instruction: %q, then %q", once, d.dated(once))
	}
	if day, now = "", ""; d.dated("x") != "x" {
		t.Errorf("without a clock: %q", d.dated("x"))
	}
}

// What was heard of a reply whose vendor tells the times of its words is known by them, also before all of its sound is there: a caller
// who hangs up after the last word has heard it.
func TestRealtimeWordTimes(t *testing.T) {
	o := &playout{rate: audio.Narrow}
	p := &part{}
	o.add(p)
	o.fill(p, make([]int16, 16000)) // two seconds
	for _, w := range []struct {
		text string
		at   time.Duration
	}{{"We open", 500 * time.Millisecond}, {" at nine", 700 * time.Millisecond}, {" on Sundays.", 900 * time.Millisecond}} {
		o.write(p, w.text, w.at)
	}
	for ms, want := range map[int]string{300: "", 600: "We open", 750: "We open at nine", 950: "We open at nine on Sundays."} {
		p.played = ms * 8
		if got := o.heard(p); got != want {
			t.Errorf("after %d ms: %q, not %q", ms, got, want)
		}
	}
}
