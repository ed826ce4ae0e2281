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
	"parley/internal/provider/gemini/geminitest"
)

// A call that Gemini Live holds: it greets, uses a tool, goes on over another connection, is interrupted and notices
// it, and loses its session.
func TestGeminiTalk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"multimodal", "dualplex"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := geminitest.New(t)
			l, v := speaking(t, "PARLEY_GEMINI_API_KEY="+geminitest.Key, "PARLEY_GEMINI_BASE_URL="+g.URL,
				"PARLEY_GEMINI_LIVE_MODEL="+geminitest.Live)
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
			var answer struct{ Warnings []string }
			if status := l.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", l.Assistant), modeFields(t, l, mode,
				map[string]any{"tool_ids": []int64{tool.Data.ID}}), &answer); status != http.StatusOK || len(answer.Warnings) > 0 {
				t.Fatalf("answered %d: %+v", status, answer)
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
			n := len(g.Conversations())
			g.Leave(5 * time.Second)
			silent(t, c, 300*time.Millisecond)
			eventually(t, "another connection", func() bool { return len(g.Conversations()) > n })

			asked("What do you have?", aitest.Behaviour{Text: long})
			said := asks(t, c)
			at := hears(t, c, said.To())
			eventually(t, "a part of the reply", func() bool { return time.Since(at) > 1500*time.Millisecond })
			asked("Stop, only bread please.", aitest.Behaviour{Text: "Bread it is."})
			asks(t, c)
			v.awaits(t, c, "Bread it is.")
			silent(t, c, 300*time.Millisecond)
			held := g.Conversations()[len(g.Conversations())-1].Items

			// The connection ends in the middle of a reply, as Google announced a moment before.
			const story = "It is a long story, which is told quite slowly, of a house in the garden."
			asked("Tell me more.", aitest.Behaviour{Text: story, TokenDelay: 80 * time.Millisecond},
				aitest.Behaviour{Text: "And here it comes to its end."})
			began := hears(t, c, asks(t, c).To())
			eventually(t, "a part of the story", func() bool { return time.Since(began) > 600*time.Millisecond })
			g.Leave(400 * time.Millisecond)
			v.awaits(t, c, "And here it comes to its end.")
			silent(t, c, 300*time.Millisecond)
			t.Logf("the end of its connection left a gap of %v", gap(c, began).Round(time.Millisecond))
			if d := gap(c, began); d > 300*time.Millisecond {
				t.Errorf("there was a gap of %v", d)
			}

			g.Drop(1011, "Internal error encountered.")
			asked("And when do you open?", aitest.Behaviour{Text: "We open at nine."})
			asks(t, c)
			v.awaits(t, c, "We open at nine.")
			silent(t, c, 300*time.Millisecond)
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			row := l.over(t)
			row.expect(t, parley.CallCompleted, parley.CustomerHangup)
			cut, told := "", ""
			for i, turn := range row.Turns {
				if i > 0 && row.Turns[i-1].Text == "Tell me more." {
					told = strings.Join(strings.Fields(turn.Text), " ")
				}
				if turn.Interrupted {
					cut = turn.Text
				}
			}
			want := "AI: " + welcome + " Customer: I would like a table. AI: Let me see. Your table is ready. Customer: What do you have? AI: " +
				cut + " Customer: Stop, only bread please. AI: Bread it is. Customer: Tell me more. AI: " +
				told + " Customer: And when do you open? AI: We open at nine."
			if !strings.HasPrefix(told, "It is a long story") || !strings.HasSuffix(told, "And here it comes to its end.") {
				t.Errorf("the story was %q", told)
			}
			if got := strings.Join(strings.Fields(row.Transcript), " "); got != want || len(cut) < 10 || !strings.HasPrefix(long, cut) {
				t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
			}
			knows := false
			for _, it := range held {
				knows = knows || it.Role == "user" && strings.HasPrefix(it.Text, "[") && strings.Contains(it.Text, "“"+cut+"”")
			}
			if !knows {
				t.Errorf("the model was not told that %q was heard: %+v", cut, held)
			}
			if list := g.Complaints(); len(list) > 0 {
				t.Errorf("the server complained of %v", list)
			}
		})
	}
}
