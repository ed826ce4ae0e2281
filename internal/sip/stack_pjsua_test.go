//go:build stacks

package sip

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
)

// pjsua runs PJSIP's command line telephone, which plays 440 Hz.
func pjsua(t testing.TB, ca *authority, rate audio.Rate, args ...string) *otherStack {
	t.Helper()
	return pjsuaOf(t, ca, 440, rate, args...)
}

// pjsuaOf runs one that plays another tone.
func pjsuaOf(t testing.TB, ca *authority, hz float64, rate audio.Rate, args ...string) *otherStack {
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
	return begin(t, dir, "stdbuf",
		append([]string{"-oL", program, "--null-audio", "--no-tones", "--no-color", "--log-level", "5", "--app-log-level", "5",
			"--play-file", toned(t, dir, hz, int(rate)), "--auto-play", "--clock-rate", fmt.Sprint(int(rate)),
			"--rec-file", filepath.Join(dir, "rec.wav"), "--auto-rec", "--rtp-port", fmt.Sprint(ownPort(t)),
			"--tls-ca-file", "ca.pem", "--tls-cert-file", "cert.pem", "--tls-privkey-file", "key.pem"}, args...)...)
}

// here keeps it to this machine.
var here = argsOf("--ip-addr", "127.0.0.1", "--bound-addr", "127.0.0.1")

func argsOf(args ...string) []string { return args }

// startPJSUA runs it as a telephone.
func startPJSUA(t *testing.T, ca *authority, c call, settings []string, to string) (f *otherStack, port int) {
	port = ownPort(t)
	args := append(append(argsOf("--local-port", fmt.Sprint(port)), here...), settings...)
	switch c.codec {
	case audio.Opus, audio.G722:
		args = append(args, "--dis-codec=PCMU", "--dis-codec=PCMA")
	case audio.PCMA:
		args = append(args, "--dis-codec=PCMU", "--dis-codec=G722")
	default:
		args = append(args, "--dis-codec=PCMA", "--dis-codec=G722")
	}
	if c.transport == "tls" {
		args = append(args, "--use-tls")
	}
	rate := audio.Narrow
	if c.codec != 0 {
		rate = c.codec.Rate()
	}
	if to != "" {
		if c.transport == "tls" {
			args = append(args, "--no-udp", "--no-tcp")
		}
		return pjsua(t, ca, rate, append(args, to)...), port
	}
	f = pjsua(t, ca, rate, append(args, "--auto-answer", "200")...)
	f.says("Ready: Success")
	if c.transport == "tls" {
		port++
	}
	return f, port
}

func TestStackPJSUA(t *testing.T) {
	installed(t, "pjsua", "--version")
	calm := "--no-vad" // otherwise it says nothing in silence
	p := &telephone{stack: "pjsua", start: startPJSUA, quit: "q", sound: "rec.wav", can: map[string][]string{
		"plain call, µ-law": argsOf(calm), "A-law": argsOf(calm), "G.722": argsOf(calm, "--dis-codec=opus"),
		"Opus":             argsOf(calm, "--dis-codec=G722", "--add-codec=opus"),
		"packets of 10 ms": argsOf(calm, "--ptime=10"), "packets of 40 ms": argsOf(calm, "--ptime=40"),
		"packets of 60 ms": argsOf(calm, "--ptime=60"), "TCP": argsOf(calm), "TLS": argsOf(calm),
		"SRTP optional":            argsOf(calm, "--use-srtp=1", "--srtp-secure=0"),
		"SRTP required, over TLS":  argsOf(calm, "--use-srtp=2", "--srtp-secure=1"),
		"SRTP by AEAD_AES_128_GCM": argsOf(calm, "--use-srtp=2", "--srtp-secure=0"), // which it prefers, if it was built with it
		"DTLS-SRTP":                argsOf(calm, "--use-srtp=2", "--srtp-secure=0", "--srtp-keying=1"),
		timed:                      argsOf(calm, "--use-timer=3", "--timer-se=90"),
		reliably:                   argsOf(calm, "--use-100rel"), muxed: argsOf(calm, "--rtcp-mux"), reported: argsOf(calm)},
		// We don't offer to have RTCP on the port of the sound; it does not ring when it answers at once.
		only: map[string]string{muxed: "in", reliably: "in", "SRTP by AEAD_AES_128_GCM": "in"}}
	p.try(t)
	p.both(t, "keys (RFC 4733)", argsOf(calm), func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("#\n12#")
		r.phone.await(t, "the keys come", func() bool { return r.phone.keys == "12#" })
		if err := r.leg.Dial("95*"); err != nil {
			t.Fatal(err)
		}
		f.says("Incoming DTMF on call 0: *")
		r.hangUp(t)
	})
	p.both(t, "keys (INFO)", argsOf(calm), func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("*\n7")
		r.phone.await(t, "the key comes", func() bool { return r.phone.keys == "7" })
		r.hangUp(t)
	})
	p.both(t, "hold and back (re-INVITE)", argsOf(calm), func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		holds(t, f, r, "H", "v")
	})
	p.both(t, "session refreshed", argsOf(calm, "--use-timer=3", "--timer-se=90"),
		func(t *testing.T, _ *otherStack, _ *Server, _ *answerer, r *running) {
			renewed(t, r, 440)
		})
	p.both(t, "UPDATE in an answered call", argsOf(calm), func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("U")
		awaits(t, "UPDATE", func() bool { return strings.Contains(r.said(), "\nUPDATE ") })
		(&call{}).proves(t, r, 440)
		r.hangUp(t)
	})
	p.both(t, "nothing is sent in silence (DTX)", nil, func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("cd 1 3") // its player no longer goes to the call
		silent := func() bool {
			before := r.own().Stats().Received
			time.Sleep(300 * time.Millisecond)
			return r.own().Stats().Received-before < 3
		}
		awaits(t, "it to send nothing", silent)
		f.types("cc 1 3")
		(&call{}).proves(t, r, 440)
		if lost := r.own().Stats().Lost; lost > 5 {
			t.Errorf("%d packets are taken for lost", lost)
		}
		r.hangUp(t)
	})
	try(t, p.stack, "late offer", "in", func(t *testing.T) {
		s, a, ca := answering(t, Config{})
		f, _ := p.start(t, ca, call{}, argsOf(calm), "")
		f.types("o\nm\nsip:7@" + s.Addr().String())
		r := a.next(t).running
		if first, _, _ := strings.Cut(r.said(), "\nSIP/2.0 "); strings.Contains(first, "m=audio") {
			t.Errorf("it made the offer:\n%s", first)
		}
		p.proves(t, &call{}, f, r)
	})
	p.both(t, "transfer (REFER)", argsOf(calm), func(t *testing.T, _ *otherStack, s *Server, a *answerer, r *running) {
		r.phone.hears(t, 440)
		transfers(t, s, a, r)
	})
	try(t, p.stack, "attended transfer to somebody (REFER with Replaces)", "in", func(t *testing.T) {
		joins(t, p, "[\nX\n1")
	})
	try(t, p.stack, "taken over by somebody (Replaces)", "in", func(t *testing.T) {
		joins(t, p, "X\n0")
	})
	for row, setting := range map[string]string{"early media heard": calm, reliably: "--use-100rel"} {
		try(t, p.stack, row, "out", func(t *testing.T) {
			s, _, ca := answering(t, Config{})
			port := ownPort(t)
			f := pjsua(t, ca, audio.Narrow,
				append(here, calm, setting, "--dis-codec=G722", "--local-port", fmt.Sprint(port), "--auto-answer", "183")...)
			f.says("Ready: Success")
			r := hearsEarly(t, s, (&call{}).trunk("+15550002222", port, ca.pem), "+15550001111", 440, func() { f.types("a\n200") })
			(&call{row: row}).proves(t, r, 440)
			r.hangUp(t)
			p.heard(t, f, 1000)
		})
	}
	try(t, p.stack, "early media sent", "in", func(t *testing.T) {
		calls := make(chan early, 1)
		s := sounding(t, Config{}, func(_ context.Context, e early) { calls <- e; <-e.leg.(*leg).done })
		f, _ := p.start(t, newAuthority(t), call{}, argsOf(calm), "sip:+15550001111@"+s.Addr().String())
		e := get(t, calls)
		e.phone.await(t, "a second is heard", func() bool { return e.phone.ticks > 60 })
		f.types("h")
		e.ends(t, parley.CustomerHangup)
		p.heard(t, f, 1000)
	})
	try(t, p.stack, "redirect (302)", "out", func(t *testing.T) {
		s, _, ca := answering(t, Config{})
		_, next := p.start(t, ca, call{}, argsOf(calm), "")
		port := ownPort(t)
		f := pjsua(t, ca, audio.Narrow, append(here, "--local-port", fmt.Sprint(port))...)
		f.says("Ready: Success")
		d := Dialling{Trunk: (&call{}).trunk("+15550002222", port, ""), To: "+15550001111", From: "+15550002222",
			May: func(string) error { return nil }}
		var redirecting sync.WaitGroup
		redirecting.Go(func() {
			awaits(t, "the call", func() bool { return strings.Contains(f.text(), "Press a to answer") })
			f.types(fmt.Sprintf("a\n302\nsip:next@127.0.0.1:%d", next))
		})
		defer redirecting.Wait()
		l, err := s.Dial(soon(t), d)
		if err != nil {
			t.Fatal(err)
		}
		r := run(l, newPhone(1000))
		r.phone.hears(t, 440)
		r.hangUp(t)
	})
	try(t, p.stack, "busy", "out", func(t *testing.T) {
		s, _, ca := answering(t, Config{})
		port := ownPort(t)
		f := pjsua(t, ca, audio.Narrow, append(here, "--local-port", fmt.Sprint(port), "--auto-answer", "486")...)
		f.says("Ready: Success")
		_, err := s.Dial(soon(t), Dialling{Trunk: Trunk{Address: fmt.Sprintf("127.0.0.1:%d", port)}, To: "+15550001111", From: "+15550002222"})
		if !errors.Is(err, parley.LineBusy) {
			t.Errorf("got %v", err)
		}
	})
	p.both(t, "they hang up", argsOf(calm), func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("h")
		r.ends(t, parley.CustomerHangup)
	})
}

// joins has one pjsua call us and another one, which plays 700 Hz, and join the two by typing something. The conversation
// goes on with the other one.
func joins(t *testing.T, p *telephone, join string) {
	t.Helper()
	who := newAnswerer(1000)
	s := start(t,
		Config{Answer: who.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Address: "127.0.0.1:9", ByIP: true, Allowed: loopback})})
	ca, port := newAuthority(t), ownPort(t)
	other := pjsuaOf(t, ca, 700, audio.Narrow,
		append(here, "--no-vad", "--dis-codec=G722", "--dis-codec=PCMA", "--local-port", fmt.Sprint(port), "--auto-answer", "200")...)
	other.says("Ready: Success")
	f, _ := p.start(t, ca, call{}, argsOf("--no-vad"), "sip:+15550001111@"+s.Addr().String())
	r := who.next(t).running
	r.own().MayRefer(func(string) error { return nil })
	r.phone.hears(t, 440)
	f.types(fmt.Sprintf("m\nsip:other@127.0.0.1:%d", port))
	f.says("Call 1 state changed to CONFIRMED")
	f.types(join)
	r.phone.hears(t, 700)
	r.phone.await(t, "a second is heard", func() bool { return r.phone.ticks > 60 })
	r.hangUp(t)
	p.heard(t, other, 1000)
}

// hearsEarly calls a stack that plays a tone before it answers.
func hearsEarly(t *testing.T, s *Server, trunk Trunk, to string, hz float64, answer func()) *running {
	t.Helper()
	before, out := newPhone(0), make(chan dialled, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		defer cancel()
		l, err := s.Dial(ctx, Dialling{Trunk: trunk, To: to, From: trunk.Number, Early: func(audio.Rate) audio.Peer { return before }})
		if err != nil {
			out <- dialled{err: err}
			return
		}
		out <- dialled{leg: run(l, newPhone(1000))}
	}()
	before.hears(t, hz)
	answer()
	d := get(t, out)
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.leg
}
