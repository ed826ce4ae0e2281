//go:build stacks

package sip

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/audio"
	"parley/internal/parley"
)

// earlyLinphone has it speak before it answers, which is the test's to say.
const earlyLinphone = "sip incoming_calls_early_media=1"

// startLinphone runs linphone's console telephone. The settings are lines of its configuration: SECTION KEY=VALUE.
func startLinphone(t *testing.T, ca *authority, c call, settings []string, to string) (f *otherStack, port int) {
	dir := t.TempDir()
	port = ownPort(t)
	sections := map[string][]string{
		"sip": {fmt.Sprintf("sip_port=%d", port), fmt.Sprintf("sip_tcp_port=%d", port), fmt.Sprintf("sip_tls_port=%d", port+1),
			"bind_address=" + c.host(),
			"contact=sip:+15550001111@127.0.0.1", "guess_hostname=0", "auto_net_state_mon=0", "verify_server_certs=1", "verify_server_cn=0",
			"root_ca=" + dir + "/ca.pem"},
		"rtp": {"audio_rtp_port=-1", "bind_address=" + c.host()},
		"audio_codec_0": map[audio.Format][]string{0: {"mime=PCMU", "rate=8000", "channels=1"},
			audio.PCMA: {"mime=PCMA", "rate=8000", "channels=1"},
			audio.G722: {"mime=G722", "rate=8000", "channels=1"}, audio.Opus: {"mime=opus", "rate=48000", "channels=2"}}[c.codec],
	}
	for i, name := range argsOf("opus/48000/2", "speex/16000/1", "speex/8000/1", "PCMU/8000/1", "PCMA/8000/1", "G729/8000/1") {
		v := strings.Split(name, "/")
		if v[0] != strings.TrimPrefix(sections["audio_codec_0"][0], "mime=") {
			sections[fmt.Sprintf("audio_codec_%d", i+1)] = argsOf("mime="+v[0], "rate="+v[1], "channels="+v[2], "enabled=0")
		}
	}
	sections["audio_codec_0"] = append(sections["audio_codec_0"], "enabled=1")
	for _, line := range settings {
		section, setting, _ := strings.Cut(line, " ")
		sections[section] = append(sections[section], setting)
	}
	var config strings.Builder
	for name, lines := range sections {
		fmt.Fprintf(&config, "[%s]\n%s\n", name, strings.Join(lines, "\n"))
	}
	home := filepath.Join(dir, ".local", "share", "linphone") // without it, it does nothing
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"rc": config.String(), "ca.pem": ca.pem} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := argsOf("HOME="+dir, "linphonec", "-c", filepath.Join(dir, "rc"), "-d", "5", "-l", filepath.Join(dir, "log"))
	switch {
	case slices.Contains(settings, earlyLinphone):
		args = append(args, "--real-early-media")
	case to == "":
		args = append(args, "-a")
	}
	t.Cleanup(func() {
		if log, _ := os.ReadFile(filepath.Join(dir, "log")); t.Failed() {
			t.Logf("its log:\n%s", log[max(0, len(log)-60000):])
		}
	})
	f = begin(t, dir, "env", args...)
	f.types("soundcard use files\nplay " + toned(t, dir, 440, 16000) + "\nrecord " + filepath.Join(dir, "rec.wav"))
	if to != "" {
		f.types("call " + to)
		return f, port
	}
	awaits(t, "its port", func() bool {
		c, err := net.Dial("tcp", net.JoinHostPort(c.host(), fmt.Sprint(port)))
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	if c.transport == "tls" {
		port++
	}
	return f, port
}

func TestStackLinphone(t *testing.T) {
	installed(t, "linphonec", "-v")
	// It has no certificate of its own, doesn't believe one that names an address (verify_server_cn), and answers an offer of plain sound
	// with keys without any. We don't offer to have RTCP on the port of the sound.
	p := &telephone{stack: "linphone", start: startLinphone, quit: "quit", sound: "rec.wav", can: map[string][]string{
		"plain call, µ-law": nil, "A-law": nil, "G.722": nil, "Opus": nil,
		"packets of 10 ms": argsOf("rtp upload_ptime=10", "rtp download_ptime=10"),
		"packets of 40 ms": argsOf("rtp upload_ptime=40", "rtp download_ptime=40"),
		"packets of 60 ms": argsOf("rtp upload_ptime=60", "rtp download_ptime=60"), "TCP": nil, "TLS": nil, "IPv6": nil,
		"SRTP optional":                   argsOf("sip media_encryption=srtp"),
		"SRTP required, over TLS":         argsOf("sip media_encryption=srtp", "sip media_encryption_mandatory=1"),
		"SRTP by AES_CM_128_HMAC_SHA1_32": argsOf("sip media_encryption=srtp", "sip srtp_crypto_suites=AES_CM_128_HMAC_SHA1_32"),
		"DTLS-SRTP":                       argsOf("sip media_encryption=dtls"),
		timed:                             argsOf("sip session_expires_value=90", "sip session_expires_enabled=1"),
		muxed:                             argsOf("rtp rtcp_mux=1"), reported: nil},
		only: map[string]string{muxed: "in", "TLS": "in", "SRTP required, over TLS": "in", "SRTP optional": "in"}}
	p.try(t)
	p.both(t, "keys (RFC 4733)", nil, func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("1\n2\n#")
		r.phone.await(t, "the keys come", func() bool { return r.phone.keys == "12#" })
		if err := r.leg.Dial("95*"); err != nil {
			t.Fatal(err)
		}
		f.says("Receiving tone *")
		r.hangUp(t)
	})
	p.both(t, "keys (INFO)", argsOf("sip use_info=1", "sip use_rfc2833=0"),
		func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
			r.phone.hears(t, 440)
			f.types("7")
			r.phone.await(t, "the key comes", func() bool { return r.phone.keys == "7" })
			r.hangUp(t)
		})
	p.both(t, "hold and back (re-INVITE)", nil, func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		holds(t, f, r, "pause", "resume")
	})
	try(t, p.stack, "late offer", "in", func(t *testing.T) {
		f, _, _, r := p.called(t, "sip sdp_200_ack=1")
		if first, _, _ := strings.Cut(r.said(), "\nSIP/2.0 "); strings.Contains(first, "m=audio") {
			t.Errorf("it made the offer:\n%s", first)
		}
		p.proves(t, &call{}, f, r)
	})
	p.both(t, "transfer (REFER)", nil, func(t *testing.T, _ *otherStack, s *Server, a *answerer, r *running) {
		r.phone.hears(t, 440)
		transfers(t, s, a, r)
	})
	try(t, p.stack, "early media heard", "out", func(t *testing.T) {
		s, _, ca := answering(t, Config{})
		f, port := p.start(t, ca, call{}, argsOf(earlyLinphone), "")
		r := hearsEarly(t, s, (&call{}).trunk("+15550002222", port, ca.pem), "+15550001111", 440, func() { f.types("answer") })
		p.proves(t, &call{}, f, r)
	})
	try(t, p.stack, "early media sent", "in", func(t *testing.T) {
		calls := make(chan early, 1)
		s := sounding(t, Config{}, func(_ context.Context, e early) { calls <- e; <-e.leg.(*leg).done })
		f, _ := p.start(t, newAuthority(t), call{}, nil, "sip:+15550001111@"+s.Addr().String())
		e := get(t, calls)
		e.phone.await(t, "a second is heard", func() bool { return e.phone.ticks > 60 })
		f.types("terminate")
		e.ends(t, parley.CustomerHangup)
		p.heard(t, f, 1000)
	})
	p.both(t, "they hang up", nil, func(t *testing.T, f *otherStack, _ *Server, _ *answerer, r *running) {
		r.phone.hears(t, 440)
		f.types("terminate")
		r.ends(t, parley.CustomerHangup)
	})
}
