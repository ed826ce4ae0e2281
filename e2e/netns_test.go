package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/ai/aitest"
)

// apartNet is the network of browsers that run in a namespace of their own: of 198.18.0.0/15, which is for tests (RFC 2544). The server
// is its first address.
var apartNet = fmt.Sprintf("198.18.%d.", os.Getpid()%250)

// apart is a network namespace with a wire to this machine, in which a browser runs.
type apart struct {
	t          *testing.T
	name, wire string
	address    int // the last byte of the browser's
}

// apartFree is held by the test whose network it is: it has one address.
var apartFree sync.Mutex

// newApart makes a namespace. The test is skipped where that is not allowed.
func newApart(t *testing.T) *apart {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may make a network namespace")
	}
	apartFree.Lock()
	t.Cleanup(apartFree.Unlock)
	a := &apart{t: t, name: fmt.Sprintf("parley-%d", os.Getpid()), wire: fmt.Sprintf("p%d", os.Getpid()), address: 2}
	t.Cleanup(func() {
		exec.Command("ip", "link", "del", a.wire).Run()
		exec.Command("ip", "netns", "del", a.name).Run()
	})
	for _, line := range []string{
		"netns add " + a.name,
		"link add " + a.wire + " type veth peer name browser netns " + a.name,
		"addr add " + apartNet + "1/24 dev " + a.wire,
		"link set " + a.wire + " up",
		"-n " + a.name + " link set lo up",
		"-n " + a.name + " addr add " + apartNet + "2/24 dev browser",
		"-n " + a.name + " link set browser addrgenmode none", // an IPv6 address that comes seconds later would end what the browser loads
		"-n " + a.name + " link set browser up",
		"-n " + a.name + " route add default via " + apartNet + "1",
		"-n " + a.name + " rule add pref 9 ipproto udp dport 9 prohibit", // discard: that rules by protocol are known
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("no network namespace can be made here: ip %s: %v %s", line, err, out)
		}
	}
	return a
}

func (a *apart) ip(args ...string) {
	a.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		a.t.Fatalf("ip %s: %v %s", strings.Join(args, " "), err, out)
	}
}

// inside does what ip does, in the namespace.
func (a *apart) inside(args ...string) {
	a.t.Helper()
	a.ip(append([]string{"-n", a.name}, args...)...)
}

// move gives the browser another address in place of its own.
func (a *apart) move() {
	a.t.Helper()
	a.inside("addr", "del", fmt.Sprintf("%s%d/24", apartNet, a.address), "dev", "browser")
	a.address++
	a.inside("addr", "add", fmt.Sprintf("%s%d/24", apartNet, a.address), "dev", "browser")
	a.inside("route", "replace", "default", "via", apartNet+"1")
}

// browse opens a browser in the namespace.
func (a *apart) browse(flags ...string) *page {
	a.t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		a.t.Fatalf("no chromium: apt-get install chromium: %v", err)
	}
	path := filepath.Join(a.t.TempDir(), "chromium")
	if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\nexec ip netns exec %s %s \"$@\"\n", a.name, chromium), 0o755); err != nil {
		a.t.Fatal(err)
	}
	return browseWith(a.t, path, flags...)
}

// site is website for browsers in the namespace.
func (a *apart) site(s *program) string {
	a.t.Helper()
	l, err := net.Listen("tcp", apartNet+"1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	far := &httptest.Server{Listener: l, Config: &http.Server{Handler: shopWith(s, "")}}
	far.Start()
	a.t.Cleanup(far.Close)
	return far.URL
}

// calls has a visitor of a site in the namespace call its assistant, and says when they could speak.
func (a *apart) calls(site string, quiet int) (p *page, connected time.Duration) {
	a.t.Helper()
	p = a.browse(append(fakeMicrophone(microphone(a.t, quiet, "what time do you open tomorrow", 60)), "ignore-certificate-errors",
		"unsafely-treat-insecure-origin-as-secure="+site)...)
	eventually(a.t, "the widget", func() bool { // a rule that has just changed breaks off what the browser loads (ERR_NETWORK_CHANGED)
		p.open(site)
		return eval[bool](p, "document.querySelector('parley-widget') !== null")
	})
	p.do(chromedp.Evaluate[chromedp.Void](`(() => {
		window.peers = [];
		window.RTCPeerConnection = class extends RTCPeerConnection {
			constructor(...with_) { super(...with_); peers.push(this); }
		};
		const send = window.fetch.bind(window);
		window.fetch = (url, how) => {
			if (how && how.method === "PATCH") window.noticed ||= peers.at(-1).iceConnectionState;
			return send(url, how);
		};
		window.way = async () => {
			const stats = await peers.at(-1).getStats();
			for (const s of stats.values()) if (s.type === "transport" && s.selectedCandidatePairId)
				return stats.get(stats.get(s.selectedCandidatePairId).localCandidateId)?.address + " " + stats.get(s.selectedCandidatePairId).state;
		};
	})()`))
	p.tap(".launch")
	began := time.Now()
	p.tap("[aria-label=Call]")
	p.told(".calling", "You can speak now")
	return p, time.Since(began)
}

// A visitor whose network lets no UDP through calls all the same: by TCP, or, where only HTTPS gets through, by TURN on that port.
func TestWebCallWithoutUDP(t *testing.T) {
	share(t, webCall)
	a := newApart(t)
	s, model := thinking(t, append(overHTTPS, "PARLEY_LISTEN="+apartNet+"1:0", "PARLEY_WEBRTC_LISTEN="+apartNet+"1:0")...)
	s.assistant(t, map[string]any{"initial_message": "Hello there.", "widget_settings": map[string]any{"mode": "both"}})
	model.Usually(aitest.Behaviour{Text: "At seven."})
	a.inside("rule", "add", "pref", "10", "ipproto", "udp", "prohibit")
	for _, port := range []string{"53", "3478"} {
		if err := exec.Command("ip", "-n", a.name, "route", "get", apartNet+"1", "ipproto", "udp", "dport", port).Run(); err == nil {
			t.Fatal("UDP gets through")
		}
	}
	site := a.site(s)
	for _, shut := range []bool{false, true} {
		if shut {
			for _, open := range []string{s.URL, site} {
				a.inside("rule", "add", "pref", "20", "ipproto", "tcp", "dport", open[strings.LastIndex(open, ":")+1:], "lookup", "main")
			}
			a.inside("rule", "add", "pref", "30", "ipproto", "tcp", "prohibit")
		}
		p, took := a.calls(site, 3)
		t.Logf("only HTTPS: %v; connected after %v", shut, took)
		p.told("[role=log] .assistant", "Hello there.")
		p.told("[role=log] .assistant", "At seven.")
		p.tap(".end")
		if c := s.lastCall(t, "completed"); c.EndedReason != "customer_hangup" || len(c.Turns) < 3 {
			t.Errorf("call %+v", c)
		}
	}
}

// A visitor whose address changes during a call is heard again, before the browser has noticed that the connection is gone.
func TestWebCallChangesAddress(t *testing.T) {
	share(t, webCall)
	a := newApart(t)
	s, model := thinking(t, append(overHTTPS, "PARLEY_LISTEN="+apartNet+"1:0", "PARLEY_WEBRTC_LISTEN="+apartNet+"1:0")...)
	s.assistant(t, map[string]any{"initial_message": "Hello there.", "widget_settings": map[string]any{"mode": "both"}})
	model.Usually(aitest.Behaviour{Text: "At seven."})
	p, _ := a.calls(a.site(s), 12)
	p.told("[role=log] .assistant", "Hello there.")
	a.move()
	moved := time.Now()
	p.until(fmt.Sprintf("way().then((w) => { window.at = w; }) && window.at === %q", fmt.Sprintf("%s%d succeeded", apartNet, a.address)))
	t.Logf("connected from the new address %v after the change", time.Since(moved))
	if state := eval[string](p, "noticed"); state != "connected" {
		t.Errorf("the call waited until the browser noticed: %s", state)
	}
	p.told("[role=log] .assistant", "At seven.") // asked from the new address
	t.Logf("answered %v after the change", time.Since(moved))
	p.tap(".end")
	if c := s.lastCall(t, "completed"); c.EndedReason != "customer_hangup" || len(c.Turns) < 3 {
		t.Errorf("call %+v", c)
	}
}
