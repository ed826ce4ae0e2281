package sip

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/internal/audio"
	"parley/internal/rtp"
	"parley/internal/testenv"
)

// TestBaresip is docs/telephony.md's command line: a softphone on this machine registers, calls an assistant, says a
// tone and hears another.
func TestBaresip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		account string
		suite   rtp.Suite
	}{"plain": {}, "srtp": {";mediaenc=srtp", rtp.AES80}, "srtp-mand": {";mediaenc=srtp-mand", rtp.AES80},
		"srtp-mandf": {";mediaenc=srtp-mandf", rtp.AES80}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			baresipCalls(t, c.account, c.suite)
		})
	}
}

func baresipCalls(t *testing.T, account string, suite rtp.Suite) {
	program := testenv.Program(t, "baresip")
	a := newAnswerer(1000)
	s := start(t, Config{Softphone: true, Answer: a.answer})
	dir := t.TempDir()
	modules := "/usr/lib/baresip/modules"
	if found, _ := filepath.Glob("/usr/lib/*/baresip/modules"); len(found) > 0 {
		modules = found[0]
	}
	for name, text := range map[string]string{
		"config": "module_path " + modules + "\nmodule g722.so\nmodule g711.so\nmodule srtp.so\nmodule ausine.so\nmodule sndfile.so\nmodule_app account.so\nmodule_app menu.so\n" +
			"sip_listen 127.0.0.1:0\naudio_source ausine,440\nausrc_srate 48000\nausrc_channels 2\nsnd_path " +
			dir + "\n",
		"accounts": fmt.Sprintf("<sip:me@%s>;regint=60;auth_pass=none%s\n", s.Addr(), account),
		"contacts": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	cmd := exec.Command(program, "-f", dir, "-t", "3", "-e", "d sip:7@"+s.Addr().String())
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	in := a.next(t)
	if in.in.AssistantID != 7 || in.leg.Rate() != audio.Wide {
		t.Errorf("assistant %d, rate %d", in.in.AssistantID, in.leg.Rate())
	}
	in.phone.hears(t, 440)
	if got := in.leg.(*leg).Stats(); got.Suite != suite || got.Unreadable > 2 {
		t.Errorf("%+v, want suite %q", got, suite)
	}
	in.ends(t, parley.CustomerHangup)
	if err := get(t, over); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "200 OK") {
		t.Error("it didn't register")
	}
	heard, _ := filepath.Glob(filepath.Join(dir, "*dec.wav"))
	if len(heard) != 1 {
		t.Fatalf("recordings %v", heard)
	}
	f, err := os.Open(heard[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := audio.NewWAVReader(f)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, 1<<17)
	n, _ := w.Read(pcm)
	if n < 16000 || share(pcm[n/2:n/2+3200], 1000, 16000) < 0.9 {
		t.Errorf("of %d samples that it heard the middle is no tone of 1000 Hz: %.2f", n,
			share(pcm[n/2:n/2+3200], 1000, 16000))
	}
}
