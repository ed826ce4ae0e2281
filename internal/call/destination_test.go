package call_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/voice"
)

func TestDestinations(t *testing.T) {
	for _, c := range []struct {
		list []string
		may  []string
		not  []string
	}{
		{nil, nil, []string{"+12025550100", "+493012345678"}},
		{[]string{"US"}, []string{"+12025550100", "+18005550199"},
			[]string{"+14165550100", "+18765551234", "+19005550100", "+493012345678", "x", ""}},
		{[]string{"+1"}, []string{"+12025550100", "+14165550100"}, []string{"+19005550100", "+442079460003"}},
		{[]string{"+49", "!+4930"}, []string{"+498912345678"},
			[]string{"+493012345678", "+499001234567", "+4918012345678"}},
		// A number that is both allowed and refused is refused.
		{[]string{"+49", "+4930", "!+4930"}, []string{"+498912345678"}, []string{"+493012345678"}},
		{[]string{"!+49", "+4930", "DE"}, []string{"+493012345678"}, []string{"+498912345678"}},
		// Personal numbers are never allowed; company numbers are where a prefix says so.
		{[]string{"GB", "+44"}, []string{"+442079460003", "+447400123004"},
			[]string{"+447012345678", "+443001234567", "+445512345678"}},
		{[]string{"GB", "+4470", "+443", "!+4437"}, []string{"+442079460003", "+443001234567"},
			[]string{"+447012345678", "+443700123456", "+445512345678"}},
		// Everywhere, except satellite numbers, international premium services, and numbers that pay the called party.
		{[]string{"+"}, []string{"+12025550100", "+8613812345678", "+2348031234567"},
			[]string{"+881612345678", "+870773111632", "+979123456789", "+19005550100", "+499001234567"}},
		{[]string{"+", "!+86"}, []string{"+12025550100"}, []string{"+8613812345678"}},
	} {
		d, err := call.ParseDestinations(c.list)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range c.may {
			if !d.Allow(n) {
				t.Errorf("%v: %s is not allowed", c.list, n)
			}
		}
		for _, n := range c.not {
			if d.Allow(n) {
				t.Errorf("%v: %s is allowed", c.list, n)
			}
		}
	}
	for _, bad := range []string{"us", "USA", "49", "+4x", "!US", "", "!"} {
		if _, err := call.ParseDestinations([]string{"+1", bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// sendable is a leg that records where it is transferred to.
type sendable struct {
	*leg
	sent []string
}

func (l *sendable) Transfer(_ context.Context, to string) error {
	l.sent = append(l.sent, to)
	return nil
}

// TestTransferDestination: a model that a caller has tricked can't transfer a call to a destination that calls may not
// go to.
func TestTransferDestination(t *testing.T) {
	h := lite(t)
	far := &sendable{leg: newLeg()}
	n := h.node(func(c *call.Config) {
		c.Dial = func(context.Context, call.Route, func()) (audio.Leg, error) { return far, nil }
		c.Converse = func(ctx context.Context, s *voice.Session, _ audio.Leg) voice.Result {
			for _, to := range []string{"+19005550100", "+447012345678", "+881612345678", "+442079460003"} {
				if err := s.Transfer(ctx, to); err == nil || len(far.sent) != 0 {
					t.Errorf("to %s: %v, sent %v", to, err, far.sent)
				}
			}
			if err := s.Transfer(ctx, "+493012345678"); err != nil || len(far.sent) != 1 ||
				far.sent[0] != "+493012345678" {
				t.Errorf("a destination that is allowed: %v, sent %v", err, far.sent)
			}
			return voice.Result{Reason: parley.Transferred}
		}
	})
	if c := h.reported(n.start().ID); c.EndedReason != parley.Transferred {
		t.Errorf("ended by %s", c.EndedReason)
	}
}

// TestVerifiedCaller: if the operator requires it, calls over a trunk may only use a caller number that its owner has
// verified.
func TestVerifiedCaller(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		trunk := h.trunk("+4930123456")
		h.change(h.a, `{"phone_number_id":%d}`, trunk.PhoneNumberID)
		n := h.node(func(c *call.Config) { c.Verified = true })
		order := call.Order{UserID: h.user.ID, AssistantID: h.a.ID, To: "+12025550199"}
		ctx := context.Background()
		_, err := n.Start(ctx, order)
		var e *parley.Error
		if !errors.As(err, &e) || e.Kind != parley.Invalid || !strings.Contains(e.Message, "not verified") {
			t.Fatalf("a call from a number that anybody could have written down: %v", err)
		}
		stranger := storetest.User(t, h.db, parley.USD)
		verify := func(userID int64) {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				return tx.CreateNumber(ctx, userID,
					&parley.Number{PhoneNumber: "+4930123456", CountryCode: "DE", Type: parley.NumberCallerID})
			})
		}
		verify(stranger.ID)
		if _, err := n.Start(ctx, order); err == nil {
			t.Fatal("what somebody else has verified counts")
		}
		verify(h.user.ID)
		c, err := n.Start(ctx, order)
		h.must(err)
		h.answered().hangUp(parley.CustomerHangup)
		h.reported(c.ID)
		other := h.node()
		c, err = other.Start(ctx, order)
		h.must(err)
		h.answered().hangUp(parley.CustomerHangup)
		h.reported(c.ID)
	})
}
