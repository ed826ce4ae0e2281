package preset

import (
	"strconv"
	"strings"

	"parley/internal/parley"
)

// usualRefusals are what refusals mean at most carriers, and which settings of a trunk mend them.
var usualRefusals = []Refusal{
	{"401, 407", "The password was asked for, and there is none, or it is wrong: check sip_username and sip_password, and from_user, " +
		"by which some find the user."},
	{"403", "The caller is not allowed to call: the calling number is not the account's, or stands in another place than the carrier looks. " +
		"Check from_user, identity_header and sip_calling_format, that this server's address is known to the carrier, " +
		"and that the destination is open for the account."},
	{"404, 484", "The number was not understood: check sip_calling_format, country_code and prefix."},
	{"408", "Nobody answered in time: check sip_address, transport, and firewalls in between."},
	{"480", "Whoever was called is not there now: at a telephone system, its extension may not be registered."},
	{"488", "The sound was not agreed on: check codecs, and whether srtp must be off or required."},
	{"503", "The carrier takes no calls now, or none from this account: the lines may all be taken, or the credit used up."},
	{"603", "The call was declined, sometimes by a filter against unwanted calls: ask the carrier about the calling number."},
}

// Means says what a refusal means for a trunk, by the documents of its carrier or system, and which settings mend it. It
// is "" for one that is nothing special.
func Means(t *parley.Trunk, status int) string {
	var own []Refusal
	if p := of(t); p != nil {
		own = p.Refusals
	}
	for _, list := range [][]Refusal{own, usualRefusals} {
		for _, r := range list {
			for _, word := range strings.FieldsFunc(r.Answer, func(c rune) bool { return c == ' ' || c == ',' }) {
				if word == strconv.Itoa(status) {
					return sourceless.Replace(r.Means)
				}
			}
		}
	}
	return ""
}

// sourceless takes the marks of sources out of a text.
var sourceless = strings.NewReplacer(" [1]", "", " [2]", "", " [3]", "", " [4]", "", " [5]", "", " [6]", "", "[1]", "", "[2]", "", "[3]",
	"", "[4]", "", "[5]", "", "[6]", "")
