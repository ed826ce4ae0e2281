package call_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/internal/call"
	"parley/internal/parley"
)

// TestTry: a test call says its sentence, reports sound and signalling, and costs its line; an unanswered one says why
// and costs nothing. It may only go where calls may go, and only one at a time.
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
		if _, err := n.Try(t.Context(), h.user.ID, trunk.ID, "+12025550123"); err == nil || !strings.Contains(err.Error(), "in progress") {
			t.Errorf("two at once: %v", err)
		}
		if _, err := h.node().Try(t.Context(), h.user.ID, trunk.ID, "+12025550123"); err == nil || !strings.Contains(err.Error(), "in progress") {
			t.Errorf("another at another node: %v", err)
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
		h.far.set(func() { h.far.err = turnedAway{errors.Join(refusedBy(403))} })
		refused := <-try("+12025550123")
		if n := len(refused.Findings); refused.error != nil || n != 2 || refused.Findings[1].Topic != "preset" ||
			!strings.Contains(refused.Findings[1].Text, "identity_header") {
			t.Errorf("refused: %+v, %v", refused.TestCall, refused.error)
		}
		if now, _, _ := h.money(); now != after {
			t.Errorf("an unanswered one cost %s", after-now)
		}
		if _, err := n.Try(t.Context(), h.user.ID, trunk.ID, "+33142685300"); !errors.As(err, new(*call.Barred)) {
			t.Errorf("a barred number: %v", err)
		}
		h.far.set(func() { h.far.err, h.far.forks = nil, 2 }) // it rings at two places
		forked := try("+12025550123")
		answered := h.answered()
		// An answered call is charged at once: if this node fails afterwards, the call is not free.
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if now, reserved, _ := h.money(); now == after-500 && reserved == 0 {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("while it lasts, it has cost %s, and %s are set aside", after-now, reserved)
			}
		}
		answered.hangUp(parley.CustomerHangup)
		if got := <-forked; got.error != nil || got.RingingMS == nil {
			t.Errorf("at two places: %+v, %v", got.TestCall, got.error)
		}
		if now, _, _ := h.money(); now != after-500 {
			t.Errorf("in all it cost %s", after-now)
		}
		if _, err := n.Try(context.Background(), h.user.ID+1, trunk.ID, "+12025550123"); err == nil {
			t.Error("another user's trunk")
		}
	})
}

// turnedAway is a call that was challenged, and then refused; what came last belongs to another request.
type turnedAway struct{ error }

func (u turnedAway) Unwrap() error { return u.error }
func (turnedAway) Ladder() (list []parley.SIPMessage) {
	for _, m := range []string{"out INVITE sip:a@b SIP/2.0\r\nCSeq: 1 INVITE",
		"in SIP/2.0 407 Proxy Authentication Required\r\nCSeq: 1 INVITE",
		"out INVITE sip:a@b SIP/2.0\r\nCSeq: 2 INVITE", "in SIP/2.0 403 Forbidden\r\nVia: x\r\ncseq : 2 invite",
		"in SIP/2.0 488 No\r\nCSeq: 3 OPTIONS"} {
		direction, text, _ := strings.Cut(m, " ")
		list = append(list, parley.SIPMessage{Direction: direction, Text: text + "\r\n\r\n"})
	}
	return list
}
