//go:build stacks

package sip

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/rtp"
)

// kamailio is a running registrar and proxy, with rtpengine beside it: it asks for passwords, and has rtpengine relay the
// sound of all calls. Towards us it is encrypted as the last digit of the called number says: by SDES where it is 7 or 8,
// by DTLS where it is 9; towards the others it is plain.
type kamailio struct {
	*otherStack
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
	$avp(sound) = "RTP/AVP";
	if ($rU =~ "^.1555.*7$") $avp(sound) = "RTP/SAVP SDES-no-AEAD_AES_256_GCM SDES-no-AEAD_AES_128_GCM";
	if ($rU =~ "^.1555.*8$") $avp(sound) = "RTP/SAVP SDES-no-AEAD_AES_256_GCM";
	if ($rU =~ "^.1555.*9$") $avp(sound) = "UDP/TLS/RTP/SAVP SDES-off";
	if (!lookup("location")) { sl_send_reply("404", "Not Found"); exit; }
	rtpengine_manage("replace-origin replace-session-connection $avp(sound)");
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
	k := &kamailio{sip: ownPort(t), tls: ownPort(t), ca: newAuthority(t)}
	cert, key := k.ca.pair(t, tomorrow, "127.0.0.1")
	port := ownPort(t)
	begin(t, dir, "rtpengine", "--foreground", "--log-stderr", "--table=-1", "--interface=127.0.0.1", "--log-level=5",
		fmt.Sprintf("--listen-ng=127.0.0.1:%d", port), "--port-min=32400", "--port-max=32699")
	text := strings.NewReplacer("SIP\r\n", fmt.Sprint(k.sip)+"\r\n", ":SIP", fmt.Sprintf(":%d", k.sip), ":TLS", fmt.Sprintf(":%d", k.tls),
		"MODULES", modules[0], "DIR", dir, "ENGINE", fmt.Sprint(port)).Replace(routes)
	for name, text := range map[string]string{"cert.pem": cert, "key.pem": key, "kamailio.cfg": text,
		"tls.cfg": fmt.Sprintf("[server:default]\nmethod = TLSv1.2+\nprivate_key = %s/key.pem\ncertificate = %s/cert.pem\n[client:default]\n"+
			"verify_certificate = no\n", dir, dir)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.otherStack = begin(t, dir, "kamailio", "-DD", "-E", "-f", filepath.Join(dir, "kamailio.cfg"), "-Y", dir, "-P", filepath.Join(dir, "pid"),
		"-m", "64", "-M", "8")
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
func (k *kamailio) behind(t *testing.T, name string, args ...string) *otherStack {
	t.Helper()
	f := pjsua(t, k.ca, audio.Narrow,
		append(append(here, "--no-vad", "--dis-codec=G722", "--local-port", fmt.Sprint(ownPort(t)), "--auto-answer", "200",
			"--id", fmt.Sprintf("sip:%s@127.0.0.1:%d", name, k.sip), "--registrar", fmt.Sprintf("sip:127.0.0.1:%d", k.sip)), args...)...)
	f.says("registration success")
	return f
}

// proves asserts that both ends hear each other, through rtpengine, and ends the call and the telephone.
func (k *kamailio) proves(t *testing.T, c *call, f *otherStack, r *running) {
	t.Helper()
	c.proves(t, r, 440)
	if port := r.own().state.agreed.Told.Port(); strings.Contains(f.text(), fmt.Sprintf("RTP socket reachable at 127.0.0.1:%d", port)) {
		t.Errorf("the sound goes to pjsua's own port %d", port)
	}
	r.hangUp(t)
	f.says("DISCONNECTED")
	f.types("q")
	f.quits()
	recorded(t, filepath.Join(f.dir, "rec.wav"), 1000)
}

func TestStackKamailio(t *testing.T) {
	const stack = proxied
	installed(t, "kamailio", "-v")
	installed(t, "rtpengine", "-v")
	k := newKamailio(t)
	for i, c := range calls {
		if !slices.Contains(argsOf("plain call, µ-law", "TCP", "TLS", "SRTP required, over TLS", "SRTP by AEAD_AES_128_GCM", "DTLS-SRTP"),
			c.row) {
			continue
		}
		last := map[string]int{"SRTP required, over TLS": 7, "SRTP by AEAD_AES_128_GCM": 8, "DTLS-SRTP": 9}[c.row]
		number, name := fmt.Sprintf("+1555000%02d0%d", i, last), fmt.Sprintf("+1666000%02d00", i)
		trunk := k.trunk(number, c.transport)
		trunk.SRTP = c.srtp
		try(t, stack, c.row, "in", func(t *testing.T) {
			s, a, _ := answering(t, Config{Trunks: fixed(trunk)})
			awaits(t, "the registration", func() bool { return s.Registered(7) })
			f := pjsua(t, k.ca, audio.Narrow, append(here, "--no-vad", "--dis-codec=G722", "--local-port", fmt.Sprint(ownPort(t)),
				fmt.Sprintf("sip:%s@127.0.0.1:%d", number, k.sip))...)
			k.proves(t, &c, f, a.next(t).running)
		})
		if c.suite == rtp.AESGCM { // it prefers another one of ours
			continue
		}
		try(t, stack, c.row, "out", func(t *testing.T) {
			f := k.behind(t, name)
			k.proves(t, &c, f, dials(t, start(t, Config{}), trunk, name))
		})
	}
	try(t, stack, "registration", "in", func(t *testing.T) {
		trunk := k.trunk("+15550009901", "tcp")
		s, _, _ := answering(t, Config{Trunks: fixed(trunk)})
		awaits(t, "the registration", func() bool { return s.Registered(7) })
	})
	try(t, stack, "password, ours asked for", "out", func(t *testing.T) {
		f := k.behind(t, "+16660009902")
		r := dials(t, start(t, Config{}), k.trunk("+15550009902", "udp"), "+16660009902")
		if !strings.Contains(r.said(), "\nSIP/2.0 407 ") {
			t.Error("it doesn't ask")
		}
		k.proves(t, &call{}, f, r)
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
