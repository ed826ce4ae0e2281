package parley

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// CallSignalling is what the SIP signalling of a telephone call said about it, besides the numbers.
type CallSignalling struct {
	CallerName string      `json:"caller_name" doc:"The caller's name as the trunk gave it; empty without one."`
	Withheld   bool        `json:"withheld" doc:"The calling number is hidden: the caller's for an incoming call, yours for an outgoing one."`
	Diversions []Diversion `json:"diversions" doc:"Who forwarded an incoming call to us (Diversion or History-Info), the last one first."`
	// nil: nothing is known
	Verification *CallVerification `json:"verification,omitempty" doc:"Whether an incoming call's caller may use the number that is shown (STIR/SHAKEN); absent where neither the call nor its carrier says anything about it."`
	CallInfo     []CallInfo        `json:"call_info,omitempty" doc:"What else an incoming call says about its caller (Call-Info): where there is a picture, a card or a page. Nobody has checked it."`
	// by the names that were sent
	Headers map[string]string `json:"headers" doc:"X- headers that came with the call, or went with it."`
}

// CallInfo is where there is more about a caller.
type CallInfo struct {
	URI     string `json:"uri"`
	Purpose string `json:"purpose" doc:"icon, info, card, jcard, …; empty if not given."`
	Reason  string `json:"call_reason" doc:"Why the caller calls, as the caller says; empty if not given."`
}

// Diversion is one who was called before us and sent the call on.
type Diversion struct {
	PhoneNumber string `json:"phone_number" doc:"Empty if it is withheld."`
	Reason      string `json:"reason" doc:"user-busy, no-answer, unconditional, deflection, unavailable, …; empty if not given."`
}

// The most X- headers that a call takes or sends, and the bytes of one's value: many devices cut longer lines.
const (
	MaxSIPHeaders = 20
	MaxSIPValue   = 1024
)

var sipHeaderName = regexp.MustCompile(`^[Xx]-[A-Za-z0-9_-]{1,62}$`)

// ValidSIPHeader says whether a header may come or go with a call: others are the server's own to write.
func ValidSIPHeader(name string) bool { return sipHeaderName.MatchString(name) }

// CheckSIPHeaders adds what is wrong with the headers of a field.
func CheckSIPHeaders(field string, headers map[string]string, f *Fields) {
	if len(headers) > MaxSIPHeaders {
		f.Add(field, "must not have more than %d entries.", MaxSIPHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch at := field + "." + name; {
		case !ValidSIPHeader(name):
			f.Add(at, "must have a name that begins with X-, and then has up to 62 letters, digits, hyphens and underscores.")
		case strings.ContainsFunc(headers[name], unicode.IsControl):
			f.Add(at, "must be one line, without control characters.")
		case len(headers[name]) > MaxSIPValue:
			f.Add(at, "must not be longer than %d bytes.", MaxSIPValue)
		}
	}
}

// SIPHeaders are the headers that a call sends: a trunk's, and the call's own, which replace the trunk's of the same
// name. {{name}} stands for variables. Headers that end up empty are left out.
func SIPHeaders(vars map[string]string, trunk, call map[string]string) map[string]string {
	headers := map[string]string{}
	for _, own := range []map[string]string{trunk, call} {
		for name, value := range own {
			maps.DeleteFunc(headers, func(other, _ string) bool { return strings.EqualFold(other, name) })
			if value = head(VisitorText(Render(value, vars), false), MaxSIPValue); value != "" {
				headers[name] = value
			}
		}
	}
	return headers
}

// ownVariables are what this server says of a call: no header of the caller's stands for them.
var ownVariables = []string{"caller_name", "caller_verification", "diverted_from"}

// Given are the variables that an incoming call brings: X-Order-Id: 4711 is {{order_id}}, diverted_from is who sent the call on,
// caller_name what the caller is called, and caller_verification whether the number shown is the caller's. Names that the assistant's
// owner has given a value are left out, and so are the built-in ones: whoever calls must not replace the owner's words.
func (s *CallSignalling) Given(owner map[string]string) map[string]string {
	vars := map[string]string{}
	give := func(name, value string) {
		_, taken := owner[name]
		_, twice := vars[name]
		if !taken && !twice && !slices.Contains(BuiltinVariables, name) {
			vars[name] = value
		}
	}
	if s.CallerName != "" {
		give("caller_name", s.CallerName)
	}
	give("caller_verification", s.Verification.String())
	if len(s.Diversions) > 0 && s.Diversions[0].PhoneNumber != "" {
		give("diverted_from", s.Diversions[0].PhoneNumber)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if v := strings.ReplaceAll(strings.ToLower(name[2:]), "-", "_"); !slices.Contains(ownVariables, v) {
			give(v, s.Headers[name])
		}
	}
	return vars
}
