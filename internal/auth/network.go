package auth

import (
	"net/netip"
	"sync"
)

// Network is what counts as one client in limits per address: an IPv4 address, or the /64 of an IPv6 one, since a
// single customer of a provider has all addresses in it. A text that is no address counts as itself.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, _ := ip.Prefix(64) // of an IPv6 address it can't fail
	return p.String()
}

// Slots bounds how much somebody has at once: connections, streams. It keeps the names that have something now and no
// others.
type Slots struct {
	most  int
	mu    sync.Mutex
	taken map[string]int
}

// NewSlots makes slots for so many at once per name; 0 is no limit.
func NewSlots(most int) *Slots { return &Slots{most: most, taken: map[string]int{}} }

// Take takes one of name's slots, until leave is called; calling it again does nothing. ok is false when all are taken.
func (s *Slots) Take(name string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.taken[name] >= s.most {
		return nil, false
	}
	s.taken[name]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[name]--; s.taken[name] == 0 {
			delete(s.taken, name)
		}
	}), true
}
