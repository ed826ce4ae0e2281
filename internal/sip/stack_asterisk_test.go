//go:build stacks

package sip

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/rtp"
)

// asterisk is a running Asterisk. Each endpoint is identified by our number, and has its own settings; the dialplan
// says what happens with each number that we call.
type asterisk struct {
	*foreign
	sip, tls, manager int
	ca                *authority
}

// endpoints are Asterisk's endpoints, by the last four digits of the calling number.
var endpoints = map[string]string{
	"0001": "allow=ulaw",
	"0002": "allow=alaw",
	"0003": "allow=g722",
	"0004": "allow=ulaw:40",
	"0005": "allow=ulaw\nmedia_encryption=sdes\nmedia_encryption_optimistic=yes",
	"0006": "allow=ulaw\nmedia_encryption=sdes",
	"0007": "allow=ulaw\ntimers=always\ntimers_sess_expires=90\ntimers_min_se=90",
	"0008": "allow=ulaw\n100rel=required",
	"0009": "allow=ulaw\ndtmf_mode=info",
	"0010": "allow=ulaw\ndtmf_mode=inband",
	"0011": "allow=ulaw\nauth=secret\noutbound_auth=secret",
	"0012": "allow=ulaw\nmedia_encryption=dtls\ndtls_auto_generate_cert=yes",
	"0013": "allow=ulaw\nauth=own",
	"0014": "allow=ulaw\nbind_rtp_to_media_address=yes\nrtcp_mux=yes",
}

const astNumber = "+1555000"

// dialplan is what Asterisk does with a call, by the number that is called.
const dialplan = `[in]
exten = +15550010100,1,Answer()
 same = n,Echo()
exten = +15550010101,1,Answer()
 same = n,Read(d,,3,,,8)
 same = n,SendDTMF(${d})
 same = n,Wait(5)
exten = +15550010102,1,Answer()
 same = n,Wait(1)
 same = n,SendDTMF(7)
 same = n,Read(d,,3,,,8)
 same = n,SendDTMF(${d})
 same = n,Wait(5)
exten = +15550010103,1,Progress()
 same = n,Playtones(440)
 same = n,Wait(2)
 same = n,Answer()
 same = n,Echo()
exten = +15550010104,1,Busy(10)
exten = +15550010105,1,Ringing()
 same = n,Wait(30)
exten = +15550010106,1,Answer()
 same = n,Wait(1)
 same = n,Hangup()
exten = +15550010107,1,Ringing()
 same = n,Wait(1)
 same = n,Answer()
 same = n,Echo()
exten = +15550010108,1,Dial(Local/+15550010100@in/n)
exten = _9X.,1,Dial(PJSIP/+15550000001/sip:8@127.0.0.1:${EXTEN:1})
`

func newAsterisk(t *testing.T) *asterisk {
	t.Helper()
	dir := t.TempDir()
	a := &asterisk{sip: freePort(t), tls: freePort(t), manager: freePort(t), ca: newAuthority(t)}
	cert, key := a.ca.pair(t, tomorrow, "127.0.0.1")
	var pjsip strings.Builder
	fmt.Fprintf(&pjsip, "[global]\ntype=global\nendpoint_identifier_order=username\n")
	for _, p := range []string{"udp", "tcp"} {
		fmt.Fprintf(&pjsip, "[%s]\ntype=transport\nprotocol=%s\nbind=127.0.0.1:%d\n", p, p, a.sip)
	}
	fmt.Fprintf(&pjsip, "[tls]\ntype=transport\nprotocol=tls\nbind=127.0.0.1:%d\ncert_file=%s/cert.pem\npriv_key_file=%s/key.pem\nca_list_file=%s/ca.pem\nverify_server=yes\nmethod=tlsv1_2\n",
		a.tls, dir, dir, dir)
	fmt.Fprintf(&pjsip, "[secret]\ntype=auth\nauth_type=userpass\nusername=bob\npassword=right\n")
	fmt.Fprintf(&pjsip, "[own]\ntype=auth\nauth_type=userpass\nusername=%s0013\npassword=right\n", astNumber)
	for end, settings := range endpoints {
		n := astNumber + end
		fmt.Fprintf(&pjsip, "[%s]\ntype=endpoint\ncontext=in\ndisallow=all\ndirect_media=no\naors=%s\n%s\n[%s]\ntype=aor\nmax_contacts=1\nremove_existing=yes\n",
			n, n, settings, n)
	}
	media := freePort(t)
	for name, text := range map[string]string{
		"cert.pem": cert, "key.pem": key, "ca.pem": a.ca.pem,
		"asterisk.conf": fmt.Sprintf("[directories](!)\nastetcdir => %s\nastvarlibdir => %s\nastdbdir => %s\nastspooldir => %s\nastrundir => %s\nastlogdir => %s\nastkeydir => %s\n[options]\nhighpriority=no\n",
			dir, dir, dir, dir, dir, dir, dir),
		"modules.conf":    "[modules]\nautoload=yes\n",
		"logger.conf":     "[logfiles]\nconsole => notice,warning,error,verbose(3)\n",
		"pjsip.conf":      pjsip.String(),
		"rtp.conf":        fmt.Sprintf("[general]\nrtpstart=%d\nrtpend=%d\n", media, media+200),
		"extensions.conf": dialplan,
		"manager.conf":    fmt.Sprintf("[general]\nenabled=yes\nport=%d\nbindaddr=127.0.0.1\n[tester]\nsecret=tester\nread=all\nwrite=all\n", a.manager),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "(!)", "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.foreign = begin(t, dir, "asterisk", "-f", "-vvv", "-C", filepath.Join(dir, "asterisk.conf"))
	a.says("Asterisk Ready.")
	return a
}

// originate has Asterisk call a number, and echo what it hears.
func (a *asterisk) originate(t *testing.T, channel string) {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", a.manager))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "Action: Login\r\nUsername: tester\r\nSecret: tester\r\nEvents: off\r\n\r\n")
	fmt.Fprintf(c, "Action: Originate\r\nChannel: %s\r\nApplication: Echo\r\nAsync: true\r\nCallerID: <+15550009999>\r\n\r\n", channel)
	in := bufio.NewScanner(c)
	for n := 0; n < 2 && in.Scan(); {
		if line := in.Text(); strings.HasPrefix(line, "Response: ") {
			n++
			if line != "Response: Success" {
				t.Fatalf("the manager says %s", line)
			}
		}
	}
}

// trunk returns a trunk that calls from an endpoint's number.
func (a *asterisk) trunk(end, transport, srtp string) Trunk {
	t := Trunk{ID: 7, Number: astNumber + end, Address: fmt.Sprintf("127.0.0.1:%d", a.sip), Transport: transport, SRTP: srtp, CA: a.ca.pem}
	if transport == "tls" {
		t.Address = fmt.Sprintf("127.0.0.1:%d", a.tls)
	}
	return t
}

func TestStackAsterisk(t *testing.T) {
	const stack = "Asterisk"
	if _, err := exec.LookPath("asterisk"); err != nil {
		t.Skip("asterisk is not installed")
	}
	x := newAsterisk(t)
	for _, c := range []struct {
		row, end, transport, srtp string
		suite                     rtp.Suite
		rate                      audio.Rate
	}{
		{"plain call, µ-law", "0001", "udp", "off", "", audio.Narrow},
		{"A-law", "0002", "udp", "off", "", audio.Narrow},
		{"G.722", "0003", "udp", "off", "", audio.Wide},
		{"packets of 40 ms", "0004", "udp", "off", "", audio.Narrow},
		{"TCP", "0001", "tcp", "off", "", audio.Narrow},
		{"TLS", "0001", "tls", "off", "", audio.Narrow},
		{"SRTP optional", "0005", "udp", "optional", rtp.AES80, audio.Narrow},
		{"SRTP required, over TLS", "0006", "tls", "required", rtp.AES80, audio.Narrow},
		{"DTLS-SRTP", "0012", "udp", "dtls", rtp.AES80, audio.Narrow},
		{"session timer", "0007", "udp", "off", "", audio.Narrow},
		{"reliable ringing (100rel)", "0008", "udp", "off", "", audio.Narrow},
		{"RTCP on the port of the sound", "0014", "udp", "off", "", audio.Narrow},
	} {
		check := func(t *testing.T, r *running) {
			r.phone.hears(t, 1000) // our own tone: it comes back
			got := r.own().Stats()
			if r.leg.Rate() != c.rate || got.Suite != c.suite {
				t.Errorf("rate %d, suite %q", r.leg.Rate(), got.Suite)
			}
			if c.row == "packets of 40 ms" && r.own().state.agreed.Packet != 40*time.Millisecond {
				t.Errorf("packets of %s", r.own().state.agreed.Packet)
			}
			if c.row == "session timer" && r.own().session.Load() == nil {
				t.Error("no session timer")
			}
			r.hangUp(t)
		}
		try(t, stack, c.row, "in", func(t *testing.T) {
			s, a, _ := answering(t, Config{})
			at := s.Addr().String()
			switch c.transport {
			case "tcp":
				at += ";transport=tcp"
			case "tls":
				s, a = x.server(t, Config{})
				at = s.over() + ";transport=tls"
			}
			x.originate(t, "PJSIP/"+astNumber+c.end+"/sip:7@"+at)
			check(t, a.next(t).running)
		})
		try(t, stack, c.row, "out", func(t *testing.T) {
			s := start(t, Config{})
			check(t, dials(t, s, x.trunk(c.end, c.transport, c.srtp), "+15550010107"))
		})
	}
	for _, c := range []struct{ row, end, to, first string }{{"keys (RFC 4733)", "0001", "+15550010101", ""},
		{"keys (INFO)", "0009", "+15550010102", "7"}, {"keys in band", "0010", "+15550010101", ""}} {
		try(t, stack, c.row, "out", func(t *testing.T) {
			r := dials(t, start(t, Config{}), x.trunk(c.end, "udp", "off"), c.to)
			r.phone.await(t, "it runs", func() bool { return r.phone.ticks > 10 && r.phone.keys == c.first })
			time.Sleep(500 * time.Millisecond) // Asterisk does not say when it begins to listen
			if err := r.leg.Dial("95*"); err != nil {
				t.Fatal(err)
			}
			r.phone.await(t, "the keys come back", func() bool { return r.phone.keys == c.first+"95*" })
			r.hangUp(t)
		})
	}
	try(t, stack, "password, ours asked for", "out", func(t *testing.T) {
		trunk := x.trunk("0011", "udp", "off")
		trunk.Username, trunk.Password = "bob", "right"
		r := dials(t, start(t, Config{}), trunk, "+15550010100")
		r.phone.hears(t, 1000)
		r.hangUp(t)
	})
	try(t, stack, "password, theirs asked for", "in", func(t *testing.T) {
		s, a, _ := answering(t, Config{Trunks: fixed(Trunk{ID: 2, Number: "+15550001112", Username: "bob", Password: "right"})})
		x.originate(t, "PJSIP/"+astNumber+"0011/sip:+15550001112@"+s.Addr().String())
		in := a.next(t)
		in.phone.hears(t, 1000)
		in.hangUp(t)
	})
	try(t, stack, "registration", "in", func(t *testing.T) {
		trunk := x.trunk("0013", "tcp", "off")
		trunk.Username, trunk.Password, trunk.Register = astNumber+"0013", "right", true
		s, a, _ := answering(t, Config{Trunks: fixed(trunk)})
		awaits(t, "the registration", func() bool { return s.Registered(trunk.ID) })
		x.originate(t, "PJSIP/"+astNumber+"0013")
		in := a.next(t)
		in.phone.hears(t, 1000)
		in.hangUp(t)
	})
	try(t, stack, "transfer (REFER)", "out", func(t *testing.T) {
		s, a, _ := answering(t, Config{})
		r := dials(t, s, x.trunk("0001", "udp", "off"), "+15550010108")
		r.phone.hears(t, 1000)
		done := make(chan error, 1)
		go func() {
			done <- r.own().Transfer(soon(t), fmt.Sprintf("sip:9%d@127.0.0.1:%d", s.Addr().Port(), x.sip))
		}()
		if err := get(t, done); err != nil {
			t.Fatalf("the transfer: %v", err)
		}
		a.next(t).hangUp(t)
	})
	for _, c := range []struct {
		row, to string
		want    parley.EndedReason
	}{{"busy", "+15550010104", parley.LineBusy}} {
		try(t, stack, c.row, "out", func(t *testing.T) {
			_, err := start(t, Config{}).Dial(soon(t), Dialling{Trunk: x.trunk("0001", "udp", "off"), To: c.to, From: astNumber + "0001"})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	try(t, stack, "they hang up", "out", func(t *testing.T) {
		r := dials(t, start(t, Config{}), x.trunk("0001", "udp", "off"), "+15550010106")
		r.ends(t, parley.CustomerHangup)
	})
}

// server starts one of our servers, whose certificate this Asterisk trusts.
func (a *asterisk) server(t *testing.T, c Config) (*Server, *answerer) {
	t.Helper()
	who := newAnswerer(1000)
	c.Answer, c.Secure, c.TLS, c.Softphone = who.answer, "127.0.0.1:0", a.ca.config(t, tomorrow, "127.0.0.1"), true
	return start(t, c), who
}
