package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/sip"
)

// Why calls did not get through, as their owners are told it.

// unreachable is what the line's errors begin with that say why there was no way.
var unreachable = parley.Unreachable.Error() + ": "

// failed ends a call for which there is no route, and logs it.
func failed(r call.Route, err error) error {
	slog.Error("no outbound route for a call", "number", r.Number.ID, "error", err)
	return parley.Explain(parley.Unreachable, "No outbound route: %s.", strings.TrimSuffix(err.Error(), "."))
}

// unassigned adds call.ErrNoSuchNumber to the refusals that mean it: unallocated, changed or incomplete numbers (RFC
// 3398, section 7.2.4.1).
func unassigned(err error) error {
	if r, ok := errors.AsType[*sip.Refused](err); ok && slices.Contains([]int{404, 410, 484, 604}, r.Code) {
		return fmt.Errorf("%w: %w", call.ErrNoSuchNumber, err)
	}
	return err
}

// explained puts the line's reason for a failed call into a sentence. Busy, unanswered and canceled calls have not
// failed. Trouble with the carrier is for the operator to know, and nobody else learns its address.
func explained(err error, carrier bool) error {
	if r, ok := errors.AsType[*sip.Refused](err); ok {
		switch r.Ended() {
		case parley.Unreachable, parley.Rejected:
			return parley.Explain(err, "%s", refusal(r, carrier))
		}
		return err
	}
	_, why, ok := strings.Cut(fmt.Sprint(err), unreachable)
	switch {
	case !ok:
		return err
	case carrier:
		return parley.Explain(err, "The call did not get through: the carrier of this server's numbers can't be reached. "+
			"The operator can find the reason in the log.")
	case parley.Explanation(err) != "": // the line's own sentence, which tells nothing of strangers
		return parley.Explain(err, "The call did not get through. %s", parley.Explanation(err))
	}
	return parley.Explain(err, "The call did not get through: %s. Check the trunk's settings, and run its check in the console.",
		strings.ReplaceAll(why, unreachable, ""))
}

// refusal says what a SIP status means for the user who placed the call, and what to do about it.
func refusal(r *sip.Refused, carrier bool) string {
	said := strings.TrimSpace(fmt.Sprintf("SIP %d %s", r.Code, phraseOf(r.Reason, 80)))
	text := "The trunk refused the call (%s). Ask its provider what that means."
	switch code := r.Code; {
	case slices.Contains([]int{404, 410, 484, 604}, code):
		text = "The number is not in service (%s). Check it."
	case blocked(r):
		text = "The call was blocked on the way as unwanted (%s): a network takes the number that it came from for spam. " +
			"Ask the number's provider to sign your calls (STIR/SHAKEN), and complain to the network if it says where."
	case code == 607:
		text = "The person called does not want calls from this number (%s). Don't call again."
	case code == 603:
		text = "The person called declined the call (%s)."
	case carrier:
		text = "The carrier of this server's numbers refused the call (%s). It may not allow this destination or caller ID. " +
			"If it keeps happening, ask this server's operator."
	case code == 401 || code == 407:
		text = "The trunk refused the user name and password (%s). Check them in the trunk's settings."
	case code == 402:
		text = "The trunk's provider asks for payment (%s). Check your account there."
	case code == 403:
		text = "The trunk forbids the call (%s). Its provider may not allow this destination or caller ID, " +
			"or the user name and password are wrong."
	case slices.Contains([]int{415, 488, 606}, code):
		text = "The trunk accepts none of the codecs that this server offers (%s). " +
			"Enable G.711 or G.722 there, and check whether it requires encryption."
		switch r.Secrecy {
		case "off":
			text = "The trunk does not accept the sound that this server offers (%s): plain, as the trunk's srtp is off. " +
				"It may require encryption: set srtp to optional. Or enable G.711 or G.722 there."
		case "required", "dtls":
			text = "The trunk does not accept the sound that this server offers (%s): encrypted, as the trunk's srtp is " + r.Secrecy +
				". It may not encrypt in that way: try srtp optional. Or enable G.711 or G.722 there."
		}
	case code >= 500 && code < 600:
		text = "The trunk's provider failed (%s). Try again later. If it keeps happening, ask the provider."
	}
	text = fmt.Sprintf(text, said)
	if because := phraseOf(r.Because, 160); because != "" && !carrier {
		text += fmt.Sprintf(" It says: “%s”.", because)
	}
	return text
}

// blocked reports whether a network refused the call as unwanted: 608 (RFC 8688), or 603 "Network Blocked" as North American
// networks say it, which name the place for complaints in a Reason (ATIS-1000099).
func blocked(r *sip.Refused) bool {
	said := strings.ToLower(r.Reason + " " + r.Because)
	return r.Code == 608 || r.Code == 603 && (strings.Contains(said, "blocked") || strings.Contains(said, "v=analytics"))
}

// phraseOf is a text that the far end writes, such as a status's phrase: printable, and not long.
func phraseOf(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\ufffd' }), " ")
	return string([]rune(s)[:min(len([]rune(s)), most)])
}
