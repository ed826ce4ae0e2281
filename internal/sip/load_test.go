package sip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/parley"
)

// calls returns the number of calls.
func (s *Server) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// settle waits until there are no more goroutines than before.
func settle(t testing.TB, before int) {
	t.Helper()
	for give := time.Now().Add(hang); ; time.Sleep(10 * time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
		if time.Now().After(give) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// oneCall hears five frames, or cancels the call while it rings.
func oneCall(t *testing.T, s *Server, trunk Trunk, takeBack bool) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	d := Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"}
	if takeBack {
		d.Ringing = func() { cancel(errDone) }
	}
	l, err := s.Dial(ctx, d)
	if err != nil {
		if !errors.Is(err, errDone) {
			t.Error(err)
		}
		return
	}
	p := newPhone(0)
	p.onTick = func(n int) {
		if n == 5 {
			cancel(errDone)
		}
	}
	if err := l.Run(ctx, p); err != errDone {
		t.Error(err)
	}
}

// TestManyCalls makes 200 calls, twelve at a time, and cancels one in four; nothing of them is left while the servers
// still run.
func TestManyCalls(t *testing.T) {
	a := newAnswerer(0)
	a.ring = make(chan struct{})
	close(a.ring)
	base := runtime.NumGoroutine()
	callee := prepare(t, Config{Answer: a.answer, Ports: [2]int{40000, 40999},
		Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	stopCallee := launch(t, callee)
	caller := prepare(t, Config{Ports: [2]int{41000, 41999}})
	stopCaller := launch(t, caller)
	oneCall(t, caller, Trunk{Address: callee.Addr().String(), Transport: "tcp"}, false) // opens the one connection
	var wg sync.WaitGroup
	next := make(chan int)
	for range 12 { // the race detector and G.722 are slow
		wg.Go(func() {
			for i := range next {
				oneCall(t, caller, Trunk{Address: callee.Addr().String(), Transport: []string{"udp", "tcp"}[i%2]},
					i%4 == 3)
			}
		})
	}
	for i := range 200 {
		next <- i
	}
	close(next)
	wg.Wait()
	for give := time.Now().Add(hang); callee.ports.Used()+caller.ports.Used() > 0 ||
		callee.calls()+caller.calls() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("%d and %d ports, %d and %d calls are left", callee.ports.Used(), caller.ports.Used(),
				callee.calls(), caller.calls())
		}
	}
	settle(t, base+2*6) // each server's Run, its four listeners and its reader of the connection
	stopCaller()
	stopCallee()
	settle(t, base)
	if len(callee.legs)+len(callee.invites)+len(caller.legs) != 0 {
		t.Errorf("%d and %d legs, %d invites are left", len(callee.legs), len(caller.legs), len(callee.invites))
	}
}

// TestFlood sends INVITEs as fast as it can, from a stranger and from a trunk, while a call is going on.
func TestFlood(t *testing.T) {
	a := newAnswerer(1000)
	trunk := Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}
	s := start(t, Config{Answer: a.answer, MaxCalls: 3,
		Trunks: fixed(trunk, Trunk{ID: 2, Number: "+15550001112", Username: "bob", Password: "x"})})
	caller := start(t, Config{})
	to := Trunk{Address: s.Addr().String()}
	l, err := caller.Dial(soon(t), Dialling{Trunk: to, To: trunk.Number, From: "+15550002222"})
	if err != nil {
		t.Fatal(err)
	}
	r := run(l, newPhone(440))
	in := a.next(t)
	in.phone.hears(t, 440)
	before := runtime.NumGoroutine()
	most := 0
	for name, from := range map[string]string{"a stranger": "127.0.0.2", "a trunk": "127.0.0.1"} {
		w := newWire(t, from)
		uri := "sip:+15550001111@" + s.Addr().String()
		number := "sip:+15550001112@" + s.Addr().String()
		began, ticks := time.Now(), func() int { in.phone.mu.Lock(); defer in.phone.mu.Unlock(); return in.phone.ticks }
		first := ticks()
		sent := 0
		for ; time.Since(began) < 1500*time.Millisecond; sent++ {
			u := uri
			if sent%2 == 0 {
				u = number
			}
			w.send(s.Addr(), w.message("INVITE", u, "<"+u+">", fmt.Sprint(name, sent), 1, sdp(w.addr())))
			if n := runtime.NumGoroutine(); n > most {
				most = n
			}
			if behind := time.Duration(sent)*100*time.Microsecond - time.Since(began); behind > 0 {
				time.Sleep(behind) // 10,000 a second
			}
		}
		got := ticks() - first
		t.Logf("%s: %d INVITEs in %s, %d of 75 ticks, at most %d goroutines", name, sent, time.Since(began), got, most)
		if got < 40 { // the machine may be busy with other things; a call that is really disturbed has next to no ticks
			t.Errorf("%s: the live call had only %d ticks of 75", name, got)
		}
		in.phone.hears(t, 440)
		r.phone.hears(t, 1000)
	}
	if most > before+1000 {
		t.Errorf("%d goroutines, %d before", most, before)
	}
	r.hangUp(t)
	in.ends(t, parley.CustomerHangup)
}

func TestFull(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	trunk := Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}
	s := start(t, Config{Answer: a.answer, MaxCalls: 2, Trunks: fixed(trunk)})
	var calls []*caller
	for range 2 {
		calls = append(calls, newWire(t, "127.0.0.1").call(s, ""))
		a.next(t)
	}
	w := newWire(t, "127.0.0.1")
	invite := func(id string) string {
		w.send(s.Addr(), w.message("INVITE", "sip:+15550001111@x", "<sip:+15550001111@x>", id, 1, sdp(w.addr())))
		return w.finalOf(id, 1)
	}
	if m := invite("a"); !strings.HasPrefix(m, "SIP/2.0 503") || field(m, "Retry-After") == "" {
		t.Errorf("full: %s", m)
	}
	if _, err := s.Dial(soon(t), Dialling{Trunk: Trunk{Address: w.addr().String()}, To: "+1",
		From: "+1"}); !errors.Is(err, parley.Unreachable) {
		t.Errorf("dialling when full: %v", err)
	}
	calls[0].ask("BYE", "")
	for give := time.Now().Add(hang); time.Now().Before(give); time.Sleep(time.Millisecond) {
		if m := invite(token(8)); strings.HasPrefix(m, "SIP/2.0 200") {
			break
		}
	}
	a.next(t)
	there := func(id string) string {
		w.send(s.Addr(), w.message("OPTIONS", "sip:+15550001111@x", "<sip:+15550001111@x>", id, 1, ""))
		return w.finalOf(id, 1)
	}
	if m := there("o1"); !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Errorf("asked whether it takes calls: %s", m)
	}
	// The first stop: new calls are turned away, live ones go on. A proxy before several servers learns of it.
	s.Refuse()
	if m := there("o2"); !strings.HasPrefix(m, "SIP/2.0 503") {
		t.Errorf("asked whether it takes calls while it stops: %s", m)
	}
	calls[1].ask("OPTIONS", "")
	w = newWire(t, "127.0.0.1")
	if m := invite("b"); !strings.HasPrefix(m, "SIP/2.0 503") {
		t.Errorf("refusing: %s", m)
	}
	if m := calls[1].ask("OPTIONS", ""); !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Errorf("a live call: %s", m)
	}
}

// TestStop stops a server with calls in every state: when Run returns, all of them are over.
func TestStop(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	ringing := make(chan error, 1)
	s := prepare(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback},
		Trunk{ID: 2, Number: "+15550001112", ByIP: true, Allowed: loopback}),
		Answer: func(ctx context.Context, in *Invite) {
			if in.Trunk.ID == 2 {
				_ = in.Ring()
				<-ctx.Done()
				ringing <- context.Cause(ctx)
				return
			}
			a.answer(ctx, in)
		}})
	stop := launch(t, s)
	f := newFar(t)
	live := newWire(t, "127.0.0.1").call(s, "")
	in := a.next(t)
	w := newWire(t, "127.0.0.1")
	w.send(s.Addr(), w.message("INVITE", "sip:+15550001112@x", "<sip:+15550001112@x>", "r", 1, sdp(w.addr())))
	for !strings.HasPrefix(w.receive(hang), "SIP/2.0 180") {
	}
	out := f.dial(soon(t), s, newPhone(0))
	f.reply(f.take("INVITE"), "180 Ringing", "")
	get(t, f.rang)
	go stop()
	in.ends(t, parley.Shutdown)
	for m := live.receive(hang); !strings.HasPrefix(m, "BYE "); m = live.receive(hang) {
		if m == "" {
			t.Fatal("no BYE")
		}
	}
	if err := get(t, ringing); err != error(parley.Shutdown) {
		t.Errorf("the ringing call ended with %v", err)
	}
	if m := w.finalOf("r", 1); !strings.HasPrefix(m, "SIP/2.0 503") {
		t.Errorf("the ringing call: %s", m)
	}
	if d := get(t, out); !errors.Is(d.err, parley.Shutdown) {
		t.Errorf("the dialled call: %v", d.err)
	}
	f.take("CANCEL")
	stop()
	if _, err := s.Dial(soon(t), Dialling{Trunk: f.trunk(), To: "+1", From: "+1"}); !errors.Is(err, parley.Shutdown) {
		t.Errorf("dialling afterwards: %v", err)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	for listen, want := range map[string]string{s.Addr().String(): "PARLEY_SIP_LISTEN",
		"nonsense": "PARLEY_SIP_LISTEN", "192.0.2.1:5060": "PARLEY_SIP_LISTEN"} {
		if err := New(Config{Listen: listen, Ports: [2]int{20000, 20100}}).Listen(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", listen, err)
		}
	}
	if err := New(Config{Listen: "127.0.0.1:0", Ports: [2]int{20001, 20002}}).Listen(); err == nil ||
		!strings.Contains(err.Error(), "PARLEY_RTP_PORTS") {
		t.Errorf("no ports: %v", err)
	}
	off := New(Config{Listen: "off"})
	if err := off.Listen(); err != nil || off.Addr().IsValid() {
		t.Errorf("off: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := off.Run(ctx); err != nil {
		t.Error(err)
	}
}

// TestWildcard listens on all addresses: each peer is told the local address that it is reached from, and peers
// outside are told the external address.
func TestWildcard(t *testing.T) {
	t.Parallel()
	a := newAnswerer(1000)
	s := start(t, Config{Listen: ":0", External: netip.MustParseAddr("203.0.113.7"), Answer: a.answer,
		Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	if got := s.shown(netip.MustParseAddr("198.51.100.1")).String(); got != "203.0.113.7" {
		t.Errorf("outside: %s", got)
	}
	caller := start(t, Config{})
	for _, transport := range []string{"udp", "tcp"} {
		l, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: fmt.Sprint("127.0.0.1:", s.Addr().Port()),
			Transport: transport}, To: "+15550001111", From: "+15550002222"})
		if err != nil {
			t.Fatal(err)
		}
		r := run(l, newPhone(440))
		in := a.next(t)
		r.phone.hears(t, 1000)
		in.phone.hears(t, 440)
		if got := in.leg.(*leg).own.addr.Addr().String(); got != "127.0.0.1" {
			t.Errorf("loopback is told %s", got)
		}
		r.hangUp(t)
		in.ends(t, parley.CustomerHangup)
	}
	if _, err := os.Stat("/proc/net/if_inet6"); err == nil {
		six := newWire(t, "::1")
		six.send(netip.AddrPortFrom(netip.IPv6Loopback(), s.Addr().Port()),
			six.message("OPTIONS", "sip:x@y", "<sip:x@y>", "six", 1, ""))
		if m := six.receive(100 * time.Millisecond); m != "" {
			t.Errorf("a stranger by IPv6: %s", m)
		}
	}
}
