package number_test

import (
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store/storetest"
)

// Whoever enters a trunk is told that another account takes calls from the same addresses, and where the server wants a proof of numbers,
// that its number needs one, until it has one.
func TestTrunkWarnings(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		other := storetest.User(t, h.db, parley.USD)
		enter := func(user *parley.User, number, host string, allowed ...string) *parley.Trunk {
			t.Helper()
			trunk := trunkOf(number)
			trunk.SIPAddress, trunk.AllowedInboundIPs = host, allowed
			if err := h.pool.CreateTrunk(ctx, user.ID, trunk, as); err != nil {
				t.Fatal(err)
			}
			return &trunk.Trunk
		}
		warned := func(of *parley.Trunk, want ...string) {
			t.Helper()
			got, err := h.pool.Warn(ctx, of)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: warned of %q, %v", of.PhoneNumber, got, err)
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("%s: warned of %q", of.PhoneNumber, got)
				}
			}
		}
		first := enter(h.user, "+12125550101", "one.example.com", "192.0.2.0/24")
		warned(first)
		warned(enter(h.user, "+12125550102", "one.example.com", "192.0.2.7")) // one's own
		const shared = "Another account"
		warned(enter(other, "+12125550103", "two.example.com", "198.51.100.1"))
		warned(enter(other, "+12125550104", "three.example.com", "192.0.2.7"), shared)
		warned(enter(other, "+12125550105", "ONE.example.com:5062"), shared)
		warned(first, shared)
		h.pool.Proof = true
		warned(first, shared, "are not answered until you prove")
		asked, err := h.pool.AskCallerID(ctx, h.user.ID, first.PhoneNumber)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.pool.VerifyCallerID(ctx, h.user.ID, asked.ID, asked.Code); err != nil {
			t.Fatal(err)
		}
		warned(first, shared)
	})
}
