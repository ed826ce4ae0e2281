package voice

import (
	"testing"

	"parley/internal/agent"
	"parley/internal/ai"
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
