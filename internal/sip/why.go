package sip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"parley/internal/parley"
)

// why is a failure with a sentence for the trunk's owner. The error that it wraps is only for the log: the address in
// it may be a stranger's.
type why struct {
	text string
	err  error
}

func (w *why) Error() string {
	return parley.Unreachable.Error() + ": " + strings.TrimSuffix(w.text, ".")
}
func (w *why) Unwrap() error { return w.err }

// Explain is the sentence.
func (w *why) Explain() string { return w.text }

// logged is the part of a failure that is meant for the log.
func logged(err error) error {
	if w, ok := errors.AsType[*why](err); ok {
		return w.err
	}
	return err
}

func because(err error, format string, a ...any) error { return &why{fmt.Sprintf(format, a...), err} }

var (
	errCarrier = because(fmt.Errorf("%w: a user's trunk points at the carrier", parley.Unreachable), "%s",
		parley.CarrierTrunk)
	errSelf = because(fmt.Errorf("%w: a user's trunk points at this server", parley.Unreachable),
		"The address is this server's own telephone.")
	errPrivate = because(fmt.Errorf("%w: a user's trunk points at an address that is not public", parley.Unreachable),
		"The address is not public, and trunks reach public addresses alone on this server: its operator decides (PARLEY_TRUNK_PRIVATE).")
	errLines = because(fmt.Errorf("%w: all lines are in use", parley.Unreachable),
		"All lines of this server were in use. Try again in a moment.")
)

// unanswered is the one sentence for everything short of an answer in SIP: an unknown name, a closed port, silence. If
// these could be told apart, they would reveal a map of networks that are none of the trunk owner's business.
func (s *Server) unanswered(t *Trunk, err error) error {
	if _, told := errors.AsType[*why](err); told {
		return err
	}
	if _, ok := errors.AsType[absent](err); !ok {
		return err
	}
	level := slog.LevelDebug
	if t.Number == "" { // the carrier's is the operator's to mend
		level = slog.LevelWarn
	}
	slog.Log(context.Background(), level, "a trunk does not answer", "trunk", t.ID, "address", t.Address, "error", err)
	public := ""
	if s.config.Reach != nil && t.Number != "" {
		public = " Only public addresses are reached."
	}
	return because(err, "Nothing answered at %s over %s. Check the trunk's address and transport, and that it lets this server in.%s",
		t.place(), t.way(), public)
}

// allowed says why a trunk may not be at an address, nil if it may. The operator's own trunk may be anywhere.
func (s *Server) allowed(t *Trunk, to netip.AddrPort) error {
	if t == nil || t.Number == "" {
		return nil
	}
	switch a := to.Addr(); {
	case a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errPrivate
	case s.isSelf(to):
		return errSelf
	case s.isCarrier(to):
		return errCarrier
	case s.config.Reach != nil && s.config.Reach(a) != nil:
		return errPrivate
	}
	return nil
}

// isSelf reports whether an address is where this server listens.
func (s *Server) isSelf(to netip.AddrPort) bool {
	a, own := to.Addr(), s.addr.Addr()
	if to.Port() != s.addr.Port() && int(to.Port()) != s.port(overTLS) {
		return false
	}
	if a == own || a == s.config.External.Unmap() || own.IsUnspecified() && a.IsLoopback() {
		return true
	}
	list, _ := net.InterfaceAddrs()
	for _, i := range list {
		if n, ok := i.(*net.IPNet); ok && own.IsUnspecified() && n.IP.Equal(a.AsSlice()) {
			return true
		}
	}
	return false
}

// carrierPlaces are the addresses where the operator's carrier was found.
type carrierPlaces struct {
	looked time.Time
	seen   map[netip.AddrPort]time.Time
}

const (
	carrierAgain = time.Minute    // after which it is looked for anew
	carrierKept  = 24 * time.Hour // for how long a place counts: a name may give another one each time
)

// isCarrier reports whether an address is the carrier's: one of its places, or in the networks that it calls from. If
// the address is this machine's own, the port decides.
func (s *Server) isCarrier(to netip.AddrPort) bool {
	if !to.Addr().IsLoopback() {
		for _, t := range s.index.Load().carriers {
			if t.ByIP && t.allows(to.Addr()) {
				return true
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.carrier.seen {
		if a == to || a.Addr() == to.Addr() && !to.Addr().IsLoopback() {
			return true
		}
	}
	return false
}

// findCarrier looks up where the carrier is, when that is due. Concurrent callers wait for the same lookup.
func (s *Server) findCarrier(ctx context.Context) {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.mu.Lock()
	fresh := !s.carrier.looked.IsZero() && time.Since(s.carrier.looked) < carrierAgain
	s.mu.Unlock()
	if fresh {
		return
	}
	var found []netip.AddrPort
	for _, t := range s.index.Load().carriers {
		for _, at := range []string{t.Address, t.Proxy} {
			for _, w := range []way{overUDP, overTCP, overTLS} {
				if at != "" {
					list, _ := s.resolve(context.WithoutCancel(ctx), at, w)
					found = append(found, list...)
				}
			}
		}
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carrier.looked = now
	for a, at := range s.carrier.seen {
		if now.Sub(at) > carrierKept {
			delete(s.carrier.seen, a)
		}
	}
	for _, a := range found {
		s.carrier.seen[a] = now
	}
}

// Place tells its owner why a trunk must not be where it is; nil if it may be there, or if nobody can tell.
func (s *Server) Place(ctx context.Context, t Trunk) error {
	if s.off() {
		return nil
	}
	_, err := s.hops(ctx, &t)
	if w, ok := errors.AsType[*why](err); ok && (w == errCarrier || w == errSelf || w == errPrivate) { //nolint:errorlint // they are ours
		return errors.New(w.text)
	}
	return nil
}
