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
	"parley/internal/provider/xai/xaitest"
)

// A call that Grok holds: it greets, uses a tool, is interrupted, knows what was heard, and loses its session.
func TestXAITalk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"multimodal", "dualplex"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := xaitest.New(t)
			l, v := speaking(t, "PARLEY_XAI_API_KEY="+xaitest.Key, "PARLEY_XAI_BASE_URL="+g.URL)
			g.Transcribe = func(aitest.Utterance) string { return "" }
			if mode == "multimodal" {
				v.Voice = g.Voice // the voice is recognized by it
			}
			shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(`{"free":true}`))
			}))
			var tool struct{ Data struct{ ID int64 } }
			l.call(t, "POST", "/user/tools", map[string]any{"name": "table_free",
				"description": "Looks whether a table is free", "method": "GET", "endpoint": shop}, &tool)
			if status := l.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", l.Assistant), modeFields(t, l, mode,
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
			silent(t, c, 300*time.Millisecond)

			asked("What do you have?", aitest.Behaviour{Text: long})
			said := asks(t, c)
			at := hears(t, c, said.To())
			eventually(t, "a part of the reply", func() bool { return time.Since(at) > 1500*time.Millisecond })
			asked("Stop, only bread please.", aitest.Behaviour{Text: "Bread it is."})
			asks(t, c)
			v.awaits(t, c, "Bread it is.")
			silent(t, c, 300*time.Millisecond)
			var held []aitest.RealtimeItem // of the session that holds the call: another one reads out
			for _, one := range g.Conversations() {
				held = append(held, one.Items...)
			}

			g.DropRealtime(1011, "")
			asked("And when do you open?", aitest.Behaviour{Text: "We open at nine."})
			asks(t, c)
			v.awaits(t, c, "We open at nine.")
			silent(t, c, 300*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			cut := ""
			for _, turn := range row.Turns {
				if turn.Interrupted {
					cut = turn.Text
				}
			}
			want := "AI: " + welcome + " Customer: I would like a table. AI: Let me see. Your table is ready. Customer: What do you have? AI: " +
				cut + " Customer: Stop, only bread please. AI: Bread it is. Customer: And when do you open? AI: We open at nine."
			if got := strings.Join(strings.Fields(row.Transcript), " "); got != want || len(cut) < 10 || !strings.HasPrefix(long, cut) {
				t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
			}
			knows := 0
			for _, it := range held {
				if it.Role == "assistant" && it.Text != long && strings.HasPrefix(long, it.Text) && it.Text != "" {
					knows++
				}
			}
			if knows != 1 {
				t.Errorf("the model does not know that %q was heard: %+v", cut, held)
			}
			if list := g.Complaints(); len(list) > 0 {
				t.Errorf("the server complained of %v", list)
			}
		})
	}
}
