package call_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/voice"
)

// Media and Ladder make the tests' leg one of a telephone.
func (*leg) Media() *parley.CallMedia {
	return &parley.CallMedia{Codec: "G722", Heard: parley.CallSound{Packets: 50, MOS: 4.41}}
}

func (*leg) Ladder() []parley.SIPMessage {
	return []parley.SIPMessage{{Direction: "out", Text: "INVITE"}, {Direction: "in", Text: "SIP/2.0 200 OK"}}
}

// unanswered is an error that knows what was said.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }
func (unanswered) Ladder() []parley.SIPMessage {
	return []parley.SIPMessage{{Direction: "out", Text: "INVITE"}}
}

// TestCallKeepsSignalling: how the sound was stands in the call, what was said in SIP beside it, of calls that nobody
// took as well; with the call it is deleted.
func TestCallKeepsSignalling(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.node(func(c *call.Config) {
			c.Converse = func(context.Context, *voice.Session, audio.Leg) voice.Result {
				return voice.Result{Reason: parley.AssistantHangup}
			}
		})
		kept := func(id int64, want int) {
			t.Helper()
			for give := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				list, err := h.db.CallSIP(t.Context(), h.user.ID, id)
				h.must(err)
				if len(list) == want && list[0].Text == "INVITE" {
					return
				}
				if time.Now().After(give) {
					t.Fatalf("%d messages are kept, want %d", len(list), want)
				}
			}
		}
		c := h.reported(n.start().ID)
		if c.Media == nil || c.Media.Codec != "G722" || c.Media.Heard.Packets != 50 {
			t.Errorf("the sound was %+v", c.Media)
		}
		kept(c.ID, 2)
		if _, err := h.db.CallSIP(t.Context(), h.user.ID+1, c.ID); err == nil {
			t.Error("another user reads it")
		}
		h.far.set(func() { h.far.err = unanswered{errors.Join(refusedBy(486))} })
		busy := h.reported(n.start().ID)
		if busy.Media != nil || busy.Status != parley.CallBusy {
			t.Errorf("%+v", busy)
		}
		kept(busy.ID, 1)
	})
}
