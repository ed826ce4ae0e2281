//go:build stacks

package sip

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/internal/audio"
)

// kamailio is a running registrar and proxy, with rtpengine beside it: it asks for passwords, and relays the sound of
// calls to names that begin with "through".
type kamailio struct {
	*foreign
	sip, tls int
	ca       *authority
}

const routes = `#!KAMAILIO
debug=2
log_stderror=yes
fork=yes
children=2
tcp_children=2
enable_tls=yes
auto_aliases=no
listen=udp:127.0.0.1:SIP
listen=tcp:127.0.0.1:SIP
listen=tls:127.0.0.1:TLS
mpath="MODULES"
loadmodule "kex.so"
loadmodule "tm.so"
loadmodule "sl.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "maxfwd.so"
loadmodule "usrloc.so"
loadmodule "registrar.so"
loadmodule "textops.so"
loadmodule "siputils.so"
loadmodule "xlog.so"
loadmodule "auth.so"
loadmodule "tls.so"
loadmodule "rtpengine.so"
modparam("rtpengine", "rtpengine_sock", "udp:127.0.0.1:ENGINE")
modparam("tls", "config", "DIR/tls.cfg")
modparam("auth", "nonce_expire", 300)
request_route {
	if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
	if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
	if (has_totag()) {
		if (loose_route()) { route(SOUND); t_relay(); }
		else if (is_method("ACK") && t_check_trans()) t_relay();
		else sl_send_reply("404", "Not here");
		exit;
	}
	loose_route(); # where this is the outbound proxy
	if (is_method("OPTIONS")) { sl_send_reply("200", "OK"); exit; }
	if (is_method("REGISTER|INVITE") && $fU =~ "^.1555000") {
		if (is_method("REGISTER")) {
			if (!pv_www_authenticate("$td", "right", "0")) { www_challenge("$td", "1"); exit; }
		} else if (!pv_proxy_authenticate("$fd", "right", "0")) { proxy_challenge("$fd", "1"); exit; }
		consume_credentials();
	}
	if (is_method("REGISTER")) { save("location"); exit; }
	if (is_method("INVITE")) record_route();
	if ($rU == "moved") {
		append_to_reply("Contact: <sip:through@127.0.0.1:SIP>\r\n");
		sl_send_reply("302", "Moved Temporarily");
		exit;
	}
	if ($rU == "full") { sl_send_reply("503", "Service Unavailable"); exit; }
	if (!lookup("location")) { sl_send_reply("404", "Not Found"); exit; }
	route(SOUND);
	t_on_reply("ANSWER");
	t_relay();
}
onreply_route[ANSWER] { route(SOUND); }
route[SOUND] {
	if (has_body("application/sdp") || is_method("BYE")) rtpengine_manage("replace-origin replace-session-connection");
}
`

func newKamailio(t *testing.T) *kamailio {
	t.Helper()
	modules, _ := filepath.Glob("/usr/lib/*/kamailio/modules")
	if len(modules) == 0 {
		t.Skip("kamailio is not installed")
	}
	dir := t.TempDir()
	k := &kamailio{sip: freePort(t), tls: freePort(t), ca: newAuthority(t)}
	cert, key := k.ca.pair(t, tomorrow, "127.0.0.1")
	port, media := freePort(t), freePort(t)
	begin(t, dir, "rtpengine", "--foreground", "--log-stderr", "--table=-1", "--interface=127.0.0.1", "--log-level=5",
		fmt.Sprintf("--listen-ng=127.0.0.1:%d", port), fmt.Sprintf("--port-min=%d", media), fmt.Sprintf("--port-max=%d", media+200))
	text := strings.NewReplacer("SIP\r\n", fmt.Sprint(k.sip)+"\r\n", ":SIP", fmt.Sprintf(":%d", k.sip), ":TLS", fmt.Sprintf(":%d", k.tls),
		"MODULES", modules[0], "DIR", dir, "ENGINE", fmt.Sprint(port)).Replace(routes)
	for name, text := range map[string]string{"cert.pem": cert, "key.pem": key, "kamailio.cfg": text,
		"tls.cfg": fmt.Sprintf("[server:default]\nmethod = TLSv1.2+\nprivate_key = %s/key.pem\ncertificate = %s/cert.pem\n[client:default]\nverify_certificate = no\n", dir, dir)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.foreign = begin(t, dir, "kamailio", "-DD", "-E", "-f", filepath.Join(dir, "kamailio.cfg"), "-Y", dir, "-P", filepath.Join(dir, "pid"), "-m", "64", "-M", "8")
	listening(t, k.sip)
	listening(t, k.tls)
	return k
}

// trunk returns a trunk of ours that is registered here.
func (k *kamailio) trunk(number, transport string) Trunk {
	t := Trunk{ID: 7, Number: number, Address: fmt.Sprintf("127.0.0.1:%d", k.sip), Transport: transport, CA: k.ca.pem, Username: number,
		Password: "right", Register: true}
	if transport == "tls" {
		t.Address = fmt.Sprintf("127.0.0.1:%d", k.tls)
	}
	return t
}

// behind runs a pjsua that is registered here under a name.
func (k *kamailio) behind(t *testing.T, name string, args ...string) *foreign {
	t.Helper()
	f := pjsua(t, k.ca, audio.Narrow, append(append(here, "--no-vad", "--dis-codec=G722", "--local-port", fmt.Sprint(freePort(t)), "--auto-answer", "200",
		"--id", fmt.Sprintf("sip:%s@127.0.0.1:%d", name, k.sip), "--registrar", fmt.Sprintf("sip:127.0.0.1:%d", k.sip)), args...)...)
	f.says("registration success")
	return f
}

func TestStackKamailio(t *testing.T) {
	const stack = proxied
	installed(t, "kamailio", "-v")
	installed(t, "rtpengine", "-v")
	k := newKamailio(t)
	for i, transport := range []string{"udp", "tcp", "tls"} {
		row := map[string]string{"udp": "plain call, µ-law", "tcp": "TCP", "tls": "TLS"}[transport]
		number, name := fmt.Sprintf("+1555000200%d", i), fmt.Sprintf("+1666000200%d", i)
		try(t, stack, row, "in", func(t *testing.T) {
			s, a, _ := answering(t, Config{Trunks: fixed(k.trunk(number, transport))})
			awaits(t, "the registration", func() bool { return s.Registered(7) })
			f := pjsua(t, k.ca, audio.Narrow, append(here, "--no-vad", "--dis-codec=G722", "--local-port", fmt.Sprint(freePort(t)),
				fmt.Sprintf("sip:%s@127.0.0.1:%d", number, k.sip))...)
			in := a.next(t)
			in.phone.hears(t, 440)
			in.phone.await(t, "a second is heard", func() bool { return in.phone.ticks > 60 })
			in.hangUp(t)
			f.says("DISCONNECTED")
			f.types("q")
			f.quits()
			recorded(t, filepath.Join(f.dir, "rec.wav"), 1000)
		})
		try(t, stack, row, "out", func(t *testing.T) {
			f := k.behind(t, name)
			r := dials(t, start(t, Config{}), k.trunk(number, transport), name)
			r.phone.hears(t, 440)
			r.phone.await(t, "a second is heard", func() bool { return r.phone.ticks > 60 })
			r.hangUp(t)
			f.says("DISCONNECTED")
			f.types("q")
			f.quits()
			recorded(t, filepath.Join(f.dir, "rec.wav"), 1000)
		})
	}
	try(t, stack, "sound through rtpengine", "out", func(t *testing.T) {
		f := k.behind(t, "+16660002009")
		r := dials(t, start(t, Config{}), k.trunk("+15550002009", "udp"), "+16660002009")
		r.phone.hears(t, 440)
		text := f.text()
		port := r.own().state.agreed.Told.Port()
		if strings.Contains(text, fmt.Sprintf("RTP socket reachable at 127.0.0.1:%d", port)) {
			t.Errorf("the sound goes to pjsua's own port %d", port)
		}
		r.hangUp(t)
	})
	try(t, stack, "outbound proxy", "out", func(t *testing.T) {
		k.behind(t, "+16660002005")
		trunk := k.trunk("+15550002005", "udp")
		trunk.Address, trunk.Proxy = "pbx.invalid", trunk.Address
		r := dials(t, start(t, Config{}), trunk, "+16660002005")
		r.phone.hears(t, 440)
		r.hangUp(t)
	})
	try(t, stack, "redirect (302)", "out", func(t *testing.T) {
		k.behind(t, "through")
		l, err := start(t, Config{}).Dial(soon(t), Dialling{Trunk: k.trunk("+15550002008", "udp"), To: "moved", From: "+15550002008",
			May: func(string) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		r := run(l, newPhone(1000))
		r.phone.hears(t, 440)
		r.hangUp(t)
	})
	try(t, stack, "wrong password", "out", func(t *testing.T) {
		trunk := k.trunk("+15550002007", "udp")
		trunk.Password = "wrong"
		_, err := start(t, Config{}).Dial(soon(t), Dialling{Trunk: trunk, To: "+16660002000", From: trunk.Number})
		if r := new(Refused); !errors.As(err, &r) || r.Code != 407 {
			t.Errorf("got %v", err)
		}
	})
	try(t, stack, "busy", "out", func(t *testing.T) {
		k.behind(t, "+16660002006", "--auto-answer", "486")
		_, err := start(t, Config{}).Dial(soon(t), Dialling{Trunk: k.trunk("+15550002006", "udp"), To: "+16660002006", From: "+15550002006"})
		if !errors.Is(err, parley.LineBusy) {
			t.Errorf("got %v", err)
		}
	})
}
