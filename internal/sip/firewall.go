package sip

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// firewall counts how often each address knocks, so that scanners and floods cost little and learn nothing.
type firewall struct {
	mu       sync.Mutex
	visitors map[netip.Addr]*visitor // by place
	gates    map[int64]*gate         // by trunk
	all      *rate.Limiter           // strangers together
	calls    *rate.Limiter           // calls that may begin
	refusals *rate.Limiter           // answers to calls above that

	dropped int // messages without an answer, since the last log line
	total   uint64
	last    netip.AddrPort // whose was dropped last
	logged  time.Time
	swept   time.Time
}

type visitor struct {
	messages *rate.Limiter
	seen     time.Time
	failures int // wrong passwords
	until    time.Time
}

// gate limits how many calls may begin over one trunk, so that a flood over one leaves room for the others.
type gate struct {
	calls    *rate.Limiter
	refusals *rate.Limiter // answers to calls above that
}

const (
	maxVisitors = 4096
	maxFailures = 10
	banTime     = 10 * time.Minute
	logEvery    = time.Minute
)

// Per second, and in one burst.
const (
	strangerRate, strangerBurst   = 10, 30
	strangersRate, strangersBurst = 300, 600
	friendRate, friendBurst       = 2000, 4000
	callRate, callBurst           = 100, 400
	trunkRate, trunkBurst         = 25, 200 // of calls over one trunk
)

// softphones stands for all softphones together, as if they were one trunk.
const softphones = -1

// place is what an address counts as: with IPv6 everybody has a whole network of addresses.
func place(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	p, _ := a.Prefix(64)
	return p.Addr()
}

// begin reports whether another call may begin over a trunk, and if not, whether to answer that.
func (d *firewall) begin(trunk int64) (ok, answer bool) {
	d.mu.Lock()
	g := d.gates[trunk]
	if g == nil {
		g = &gate{rate.NewLimiter(trunkRate, trunkBurst), rate.NewLimiter(trunkRate, trunkRate)}
		if trunk == 0 { // the carrier's calls are everybody's
			g.calls, g.refusals = rate.NewLimiter(callRate, callBurst), rate.NewLimiter(callRate, callRate)
		}
		d.gates[trunk] = g
	}
	d.mu.Unlock()
	if !g.calls.Allow() {
		return false, g.refusals.Allow()
	}
	if !d.calls.Allow() {
		return false, d.refusals.Allow()
	}
	return true, false
}

// keep drops the gates of trunks that are gone.
func (d *firewall) keep(x *index) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.gates {
		if id != softphones && x.byID[id] == nil {
			delete(d.gates, id)
		}
	}
}

func newFirewall() *firewall {
	return &firewall{visitors: map[netip.Addr]*visitor{}, gates: map[int64]*gate{},
		all: rate.NewLimiter(strangersRate, strangersBurst), calls: rate.NewLimiter(callRate, callBurst),
		refusals: rate.NewLimiter(callRate, callRate)}
}

// knock reports whether a message may be looked at. A friend is an address that a trunk names.
func (d *firewall) knock(a netip.Addr, friend bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	v := d.visitor(a, friend, now)
	if v == nil || !v.messages.AllowN(now, 1) {
		return false
	}
	return friend || d.all.AllowN(now, 1)
}

// visitor is what is known about an address; nil when too many are remembered already. A friend always has a place.
func (d *firewall) visitor(a netip.Addr, friend bool, now time.Time) *visitor {
	limit, burst := rate.Limit(strangerRate), strangerBurst
	if friend {
		limit, burst = friendRate, friendBurst
	}
	a = place(a)
	v := d.visitors[a]
	if v == nil {
		if len(d.visitors) >= maxVisitors && now.Sub(d.swept) > time.Second {
			d.swept = now
			d.forget(now)
		}
		if len(d.visitors) >= maxVisitors && !friend {
			return nil
		}
		v = &visitor{messages: rate.NewLimiter(limit, burst)}
		d.visitors[a] = v
	}
	if v.messages.Limit() < limit { // trunks have changed, or it is another address of a place that has a friend's
		v.messages = rate.NewLimiter(limit, burst)
	}
	v.seen = now
	return v
}

// forget drops the addresses that have not been heard from for a while.
func (d *firewall) forget(now time.Time) {
	for a, v := range d.visitors {
		if now.Sub(v.seen) > 10*time.Second && now.After(v.until) && v.failures == 0 || now.Sub(v.seen) > banTime {
			delete(d.visitors, a)
		}
	}
}

// banned reports whether an address has guessed too many passwords. Its live calls go on.
func (d *firewall) banned(a netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.visitors[place(a)]
	return v != nil && time.Now().Before(v.until)
}

// failed notes a wrong password. After too many, no more calls are accepted from that address for a while.
func (d *firewall) failed(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	v := d.visitors[place(a)] // it has knocked
	if v == nil {
		return
	}
	if v.failures++; v.failures >= maxFailures {
		v.failures, v.until = 0, now.Add(banTime)
		slog.Warn("too many wrong passwords for a SIP trunk: not taking calls from that address for a while",
			"address", a, "for", banTime)
	}
}

// passed forgets the wrong passwords: someone who knows the right one had only mistyped.
func (d *firewall) passed(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.visitors[place(a)]; v != nil {
		v.failures = 0
	}
}

// turnAway counts a message that gets no answer.
func (d *firewall) turnAway(from netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropped++
	d.total++
	d.last = from
	if now := time.Now(); now.Sub(d.logged) >= logEvery {
		slog.Info("SIP messages that belong to no trunk got no answer", "messages", d.dropped, "last_from",
			from.String())
		d.logged, d.dropped = now, 0
	}
}

// turned is how many messages got no answer.
func (d *firewall) turned() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}
