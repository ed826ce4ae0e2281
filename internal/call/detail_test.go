package call_test

import (
	"errors"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/call"
	"parley/internal/parley"
)

// The reason of a failed call is in its row and in its event, and for a conversation that a vendor broke off only the
// line is charged.
func TestFailureIsTold(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		missing := &ai.Error{Kind: ai.Config, Err: errors.New("sk-secret"), Mend: "Flite is not installed."}
		n := h.node()
		told := map[string]func() int64{
			"Flite is not installed.": func() int64 {
				return h.node(func(c *call.Config) { c.Speech = &speech{err: missing} }).start().ID
			},
			"SIP 403": func() int64 {
				h.far.set(func() {
					h.far.err = parley.Explain(refusedBy(403),
						"The trunk forbids it (SIP 403 Forbidden).")
				})
				defer h.far.set(func() { h.far.err = nil })
				id := n.start().ID
				h.reported(id)
				return id
			},
			"The model failed": func() int64 {
				id := n.start().ID
				leg := h.answered()
				leg.breaks <- ai.TheModel.Of(&ai.Error{Kind: ai.Overloaded, Err: errors.New("sk-secret")})
				leg.hangUp(parley.CustomerHangup)
				return id
			},
		}
		count := 0
		for want, make := range told {
			got := h.reported(make())
			if got.Status != parley.CallFailed || got.EndedDetail == nil ||
				!strings.Contains(*got.EndedDetail, want) || strings.Contains(*got.EndedDetail, "secret") ||
				got.AssistantCost != 0 {
				t.Errorf("%s: %+v", want, got)
			}
			if got.Answered() && (got.EndedReason != parley.ProviderFailure || got.CarrierCost == 0) {
				t.Errorf("%s: %s, the line costs %s", want, got.EndedReason, got.CarrierCost)
			}
			events := h.events()
			if count++; len(events) != count || got.EndedDetail == nil ||
				events[count-1]["ended_detail"] != *got.EndedDetail ||
				events[count-1]["ended_reason"] != string(got.EndedReason) {
				t.Errorf("%s: told %v", want, events)
			}
		}
		id := n.start().ID
		h.answered().hangUp(parley.CustomerHangup)
		if got := h.reported(id); got.EndedDetail != nil || h.events()[count]["ended_detail"] != nil {
			t.Errorf("a good call: %+v", got)
		}
	})
}

// If a call can't be held in its mode, its owner is told so.
func TestModeIsTold(t *testing.T) {
	h := lite(t)
	n := h.node()
	a := *h.a
	a.Mode, a.MultimodalModelID = "multimodal", nil
	v, err := n.Web(t.Context(), &a, call.Visitor{})
	h.must(err)
	h.must(v.Enter(t.Context()))
	v.Begin(newLeg())
	if got := h.reported(v.ID); got.EndedDetail == nil || !strings.Contains(*got.EndedDetail, "multimodal") ||
		!strings.Contains(*got.EndedDetail, "pipeline") {
		t.Errorf("%+v", got)
	}
}
