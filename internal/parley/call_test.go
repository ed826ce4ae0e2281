package parley_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/internal/parley"
)

// telling is a line's error that explains why a call is over.
type telling struct{ code int }

func (t telling) Error() string             { return fmt.Sprint(t.code) }
func (t telling) Ended() parley.EndedReason { return parley.ReasonOfSIP(t.code) }

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		cause    error
		answered bool
		status   parley.CallStatus
		reason   parley.EndedReason
	}{
		{parley.CustomerHangup, true, parley.CallCompleted, parley.CustomerHangup},
		{parley.AssistantHangup, true, parley.CallCompleted, parley.AssistantHangup},
		{parley.APIHangup, true, parley.CallCompleted, parley.APIHangup},
		{parley.Transferred, true, parley.CallCompleted, parley.Transferred},
		{parley.MaxDuration, true, parley.CallCompleted, parley.MaxDuration},
		{parley.MaxSilence, true, parley.CallCompleted, parley.MaxSilence},
		{parley.Voicemail, true, parley.CallCompleted, parley.Voicemail},
		{parley.MediaTimeout, true, parley.CallCompleted, parley.MediaTimeout},
		{parley.Shutdown, true, parley.CallCompleted, parley.Shutdown},
		{parley.ProviderFailure, true, parley.CallFailed, parley.ProviderFailure},
		{parley.NodeLost, true, parley.CallFailed, parley.NodeLost},
		{errors.New("broken"), true, parley.CallFailed, parley.ProviderFailure},
		{nil, true, parley.CallFailed, parley.ProviderFailure},

		{parley.APIHangup, false, parley.CallCanceled, parley.Canceled},
		{parley.CustomerHangup, false, parley.CallCanceled, parley.Canceled},
		{parley.LineBusy, false, parley.CallBusy, parley.LineBusy},
		{parley.NoAnswer, false, parley.CallNoAnswer, parley.NoAnswer},
		{parley.InsufficientBalance, false, parley.CallFailed, parley.InsufficientBalance},
		{parley.NodeLost, false, parley.CallFailed, parley.NodeLost},
		{parley.Shutdown, false, parley.CallFailed, parley.Shutdown},
		{fmt.Errorf("dial: %w", telling{486}), false, parley.CallBusy, parley.LineBusy},
		{telling{600}, false, parley.CallBusy, parley.LineBusy},
		{telling{480}, false, parley.CallNoAnswer, parley.NoAnswer},
		{telling{408}, false, parley.CallNoAnswer, parley.NoAnswer},
		{telling{603}, false, parley.CallFailed, parley.Rejected},
		{telling{404}, false, parley.CallFailed, parley.Unreachable},
		{telling{604}, false, parley.CallFailed, parley.Unreachable},
		{telling{500}, false, parley.CallFailed, parley.Unreachable},
		{telling{487}, false, parley.CallCanceled, parley.Canceled},
		{fmt.Errorf("hold: %w", parley.MediaTimeout), true, parley.CallCompleted, parley.MediaTimeout},
		{errors.New("no route"), false, parley.CallFailed, parley.Unreachable},
	} {
		if status, reason := parley.Disposition(c.cause, c.answered); status != c.status || reason != c.reason ||
			status.Live() {
			t.Errorf("%v, answered %v: %s, %s", c.cause, c.answered, status, reason)
		}
	}
}

// What a call costs: started minutes of the line, seconds of the assistant, and never more than was reserved.
func TestCallCosts(t *testing.T) {
	answered := parley.Now()
	for _, c := range []struct {
		talked             time.Duration // 0: nobody answered
		seconds            int64
		carrier, assistant parley.Money
	}{
		{0, 0, 0, 0},
		{time.Millisecond, 1, 10_000, 1000},
		{time.Second, 1, 10_000, 1000},
		{59500 * time.Millisecond, 60, 10_000, 60_000},
		{60 * time.Second, 60, 10_000, 60_000},
		{60001 * time.Millisecond, 61, 20_000, 61_000},
		{2 * time.Minute, 120, 20_000, 120_000},
		{2*time.Minute + 300*time.Millisecond, 121, 20_000, 120_000}, // hanging up took a moment
		{time.Hour, 3600, 20_000, 120_000},
	} {
		call := &parley.Call{MaxDuration: 120, CarrierRate: 10_000, AssistantRate: 60_000}
		if c.talked > 0 {
			call.AnsweredAt = parley.DateTime(answered)
		}
		call.End(parley.CustomerHangup, answered.Add(c.talked))
		if call.Duration != c.seconds || call.CarrierCost != c.carrier || call.AssistantCost != c.assistant ||
			call.TotalCost() > call.Possible() {
			t.Errorf("%s: %d s, %s and %s of at most %s", c.talked, call.Duration, call.CarrierCost,
				call.AssistantCost, call.Possible())
		}
		if sum := call.Costs(); sum.CarrierCost+sum.AssistantCost != call.TotalCost() ||
			sum.CarrierRate*parley.Money(sum.CarrierMinutes) != sum.CarrierCost {
			t.Errorf("%s: %+v", c.talked, sum)
		}
	}
}

func TestCallTranscript(t *testing.T) {
	turns := []parley.CallTurn{{Speaker: parley.SpeakerAssistant, Text: "Hello,\nwho is it?"},
		{Speaker: parley.SpeakerCustomer, Text: " Ana "}}
	if got := parley.CallTranscript(turns); got != "AI: Hello, who is it?\nCustomer: Ana" {
		t.Errorf("%q", got)
	}
	if parley.CallTranscript(nil) != "" {
		t.Error("of nothing something")
	}
}

func TestTurnLanguages(t *testing.T) {
	turns := []parley.CallTurn{{Speaker: parley.SpeakerAssistant, Text: "Hello.", Language: "en"}, {Text: "okay"},
		{Speaker: parley.SpeakerSupervisor, Text: "Be nice.", Language: "en", Whispered: true}, {Text: "Hola.", Language: "es"}}
	if got := parley.TurnLanguages(turns); got != "en, -, es" {
		t.Errorf("got %q", got)
	}
	if got := parley.TurnLanguages(turns[1:2]); got != "" {
		t.Errorf("of turns of which nobody knows: %q", got)
	}
}
