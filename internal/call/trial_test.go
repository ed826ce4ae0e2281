package call_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley"
	"parley/internal/call"
)

// TestTry: a test call says its sentence, reports sound and signalling, and costs its line; one that nobody takes says
// why and costs nothing. Neither may go where no call may, or two at once.
func TestTry(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		trunk := h.trunk("+4930123456")
		n := h.node()
		before, _, _ := h.money()
		type tried struct {
			*parley.TestCall
			error
		}
		try := func(to string) <-chan tried {
			out := make(chan tried, 1)
			go func() { got, err := n.Try(t.Context(), h.user.ID, trunk.ID, to); out <- tried{got, err} }()
			return out
		}
		first := try("+12025550123")
		leg := h.answered()
		if _, err := n.Try(t.Context(), h.user.ID, trunk.ID, "+12025550123"); err == nil || !strings.Contains(err.Error(), "under way") {
			t.Errorf("two at once: %v", err)
		}
		leg.hangUp("")
		got := <-first
		if got.error != nil {
			t.Fatal(got.error)
		}
		if got.Status != parley.CallCompleted || got.EndedReason != parley.AssistantHangup || got.AnsweredMS == nil || got.RingingMS == nil ||
			got.Media == nil || len(got.SIP) != 2 || len(got.Findings) != 4 || got.Findings[1].State != parley.FindingOK {
			t.Errorf("answered: %+v", got.TestCall)
		}
		after, reserved, entries := h.money()
		if after != before-500 || reserved != 0 || !strings.Contains(entries[0].Description, "Test call over PBX") {
			t.Errorf("it cost %s; %s are set aside; %+v", before-after, reserved, entries)
		}
		cut := try("+12025550123")
		h.answered().hangUp(parley.CustomerHangup)
		if got := <-cut; got.error != nil || got.EndedReason != parley.CustomerHangup || got.Status != parley.CallCompleted {
			t.Errorf("hung up: %+v, %v", got.TestCall, got.error)
		}
		after, _, _ = h.money()
		h.far.set(func() { h.far.err = unanswered{errors.Join(refusedBy(486))} })
		busy := <-try("+12025550123")
		if busy.error != nil || busy.Status != parley.CallBusy || busy.AnsweredMS != nil || len(busy.SIP) != 1 ||
			!strings.Contains(busy.Findings[0].Text, "busy") {
			t.Errorf("busy: %+v, %v", busy.TestCall, busy.error)
		}
		if now, _, _ := h.money(); now != after {
			t.Errorf("an unanswered one cost %s", after-now)
		}
		if _, err := n.Try(t.Context(), h.user.ID, trunk.ID, "+33142685300"); !errors.As(err, new(*call.Barred)) {
			t.Errorf("a barred number: %v", err)
		}
		if _, err := n.Try(context.Background(), h.user.ID+1, trunk.ID, "+12025550123"); err == nil {
			t.Error("another user's trunk")
		}
	})
}
