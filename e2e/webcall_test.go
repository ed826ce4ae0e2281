package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
)

// microphone is what a browser hears in place of one: pauses, in seconds, and sentences spoken by flite, in turn. Chromium begins it when
// somebody calls.
func microphone(t *testing.T, parts ...any) string {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	var files []string
	for i, part := range parts {
		file := filepath.Join(dir, fmt.Sprintf("%d.wav", i))
		switch part := part.(type) {
		case string:
			run("flite", "-voice", "rms", "-t", part, "-o", file+".raw.wav")
			run("sox", "-q", file+".raw.wav", "-r", "48000", "-c", "1", "-b", "16", file)
		case int:
			run("sox", "-q", "-n", "-r", "48000", "-c", "1", "-b", "16", file, "trim", "0", fmt.Sprint(part))
		}
		files = append(files, file)
	}
	whole := filepath.Join(dir, "mic.wav")
	run("sox", append(append([]string{"-q"}, files...), whole)...)
	return whole
}

// fakeMicrophone are the flags for it.
func fakeMicrophone(file string) []string {
	return []string{"use-fake-device-for-media-stream", "use-fake-ui-for-media-stream", "use-file-for-fake-audio-capture=" + file + "%noloop", "autoplay-policy=no-user-gesture-required"}
}

type heardCall struct {
	ID          int64
	Status      string
	EndedReason string `json:"ended_reason"`
	Type        string
	Turns       []struct {
		Speaker, Text string
		Interrupted   bool
		Latency       map[string]int64
	}
	TotalCost     float64           `json:"total_cost"`
	InputVariable map[string]string `json:"input_variables"`
}

// lastCall waits until the account's newest call is in a state.
func (s *program) lastCall(t *testing.T, status string) heardCall {
	t.Helper()
	var list struct{ Data []struct{ ID int64 } }
	var c heardCall
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if s.call(t, "GET", "/user/calls?type=web", nil, &list); len(list.Data) > 0 {
			if s.call(t, "GET", fmt.Sprintf("/user/calls/%d", list.Data[0].ID), nil, &c); c.Status == status {
				return c
			}
		}
	}
	t.Fatalf("the newest call is %+v, not %s\n%s", c, status, s.log)
	return c
}

// A visitor calls from the widget: hears the greeting, asks, is understood and answered, interrupts, and hangs up.
func TestWebCallFromTheWidget(t *testing.T) {
	s, model := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	s.assistant(t, map[string]any{"initial_message": "Hello {{customer_name}}.", "system_prompt": "Answer.", "widget_settings": map[string]any{"mode": "both"}})
	mic := microphone(t, 3, "what time do you open tomorrow", 4, "wait a moment please stop talking now", 30)
	p := browse(t, fakeMicrophone(mic)...)
	long := strings.Repeat("We open at seven in the morning and we close at six in the evening. ", 6)
	model.Script(aitest.Behaviour{Text: long}, aitest.Behaviour{Text: "Sorry, go ahead."})
	p.open(website(t, s, `data-variables='{"customer_name":"Ana"}'`))
	p.tap(".launch")
	p.tap("[aria-label=Call]")
	began := time.Now()
	p.told(".calling", "You can speak now")
	t.Logf("connected after %v", time.Since(began))
	p.told("[role=log] .assistant", "Hello Ana.")
	p.shot("widget-call", false)
	p.accessible("a call")
	p.until(inside("[role=log] .user .body") + "?.innerText.length > 3") // heard
	p.told("[role=log] .assistant", "We open at seven")
	p.until("[..." + inside("[role=log]") + ".querySelectorAll('.user')].length >= 2") // interrupted
	p.told("[role=log] .assistant", "Sorry, go ahead.")
	p.shot("widget-call-turns", false)
	p.tap(".calling [aria-label=Mute]")
	p.until(inside("[aria-label=Unmute]") + ".ariaPressed === 'true'")
	p.tap(".end")
	p.told(".notice", "The call has ended.")
	c := s.lastCall(t, "completed")
	if c.EndedReason != "customer_hangup" || c.TotalCost <= 0 || len(c.Turns) < 5 || c.InputVariable["customer_name"] != "Ana" {
		t.Fatalf("call %+v", c)
	}
	cut := false
	for _, turn := range c.Turns {
		t.Logf("%+v", turn)
		if turn.Speaker == "assistant" && turn.Interrupted && strings.HasPrefix(turn.Text, "We open at seven") && len(turn.Text) < len(long)-50 {
			cut = true
		}
	}
	if !cut {
		t.Error("the reply was not cut off where it was interrupted")
	}
	if said := c.Turns[1]; said.Speaker != "customer" || !strings.Contains(strings.ToLower(said.Text), "open") {
		t.Errorf("heard %q", said.Text)
	}

	// Again, and the page is left: the call ends cleanly.
	p.tap("[aria-label=Call]")
	p.told(".calling", "You can speak now")
	s.lastCall(t, "in-progress")
	p.open("about:blank")
	if c := s.lastCall(t, "completed"); c.EndedReason != "customer_hangup" {
		t.Errorf("leaving the page ended the call by %s", c.EndedReason)
	}
}

func TestWebCallThatCantBe(t *testing.T) {
	s, _ := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	s.assistant(t, map[string]any{"widget_settings": map[string]any{"mode": "voice"}})
	site := website(t, s, "")
	p := browse(t, "deny-permission-prompts", "use-fake-device-for-media-stream")
	p.open(site)
	p.tap(".launch")
	p.until("!" + inside(".writer"))
	p.focused(".wide")
	p.shot("widget-voice", false)
	p.accessible("voice")
	p.tap(".wide")
	p.told(".notice", "The microphone is blocked. Allow it for this website")
	p.shot("widget-denied", false)

	q := browse(t, fakeMicrophone(microphone(t, 30))...)
	q.expect("402")
	q.expect("Parley: ")
	q.open(site)
	q.tap(".launch")
	spend := exec.Command(binary, "credit", "--user", s.Email, "--amount=-100")
	spend.Env = append(os.Environ(), s.env...)
	if out, err := spend.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	q.tap(".wide")
	q.told(".notice", "The chat is not available at the moment.")
}
