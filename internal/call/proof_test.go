package call_test

import (
	"context"
	"testing"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
)

// Where the server wants a proof of numbers, calls to a trunk's number are answered once its owner has it, and by nobody before.
func TestNumberProof(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		trunk := h.trunk("+4930123456")
		h.assistant(`{"type":"inbound","phone_number_id":%d,"name":"House"}`, trunk.PhoneNumberID)
		strict, open := h.node(func(c *call.Config) { c.NumberProof = true }), h.node()
		answers := func(n *node, want bool) {
			t.Helper()
			r := newRinger()
			over := n.take(call.Arrival{Ringer: r, To: trunk.PhoneNumber, From: "+12025550199", TrunkID: trunk.ID})
			if want {
				r.leg.says(h, parley.SpeakerCustomer, "Hi")
				r.leg.hangUp(parley.CustomerHangup)
			}
			<-over
			if !want && r.refused != 404 || want && r.refused != 0 {
				t.Errorf("refused with %d, want it answered: %v", r.refused, want)
			}
		}
		answers(strict, false)
		answers(open, true)
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateNumber(ctx, h.user.ID, &parley.Number{PhoneNumber: trunk.PhoneNumber, CountryCode: "DE", Type: parley.NumberCallerID})
		})
		answers(strict, true)
	})
}
