package sip

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
	"parley/internal/testenv"
)

// TestBaresip runs the command line of docs/telephony.md: a softphone on this machine registers, calls an assistant,
// plays a tone and hears another; unencrypted, and encrypted in each way that it supports.
func TestBaresip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		account string
		suite   rtp.Suite
		tls     bool
	}{"plain": {}, "srtp": {";mediaenc=srtp", rtp.AES80, false}, "srtp-mand": {";mediaenc=srtp-mand", rtp.AES80, false},
		"srtp-mandf": {";mediaenc=srtp-mandf", rtp.AES80, false}, "dtls": {";mediaenc=dtls_srtp", rtp.AES80, false},
		"opus": {";audio_codecs=opus/48000/2", "", false}, "opus and srtp": {";audio_codecs=opus/48000/2;mediaenc=srtp", rtp.AES80, false},
		"tls": {";mediaenc=srtp-mand", rtp.AES80, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := newAuthority(t)
			a := newAnswerer(1000)
			s := start(t, Config{Softphone: true, Answer: a.answer, Secure: "127.0.0.1:0",
				TLS: ca.config(t, tomorrow, "127.0.0.1")})
			at := s.Addr().String()
			if c.tls {
				at = s.over() + ";transport=tls"
			}
			b := newBaresip(t, ca, fmt.Sprintf("<sip:me@%s>;regint=60;auth_pass=none%s\n", at, c.account), "127.0.0.1:0",
				"-t", "3", "-e", "d sip:7@"+at)
			in := a.next(t)
			if in.in.AssistantID != 7 || in.leg.Rate() != audio.Wide {
				t.Errorf("assistant %d, rate %d", in.in.AssistantID, in.leg.Rate())
			}
			in.phone.hears(t, 440)
			if got := in.leg.(*leg).Stats(); got.Suite != c.suite || got.Unreadable > 2 {
				t.Errorf("%+v, want suite %q", got, c.suite)
			}
			if got := in.leg.(*leg).Media().Codec; (got == "opus") != strings.Contains(c.account, "opus") {
				t.Errorf("it speaks %s", got)
			}
			in.ends(t, parley.CustomerHangup)
			if err := get(t, b.over); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.out.String(), "200 OK") {
				t.Error("it didn't register")
			}
			b.heard(t, 1000)
		})
	}
}

// TestBaresipAnswers calls baresip: over UDP and TLS, encrypted or not.
func TestBaresipAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		account, transport, srtp string
		suite                    rtp.Suite
	}{"plain": {"", "udp", "off", ""}, "offered in vain": {"", "udp", "optional", ""},
		"optional": {";mediaenc=srtp", "udp", "optional", rtp.AES80}, "required": {";mediaenc=srtp-mand", "udp", "required", rtp.AES80},
		"dtls": {";mediaenc=dtls_srtp", "udp", "dtls", rtp.AES80},
		"tcp":  {"", "tcp", "off", ""}, "opus": {";audio_codecs=opus/48000/2", "udp", "off", ""},
		"tls": {";mediaenc=srtp-mand", "tls", "required", rtp.AES80}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := newAuthority(t)
			port := uint16(testenv.Ports(t, 2))
			b := newBaresip(t, ca, "<sip:+15550001111@127.0.0.1>;regint=0;answermode=auto"+c.account+"\n",
				fmt.Sprintf("127.0.0.1:%d", port), "-t", "4")
			s := start(t, Config{})
			trunk := Trunk{ID: 7, Number: "+15550002222", Address: fmt.Sprintf("127.0.0.1:%d", port), Transport: c.transport,
				SRTP: c.srtp, CA: ca.pem}
			if strings.Contains(c.account, "opus") {
				trunk.Codecs = []audio.Format{audio.Opus, audio.PCMU}
			}
			if c.transport == "tls" {
				port++ // where it listens for TLS
				trunk.Address = fmt.Sprintf("127.0.0.1:%d", port)
			}
			b.listens(t, port)
			l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
			if err != nil {
				t.Fatal(err)
			}
			r := run(l, newPhone(1000))
			r.phone.hears(t, 440)
			if got := l.(*leg).Stats(); got.Suite != c.suite || got.Unreadable > 2 {
				t.Errorf("%+v, want suite %q", got, c.suite)
			}
			r.phone.await(t, "it has heard a second", func() bool { return r.phone.ticks > 75 })
			if got := l.(*leg).Media().Codec; (got == "opus") != strings.Contains(c.account, "opus") {
				t.Errorf("it speaks %s", got)
			}
			r.hangUp(t)
			get(t, b.over)
			b.heard(t, 1000)
		})
	}
}

// baresip is a running baresip: it plays a tone of 440 Hz.
type baresip struct {
	dir  string
	out  strings.Builder
	over chan error
}

func newBaresip(t *testing.T, ca *authority, accounts, listen string, args ...string) *baresip {
	t.Helper()
	program := testenv.Program(t, "baresip")
	b := &baresip{dir: t.TempDir(), over: make(chan error, 1)}
	modules := "/usr/lib/baresip/modules"
	if found, _ := filepath.Glob("/usr/lib/*/baresip/modules"); len(found) > 0 {
		modules = found[0]
	}
	cert, key := ca.pair(t, tomorrow, "127.0.0.1")
	for name, text := range map[string]string{
		"config": "module_path " + modules + "\nmodule g722.so\nmodule g711.so\nmodule opus.so\nmodule srtp.so\nmodule dtls_srtp.so\n" +
			"module ausine.so\nmodule sndfile.so\nmodule_app account.so\nmodule_app menu.so\n" +
			"sip_listen " + listen + "\nsip_certificate " + b.dir + "/own.pem\nsip_cafile " + b.dir +
			"/ca.pem\naudio_source ausine,440\nausrc_srate 48000\nausrc_channels 2\nsnd_path " + b.dir + "\n",
		"accounts": accounts,
		"contacts": "",
		"own.pem":  cert + key,
		"ca.pem":   ca.pem,
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, append([]string{"-f", b.dir}, args...)...)
	cmd.Stdout, cmd.Stderr = &b.out, &b.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{}) // closed when all of its output is there
	go func() { defer close(written); b.over <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-written
		if t.Failed() {
			t.Log(b.out.String())
		}
	})
	return b
}

// listens waits until it accepts connections.
func (b *baresip) listens(t *testing.T, port uint16) {
	t.Helper()
	for give := time.Now().Add(hang); ; {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(give) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// heard asserts that the middle of what it heard is a tone.
func (b *baresip) heard(t *testing.T, hz float64) {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(b.dir, "*dec.wav"))
	if len(list) != 1 {
		t.Fatalf("recordings %v", list)
	}
	f, err := os.Open(list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := audio.NewWAVReader(f)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, 1<<19)
	n, _ := w.Read(pcm)
	if w.Channels == 2 { // of one sound
		for i := range n / 2 {
			pcm[i] = pcm[2*i]
		}
		n /= 2
	}
	if rate := audio.Rate(w.Rate); n < w.Rate || share(pcm[n/2:n/2+w.Rate/5], hz, rate) < 0.9 {
		t.Errorf("of %d samples that it heard the middle is no tone of %g Hz: %.2f", n, hz,
			share(pcm[n/2:n/2+w.Rate/5], hz, rate))
	}
}
