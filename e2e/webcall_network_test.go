package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/ai/aitest"
)

// nowhere is the address that a server tells browsers and that nobody reaches: neither UDP nor TCP gets to its port.
const nowhere = "PARLEY_EXTERNAL_IP=192.0.2.1"

// A visitor whose network lets nothing but HTTPS through calls all the same: by TURN on the port that serves the page.
func TestWebCallThroughHTTPS(t *testing.T) {
	share(t, webCall)
	s, model := thinking(t, append(overHTTPS, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0", nowhere)...)
	s.assistant(t, map[string]any{"initial_message": "Hello there.", "widget_settings": map[string]any{"mode": "both"}})
	model.Usually(aitest.Behaviour{Text: "At seven."})
	p := browse(t, append(fakeMicrophone(microphone(t, 3, "what time do you open tomorrow", 60)), "ignore-certificate-errors")...)
	p.open(website(t, s, ""))
	p.tap(".launch")
	began := time.Now()
	p.tap("[aria-label=Call]")
	p.told(".calling", "You can speak now")
	t.Logf("connected after %v", time.Since(began))
	p.told("[role=log] .assistant", "Hello there.")
	p.told("[role=log] .assistant", "At seven.")
	p.tap(".end")
	if c := s.lastCall(t, "completed"); c.EndedReason != "customer_hangup" || len(c.Turns) < 3 {
		t.Errorf("call %+v", c)
	}
}

// A visitor whom no way leads to the server is told within seconds, and asked to write instead.
func TestWebCallUnreachable(t *testing.T) {
	share(t, webCall)
	s, _ := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0", nowhere)
	s.assistant(t, map[string]any{"widget_settings": map[string]any{"mode": "both"}})
	p := browse(t, fakeMicrophone(microphone(t, 60))...)
	p.open(website(t, s, ""))
	p.tap(".launch")
	p.tap("[aria-label=Call]")
	began := time.Now()
	p.told(".notice", "doesn’t let the call through. Try another network. You can write here instead.")
	t.Logf("told after %v", time.Since(began))
	p.shot("widget-unreachable", false)
}

// countReconnects has the page count how often its call was connected anew.
func (p *page) countReconnects() {
	p.do(chromedp.Evaluate[chromedp.Void](`(() => {
		window.anew = 0;
		const send = window.fetch.bind(window);
		window.fetch = async (url, how) => {
			const res = await send(url, how);
			if (how && how.method === "PATCH" && res.status === 200) anew++;
			return res;
		};
	})()`))
}

// changeNetwork tells the page that its network is another one, and waits until its call was connected anew once.
func (p *page) changeNetwork() {
	p.do(chromedp.Evaluate[chromedp.Void](`window.before = anew; dispatchEvent(new Event("online"))`))
	p.until("anew === before + 1")
}

// While a call is on, the network changes and the headset is pulled out: the call goes on.
func TestWebCallGoesOn(t *testing.T) {
	share(t, webCall)
	s, model := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	s.assistant(t, map[string]any{"initial_message": "Hello there.", "widget_settings": map[string]any{"mode": "both"}})
	model.Usually(aitest.Behaviour{Text: "At seven."})
	p := browse(t, fakeMicrophone(microphone(t, 6, "what time do you open tomorrow", 60))...)
	p.open(website(t, s, ""))
	p.countReconnects()
	p.do(chromedp.Evaluate[chromedp.Void](`(() => {
		window.microphones = [];
		const take = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
		navigator.mediaDevices.getUserMedia = async (wanted) => {
			const mic = await take(wanted);
			microphones.push(mic.getAudioTracks()[0]);
			return mic;
		};
	})()`))
	p.tap(".launch")
	p.tap("[aria-label=Call]")
	p.told(".calling", "You can speak now")
	p.told("[role=log] .assistant", "Hello there.")
	p.changeNetwork()
	p.changeNetwork()
	p.do(chromedp.Evaluate[chromedp.Void](`(() => { microphones[0].stop(); microphones[0].dispatchEvent(new Event("ended")); })()`))
	p.until("microphones.length === 2")
	p.told("[role=log] .assistant", "At seven.") // heard by the second microphone, after the second change
	if n := eval[int](p, "anew"); n != 2 {
		t.Errorf("the call was connected anew %d times for 2 changes", n)
	}
	p.tap(".end")
	if c := s.lastCall(t, "completed"); c.EndedReason != "customer_hangup" {
		t.Errorf("call %+v", c)
	}
}
