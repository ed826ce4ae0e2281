package call

import (
	"fmt"
	"strings"

	"parley/internal/parley"
)

// Destinations says which numbers may be called: those of some countries and prefixes. Numbers that pay whoever has
// them, and satellite numbers, may never be called.
type Destinations struct {
	countries map[string]bool
	prefixes  []string
	never     []string // prefixes
}

// ParseDestinations reads a list of ISO country codes (US), prefixes (+49, or + for the whole world) and prefixes that
// may never be called (!+1900). The longest prefix wins; a prefix outranks a country.
func ParseDestinations(list []string) (Destinations, error) {
	d := Destinations{countries: map[string]bool{}}
	for _, item := range list {
		prefix, never := strings.CutPrefix(strings.TrimSpace(item), "!")
		digits, plus := strings.CutPrefix(prefix, "+")
		switch {
		case plus && strings.Trim(digits, "0123456789") == "" && never:
			d.never = append(d.never, prefix)
		case plus && strings.Trim(digits, "0123456789") == "":
			d.prefixes = append(d.prefixes, prefix)
		case !never && !plus && len(prefix) == 2 && strings.ToUpper(prefix) == prefix &&
			strings.Trim(prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
			d.countries[prefix] = true
		default:
			return d, fmt.Errorf("%q is neither a country code such as US, a prefix such as +49, nor one that must not be called such as !+1900",
				item)
		}
	}
	return d, nil
}

// Allow reports whether an E.164 number may be called. A costly number may be called only if it belongs to a company
// and a prefix covers more of it than its country code.
func (d Destinations) Allow(e164 string) bool {
	may, never := longest(d.prefixes, e164), longest(d.never, e164)
	if parley.CostlyPhone(e164) {
		country, ok := parley.CompanyPhone(e164)
		return ok && may > len(country) && may > never
	}
	if may == 0 && never == 0 {
		return d.countries[parley.PhoneCountry(e164)]
	}
	return may > never
}

// longest is the length of the longest of some prefixes of s, 0 for none.
func longest(prefixes []string, s string) (n int) {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			n = max(n, len(p))
		}
	}
	return n
}

// mayTransfer reports whether the call may be sent to a target that its assistant names (parley.TransferTarget). A
// number that may not be called may not be reached by a transfer either, under whatever name. Extensions and SIP
// addresses belong to a house behind one of the user's trunks.
func (l *live) mayTransfer(to string) error {
	_, number, ok := parley.TransferTarget(to)
	switch {
	case !ok:
		return fmt.Errorf("%q is neither a phone number, an extension, nor a sip: address", to)
	case number != "" && !l.Destinations.Allow(number):
		return fmt.Errorf("calls to %s are not allowed on this server", to)
	case number != to && !l.house:
		return fmt.Errorf("%s can only be reached over your own SIP trunk, and this call has none", to)
	}
	return nil
}
