package sip

import (
	"errors"
	"strings"
	"unicode"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

// reason is one value of a Reason header (RFC 3326).
type reason struct{ protocol, cause, text string }

func readReason(one string) (r reason) {
	at := parametersAt([]byte(one))
	rest := one[at:]
	r.protocol = strings.TrimSpace(one[:at])
	for rest != "" {
		rest = rest[1:]
		p := rest
		if i := find([]byte(rest), false, ";"); i >= 0 {
			p, rest = rest[:i], rest[i:]
		} else {
			rest = ""
		}
		name, value, _ := strings.Cut(p, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "text":
			r.text = unquoted(value)
		case "cause":
			r.cause = strings.TrimSpace(value)
		}
	}
	return r
}

// said is its text, or its cause where that is no SIP status, which says nothing new.
func (r reason) said() string {
	switch {
	case r.text != "":
		return r.text
	case r.cause == "" || strings.EqualFold(r.protocol, "SIP"):
		return ""
	}
	return r.protocol + " cause " + r.cause
}

// usual reports whether it says no more than that somebody hung up.
func (r reason) usual() bool {
	return strings.EqualFold(r.protocol, "Q.850") && (r.cause == "16" || r.cause == "31")
}

// maxReason is how many bytes are kept of what a far end says about an end.
const maxReason = 160

// saidBy is what the Reason headers of a BYE or CANCEL say, "" where that is nothing out of the ordinary.
func saidBy(req *sipgo.Request) string {
	var said []string
	for _, h := range req.GetHeaders("Reason") {
		for _, one := range splitList(h.Value()) {
			r := readReason(one)
			text := r.said()
			if text == "" && r.cause != "" && r.cause != "200" && r.cause != "487" { // how a call that was hung up or taken back ends
				text = r.protocol + " " + r.cause
			}
			if text != "" && !r.usual() && len(said) < maxSaid {
				said = append(said, text)
			}
		}
	}
	text := strings.ToValidUTF8(strings.Join(said, "; "), "")
	return cut(strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsControl(c) || c == ' ' }), " "), maxReason)
}

// leftWith is why a call is over whose far end sent BYE or CANCEL. What the operator's carrier says is the operator's.
func leftWith(t *Trunk, req *sipgo.Request, cause parley.EndedReason) error {
	said := saidBy(req)
	if said == "" || !t.kept() {
		return cause
	}
	return parley.Explain(cause, "The far end hung up, and says why: “%s”.", said)
}

// tookElsewhere is the reason of a call that another place has answered (RFC 3326, section 3.1).
const tookElsewhere = `SIP;cause=200;text="Call completed elsewhere"`

// reasonFor is the Reason with which a call is ended by us, "" where we know none.
func reasonFor(cause error) string {
	if errors.Is(cause, parley.ErrAnsweredElsewhere) {
		return tookElsewhere
	}
	why, _ := errors.AsType[parley.EndedReason](cause)
	return map[parley.EndedReason]string{
		parley.AssistantHangup:     `Q.850;cause=16;text="Normal call clearing"`,
		parley.CustomerHangup:      `Q.850;cause=16;text="Normal call clearing"`,
		parley.APIHangup:           `Q.850;cause=16;text="Normal call clearing"`,
		parley.Transferred:         `Q.850;cause=16;text="Transferred"`,
		parley.Voicemail:           `Q.850;cause=16;text="Voicemail"`,
		parley.MaxDuration:         `Q.850;cause=16;text="Time limit"`,
		parley.MaxSilence:          `Q.850;cause=16;text="Nobody spoke"`,
		parley.InsufficientBalance: `Q.850;cause=16;text="Balance used up"`,
		parley.LineBusy:            `Q.850;cause=17;text="User busy"`,
		parley.NoAnswer:            `Q.850;cause=19;text="No answer"`,
		parley.Rejected:            `Q.850;cause=21;text="Call rejected"`,
		parley.Canceled:            `SIP;cause=487;text="Call taken back"`,
		parley.MediaTimeout:        `Q.850;cause=102;text="No sound or no sign of life came"`,
		parley.ProviderFailure:     `Q.850;cause=41;text="Temporary failure"`,
		parley.Shutdown:            `Q.850;cause=41;text="The server stops"`,
	}[why]
}

// withReason adds why a call ends to a request that ends it.
func withReason(req *sipgo.Request, text string) *sipgo.Request {
	if text != "" {
		req.AppendHeader(sipgo.NewHeader("Reason", text))
	}
	return req
}
