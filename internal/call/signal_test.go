package call_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/voice"
)

// Media and Ladder make the test's leg a telephone's.
func (*leg) Media() *parley.CallMedia {
	return &parley.CallMedia{Codec: "G722", Heard: parley.CallSound{Packets: 50, MOS: 4.41}}
}

func (*leg) Ladder() []parley.SIPMessage {
	return []parley.SIPMessage{{Direction: "out", Text: "INVITE"}, {Direction: "in", Text: "SIP/2.0 200 OK"}}
}

// unanswered is an error that has the SIP messages of its call.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }
func (unanswered) Ladder() []parley.SIPMessage {
	return []parley.SIPMessage{{Direction: "out", Text: "INVITE"}}
}

// TestCallKeepsSignalling: a call stores its sound quality, and its SIP messages beside it, also if nobody answered;
// both are deleted with the call.
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

// TestSignalling: an outgoing call sends the headers that its trunk and its order want, with the call's variables
// filled in. The headers of an incoming call are in its row and are variables, but don't replace the owner's.
func TestSignalling(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		hang := func(ctx context.Context, s *voice.Session, l audio.Leg) voice.Result {
			return voice.Result{Reason: parley.AssistantHangup}
		}
		n := h.node(func(c *call.Config) { c.Converse = hang })
		if plain := h.reported(n.start().ID); plain.Signalling != nil {
			t.Errorf("a call without anything: %+v", plain.Signalling)
		}
		trunk := h.trunk("+4930123456")
		h.write(func(ctx context.Context, tx *store.Tx) error {
			changed := *trunk
			changed.HideCallerID, changed.SIPHeaders = true, map[string]string{"X-Who": "{{who}}", "X-Line": "1"}
			return tx.SaveTrunk(ctx, h.user.ID, trunk, &changed)
		})
		a := h.assistant(`{"phone_number_id":%d}`, trunk.PhoneNumberID)
		for name, o := range map[string]call.Order{
			"as the trunk says": {},
			"as the call says":  {HideCallerID: new(bool), SIPHeaders: map[string]string{"x-line": "{{who}} 2"}},
		} {
			o.UserID, o.AssistantID, o.To, o.Variables = h.user.ID, a.ID, "+12025550123", map[string]string{"who": "Ana"}
			made, err := n.Start(t.Context(), o)
			h.must(err)
			got := h.reported(made.ID).Signalling
			want := &parley.CallSignalling{Withheld: true, Headers: map[string]string{"X-Who": "Ana", "X-Line": "1"},
				Diversions: []parley.Diversion{}}
			if o.HideCallerID != nil {
				want.Withheld, want.Headers = false, map[string]string{"X-Who": "Ana", "x-line": "Ana 2"}
			}
			h.far.set(func() {
				if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(h.far.route.Signalling, want) {
					t.Errorf("%s: %+v in the row, dialled with %+v", name, got, h.far.route.Signalling)
				}
			})
		}

		h.assistant(`{"type":"inbound","phone_number_id":%d,"initial_message":"{{who}} {{order_id}} {{diverted_from}}"}`, h.number.ID)
		n = h.node()
		r := newRinger()
		said := &parley.CallSignalling{Withheld: true, Diversions: []parley.Diversion{{PhoneNumber: "+493011", Reason: "no-answer"}},
			Headers: map[string]string{"X-Order-Id": "4711", "X-Who": "Eve"}}
		over := n.take(call.Arrival{Ringer: r, To: "+12025550100", Signalling: said})
		r.leg.do(h, func(s *voice.Session) {
			if s.Persona.Initial != "everybody 4711 +493011" {
				t.Errorf("says %q", s.Persona.Initial)
			}
		})
		r.leg.hangUp(parley.CustomerHangup)
		<-over
		c := h.reported(h.newest().ID)
		if !reflect.DeepEqual(c.Signalling, said) || c.CustomerPhone != nil || c.InputVariables["order_id"] != "4711" ||
			c.InputVariables["caller_verification"] != "none" || len(c.InputVariables) != 3 {
			t.Errorf("the row has %+v, %v", c.Signalling, c.InputVariables)
		}
	})
}
