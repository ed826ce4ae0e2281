package voice

import (
	"testing"

	"parley/internal/agent"
	"parley/internal/ai"
)

// A realtime session is told the time again once midnight has passed, with each response, and once in each.
func TestRealtimeIsDated(t *testing.T) {
	now := agent.Turn{Day: "Monday, 2 March 2026+01:00", Now: "It is Monday."}
	d := &realtime{day: now.Day, Persona: Persona{Think: func([]ai.Message, agent.Sink) *agent.Turn { t := now; return &t }}}
	if got := d.dated("Say hello."); got != "Say hello." {
		t.Errorf("on the same day: %q", got)
	}
	now = agent.Turn{Day: "Tuesday, 3 March 2026+01:00", Now: "It is Tuesday."}
	if got := d.dated(""); got != "The date has changed. It is Tuesday." {
		t.Errorf("after midnight: %q", got)
	}
	once := d.dated("Say hello.")
	if once != "The date has changed. It is Tuesday.\nSay hello." || d.dated(once) != once {
		t.Errorf("with an instruction: %q, then %q", once, d.dated(once))
	}
	if now = (agent.Turn{}); d.dated("x") != "x" {
		t.Errorf("without a clock: %q", d.dated("x"))
	}
}
