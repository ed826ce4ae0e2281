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
	"parley/internal/simulator/phone"
)

// held is a call that a realtime vendor's model holds, with a tool that finds every table free.
type held struct {
	*testing.T
	l      *line
	v      *vendor
	server realtimeServer
	c      *phone.Call
	pause  time.Duration // of silence that follows a reply
	warned []string      // when the assistant was saved
	yields bool          // the model falls silent by itself, and the record doesn't say that it was interrupted
}

// realtimeServer is a vendor's test server.
type realtimeServer interface {
	aitest.RealtimeServer
	Complaints() []string
}

// holds has the assistant in a mode, and calls it.
func holds(t *testing.T, l *line, v *vendor, server realtimeServer, mode string, pause time.Duration) *held {
	t.Helper()
	shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"free":true}`))
	}))
	var tool struct{ Data struct{ ID int64 } }
	l.call(t, "POST", "/user/tools", map[string]any{"name": "table_free",
		"description": "Looks whether a table is free", "method": "GET", "endpoint": shop}, &tool)
	var answer struct{ Warnings []string }
	if status := l.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", l.Assistant), modeFields(t, l, mode,
		map[string]any{"tool_ids": []int64{tool.Data.ID}}), &answer); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	return &held{T: t, l: l, v: v, server: server, c: l.greeted(t, l.phone), pause: pause, warned: answer.Warnings}
}

// asks has the caller say something, to which the model answers with the behaviours.
func (h *held) asks(text string, b ...aitest.Behaviour) *phone.Utterance {
	h.Helper()
	h.server.ScriptTranscripts(aitest.Behaviour{Text: text})
	h.server.ScriptRealtime(b...)
	return asks(h.T, h.c)
}

// hears waits until a reply was said, and the model is silent.
func (h *held) hears(reply string) {
	h.Helper()
	h.v.awaits(h.T, h.c, reply)
	silent(h.T, h.c, h.pause)
}

// table has the caller ask for a table, for which the model calls the tool.
func (h *held) table() {
	h.Helper()
	h.asks("I would like a table.", aitest.Behaviour{Text: "Let me see.",
		Calls: []ai.ToolCall{{Name: "table_free", Arguments: "{}"}}}, aitest.Behaviour{Text: "Your table is ready."})
	h.v.awaits(h.T, h.c, "Your table is ready.")
}

// interrupts has the caller interrupt a long reply.
func (h *held) interrupts() {
	h.Helper()
	said := h.asks("What do you have?", aitest.Behaviour{Text: long})
	at := hears(h.T, h.c, said.To())
	eventually(h.T, "a part of the reply", func() bool { return time.Since(at) > 1500*time.Millisecond })
	h.asks("Stop, only bread please.", aitest.Behaviour{Text: "Bread it is."})
	h.hears("Bread it is.")
}

// ends has the caller ask a last question and hang up. It returns the call's record, and how much of the long reply was heard.
func (h *held) ends() (row talk, cut string) {
	h.Helper()
	h.asks("And when do you open?", aitest.Behaviour{Text: "We open at nine."})
	h.hears("We open at nine.")
	if err := h.c.Hangup(); err != nil {
		h.Error(err)
	}
	row = h.l.over(h.T)
	row.expect(h.T, parley.CallCompleted, parley.CustomerHangup)
	for _, turn := range row.Turns {
		if turn.Text != "" && strings.HasPrefix(long, turn.Text) && turn.Interrupted != h.yields {
			cut = turn.Text
		}
	}
	if len(cut) < 10 || cut == long {
		h.Errorf("of the long reply %q was heard", cut)
	}
	if list := h.server.Complaints(); len(list) > 0 {
		h.Errorf("the server complained of %v", list)
	}
	return row, cut
}
