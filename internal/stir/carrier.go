package stir

import (
	"strings"

	"parley/internal/parley"
)

// CarrierHeaders are the headers in which carriers say how they have verified a call, beside the parameter verstat of who
// calls (3GPP TS 24.229, section 7.2A.20). Each is read from the trunk's own provider alone.
var CarrierHeaders = []string{
	"X-Twilio-VerStat",          // twilio.com/changelog, SHAKEN/STIR verification of incoming calls, 2020-09-21
	"X-Plivo-Stir-Verification", // plivo.com/docs/sip-trunking/concepts/stir-shaken
}

// Carrier is what a carrier's word for its verification means; nil for one that says nothing. Without a letter
// TN-Validation-Passed is A where the carrier has letters for the others (Telnyx), and says that the number is right
// everywhere.
func Carrier(word string) *parley.CallVerification {
	word = cut(parley.VisitorText(strings.TrimSpace(word), false), maxText)
	out := &parley.CallVerification{By: parley.ByCarrier, Carrier: word}
	text := strings.ToLower(word)
	if rest, ok := strings.CutPrefix(text, "tn-validation-passed"); ok {
		out.Result, out.Attestation = parley.Verified, letter(rest)
		if rest == "" {
			out.Attestation = "A"
		}
		return out
	}
	if rest, ok := strings.CutPrefix(text, "tn-validation-failed"); ok {
		out.Result, out.Attestation, out.Reason = parley.VerificationFailed, letter(rest), "the carrier could not verify the caller"
		return out
	}
	switch text {
	case "verified":
		out.Result = parley.Verified
	case "":
		return nil
	default: // No-TN-Validation, Not Verified, Not Applicable, and whatever comes
		out.Result, out.Reason = parley.Unverified, "the carrier has not verified the caller"
	}
	return out
}

// letter is the attestation after a hyphen, as in -B or -A-Diverted.
func letter(rest string) string {
	if len(rest) >= 2 && rest[0] == '-' && strings.IndexByte("abc", rest[1]) >= 0 && (len(rest) == 2 || rest[2] == '-') {
		return strings.ToUpper(rest[1:2])
	}
	return ""
}
