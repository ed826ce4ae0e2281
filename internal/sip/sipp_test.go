package sip

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/testenv"
)

// sipps counts the ports that were given to sipp: several run at once.
var sipps atomic.Int32

// sippPorts returns the first of six ports that nobody else is given: they are above those that the system hands out. sipp listens on
// the first one, and takes four from the third on for its sound.
func sippPorts(t *testing.T) netip.AddrPort {
	t.Helper()
	for range 500 {
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(61000+sipps.Add(8)%4000))
		udp, err := net.ListenPacket("udp", at.String())
		if err != nil {
			continue
		}
		udp.Close()
		tcp, err := net.Listen("tcp", at.String())
		if err != nil {
			continue
		}
		tcp.Close()
		return at
	}
	t.Fatal("no port is free for sipp")
	return netip.AddrPort{}
}

// sipp runs a scenario on a new port; over receives its outcome.
func sipp(t *testing.T, scenario, transport string, args ...string) (at netip.AddrPort, over <-chan error) {
	t.Helper()
	program := testenv.Program(t, "sipp")
	at = sippPorts(t)
	media := int(at.Port()) + 2
	file, err := filepath.Abs("testdata/sipp/" + scenario + ".xml")
	if err != nil {
		t.Fatal(err)
	}
	mode := map[string]string{"udp": "u1", "tcp": "t1"}[transport]
	dir := t.TempDir()
	cmd := exec.Command(program, append([]string{"-sf", file, "-i", "127.0.0.1", "-p", strconv.Itoa(int(at.Port())),
		"-mi", "127.0.0.1", "-mp", strconv.Itoa(media),
		"-t", mode, "-m", "1", "-nostdin", "-timeout", "15", "-timeout_error", "-trace_err", "-trace_msg",
		"-error_file", dir + "/errors", "-message_file", dir + "/messages"}, args...)...)
	done := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			out, _ := exec.Command("sh", "-c", "cat "+dir+"/errors "+dir+"/messages").CombinedOutput()
			t.Logf("%s:\n%s", scenario, out)
		}
	})
	return at, done
}

func succeeds(t *testing.T, over <-chan error) {
	t.Helper()
	if err := get(t, over); err != nil {
		t.Fatalf("sipp: %v", err)
	}
}

func TestSippCalls(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			a := newAnswerer(0)
			s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
				Allowed: loopback}, Trunk{ID: 2, Number: "+15550001112", Username: "bob", Password: "right"})})
			_, over := sipp(t, "uac", transport, "-s", "+15550001111", s.Addr().String())
			in := a.next(t)
			in.ends(t, parley.CustomerHangup)
			succeeds(t, over)
			in.phone.await(t, "keys came", func() bool { return in.phone.keys == "5#" })
			_, over = sipp(t, "uac_100rel", transport, "-s", "+15550001111", s.Addr().String())
			a.next(t).ends(t, parley.CustomerHangup)
			succeeds(t, over)
			_, over = sipp(t, "uac_login", transport, "-s", "+15550001112", s.Addr().String())
			a.next(t).ends(t, parley.CustomerHangup)
			succeeds(t, over)
		})
	}
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		ended := make(chan error, 1)
		s := start(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}),
			Answer: func(ctx context.Context, in *Invite) {
				_ = in.Ring()
				<-ctx.Done()
				ended <- context.Cause(ctx)
			}})
		_, over := sipp(t, "uac_cancel", "udp", "-s", "+15550001111", s.Addr().String())
		if err := get(t, ended); err != error(parley.CustomerHangup) {
			t.Errorf("ended with %v", err)
		}
		succeeds(t, over)
	})
}

func TestSippAnswers(t *testing.T) {
	t.Parallel()
	dial := func(t *testing.T, ctx context.Context, scenario, transport string) (*running, <-chan error, error) {
		s := start(t, Config{})
		at, over := sipp(t, scenario, transport)
		trunk := Trunk{Address: at.String(), Transport: transport, Username: "bob", Password: "right"}
		for give := time.Now().Add(hang); transport == "tcp"; { // until it listens
			if _, err := s.Check(ctx, Trunk{Address: at.String(), Transport: "tcp"}); err == nil ||
				!errors.Is(err, parley.Unreachable) || time.Now().After(give) {
				break
			}
		}
		l, err := s.Dial(ctx, Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
		if err != nil {
			return nil, over, err
		}
		return run(l, newPhone(440)), over, nil
	}
	for _, scenario := range []string{"uas", "uas_login", "uas_hangup", "uas_100rel"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			r, over, err := dial(t, soon(t), scenario, "udp")
			if err != nil {
				t.Fatal(err)
			}
			if scenario == "uas_hangup" {
				r.ends(t, parley.CustomerHangup)
			} else {
				r.phone.await(t, "the call goes on for a while", func() bool { return r.phone.ticks > 5 })
				r.hangUp(t)
			}
			succeeds(t, over)
		})
	}
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		_, over, err := dial(t, soon(t), "uas_busy", "udp")
		if !errors.Is(err, parley.LineBusy) {
			t.Errorf("got %v", err)
		}
		succeeds(t, over)
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeoutCause(soon(t), 2*time.Second, parley.NoAnswer)
		defer cancel()
		_, over, err := dial(t, ctx, "uas_silent", "udp")
		if !errors.Is(err, parley.NoAnswer) {
			t.Errorf("got %v", err)
		}
		succeeds(t, over)
	})
}
