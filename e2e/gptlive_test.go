package e2e

import (
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/provider/gptlive/gptlivetest"
)

// A call that GPT-Live holds: it is greeted for, answers when it likes, has a tool called by its thinker, speaks unasked, falls silent
// when it is interrupted, and loses its session.
func TestGPTLiveTalk(t *testing.T) {
	share(t, call)
	g := gptlivetest.New(t)
	l, v := speaking(t, "PARLEY_OPENAI_REALTIME_BASE_URL="+g.URL, "PARLEY_OPENAI_REALTIME_API_KEY="+gptlivetest.Key,
		"PARLEY_OPENAI_LIVE_MODEL="+gptlivetest.Model, "PARLEY_OPENAI_LIVE_THINKER="+gptlivetest.Thinker)
	v.Voice = g.Voice // the voice is recognized by it
	h := holds(t, l, v, g, "multimodal", time.Second)
	h.yields = true
	h.table()
	silent(t, h.c, time.Second)

	g.ScriptRealtime(aitest.Behaviour{Text: "Anything else?"}) // it speaks although nobody has said anything
	g.Speak()
	h.hears("Anything else?")
	h.interrupts()

	g.Drop(1011)
	eventually(t, "another session", func() bool { return len(g.Conversations()) == 2 })
	row, cut := h.ends()
	want := "AI: " + welcome + " Customer: I would like a table. AI: Let me see. Your table is ready. Anything else? " +
		"Customer: What do you have? " +
		"AI: " + cut + " Customer: Stop, only bread please. AI: Bread it is. Customer: And when do you open? AI: We open at nine."
	if got := strings.ReplaceAll(strings.Join(strings.Fields(row.Transcript), " "), " AI: Anything", " Anything"); got != want {
		t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
	}
	told := ""
	for _, it := range g.Conversations()[1].Items {
		told += it.Text
	}
	if !strings.Contains(told, "Your table is ready.") || !strings.Contains(told, "only bread please") {
		t.Errorf("the second session was told %q", told)
	}
}
