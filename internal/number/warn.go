package number

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"parley/internal/parley"
)

// Unproved says whether calls to the number of a user's trunk are not answered yet: the server wants a proof that the number is the
// user's (PARLEY_NUMBER_PROOF), and there is none.
func (d *Pool) Unproved(ctx context.Context, t *parley.Trunk) (bool, error) {
	if !d.Proof || t.Extension() {
		return false, nil
	}
	proved, err := d.DB.ProvedNumber(ctx, t.UserID, t.PhoneNumber)
	return !proved, err
}

// Warn says what a user should know of a trunk of theirs: that another account takes calls from the same addresses, and that its number
// needs a proof.
func (d *Pool) Warn(ctx context.Context, t *parley.Trunk) (warnings []string, err error) {
	all, err := d.DB.AllTrunks(ctx)
	if err != nil {
		return nil, err
	}
	mine := sources(t)
	if slices.ContainsFunc(all, func(o parley.Trunk) bool { return o.UserID != t.UserID && overlap(mine, sources(&o)) }) {
		warnings = append(warnings, "Another account on this server takes calls from the same addresses. "+
			"A call goes to whichever account has entered the number that was called: enter all of your numbers, "+
			"and tell the operator if one of them is taken.")
	}
	unproved, err := d.Unproved(ctx, t)
	if err != nil {
		return nil, err
	}
	if unproved {
		warnings = append(warnings, "Calls to "+t.PhoneNumber+" are not answered until you prove that the number is yours: "+
			"verify it as a caller ID, by the code that is sent to it (Numbers, Caller ID).")
	}
	return warnings, nil
}

// sources are where a trunk's calls come from: networks, and its host by name.
func sources(t *parley.Trunk) (list []string) {
	host, _, _ := strings.Cut(strings.ToLower(t.SIPAddress), ":")
	return append([]string{host}, t.AllowedInboundIPs...)
}

// overlap says whether two lists of names, addresses and networks have something in common.
func overlap(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
			p, ok := network(x)
			q, also := network(y)
			if ok && also && p.Overlaps(q) {
				return true
			}
		}
	}
	return false
}

// network reads an address or a network.
func network(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), true
}
