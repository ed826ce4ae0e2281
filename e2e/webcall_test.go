package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// microphone makes the sound of a browser's fake microphone: pauses, in seconds, and sentences spoken by flite, in
// turn. Chromium starts it when a call begins.
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

// fakeMicrophone returns Chromium's flags for a fake microphone.
func fakeMicrophone(file string) []string {
	return []string{"use-fake-device-for-media-stream", "use-fake-ui-for-media-stream",
		"use-file-for-fake-audio-capture=" + file + "%noloop", "autoplay-policy=no-user-gesture-required"}
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
	share(t, machine) // the visitor interrupts at a moment that was recorded beforehand
	s, model := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	s.assistant(t, map[string]any{"initial_message": "Hello {{customer_name}}.", "system_prompt": "Answer.",
		"widget_settings": map[string]any{"mode": "both",
			"pre_chat_fields": []any{map[string]any{"variable": "customer_name", "label": "Your name"}}}})
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
	p.until(inside("[role=log] .user .body") + "?.innerText.length > 3") // heard
	p.told("[role=log] .assistant", "We open at seven")
	p.until("[..." + inside("[role=log]") + ".querySelectorAll('.user')].length >= 2") // interrupted
	p.told("[role=log] .assistant", "Sorry, go ahead.")
	p.shot("widget-call-turns", false)
	p.accessible("a call")
	p.tap(".calling [aria-label=Mute]")
	p.until(inside("[aria-label=Unmute]") + ".ariaPressed === 'true'")
	p.tap(".end")
	p.told(".notice", "The call has ended.")
	c := s.lastCall(t, "completed")
	if c.EndedReason != "customer_hangup" || c.TotalCost <= 0 || len(c.Turns) < 5 ||
		c.InputVariable["customer_name"] != "Ana" {
		t.Fatalf("call %+v", c)
	}
	cut := false
	for _, turn := range c.Turns {
		t.Logf("%+v", turn)
		if turn.Speaker == "assistant" && turn.Interrupted && strings.HasPrefix(turn.Text, "We open at seven") &&
			len(turn.Text) < len(long)-50 {
			cut = true
		}
	}
	if !cut {
		t.Error("the reply was not cut off where it was interrupted")
	}
	if said := c.Turns[1]; said.Speaker != "customer" || !strings.Contains(strings.ToLower(said.Text), "open") {
		t.Errorf("heard %q", said.Text)
	}

	// A second call, and the visitor leaves the page: the call ends cleanly.
	p.tap("[aria-label=Call]")
	p.told(".calling", "You can speak now")
	s.lastCall(t, "in-progress")
	p.open("about:blank")
	if c := s.lastCall(t, "completed"); c.EndedReason != "customer_hangup" {
		t.Errorf("leaving the page ended the call by %s", c.EndedReason)
	}
}

func TestWebCallThatCantBe(t *testing.T) {
	share(t, webCall)
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
	p.accessible("a microphone that is denied")
	p.size(390, 844)
	p.scheme("dark")
	p.shot("widget-denied-phone", false)
	if box := eval[[]float64](p, "(r => [r.x, r.bottom, r.width, r.height])("+inside(".panel")+
		".getBoundingClientRect())"); box[0] != 0 || box[1] != 844 || box[2] != 390 || box[3] > 400 {
		t.Errorf("on a phone the window for calls is at %v", box)
	}

	// No microphone at all.
	q := browse(t, "use-fake-ui-for-media-stream")
	q.open(site)
	q.tap(".launch")
	q.tap(".wide")
	q.told(".notice", "No microphone was found. Connect one and call again.")

	// An insecure page has no microphone.
	q = browse(t, "host-resolver-rules=MAP shop.example.com 127.0.0.1", "use-fake-device-for-media-stream",
		"use-fake-ui-for-media-stream")
	q.open(strings.Replace(site, "127.0.0.1", "shop.example.com", 1))
	q.tap(".launch")
	q.tap(".wide")
	q.told(".notice", "Calls work on secure pages (https) only.")

	q = browse(t, fakeMicrophone(microphone(t, 30))...)
	for _, part := range []string{"402", "Parley: ", "ERR_INTERNET_DISCONNECTED", "Failed to fetch"} {
		q.expect(part)
	}
	q.open(site)
	q.tap(".launch")
	credit := func(amount string) {
		t.Helper()
		c := exec.Command(binary, "credit", "--user", s.Email, "--amount="+amount)
		c.Env = append(os.Environ(), s.env...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	credit("-100")
	q.tap(".wide")
	q.told(".notice", "Calls are not available at the moment.")
	credit("100")

	// The network is down: before a page has loaded the module for calls, and after.
	q.open(site)
	for range 2 {
		q.offline(true)
		q.tap(".wide")
		q.told(".notice", "The server can’t be reached. Check your network and call again.")
		q.shot("widget-call-offline", false)
		q.offline(false)
		q.tap(".wide")
		q.told(".calling", "You can speak now")
		q.tap(".end")
		q.told(".notice", "The call has ended.")
	}
	s.lastCall(t, "completed")
}

// The network fails in the middle of a call: the visitor sees that the widget reconnects, and then that the call is
// lost.
func TestWebCallIsLost(t *testing.T) {
	share(t, webCall)
	s, _ := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	s.assistant(t, map[string]any{"initial_message": "Hello.", "widget_settings": map[string]any{"mode": "voice"}})
	p := browse(t, fakeMicrophone(microphone(t, 60))...)
	p.expect("ERR_CONNECTION_REFUSED") // the browser tries to tell the server that the call is over
	p.open(website(t, s, ""))
	p.tap(".launch")
	p.tap(".wide")
	p.told("[role=log] .assistant", "Hello.")
	p.tap("[aria-label=Keypad]")
	p.shot("widget-voice-keypad", false)
	p.accessible("voice with a keypad")
	s.kill(t)
	p.told(".calling", "Connecting…")
	p.told(".notice", "The connection was lost. Check your network and call again.")
	p.focused(".wide")
	p.until(inside(".keys") + ".hidden && " + inside("[aria-label=Keypad]") + ".hidden")
	p.shot("widget-call-lost", false)
}

// A visitor presses keys for an assistant that asks for them: with the mouse, and on the keyboard.
func TestWebCallKeypad(t *testing.T) {
	share(t, webCall)
	s, model := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	s.assistant(t, map[string]any{"initial_message": "Press hash to begin.",
		"tools":           []any{map[string]any{"type": "collect_keypad", "timeout": 10, "stop_key": "#"}},
		"widget_settings": map[string]any{"mode": "both", "theme": "light"}})
	model.Script(aitest.Behaviour{Text: "Your number, please.",
		Calls: []ai.ToolCall{{ID: "call_1", Name: "collect_keypad", Arguments: "{}"}}},
		aitest.Behaviour{Text: "Thank you."})
	p := browse(t, fakeMicrophone(microphone(t, 120))...)
	p.scheme("light")
	p.open(website(t, s, ""))
	p.tap(".launch")
	p.until("!" + inside("[aria-label=Keypad]") + ".checkVisibility()")
	p.do(chromedp.Evaluate[chromedp.Void](`(R => { window.RTCPeerConnection = class extends R {
		constructor(...a) {
			super(...a);
			setInterval(async () => { for (const s of (await this.getStats()).values()) if (s.type === "inbound-rtp") window.level = s.audioLevel; }, 20);
		}
	} })(RTCPeerConnection)`)) // how loud the far end is
	p.tap("[aria-label=Call]")
	p.told("[role=log] .assistant", "Press hash to begin.")
	p.until("!" + inside(".keys") + ".checkVisibility()")
	p.tap("[aria-label=Keypad]")
	p.until(inside("[aria-label=Keypad]") + ".ariaExpanded === 'true' && " + inside("[role=group].keys") +
		".checkVisibility()")
	p.focused(".keys button")
	p.until(inside(".keys [aria-label=Star]") + ".innerText === '*'")
	p.accessible("keypad")
	p.until("window.level < 0.001")
	p.tap(".keys [aria-label=Hash]")
	p.until("window.level > 0.01") // the question; its text appears when the reply is over
	p.tap(".keys button:nth-of-type(1)")
	p.do(chromedp.KeyEvent("2"), chromedp.KeyEvent("x"), chromedp.KeyEvent("0"))
	p.told(".keys p", "#120")
	p.shot("widget-keypad", false)
	p.do(chromedp.KeyEvent("#"))
	p.told("[role=log] .assistant", "Thank you.")
	p.told("[role=log] .user", "#")
	p.until("!" + inside("[role=log]") + ".innerText.includes('keypad')")
	q := model.Requests()
	if last := q[len(q)-1].Messages; last[len(last)-1].Text != `{"digits":"120","ended_by":"key"}` {
		t.Errorf("the model was told %+v", last)
	}
	p.size(390, 844)
	p.scheme("dark")
	p.do(chromedp.Evaluate[chromedp.Void](inside(".root") + ".classList.replace('light', 'auto')"))
	p.accessible("keypad, dark, on a phone")
	p.shot("widget-keypad-phone-dark", false)

	// Escape closes the keypad, but not the window; after that, typed digits are no keys.
	p.do(chromedp.KeyEvent("\u001b"))
	p.until("!" + inside(".keys") + ".checkVisibility() && " + inside(".panel") + ".checkVisibility()")
	p.focused("[aria-label=Keypad]")
	p.tap(".writer textarea")
	p.do(chromedp.KeyEvent("9"))
	p.until(inside(".keys p") + ".textContent === '#120#' && " + inside("textarea") + ".value === '9'")
	p.tap(".end")
	p.told(".notice", "The call has ended.")
	p.until(inside(".keys p") + ".textContent === ''")
	s.lastCall(t, "completed")
}

// offer is the SDP offer of a call to which nobody will connect.
const offer = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111 9\r\n" +
	"c=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\n" +
	"a=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 " +
	"00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\na=setup:actpass\r\n" +
	"a=mid:0\r\na=sendrecv\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:9 G722/8000\r\n"

// Strangers who request calls endlessly, and hang up calls that aren't theirs, disturb no call that is under way.
func TestWebCallStrangers(t *testing.T) {
	share(t, webCall)
	s, model := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0", "PARLEY_RATE_PUBLIC=on")
	site := website(t, s, "")
	s.assistant(t, map[string]any{"initial_message": "Press hash to begin.",
		"widget_settings": map[string]any{"mode": "voice", "allowed_origins": []string{site}}})
	p := browse(t, fakeMicrophone(microphone(t, 120))...)
	p.open(site)
	p.tap(".launch")
	p.tap(".wide")
	p.told("[role=log] .assistant", "Press hash to begin.")

	ask := func(method, path, origin string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/web-calls/"+path,
			strings.NewReader(offer))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/sdp")
		r.Header.Set("Origin", origin)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := ask("POST", s.AssistantUUID, "https://elsewhere.example.com"); got != http.StatusForbidden {
		t.Errorf("another website's call is answered %d", got)
	}
	answered := map[int]int{}
	for range 200 {
		answered[ask("POST", s.AssistantUUID, site)]++
		if got := ask("DELETE", s.AssistantUUID+"/00000000-0000-4000-8000-000000000000",
			site); got != http.StatusNotFound {
			t.Fatalf("hanging up what is nobody's is answered %d", got)
		}
	}
	t.Logf("answered %v", answered)
	if answered[http.StatusCreated] == 0 || answered[http.StatusTooManyRequests] < 150 ||
		answered[http.StatusCreated]+answered[http.StatusServiceUnavailable]+answered[http.StatusTooManyRequests] != 200 {
		t.Errorf("200 calls at once were answered %v", answered)
	}

	// The first caller is still heard and answered.
	model.Script(aitest.Behaviour{Text: "Still here."})
	p.tap("[aria-label=Keypad]")
	p.tap(".keys [aria-label=Hash]")
	p.told("[role=log] .assistant", "Still here.")
	p.tap(".end")
	p.told(".notice", "The call has ended.")
	var list struct{ Data []heardCall }
	for deadline := time.Now().Add(patience); ; {
		s.call(t, "GET", "/user/calls?type=web&status=completed", nil, &list)
		if len(list.Data) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the call is not completed")
		}
	}
	if c := list.Data[0]; len(list.Data) != 1 || c.EndedReason != "customer_hangup" {
		t.Errorf("completed %+v", list.Data)
	}
}
