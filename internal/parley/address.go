package parley

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var hostName = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?$`)

// ValidHostPort says whether s is host[:port]: a name, an IPv4 address or an IPv6 address (in brackets where a port
// follows).
func ValidHostPort(s string) bool {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Zone() == "" && !a.IsUnspecified()
	}
	host := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		port, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || port == 0 {
			return false
		}
		host = s[:i]
	}
	if inside, ok := strings.CutPrefix(host, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inside, "]"))
		return strings.HasSuffix(inside, "]") && err == nil && a.Is6() && a.Zone() == "" && !a.IsUnspecified()
	}
	if len(host) > 253 || !hostName.MatchString(host) {
		return false
	}
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	if strings.Trim(last, "0123456789.") == "" { // no name ends in digits alone: it is meant as an IPv4 address
		a, err := netip.ParseAddr(host)
		return err == nil && !a.IsUnspecified()
	}
	return true
}

// ParseNetwork reads an address, or a network such as 192.0.2.0/24.
func ParseNetwork(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), a.Zone() == ""
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), err == nil
}
