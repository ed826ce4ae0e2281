package egress

import (
	"net/netip"
	"slices"
)

// What is special about an address, in the words of the IANA registries of special-purpose addresses (RFC 6890).
type block struct {
	prefix netip.Prefix
	kind   string
}

const private = "private"

func blocks(kind string, prefixes ...string) []block {
	var list []block
	for _, p := range prefixes {
		list = append(list, block{netip.MustParsePrefix(p), kind})
	}
	return list
}

// The first block that holds an address tells what it is.
var table = slices.Concat(
	blocks("unspecified", "0.0.0.0/8", "::/128"),
	blocks("a loopback address", "127.0.0.0/8", "::1/128"),
	blocks(private, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
	blocks("link-local", "169.254.0.0/16", "fe80::/10"),
	blocks("shared by a carrier's customers", "100.64.0.0/10"), // RFC 6598
	// Azure's platform, at a public address on every machine there
	blocks("a cloud's own", "168.63.129.16/32"),
	blocks("for documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
	blocks("for benchmarking", "198.18.0.0/15", "2001:2::/48"),
	blocks("multicast", "224.0.0.0/4", "ff00::/8"),
	blocks("for broadcast", "255.255.255.255/32"),
	// A tunnel's exit is an IPv4 address inside that can be anything.
	// 6to4 (RFC 3056), Teredo (RFC 4380), the 6to4 relay
	blocks("a tunnel's", "2002::/16", "2001::/32", "192.88.99.0/24"),
	blocks("a translator's", "64:ff9b:1::/48"), // local NAT64 (RFC 8215)
	blocks("reserved", "192.0.0.0/24", "240.0.0.0/4", "2001::/23"),
)

var (
	// RFC 6052: a translator connects to the IPv4 address in the last 32 bits
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	unicast = netip.MustParsePrefix("2000::/3") // all of IPv6 that is given out for public use
)

// special says what is special about an address, or "" for an ordinary public one. The address is not an IPv4-mapped
// one.
func special(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "invalid"
	case a.Zone() != "":
		return "link-local" // only such addresses have a zone
	}
	for _, b := range table {
		if b.prefix.Contains(a) {
			return b.kind
		}
	}
	if a.Is4() {
		return ""
	}
	b := a.As16()
	if nat64.Contains(a) { // on a network with IPv6 alone this is how every IPv4 host looks
		return special(netip.AddrFrom4([4]byte(b[12:])))
	}
	if !unicast.Contains(a) { // also the IPv4-compatible ::a.b.c.d
		return "reserved"
	}
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP, RFC 5214 section 6.1
		return "a tunnel's"
	}
	return ""
}
