package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
)

// A caller is greeted, asks with flite's voice, is understood by pocketsphinx, is answered from the prompt, and hangs
// up; the row, the transcript, the recording, the price and the event have all of it. No network, no vendor.
func TestPhoneLocal(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "pocketsphinx_batch")
	told := make(chan string, 10)
	hook := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { told <- read(r) }))
	l := telephone(t)
	l.change(t, map[string]any{"initial_message": "Hello, this is the bakery.", "record": true,
		"is_webhook_active": true, "webhook_url": hook})
	before := l.balance(t)
	c := l.ring(t, l.phone)
	greeted := hears(t, c, c.Answered)
	t.Logf("INVITE to 200: %v, ACK to the first packet of the greeting: %v",
		c.Answered.Sub(c.Invited).Round(time.Millisecond), greeted.Sub(c.Answered).Round(time.Millisecond))
	silent(t, c, 800*time.Millisecond)
	said := c.Say(speech(t, "When are you open on Saturday?"))
	<-said.Done()
	replied := hears(t, c, said.To())
	t.Logf("the reply came %v after the last word", replied.Sub(said.To()).Round(time.Millisecond))
	silent(t, c, time.Second)
	keep(t, c)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if row.Type != "inbound" || row.Duration < 3 || row.TotalCost <= 0 {
		t.Errorf("%+v", row)
	}
	t.Logf("transcript:\n%s", row.Transcript)
	lines := strings.Split(row.Transcript, "\n")
	if len(lines) < 3 || lines[0] != "AI: Hello, this is the bakery." ||
		!strings.HasPrefix(lines[1], "Customer: ") || !strings.HasPrefix(lines[2], "AI: ") {
		t.Errorf("transcript:\n%s", row.Transcript)
	}
	if heard := strings.ToLower(strings.Join(row.said("customer"), " ")); !strings.Contains(heard, "open") {
		t.Errorf("of \"When are you open on Saturday?\" %q was understood", heard)
	}
	if answer := strings.Join(row.said("assistant"), " "); !strings.Contains(answer, "Monday to Saturday") {
		t.Errorf("the answer was %q", answer)
	}
	if got := before - l.balance(t); math.Abs(got-row.TotalCost) > 1e-6 {
		t.Errorf("the balance fell by %v, the call cost %v", got, row.TotalCost)
	}
	left, right, rate := l.recording(t, row)
	if seconds := int64(len(left) / rate); seconds < row.Duration-2 || seconds > row.Duration+1 || rate != 8000 {
		t.Errorf("a call of %d s has a recording of %d s at %d Hz", row.Duration, seconds, rate)
	}
	if audio.Peak(left) < -30 || audio.Peak(right) < -30 {
		t.Errorf("a side of the recording is silent: %.0f and %.0f dBFS", audio.Peak(left), audio.Peak(right))
	}
	// Only the assistant is heard in the greeting.
	if opening := left[:rate/2]; audio.Peak(opening) > -40 {
		t.Errorf("the customer is heard during the greeting: %.0f dBFS", audio.Peak(opening))
	}
	select {
	case body := <-told:
		if !strings.Contains(body, `"event":"call.completed"`) || !strings.Contains(body, `"status":"completed"`) {
			t.Errorf("the event was %s", body)
		}
	case <-time.After(patience):
		t.Error("no event came")
	}
}

func read(r *http.Request) string {
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

// The telephone of docs/telephony.md, as a newcomer sets it up.
func TestPhoneBaresip(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "baresip", "pocketsphinx_batch")
	l := telephone(t)
	l.change(t, map[string]any{"initial_message": "Hello."})
	dir := t.TempDir()
	script := make([]int16, 3*8000) // time for the greeting
	script = append(script, speech(t, "When are you open on Saturday?")...)
	script = append(script, make([]int16, 12*8000)...) // time for the answer, even on a busy machine; then the call ends
	files := map[string]string{
		"accounts": "<sip:visitor@127.0.0.1>;regint=0;audio_codecs=pcmu\n", "contacts": "",
		"config": "poll_method epoll\nsip_listen 127.0.0.1:0\naudio_source aufile," + dir +
			"/in.wav\naudio_player aubridge,nowhere\naudio_alert aubridge,nowhere\n" +
			"snd_path " + dir + "\nmodule_path /usr/lib/baresip/modules\nmodule g711.so\nmodule aufile.so\nmodule aubridge.so\nmodule sndfile.so\n" +
			"module_tmp account.so\nmodule_app menu.so\n",
		"in.wav": string(wav(script, 8000)),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("baresip", "-4", "-n", "127.0.0.1", "-f", dir, "-t", "40", "-e",
		fmt.Sprintf("/dial sip:%d@%s", l.Assistant, l.sip))
	printed := &logBuffer{}
	cmd.Stdout, cmd.Stderr = printed, printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("baresip:\n%s", printed)
		}
	}()
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if !strings.Contains(row.Transcript, "AI: Hello.\nCustomer: ") ||
		!strings.Contains(row.Transcript, "Monday to Saturday") {
		t.Errorf("transcript:\n%s", row.Transcript)
	}
	dumps, err := filepath.Glob(filepath.Join(dir, "dump-*-dec.wav"))
	if err != nil || len(dumps) != 1 {
		t.Fatalf("what baresip heard: %v %v", dumps, err)
	}
	f, err := os.Open(dumps[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := audio.NewWAVReader(f)
	if err != nil {
		t.Fatal(err)
	}
	heard := make([]int16, 30*8000)
	n, err := w.Read(heard)
	if err != nil || audio.Peak(heard[:n]) < -20 {
		t.Errorf("baresip heard %d samples of at most %.0f dBFS: %v", n, audio.Peak(heard[:n]), err)
	}
}

// A caller from elsewhere that is no trunk gets no answer at all, so that
// scanners find no telephone.
func TestPhoneStranger(t *testing.T) {
	share(t, call)
	l := telephone(t)
	elsewhere, err := phone.ListenOn(netip.MustParseAddrPort("127.0.0.2:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	for _, to := range []string{"+12025550123", itoa(l.Assistant), "nobody"} {
		ctx, cancel := timeout(t, time.Second)
		_, err := elsewhere.Call(ctx, "+12025550199", to, l.sip)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stranger who calls %s: %v", to, err)
		}
	}
	if n := elsewhere.Received(); n != 0 {
		t.Errorf("a stranger got %d messages", n)
	}
	if n := len(l.talks(t)); n != 0 {
		t.Errorf("%d calls were made of it", n)
	}
	ctx, cancel := timeout(t, patience)
	defer cancel()
	_, err = l.phone.Call(ctx, "visitor", "999999999", l.sip)
	if r, ok := errors.AsType[*phone.Refused](err); !ok || r.Code != 404 {
		t.Errorf("a softphone that calls an unknown assistant: %v", err)
	}
}
