package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/crash"
)

// registration keeps us registered with a trunk: without it a trunk's calls don't find us (RFC 3261, section 10.2).
type registration struct {
	server *Server
	trunk  Trunk
	token  string // the user part of our contact: who calls it has it from the registrar
	stop   context.CancelFunc
	kept   atomic.Bool   // another registration with the same contact takes its place: it says no goodbye
	wake   chan struct{} // has a token when the connection that we registered over is gone

	// ask asks the registrar to register us for some seconds, 0 to undo it, and returns for how many it does.
	ask func(ctx context.Context, expires int) (int, error)
	// probe asks it whether it is there, and returns the address at which it sees us; nil: it isn't asked.
	probe func(ctx context.Context) (seen string, err error)

	mu sync.Mutex
	binding
	err     error // of the last try
	answers bool  // it answers probes
	silent  int   // how many of the last ones it has not answered
}

// binding is what a registrar has granted. The next registration of the same contact begins with it.
type binding struct {
	until time.Time      // we are registered so long, also while it can't be renewed
	home  netip.AddrPort // the registrar's
	hop   hop            // by which it was reached
	told  netip.Addr     // our address, as it was told
	seen  string         // and as it saw it
}

const (
	wantExpires = 3600 // seconds
	keepAlive   = 25 * time.Second
	firstRetry  = 5 * time.Second
	lastRetry   = 5 * time.Minute
	wrongRetry  = 10 * time.Minute // after a wrong password: too many get an address banned
	maxExpires  = 7 * 24 * 3600    // seconds; who wants to be asked less often is not
)

// Registered reports whether we are registered with a trunk.
func (s *Server) Registered(id int64) bool {
	s.mu.Lock()
	r := s.regs[id]
	s.mu.Unlock()
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds()
}

// holds reports whether we are registered. The caller holds mu.
func (r *registration) holds() bool { return time.Now().Before(r.until) }

// loadTrunks fetches the trunks and updates the registrations.
func (s *Server) loadTrunks(ctx context.Context) {
	defer crash.Contain(crash.Log("the reading of the SIP trunks"))
	if s.config.Trunks == nil {
		return
	}
	trunks, err := s.config.Trunks(ctx)
	if err != nil {
		if ctx.Err() == nil {
			slog.Error("read the SIP trunks: those known before stay", "error", err)
		}
		return
	}
	s.follow(trunks)
	s.reindex(s.withHosts(trunks))
}

// follow begins, changes and ends registrations.
func (s *Server) follow(trunks []Trunk) {
	want := map[int64]Trunk{}
	for _, t := range trunks {
		if t.Register && t.Address != "" {
			want[t.ID] = t
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	former := map[int64]binding{}
	for id, r := range s.regs {
		t, ok := want[id]
		if ok && reflect.DeepEqual(t, r.trunk) {
			delete(want, id)
			continue
		}
		if ok && s.config.Contact != nil && r.sameAt(&t) {
			r.kept.Store(true)
			r.mu.Lock()
			former[id] = r.binding // read before it stops, which empties it
			r.mu.Unlock()
		}
		r.stop()
		delete(s.regs, id)
	}
	if s.closed || s.ctx.Err() != nil {
		return
	}
	for id, t := range want {
		ctx, stop := context.WithCancel(s.ctx)
		r := &registration{server: s, trunk: t, token: "p" + strings.ToLower(token(20)), stop: stop,
			wake: make(chan struct{}, 1)}
		if s.config.Contact != nil {
			r.token = s.config.Contact(id)
		}
		r.binding = former[id]
		callID, seq := token(26), uint32(0)
		r.ask = func(ctx context.Context, expires int) (int, error) { return r.register(ctx, callID, &seq, expires) }
		if !t.Silent {
			r.probe = r.options
		}
		s.regs[id] = r
		s.work++
		go func() {
			defer s.leave()
			defer crash.Contain(crash.Log("the registration of a trunk", "trunk", t.ID))
			r.run(ctx)
		}()
	}
}

// sameAt reports whether a trunk's changed settings lead to the same contact of the same user at the same registrar.
func (r *registration) sameAt(t *Trunk) bool {
	was := &r.trunk
	return t.Address == was.Address && t.Proxy == was.Proxy && t.Transport == was.Transport && t.Username == was.Username &&
		t.ContactDomain == was.ContactDomain && t.FromDomain == was.FromDomain
}

// reindex builds the index that incoming messages are matched against.
func (s *Server) reindex(trunks []Trunk) {
	x := newIndex(trunks)
	for i := range trunks {
		trunks[i].at = nil
		for _, to := range []string{trunks[i].Address, trunks[i].Proxy} {
			if host, _, err := hostPort(to); err == nil {
				if a, err := netip.ParseAddr(host); err == nil {
					x.hosts[a.Unmap()] = true
					trunks[i].at = append(trunks[i].at, a.Unmap())
				}
			}
		}
	}
	s.mu.Lock()
	regs := maps.Clone(s.regs)
	s.mu.Unlock()
	for id, r := range regs {
		r.mu.Lock()
		if r.holds() {
			x.homes[id], x.tokens[r.token] = r.home, id
			x.hosts[r.home.Addr()] = true
			if t := x.byID[id]; t != nil {
				for _, a := range t.provider {
					x.hosts[a] = true
				}
			}
		}
		r.mu.Unlock()
	}
	s.index.Store(x)
	s.firewall.keep(x)
}

// run registers, renews before it expires, and unregisters at the end.
func (r *registration) run(ctx context.Context) {
	expires, failures, raised := wantExpires, 0, false
	for ctx.Err() == nil {
		got, err := r.try(ctx, expires)
		var tooBrief brief
		var wait time.Duration
		switch {
		case err == nil:
			failures, raised = 0, false
			got = min(got, expires) // nobody grants more than was asked for
			wait = time.Duration(float64(got) * (0.75 + 0.1*rand.Float64()) * float64(time.Second))
		case errors.As(err, &tooBrief) && int(tooBrief) > expires && int(tooBrief) <= maxExpires && !raised:
			expires, raised = int(tooBrief), true
			continue
		case errors.Is(err, errPassword) || errors.Is(err, errForbidden) || errors.Is(err, errNoLogin):
			wait = wrongRetry
		default:
			wait = min(firstRetry<<min(failures, 10), lastRetry)
			wait += time.Duration(rand.Int64N(int64(wait)/2 + 1))
			failures++
		}
		if ctx.Err() != nil {
			break
		}
		r.note(err, time.Duration(got)*time.Second)
		r.rest(ctx, wait)
	}
	r.mu.Lock()
	was := r.holds()
	r.until = time.Time{}
	r.mu.Unlock()
	if was && !r.kept.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), r.server.patient)
		defer cancel()
		_, _ = r.ask(ctx, 0)
	}
}

// try asks once. After a panic it is tried again like after any other failure.
func (r *registration) try(ctx context.Context, expires int) (got int, err error) {
	defer crash.Contain(func(e error) {
		slog.Error("the registration of a trunk panicked", "trunk", r.trunk.ID, "error", e)
		err = errors.New("the registration failed on this server: its log says why")
	})
	return r.ask(ctx, expires)
}

// lostConnection registers again if we had done so over a TCP connection that is gone: calls came over it.
func (s *Server) lostConnection(to netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.regs {
		r.mu.Lock()
		if r.home == to && r.trunk.way().stream() {
			select {
			case r.wake <- struct{}{}:
			default:
			}
		}
		r.mu.Unlock()
	}
}

// rest waits, and keeps a NAT mapping alive meanwhile (RFC 5626, section 3.5.1).
func (r *registration) rest(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	alive := time.NewTicker(r.server.alive)
	defer alive.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-r.wake:
			return
		case <-alive.C:
			select {
			case <-r.wake: // nothing is sent over another connection before we are registered over it
				return
			default:
			}
			r.stay()
			if r.moved() || n%probeEvery == 0 && r.lost(ctx) {
				return
			}
		}
	}
}

// stay sends a sign of life.
func (r *registration) stay() {
	r.mu.Lock()
	home := r.home
	r.mu.Unlock()
	switch {
	case r.trunk.way().stream():
		r.server.ping(home)
	case home.IsValid():
		_, _ = r.server.udp.WriteToUDPAddrPort([]byte("\r\n\r\n"), home)
	}
}

// note keeps the outcome of the last attempt, and logs it when that has changed.
func (r *registration) note(err error, got time.Duration) {
	err = logged(err)
	r.mu.Lock()
	was, before := r.holds(), r.err
	r.err = err
	if err == nil {
		r.until = time.Now().Add(got)
	}
	r.mu.Unlock()
	switch {
	case err == nil && (!was || before != nil):
		slog.Info("registered with a SIP trunk", "trunk", r.trunk.ID, "address", r.trunk.Address)
	case err != nil && (before == nil || before.Error() != err.Error()):
		slog.Warn("can't register with a SIP trunk", "trunk", r.trunk.ID, "address", r.trunk.Address,
			"still_registered", was, "error", err)
	}
	if err == nil && !was {
		r.server.Refresh() // that it lapses is seen when the trunks are read
	}
}

// brief is a 423: the registrar wants at least this many seconds.
type brief int

func (b brief) Error() string { return fmt.Sprintf("the registrar wants at least %d seconds", int(b)) }

// register registers for some seconds, 0 to undo it, and returns for how many it is valid.
func (r *registration) register(ctx context.Context, callID string, seq *uint32, expires int) (got int, err error) {
	err = r.server.try(ctx, &r.trunk, func(h hop, patience time.Duration) error {
		if patience > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, patience, silence(h))
			defer cancel()
			got, err = r.registerAt(limited, h, callID, seq, expires)
		} else {
			got, err = r.registerAt(ctx, h, callID, seq, expires)
		}
		return err
	})
	return got, err
}

// registerAt sends one REGISTER, and another if the password is asked for.
func (r *registration) registerAt(ctx context.Context, h hop, callID string, seq *uint32, expires int) (int, error) {
	s, t := r.server, &r.trunk
	*seq++
	req := s.plain(sipgo.REGISTER, t, t.Username, callID, *seq)
	contact := s.contactOf(t, r.token, h)
	req.AppendHeader(&sipgo.ContactHeader{Address: contact,
		Params: sipgo.HeaderParams{{K: "expires", V: strconv.Itoa(expires)}}})
	req.AppendHeader(sipgo.NewHeader("Expires", strconv.Itoa(expires)))
	req.AppendHeader(sipgo.NewHeader("Allow", allowed))
	res, err := s.ask(ctx, req, h, t.asked())
	*seq = req.CSeq().SeqNo
	if err != nil {
		return 0, err
	}
	switch code := res.StatusCode; {
	case code == 423:
		least := 0
		if m := res.GetHeader("Min-Expires"); m != nil {
			least, _ = strconv.Atoi(strings.TrimSpace(m.Value()))
		}
		return 0, brief(least)
	case code == 403:
		return 0, fmt.Errorf("%w: %w", errForbidden, refusedBy(res))
	case code >= 300:
		return 0, refusedBy(res)
	}
	r.mu.Lock()
	r.home, r.hop, r.told, r.seen = addrPort(res.Source()), h, s.shown(h.addr.Addr()), seenAt(res)
	r.mu.Unlock()
	return max(granted(res, r.token, expires), 30), nil
}

// granted is how long our contact is valid: the registrar may know others of the same account.
func granted(res *sipgo.Response, token string, wanted int) int {
	general := wanted
	if h := res.GetHeader("Expires"); h != nil {
		if n, err := strconv.Atoi(strings.TrimSpace(h.Value())); err == nil && n > 0 {
			general = n
		}
	}
	for _, h := range res.GetHeaders("Contact") {
		c, ok := h.(*sipgo.ContactHeader)
		if !ok || c.Address.User != token {
			continue
		}
		if v, ok := c.Params.Get("expires"); ok {
			if n, err := strconv.Atoi(v); err == nil && n > 0 {
				return n
			}
		}
	}
	return general
}

// plain makes a request to a trunk outside any call.
func (s *Server) plain(method sipgo.RequestMethod, t *Trunk, user, callID string, seq uint32) *sipgo.Request {
	host, port, _ := hostPort(t.Address)
	domain := cmp.Or(t.FromDomain, host)
	if before, own, ok := strings.Cut(user, "@"); ok { // some providers' names have their domain
		user, host, domain = before, own, cmp.Or(t.FromDomain, own)
	}
	own := sipgo.Uri{Scheme: "sip", User: escape(user), Host: domain}
	req := sipgo.NewRequest(method, sipgo.Uri{Scheme: "sip", Host: host, Port: port})
	if t.Proxy != "" {
		proxy, port, _ := hostPort(t.Proxy)
		u := sipgo.Uri{Scheme: "sip", Host: proxy, Port: port}
		u.UriParams.Add("lr", "")
		req.AppendHeader(&sipgo.RouteHeader{Address: u})
	}
	forwards, id := sipgo.MaxForwardsHeader(70), sipgo.CallIDHeader(callID)
	for _, h := range []sipgo.Header{&forwards, name{own, token(16)}.from(), name{uri: own}.to(), &id,
		&sipgo.CSeqHeader{SeqNo: seq, MethodName: method},
		sipgo.NewHeader("User-Agent", agent)} {
		req.AppendHeader(h)
	}
	req.SetBody(nil)
	return req
}
