package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/sip"
)

// The line's explanation of a failed call reaches its owner, with the SIP status; calls that did not fail have none. A
// problem with the carrier is only for the operator.
func TestFailedCallsAreExplained(t *testing.T) {
	refused := func(code int, phrase string) error {
		return fmt.Errorf("call +12025550199: %w", &sip.Refused{Code: code, Reason: phrase})
	}
	for _, c := range []struct {
		err     error
		carrier bool
		want    []string // all parts of the sentence; none for no sentence
	}{
		{refused(486, "Busy Here"), false, nil},
		{refused(480, "Temporarily Unavailable"), false, nil},
		{refused(487, "Request Terminated"), false, nil},
		{parley.NoAnswer, false, nil},
		{context.Canceled, false, nil},
		{refused(403, "Forbidden"), false, []string{"SIP 403 Forbidden", "caller ID"}},
		{refused(401, "Unauthorized"), false, []string{"SIP 401", "user name and password"}},
		{refused(401, "Unauthorized"), true, []string{"SIP 401", "operator"}},
		{refused(404, "Not Found"), true, []string{"not in service", "SIP 404"}},
		{refused(488, "Not Acceptable Here"), false, []string{"SIP 488", "G.711"}},
		{refused(503, "Service\r\nUnavailable\x00 "+strings.Repeat("x", 500)), false,
			[]string{"SIP 503 Service Unavailable x", "Try again later"}},
		{refused(603, "Decline"), false, []string{"declined", "SIP 603"}},
		{refused(603, "Network Blocked"), false, []string{"blocked on the way", "SIP 603 Network Blocked", "STIR/SHAKEN"}},
		{&sip.Refused{Code: 603, Reason: "Decline", Because: "v=analytics1;url=https://example.com/complain;tel=+15550001"}, false,
			[]string{"blocked on the way", "https://example.com/complain"}},
		{&sip.Refused{Code: 608, Reason: "Rejected", Because: "complaints: https://example.com/card\r\nx"}, false,
			[]string{"blocked on the way", "https://example.com/card x"}},
		{refused(607, "Unwanted"), false, []string{"does not want calls", "SIP 607"}},
		{&sip.Refused{Code: 503, Reason: "No", Because: "Q.850 cause 38" + strings.Repeat("x", 500)}, false, []string{"Q.850 cause 38"}},
		{&sip.Refused{Code: 403, Reason: "No", Because: "10.9.8.7 says no"}, true, []string{"operator"}},
		{&sip.Refused{Code: 488, Reason: "No", Secrecy: "off"}, false, []string{"srtp is off", "G.711"}},
		{&sip.Refused{Code: 488, Reason: "No", Secrecy: "dtls"}, false, []string{"srtp is dtls", "G.711"}},
		{fmt.Errorf("call +1: %w: the name pbx.example was not found", parley.Unreachable), false,
			[]string{"did not get through: the name pbx.example was not found."}},
		{fmt.Errorf("call +1: %w: send to 10.9.8.7:5060 over UDP", parley.Unreachable), true,
			[]string{"carrier", "operator"}},
		{fmt.Errorf("call +1: %w", parley.Explain(fmt.Errorf("%w: connect to 10.0.0.7:22: refused",
			parley.Unreachable), "Nothing answered at pbx.example.")), false,
			[]string{"The call did not get through. Nothing answered at pbx.example."}},
		{failed(call.Route{}, errRented), false, []string{"is rented from this server's carrier"}},
		{failed(call.Route{}, errors.New("transport sctp is not there")), false,
			[]string{"No outbound route: transport sctp"}},
	} {
		err := explained(unassigned(c.err), c.carrier)
		text := parley.Explanation(err)
		if len(c.want) == 0 && text != "" || c.carrier && strings.Contains(text, "10.9") || len(text) > 450 ||
			strings.ContainsAny(text, "\r\n\x00") {
			t.Errorf("%v: %q", c.err, text)
		}
		for _, part := range c.want {
			if !strings.Contains(text, part) {
				t.Errorf("%v: %q lacks %q", c.err, text, part)
			}
		}
		was, wasReason := parley.Disposition(unassigned(c.err), false)
		if status, reason := parley.Disposition(err, false); status != was || reason != wasReason ||
			errors.Is(unassigned(c.err), call.ErrNoSuchNumber) != errors.Is(err, call.ErrNoSuchNumber) {
			t.Errorf("%v: %s, %s", c.err, status, reason)
		}
	}
}
