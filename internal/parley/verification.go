package parley

import "strings"

// CallVerification is what is known of whether a caller may use the number that is shown (STIR/SHAKEN).
type CallVerification struct {
	Result      VerificationResult `json:"result" enum:"verified,failed,unverified" doc:"verified: a trusted party vouches for the caller as attestation says; failed: what came with the call is wrong, and reason says how; unverified: the call was signed, or the carrier says something of it, but nobody could decide."`
	Attestation string             `json:"attestation" doc:"A: the signer knows the caller, and that the number is the caller's; B: the caller, not the number; C: only where the call came from. Empty if unknown."`
	By          VerificationBy     `json:"by" enum:"server,carrier" doc:"server: this server has verified the call's Identity; carrier: the carrier has, and says so."`
	Reason      string             `json:"reason" doc:"Why it failed, or could not be decided; empty otherwise."`
	Code        int                `json:"code" doc:"The SIP status that stands for a failure (RFC 8224): 403, 436, 437 or 438; 0 for none."`
	SignedBy    string             `json:"signed_by" doc:"Whose certificate signed the call; empty if unknown."`
	OrigID      string             `json:"origid" doc:"What the signer calls the place that the call came from, by which it can be traced."`
	Carrier     string             `json:"carrier" doc:"What the carrier says, in its own words; empty for nothing."`
	CallerName  string             `json:"caller_name" doc:"The caller's name as it was signed (rcd)."`
	CallReason  string             `json:"call_reason" doc:"Why the caller calls, as it was signed (crn)."`
	CardURL     string             `json:"card_url" doc:"The address of the caller's card, as it was signed (jcl)."`
}

// VerificationResult is how a verification came out.
type VerificationResult string

// The results.
const (
	Verified           VerificationResult = "verified"
	VerificationFailed VerificationResult = "failed"
	Unverified         VerificationResult = "unverified"
)

// VerificationBy is who has verified a call.
type VerificationBy string

// Who may have.
const (
	ByServer  VerificationBy = "server"
	ByCarrier VerificationBy = "carrier"
)

// String is the verdict in short, as variables have it: "verified A", "failed: …", "carrier: verified B"; "none" where nothing
// is known.
func (v *CallVerification) String() string {
	if v == nil {
		return "none"
	}
	text := strings.TrimSpace(string(v.Result) + " " + v.Attestation)
	if v.Reason != "" {
		text = string(v.Result) + ": " + v.Reason
	}
	if v.By == ByCarrier {
		return "carrier: " + text
	}
	return text
}

// Failed and Verified report how a verification came out; a call of which nothing is known has neither.
func (v *CallVerification) Failed() bool { return v != nil && v.Result == VerificationFailed }

// Verified reports whether a trusted party vouches for the caller.
func (v *CallVerification) Verified() bool { return v != nil && v.Result == Verified }
