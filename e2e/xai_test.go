package e2e

import (
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/provider/xai/xaitest"
)

// A call that Grok holds: it greets, uses a tool, is interrupted, knows what was heard, and loses its session.
func TestXAITalk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"multimodal", "dualplex"} {
		t.Run(mode, func(t *testing.T) {
			share(t, call)
			g := xaitest.New(t)
			l, v := speaking(t, "PARLEY_XAI_API_KEY="+xaitest.Key, "PARLEY_XAI_BASE_URL="+g.URL)
			g.Transcribe = func(aitest.Utterance) string { return "" }
			if mode == "multimodal" {
				v.Voice = g.Voice // the voice is recognized by it
			}
			h := holds(t, l, v, g, mode, 300*time.Millisecond)
			if len(h.warned) > 0 {
				t.Errorf("saving it warned of %v", h.warned)
			}
			h.table()
			silent(t, h.c, 300*time.Millisecond)
			h.interrupts()
			var items []aitest.RealtimeItem // of the session that holds the call: another one reads out
			for _, one := range g.Conversations() {
				items = append(items, one.Items...)
			}

			g.DropRealtime(1011, "")
			row, cut := h.ends()
			want := "AI: " + welcome + " Customer: I would like a table. AI: Let me see. Your table is ready. Customer: What do you have? AI: " +
				cut + " Customer: Stop, only bread please. AI: Bread it is. Customer: And when do you open? AI: We open at nine."
			if got := strings.Join(strings.Fields(row.Transcript), " "); got != want {
				t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
			}
			knows := 0
			for _, it := range items {
				if it.Role == "assistant" && it.Text != long && strings.HasPrefix(long, it.Text) && it.Text != "" {
					knows++
				}
			}
			if knows != 1 {
				t.Errorf("the model does not know that %q was heard: %+v", cut, items)
			}
		})
	}
}
