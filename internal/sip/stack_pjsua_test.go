//go:build stacks

package sip

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"parley"
	"parley/internal/audio"
	"parley/internal/rtp"
)

// pjsua runs PJSIP's command line telephone, which plays 440 Hz.
func pjsua(t testing.TB, ca *authority, rate audio.Rate, args ...string) *foreign {
	t.Helper()
	dir := t.TempDir()
	cert, key := ca.pair(t, tomorrow, "127.0.0.1")
	for name, text := range map[string]string{"ca.pem": ca.pem, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := exec.LookPath("pjsua")
	if err != nil {
		t.Skip("pjsua is not installed")
	}
	// it only writes its output in large pieces
	return begin(t, dir, "stdbuf", append([]string{"-oL", program, "--null-audio", "--no-tones", "--no-color", "--no-vad", "--ip-addr", "127.0.0.1",
		"--bound-addr", "127.0.0.1", "--log-level", "5", "--app-log-level", "5", "--play-file", toned(t, dir, 440, int(rate)), "--auto-play", "--clock-rate", fmt.Sprint(int(rate)),
		"--rec-file", filepath.Join(dir, "rec.wav"), "--auto-rec", "--rtp-port", fmt.Sprint(freePort(t)),
		"--tls-ca-file", "ca.pem", "--tls-cert-file", "cert.pem", "--tls-privkey-file", "key.pem"}, args...)...)
}

func list(args ...string) []string { return args }

func TestStackPJSUA(t *testing.T) {
	const stack = "pjsua"
	narrow, wide := list("--dis-codec=G722", "--dis-codec=PCMA"), list("--dis-codec=PCMU", "--dis-codec=PCMA")
	for _, c := range []struct {
		row, transport, srtp string
		suite                rtp.Suite
		rate                 audio.Rate
		args                 []string
	}{
		{"plain call, µ-law", "udp", "off", "", audio.Narrow, narrow},
		{"A-law", "udp", "off", "", audio.Narrow, list("--dis-codec=G722", "--dis-codec=PCMU")},
		{"G.722", "udp", "off", "", audio.Wide, wide},
		{"packets of 40 ms", "udp", "off", "", audio.Narrow, append(list("--ptime=40"), narrow...)},
		{"TCP", "tcp", "off", "", audio.Narrow, narrow},
		{"TLS", "tls", "off", "", audio.Narrow, narrow},
		{"SRTP optional", "udp", "optional", rtp.AES80, audio.Narrow, append(list("--use-srtp=1", "--srtp-secure=0"), narrow...)},
		{"SRTP required, over TLS", "tls", "required", rtp.AES80, audio.Narrow, append(list("--use-srtp=2", "--srtp-secure=1"), narrow...)},
		{"session timer", "udp", "off", "", audio.Narrow, append(list("--use-timer=3", "--timer-se=90"), narrow...)},
		{"reliable ringing (100rel)", "udp", "off", "", audio.Narrow, append(list("--use-100rel"), narrow...)},
	} {
		check := func(t *testing.T, f *foreign, r *running) {
			r.phone.hears(t, 440)
			r.phone.await(t, "a second is heard", func() bool { return r.phone.ticks > 60 })
			got := r.own().Stats()
			if r.leg.Rate() != c.rate || got.Suite != c.suite {
				t.Errorf("rate %d, suite %q", r.leg.Rate(), got.Suite)
			}
			if c.row == "session timer" && r.own().session.Load() == nil {
				t.Error("no session timer")
			}
			r.hangUp(t)
			f.types("q")
			f.quits()
			recorded(t, filepath.Join(f.dir, "rec.wav"), 1000)
		}
		try(t, stack, c.row, "in", func(t *testing.T) {
			s, a, ca := answering(t, Config{})
			at, args := s.Addr().String(), append(list("--local-port", fmt.Sprint(freePort(t))), c.args...)
			switch c.transport {
			case "tcp":
				at += ";transport=tcp"
			case "tls":
				at, args = s.over()+";transport=tls", append(args, "--use-tls", "--no-udp", "--no-tcp")
			}
			f := pjsua(t, ca, c.rate, append(args, "sip:7@"+at)...)
			check(t, f, a.next(t).running)
		})
		try(t, stack, c.row, "out", func(t *testing.T) {
			s, _, ca := answering(t, Config{})
			port := freePort(t)
			args := append(list("--local-port", fmt.Sprint(port), "--auto-answer", "200"), c.args...)
			trunk := Trunk{ID: 7, Number: "+15550002222", Transport: c.transport, SRTP: c.srtp, CA: ca.pem}
			if c.transport == "tls" {
				args = append(args, "--use-tls")
			}
			f := pjsua(t, ca, c.rate, args...)
			f.says("Ready: Success")
			if c.transport == "tls" {
				port++
			}
			trunk.Address = fmt.Sprintf("127.0.0.1:%d", port)
			check(t, f, dials(t, s, trunk, "+15550001111"))
		})
	}
	try(t, stack, "keys (RFC 4733)", "in", func(t *testing.T) {
		s, a, ca := answering(t, Config{})
		f := pjsua(t, ca, audio.Narrow, "--local-port", fmt.Sprint(freePort(t)), "sip:7@"+s.Addr().String())
		r := a.next(t)
		r.phone.hears(t, 440)
		f.types("#\n12#\n")
		r.phone.await(t, "the keys come", func() bool { return r.phone.keys == "12#" })
		if err := r.leg.Dial("95*"); err != nil {
			t.Fatal(err)
		}
		f.says("Incoming DTMF on call 0: *")
		r.hangUp(t)
	})
	try(t, stack, "keys (RFC 4733)", "out", func(t *testing.T) {
		s, _, ca := answering(t, Config{})
		port := freePort(t)
		f := pjsua(t, ca, audio.Narrow, "--local-port", fmt.Sprint(port), "--auto-answer", "200", "--dis-codec=G722")
		f.says("Ready: Success")
		r := dials(t, s, Trunk{ID: 7, Number: "+15550002222", Address: fmt.Sprintf("127.0.0.1:%d", port)}, "+15550001111")
		r.phone.hears(t, 440)
		if err := r.leg.Dial("95*"); err != nil {
			t.Fatal(err)
		}
		f.says("Incoming DTMF on call 0: *")
		f.types("#\n12#\n")
		r.phone.await(t, "the keys come", func() bool { return r.phone.keys == "12#" })
		r.hangUp(t)
	})
	try(t, stack, "keys (INFO)", "in", func(t *testing.T) {
		s, a, ca := answering(t, Config{})
		f := pjsua(t, ca, audio.Narrow, "--local-port", fmt.Sprint(freePort(t)), "sip:7@"+s.Addr().String())
		r := a.next(t)
		r.phone.hears(t, 440)
		f.types("*\n7\n")
		r.phone.await(t, "the key comes", func() bool { return r.phone.keys == "7" })
		r.hangUp(t)
	})
	try(t, stack, "hold and back (re-INVITE)", "in", func(t *testing.T) {
		s, a, ca := answering(t, Config{})
		f := pjsua(t, ca, audio.Narrow, "--local-port", fmt.Sprint(freePort(t)), "sip:7@"+s.Addr().String())
		holds(t, f, a.next(t).running)
	})
	try(t, stack, "hold and back (re-INVITE)", "out", func(t *testing.T) {
		s, _, ca := answering(t, Config{})
		port := freePort(t)
		f := pjsua(t, ca, audio.Narrow, "--local-port", fmt.Sprint(port), "--auto-answer", "200", "--dis-codec=G722")
		f.says("Ready: Success")
		holds(t, f, dials(t, s, Trunk{ID: 7, Number: "+15550002222", Address: fmt.Sprintf("127.0.0.1:%d", port)}, "+15550001111"))
	})
	try(t, stack, "transfer (REFER)", "in", func(t *testing.T) {
		s, a, ca := answering(t, Config{})
		_ = pjsua(t, ca, audio.Narrow, "--local-port", fmt.Sprint(freePort(t)), "sip:7@"+s.Addr().String())
		r := a.next(t)
		r.phone.hears(t, 440)
		transfers(t, s, a, r.running)
	})
	try(t, stack, "busy", "out", func(t *testing.T) {
		s, _, ca := answering(t, Config{})
		port := freePort(t)
		f := pjsua(t, ca, audio.Narrow, "--local-port", fmt.Sprint(port), "--auto-answer", "486")
		f.says("Ready: Success")
		_, err := s.Dial(soon(t), Dialling{Trunk: Trunk{Address: fmt.Sprintf("127.0.0.1:%d", port)}, To: "+15550001111", From: "+15550002222"})
		if !errors.Is(err, parley.LineBusy) {
			t.Errorf("got %v", err)
		}
	})
}

// holds has pjsua hold a call, and resume it.
func holds(t *testing.T, f *foreign, r *running) {
	t.Helper()
	r.phone.hears(t, 440)
	f.types("H")
	f.says("Call 0 media 0 [type=audio], status is Local hold")
	awaits(t, "the conversation to stand still", r.still)
	f.types("v")
	awaits(t, "the conversation to go on", func() bool { return !r.still() })
	r.phone.hears(t, 440)
	r.hangUp(t)
}

// transfers sends the far end of a call to assistant 8, by REFER.
func transfers(t *testing.T, s *Server, a *answerer, r *running) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.own().Transfer(soon(t), "sip:8@"+s.Addr().String()) }()
	second := a.next(t)
	if second.in.AssistantID != 8 {
		t.Errorf("it called %d", second.in.AssistantID)
	}
	second.phone.hears(t, 440)
	if err := get(t, done); err != nil {
		t.Errorf("the transfer: %v", err)
	}
	second.hangUp(t)
}
