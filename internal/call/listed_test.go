package call_test

import (
	"testing"

	"parley/internal/call"
	"parley/internal/parley"
)

// An agent calls in only whom the account lists, however they write it; an editor anybody.
func TestAgentsCallInTheListed(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.node()
		if _, err := h.assistants.Update(t.Context(), h.user.ID, h.a.ID, map[string]any{"tools": []any{
			map[string]any{"type": "warm_call_transfer", "supervisor_phone": "+12025550144"},
			map[string]any{"type": "call_transfer", "phone_number": "+12025550155"}}}); err != nil {
			t.Fatal(err)
		}
		const noCall = 1 << 40 // who is listed is asked before which call
		for to, listed := range map[string]bool{"+12025550144": true, "(202) 555-0144": false, "+1 202 555-0144": true, "+12025550155": true,
			h.number.PhoneNumber: true, "+12025550166": false, "+882161234567": false, "nonsense": false, "": false} {
			want := parley.Forbidden
			if listed {
				want = parley.NotFound
			}
			if _, err := n.Invite(t.Context(), h.user.ID, noCall, call.Invitation{To: to, Listed: true}); !ofKind(err, want) {
				t.Errorf("an agent calls in %q: %v", to, err)
			}
			if _, err := n.Invite(t.Context(), h.user.ID, noCall, call.Invitation{To: to}); !ofKind(err, parley.NotFound) {
				t.Errorf("an editor calls in %q: %v", to, err)
			}
			if _, err := n.Invite(t.Context(), h.user.ID+1, noCall, call.Invitation{To: to, Listed: true}); !ofKind(err, parley.Forbidden) {
				t.Errorf("another account's agent calls in %q: %v", to, err)
			}
		}
	})
}
