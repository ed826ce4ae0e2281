//go:build stacks

package sip

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley/internal/audio"
	"parley/internal/parley"
)

// startBaresip runs baresip as a telephone. The first setting is of the account, the others are lines of its
// configuration.
func startBaresip(t *testing.T, ca *authority, c call, settings []string, to string) (f *otherStack, port int) {
	dir := t.TempDir()
	modules := "/usr/lib/baresip/modules"
	if found, _ := filepath.Glob("/usr/lib/*/baresip/modules"); len(found) > 0 {
		modules = found[0]
	}
	port = ownPort(t)
	host := c.host()
	if c.six {
		host = "[::1]"
	}
	codec := map[audio.Format]string{0: "pcmu", audio.PCMA: "pcma", audio.G722: "g722", audio.Opus: "opus/48000/2"}[c.codec]
	account := fmt.Sprintf("<sip:+15550001111@%s>;regint=0;audio_codecs=%s", host, codec)
	if to == "" {
		account += ";answermode=auto"
	}
	config := "module_path " + modules + "\nmodule g722.so\nmodule g711.so\nmodule opus.so\nmodule srtp.so\nmodule dtls_srtp.so\n" +
		"module ausine.so\nmodule sndfile.so\nmodule stdio.so\n" +
		"module_app account.so\nmodule_app menu.so\naudio_source ausine,440\nausrc_srate 48000\nausrc_channels 2\n" +
		fmt.Sprintf("sip_listen %s:%d\nsip_certificate %s/own.pem\nsip_cafile %s/ca.pem\nsnd_path %s\n", host, port, dir, dir, dir)
	if len(settings) > 0 {
		account += settings[0]
		for _, line := range settings[1:] {
			config += line + "\n"
		}
	}
	cert, key := ca.pair(t, tomorrow, "127.0.0.1")
	for name, text := range map[string]string{"config": config, "accounts": account + "\n", "contacts": "", "own.pem": cert + key,
		"ca.pem": ca.pem} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := argsOf("-f", dir)
	if c.six {
		args = append(args, "-6")
	}
	if to != "" {
		return begin(t, dir, "baresip", append(args, "-e", "d "+to)...), port
	}
	f = begin(t, dir, "baresip", args...)
	f.says("baresip is ready")
	if c.transport == "tls" {
		port++
	}
	return f, port
}

func TestStackBaresip(t *testing.T) {
	installed(t, "baresip", "-h")
	srtp, mandatory := argsOf(";mediaenc=srtp"), argsOf(";mediaenc=srtp-mand")
	p := &telephone{stack: "baresip", start: startBaresip, quit: "q", sound: "*dec.wav", can: map[string][]string{
		"plain call, µ-law": nil, "A-law": nil, "G.722": nil, "Opus": nil, "packets of 10 ms": argsOf(";ptime=10"),
		"packets of 40 ms": argsOf(";ptime=40"),
		"packets of 60 ms": argsOf(";ptime=60"), "TCP": nil, "TLS": nil, "IPv6": nil, "SRTP optional": srtp, "SRTP required, over TLS": mandatory,
		"DTLS-SRTP": argsOf(";mediaenc=dtls_srtp"), muxed: argsOf(";rtcp_mux=yes", "rtcp_mux yes"), reported: nil},
		// We don't offer to have RTCP on the port of the sound. Where it answers, its packets are as long as we like ours.
		only: map[string]string{muxed: "in", "packets of 10 ms": "in", "packets of 40 ms": "in", "packets of 60 ms": "in"}}
	p.try(t)
	p.both(t, "keys (RFC 4733)", nil, func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("12#")
		r.phone.await(t, "the keys come", func() bool { return r.phone.keys == "12#" })
		r.hangUp(t) // it doesn't say what it gets of ours
	})
	p.both(t, "keys (INFO)", argsOf(";dtmfmode=info"), func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("7")
		r.phone.await(t, "the key comes", func() bool { return r.phone.keys == "7" })
		r.hangUp(t)
	})
	p.both(t, "hold and back (re-INVITE)", nil, func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		holds(t, f, r, "x", "X")
	})
	p.both(t, "transfer (REFER)", nil, func(t *testing.T, _ *otherStack, s *Server, a *answerer, r *running) {
		r.phone.hears(t, 440)
		transfers(t, s, a, r)
	})
	try(t, p.stack, "early media sent", "in", func(t *testing.T) {
		calls := make(chan early, 1)
		s := sounding(t, Config{}, func(_ context.Context, e early) { calls <- e; <-e.leg.(*leg).done })
		f, _ := p.start(t, newAuthority(t), call{}, nil, "sip:+15550001111@"+s.Addr().String())
		e := get(t, calls)
		e.phone.await(t, "a second is heard", func() bool { return e.phone.ticks > 60 })
		f.types("b")
		e.ends(t, parley.CustomerHangup)
		p.heard(t, f, 1000)
	})
	p.both(t, "they hang up", nil, func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("b")
		r.ends(t, parley.CustomerHangup)
	})
}
