package e2e

import (
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/provider/gemini/geminitest"
)

// A call that Gemini Live holds: it greets, uses a tool, goes on over another connection, is interrupted and notices
// it, and loses its session.
func TestGeminiTalk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"multimodal", "dualplex"} {
		t.Run(mode, func(t *testing.T) {
			share(t, call)
			g := geminitest.New(t)
			l, v := speaking(t, "PARLEY_GEMINI_API_KEY="+geminitest.Key, "PARLEY_GEMINI_BASE_URL="+g.URL,
				"PARLEY_GEMINI_LIVE_MODEL="+geminitest.Live)
			if mode == "multimodal" {
				v.Voice = g.Voice // the voice is recognized by it
			}
			h := holds(t, l, v, g, mode, 300*time.Millisecond)
			c := h.c
			if len(h.warned) > 0 {
				t.Errorf("saving it warned of %v", h.warned)
			}
			h.table()
			n := len(g.Conversations())
			g.Leave(5 * time.Second)
			silent(t, c, 300*time.Millisecond)
			eventually(t, "another connection", func() bool { return len(g.Conversations()) > n })

			h.interrupts()
			items := g.Conversations()[len(g.Conversations())-1].Items

			// The connection ends in the middle of a reply, as Google announced a moment before.
			const story = "It is a long story, which is told quite slowly, of a house in the garden."
			began := hears(t, c, h.asks("Tell me more.", aitest.Behaviour{Text: story, TokenDelay: 80 * time.Millisecond},
				aitest.Behaviour{Text: "And here it comes to its end."}).To())
			eventually(t, "a part of the story", func() bool { return time.Since(began) > 600*time.Millisecond })
			g.Leave(400 * time.Millisecond)
			h.hears("And here it comes to its end.")
			t.Logf("the end of its connection left a gap of %v", gap(c, began).Round(time.Millisecond))
			if d := gap(c, began); d > 300*time.Millisecond {
				t.Errorf("there was a gap of %v", d)
			}

			g.Drop(1011, "Internal error encountered.")
			row, cut := h.ends()
			told := ""
			for i, turn := range row.Turns {
				if i > 0 && row.Turns[i-1].Text == "Tell me more." {
					told = strings.Join(strings.Fields(turn.Text), " ")
				}
			}
			want := "AI: " + welcome + " Customer: I would like a table. AI: Let me see. Your table is ready. Customer: What do you have? AI: " +
				cut + " Customer: Stop, only bread please. AI: Bread it is. Customer: Tell me more. AI: " +
				told + " Customer: And when do you open? AI: We open at nine."
			if !strings.HasPrefix(told, "It is a long story") || !strings.HasSuffix(told, "And here it comes to its end.") {
				t.Errorf("the story was %q", told)
			}
			if got := strings.Join(strings.Fields(row.Transcript), " "); got != want {
				t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
			}
			knows := false
			for _, it := range items {
				knows = knows || it.Role == "user" && strings.HasPrefix(it.Text, "[") && strings.Contains(it.Text, "“"+cut+"”")
			}
			if !knows {
				t.Errorf("the model was not told that %q was heard: %+v", cut, items)
			}
		})
	}
}
