package call_test

import (
	"testing"
	"time"

	"parley/internal/call"
	"parley/internal/parley"
)

// A call that is ordered at a node without a telephone is made by the node that it picks, with everything that was ordered, and
// belongs to that one.
func TestCallIsHandedOver(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		maker := h.node(func(c *call.Config) { c.Taken = true })
		other := h.node(func(c *call.Config) {
			c.Dial = nil // it has nothing to dial with
			c.Elsewhere = func() (string, error) { return maker.Node(), nil }
		})
		c := other.start(func(o *call.Order) { o.Variables = map[string]string{"name": "Ana"} })
		h.answered()
		row := h.status(c.ID, parley.CallInProgress)
		if row.Node != maker.Node() || row.InputVariables["name"] != "Ana" || row.CustomerPhone == nil || *row.CustomerPhone != "+12025550199" {
			t.Errorf("the call is %+v", row)
		}
		if maker.Here(c.ID) == nil || other.Here(c.ID) != nil {
			t.Error("the call is not where it was made")
		}
		h.must(other.Hangup(t.Context(), h.user.ID, c.ID))
		if row = h.reported(c.ID); row.EndedReason != parley.APIHangup {
			t.Errorf("it ended by %s", row.EndedReason)
		}
		if _, reserved, entries := h.money(); reserved != 0 || len(entries) == 0 {
			t.Errorf("%v is set aside, %d entries", reserved, len(entries))
		}
	})
}

// A call that the picked node does not take is over at once, and costs nothing.
func TestCallIsNotTakenOver(t *testing.T) {
	slowly(t, func(t *testing.T, h *harness) {
		other := h.node(func(c *call.Config) { c.Elsewhere = func() (string, error) { return "gone", nil } })
		began := time.Now()
		_, err := other.Start(t.Context(), call.Order{UserID: h.user.ID, AssistantID: h.a.ID, To: "+12025550199"})
		if took := time.Since(began); !ofKind(err, parley.Unavailable) || took != 5*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		list, _, err := other.Live(t.Context(), h.user.ID)
		if _, reserved, entries := h.money(); err != nil || len(list) != 0 || reserved != 0 || len(entries) != 0 {
			t.Errorf("%v: %v live, %v set aside, %v", err, list, reserved, entries)
		}
	})
}
