package sip

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// until waits until a condition is true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for give := time.Now().Add(hang); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatal("waited in vain until " + what)
		}
	}
}

// station answers OPTIONS, and refuses calls with 486, as long as it is up.
type station struct {
	*far
	gone  atomic.Bool
	calls atomic.Int32
}

func newStation(t *testing.T) *station {
	st := &station{far: newFar(t)}
	var wg sync.WaitGroup
	t.Cleanup(func() { st.Close(); wg.Wait() })
	wg.Go(func() {
		buf := make([]byte, 65536)
		for {
			n, from, err := st.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			m := string(buf[:n])
			st.from = from
			switch {
			case st.gone.Load():
			case strings.HasPrefix(m, "OPTIONS "):
				st.reply(m, "200 OK", "")
			case strings.HasPrefix(m, "INVITE "):
				st.calls.Add(1)
				st.reply(m, "486 Busy Here", "")
			}
		}
	})
	return st
}

// TestSurvey: the places of a trunk in use are checked with OPTIONS. Calls go to those that answer.
func TestSurvey(t *testing.T) {
	t.Parallel()
	first, second := newStation(t), newStation(t)
	s := prepare(t, Config{})
	s.passing, s.surveying, s.resolver = time.Second, 20*time.Millisecond, zone(t, first.addr(), second.addr())
	launch(t, s)
	call := func(want *station) {
		t.Helper()
		n := want.calls.Load()
		_, err := s.Dial(soon(t),
			Dialling{Trunk: Trunk{ID: 1, Number: "+15550002222", Address: "trunk.test"}, To: "+15550001111", From: "+15550002222"})
		if codeOf(err) != "486" || want.calls.Load() != n+1 {
			t.Errorf("the call went elsewhere: %v", err)
		}
	}
	shunned := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, is := s.shunned[first.addr()]
		return is
	}
	call(first)
	for range 2 {
		first.gone.Store(true)
		until(t, "the first place is missed", shunned)
		call(second)
		first.gone.Store(false)
		until(t, "the first place is back", func() bool { return !shunned() })
		call(first)
	}
}

// TestRegistrationSeen: when the registrar sees us at another address, we register again.
func TestRegistrationSeen(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	s := prepare(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Address: f.addr().String(), Username: "alice",
		Password: "secret", Register: true})})
	s.alive = 20 * time.Millisecond
	launch(t, s)
	at := func(m, port string) string { return strings.Replace(m, ";rport", ";received=192.0.2.1;rport="+port, 1) }
	f.reply(at(f.take("REGISTER"), "1000"), "200 OK", "", "Expires: 3600")
	for range 3 {
		m := f.receive(hang)
		for strings.TrimSpace(m) == "" {
			m = f.receive(hang)
		}
		if !strings.HasPrefix(m, "OPTIONS ") {
			t.Fatalf("it sends\n%s", m)
		}
		f.reply(at(m, "1000"), "404 Not Found", "")
	}
	f.reply(at(f.take("OPTIONS"), "1001"), "404 Not Found", "")
	f.reply(at(f.take("REGISTER"), "1001"), "200 OK", "", "Expires: 3600")
	f.take("OPTIONS")
}

// TestRegistrationMoved: when our own address changes, we register again.
func TestRegistrationMoved(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	home := netip.MustParseAddrPort("127.0.0.1:9")
	for told, want := range map[string]bool{"127.0.0.1": false, "192.0.2.1": true} {
		r := &registration{server: s, binding: binding{home: home, told: netip.MustParseAddr(told)}}
		if r.moved() != want {
			t.Errorf("told %s: moved is %v", told, !want)
		}
	}
}

// TestRegistrarGone: when a registrar that has answered stops answering, we soon register again, so that another place
// may be found; with one that has never answered we don't.
func TestRegistrarGone(t *testing.T) {
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := &registrar{answer: func(int) (int, error) { return wantExpires, nil }}
			reg := &registration{server: New(Config{}), wake: make(chan struct{}, 1), ask: r.ask}
			probes := 0
			reg.probe = func(context.Context) (string, error) {
				if probes++; probes == 1 && answered {
					return "", nil
				}
				return "", errors.New("nothing")
			}
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() { defer close(over); reg.run(ctx) }()
			time.Sleep(3*probeEvery*keepAlive + time.Second)
			cancel()
			<-over
			if again := len(r.since(time.Time{})) > 2; again != answered { // the last one undoes it
				t.Errorf("answered before: %v; asked at %v", answered, r.asked)
			}
		})
	}
}
