package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/gptlive/gptlivetest"
)

// A call that GPT-Live holds: it is greeted for, answers when it likes, has a tool called by its thinker, speaks unasked, falls silent
// when it is interrupted, and loses its session.
func TestGPTLiveTalk(t *testing.T) {
	t.Parallel()
	g := gptlivetest.New(t)
	l, v := speaking(t, "PARLEY_OPENAI_REALTIME_BASE_URL="+g.URL, "PARLEY_OPENAI_REALTIME_API_KEY="+gptlivetest.Key,
		"PARLEY_OPENAI_LIVE_MODEL="+gptlivetest.Model, "PARLEY_OPENAI_LIVE_THINKER="+gptlivetest.Thinker)
	v.Voice = g.Voice // the voice is recognized by it
	shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"free":true}`))
	}))
	var tool struct{ Data struct{ ID int64 } }
	l.call(t, "POST", "/user/tools", map[string]any{"name": "table_free",
		"description": "Looks whether a table is free", "method": "GET", "endpoint": shop}, &tool)
	if status := l.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", l.Assistant), modeFields(t, l, "multimodal",
		map[string]any{"tool_ids": []int64{tool.Data.ID}}), nil); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	asked := func(text string, b ...aitest.Behaviour) {
		g.ScriptTranscripts(aitest.Behaviour{Text: text})
		g.ScriptRealtime(b...)
	}
	c := l.greeted(t, l.phone)
	asked("I would like a table.", aitest.Behaviour{Text: "Let me see.",
		Calls: []ai.ToolCall{{Name: "table_free", Arguments: "{}"}}}, aitest.Behaviour{Text: "Your table is ready."})
	asks(t, c)
	v.awaits(t, c, "Your table is ready.")
	silent(t, c, time.Second)

	g.ScriptRealtime(aitest.Behaviour{Text: "Anything else?"}) // it speaks although nobody has said anything
	g.Speak()
	v.awaits(t, c, "Anything else?")
	silent(t, c, time.Second)

	asked("What do you have?", aitest.Behaviour{Text: long})
	said := asks(t, c)
	at := hears(t, c, said.To())
	eventually(t, "a part of the reply", func() bool { return time.Since(at) > 1500*time.Millisecond })
	asked("Stop, only bread please.", aitest.Behaviour{Text: "Bread it is."})
	asks(t, c)
	v.awaits(t, c, "Bread it is.")
	silent(t, c, time.Second)

	g.Drop(1011)
	eventually(t, "another session", func() bool { return len(g.Conversations()) == 2 })
	asked("And when do you open?", aitest.Behaviour{Text: "We open at nine."})
	asks(t, c)
	v.awaits(t, c, "We open at nine.")
	silent(t, c, time.Second)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	cut := ""
	for _, turn := range row.Turns {
		if strings.HasPrefix(long, turn.Text) {
			cut = turn.Text
		}
	}
	want := "AI: " + welcome + " Customer: I would like a table. AI: Let me see. Your table is ready. Anything else? Customer: What do you have? AI: " +
		cut + " Customer: Stop, only bread please. AI: Bread it is. Customer: And when do you open? AI: We open at nine."
	if got := strings.ReplaceAll(strings.Join(strings.Fields(row.Transcript), " "), " AI: Anything", " Anything"); got != want || len(cut) < 10 || cut == long {
		t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
	}
	told := ""
	for _, it := range g.Conversations()[1].Items {
		told += it.Text
	}
	if !strings.Contains(told, "Your table is ready.") || !strings.Contains(told, "only bread please") {
		t.Errorf("the second session was told %q", told)
	}
	if list := g.Complaints(); len(list) > 0 {
		t.Errorf("the server complained of %v", list)
	}
}
