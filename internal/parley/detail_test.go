package parley_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/internal/parley"
)

// A failed call explains the reason to its owner; other calls have no explanation.
func TestEndedDetail(t *testing.T) {
	told := parley.Explain(parley.ProviderFailure, "The voice failed.")
	for _, c := range []struct {
		cause    error
		answered bool
		kind     parley.CallType
		want     string // what the sentence begins with; "" for no sentence
	}{
		{parley.CustomerHangup, true, parley.CallInbound, ""},
		{parley.AssistantHangup, true, parley.CallOutbound, ""},
		{parley.APIHangup, false, parley.CallOutbound, ""},
		{parley.Transferred, true, parley.CallOutbound, ""},
		{parley.MaxDuration, true, parley.CallOutbound, ""},
		{parley.MaxSilence, true, parley.CallOutbound, ""},
		{parley.Voicemail, true, parley.CallOutbound, ""},
		{parley.LineBusy, false, parley.CallOutbound, ""},
		{parley.NoAnswer, false, parley.CallOutbound, ""},
		{telling{486}, false, parley.CallOutbound, ""},
		{parley.Canceled, false, parley.CallOutbound, ""},
		{parley.Rejected, false, parley.CallOutbound, "The person called declined"},
		{parley.Unreachable, false, parley.CallOutbound, "The call did not get through."},
		{parley.Unreachable, false, parley.CallWeb, "The browser's sound never arrived"},
		{errors.New("sk-secret"), false, parley.CallOutbound, "The call did not get through."},
		{parley.InsufficientBalance, false, parley.CallInbound, "The balance does not cover"},
		{parley.ProviderFailure, true, parley.CallOutbound, "Something failed on the server"},
		{errors.New("sk-secret"), true, parley.CallOutbound, "Something failed on the server"},
		{parley.MediaTimeout, true, parley.CallInbound, "No sound came from the other side"},
		{parley.MediaTimeout, true, parley.CallWeb, "The sound from the browser stopped"},
		{parley.NodeLost, true, parley.CallOutbound, "The server that held the call stopped"},
		{parley.Shutdown, true, parley.CallOutbound, "The server was stopped"},
		{told, true, parley.CallOutbound, "The voice failed."},
		{fmt.Errorf("dial: %w", told), false, parley.CallOutbound, "The voice failed."},
	} {
		call := &parley.Call{Type: c.kind, MaxDuration: 60, CarrierRate: 10_000, AssistantRate: 60_000}
		now := parley.Now()
		if c.answered {
			call.AnsweredAt = parley.DateTime(now)
		}
		call.End(c.cause, now.Add(1_000_000_000))
		got := ""
		if call.EndedDetail != nil {
			got = *call.EndedDetail
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "secret") ||
			call.Status == parley.CallFailed && got == "" {
			t.Errorf("%v (%s): %q, want %q", c.cause, c.kind, got, c.want)
		}
		// A vendor's failure is no success: only the line is charged.
		if failed := call.EndedReason == parley.ProviderFailure; (call.AssistantCost == 0) != (failed ||
			!c.answered) || c.answered && call.CarrierCost != 10_000 {
			t.Errorf("%v: costs %s and %s", c.cause, call.CarrierCost, call.AssistantCost)
		}
		if status, reason := parley.Disposition(c.cause, c.answered); status != call.Status ||
			reason != call.EndedReason {
			t.Errorf("%v: %s, %s", c.cause, call.Status, call.EndedReason)
		}
	}
}
