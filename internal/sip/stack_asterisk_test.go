//go:build stacks

package sip

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// asterisk is a running Asterisk. Each endpoint is identified by our number, and has its own settings; the dialplan
// says what happens with each number that we call.
type asterisk struct {
	*otherStack
	sip, tls, manager int
	ca                *authority
}

// endpoints are the settings of Asterisk's endpoints, by the rows that need them.
var endpoints = map[string]string{
	"plain call, µ-law":               "allow=ulaw",
	"A-law":                           "allow=alaw",
	"G.722":                           "allow=g722",
	"Opus":                            "allow=opus",
	"packets of 10 ms":                "allow=ulaw:10",
	"packets of 40 ms":                "allow=ulaw:40",
	"packets of 60 ms":                "allow=ulaw:60",
	"TCP":                             "allow=ulaw",
	"TLS":                             "allow=ulaw",
	"IPv6":                            "allow=ulaw\nrtp_ipv6=yes",
	"SRTP optional":                   "allow=ulaw\nmedia_encryption=sdes\nmedia_encryption_optimistic=yes",
	"SRTP required, over TLS":         "allow=ulaw\nmedia_encryption=sdes",
	"SRTP by AES_CM_128_HMAC_SHA1_32": "allow=ulaw\nmedia_encryption=sdes\nsrtp_tag_32=yes",
	"DTLS-SRTP":                       "allow=ulaw\nmedia_encryption=dtls\ndtls_auto_generate_cert=yes",
	timed:                             "allow=ulaw\ntimers=always\ntimers_sess_expires=90\ntimers_min_se=90",
	reliably:                          "allow=ulaw\n100rel=required",
	muxed:                             "allow=ulaw\nrtcp_mux=yes",
	reported:                          "allow=ulaw",
	"keys (INFO)":                     "allow=ulaw\ndtmf_mode=info",
	"keys in band":                    "allow=ulaw\ndtmf_mode=inband",
	"password":                        "allow=ulaw\nauth=secret\noutbound_auth=secret",
	"registration":                    "allow=ulaw\nauth=own",
	"UPDATE": "allow=ulaw\nsend_pai=yes\ntrust_id_outbound=yes\nsend_connected_line=yes\n" +
		"connected_line_method=update",
	"fax":      "allow=ulaw\nt38_udptl=yes",
	"identity": "allow=ulaw\nsend_pai=yes\ntrust_id_outbound=yes\nsend_diversion=yes",
}

// numberOf is the number by which Asterisk knows the endpoint of a row.
func numberOf(row string) string {
	rows := slices.Sorted(maps.Keys(endpoints))
	return fmt.Sprintf("+1555000%04d", 1+slices.Index(rows, row))
}

// dialplan is what Asterisk does with a call, by the number that is called. 8 or 9 and a port calls a server of ours.
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
 same = n,Wait(3)
 same = n,Answer()
 same = n,StopPlaytones()
 same = n,Echo()
exten = +15550010104,1,Busy(10)
exten = +15550010106,1,Answer()
 same = n,Wait(1)
 same = n,Hangup()
exten = +15550010107,1,Ringing()
 same = n,Wait(1)
 same = n,Answer()
 same = n,Echo()
exten = +15550010108,1,Dial(Local/+15550010100@in/n)
exten = +15550010109,1,Answer()
 same = n,ReceiveFAX(HERE/fax.tif,f)
 same = n,Echo()
exten = +15550010110,1,Transfer(PJSIP/sip:+15550010100@127.0.0.1:SIPPORT)
exten = +15550010111,1,Answer()
 same = n,Wait(1)
 same = n,SendDTMF(${PJSIP_HEADER(read,X-Order-Id)})
 same = n,Wait(10)
exten = +15550010112,1,Answer()
 same = n,Wait(1)
 same = n,Set(CONNECTEDLINE(all)="Carol" <+15550008888>)
 same = n,Echo()
exten = identified,1,Set(CALLERID(all)="Carol" <+15550008888>)
 same = n,Set(REDIRECTING(count,i)=1)
 same = n,Set(REDIRECTING(reason,i)=cfb)
 same = n,Set(REDIRECTING(from-num)=+15550007777)
 same = n,Dial(PJSIP/IDENTITY/sip:+15550001111@127.0.0.1:${PORT},,b(in^headed^1))
exten = headed,1,Set(PJSIP_HEADER(add,X-Order-Id)=4711)
 same = n,Return()
exten = _8X.,1,Dial(PJSIP/PLAIN/sip:+15550001111@127.0.0.1:${EXTEN:1})
exten = _9X.,1,Dial(PJSIP/PLAIN/sip:8@127.0.0.1:${EXTEN:1})
`

func newAsterisk(t *testing.T) *asterisk {
	t.Helper()
	dir := t.TempDir()
	a := &asterisk{sip: ownPort(t), tls: ownPort(t), manager: ownPort(t), ca: newAuthority(t)}
	cert, key := a.ca.pair(t, tomorrow, "127.0.0.1")
	var pjsip strings.Builder
	fmt.Fprintf(&pjsip, "[global]\ntype=global\nendpoint_identifier_order=username\n")
	for name, at := range map[string]string{"udp": "127.0.0.1", "tcp": "127.0.0.1", "udp6": "[::1]"} {
		fmt.Fprintf(&pjsip, "[%s]\ntype=transport\nprotocol=%s\nbind=%s:%d\n", name, name[:3], at, a.sip)
	}
	fmt.Fprintf(&pjsip, "[tls]\ntype=transport\nprotocol=tls\nbind=127.0.0.1:%d\ncert_file=%s/cert.pem\npriv_key_file=%s/key.pem\nca_list_file=%s/ca.pem\nverify_server=yes\nmethod=tlsv1_2\n",
		a.tls, dir, dir, dir)
	fmt.Fprintf(&pjsip, "[secret]\ntype=auth\nauth_type=userpass\nusername=bob\npassword=right\n")
	fmt.Fprintf(&pjsip, "[own]\ntype=auth\nauth_type=userpass\nusername=%s\npassword=right\n", numberOf("registration"))
	for row, settings := range endpoints {
		n := numberOf(row)
		fmt.Fprintf(&pjsip, "[%s]\ntype=endpoint\ncontext=in\ndisallow=all\ndirect_media=no\naors=%s\n%s\n[%s]\ntype=aor\nmax_contacts=1\n"+
			"remove_existing=yes\n",
			n, n, settings, n)
	}
	plan := strings.NewReplacer("SIPPORT", fmt.Sprint(a.sip), "HERE", dir, "IDENTITY", numberOf("identity"), "PLAIN",
		numberOf("plain call, µ-law"))
	for name, text := range map[string]string{
		"cert.pem": cert, "key.pem": key, "ca.pem": a.ca.pem,
		"asterisk.conf": strings.ReplaceAll("[directories]\nastetcdir => DIR\nastvarlibdir => DIR\nastdbdir => DIR\nastspooldir => DIR\n"+
			"astrundir => DIR\nastlogdir => DIR\nastkeydir => DIR\n[options]\nhighpriority=no\n", "DIR", dir),
		"modules.conf":    "[modules]\nautoload=yes\n",
		"logger.conf":     "[logfiles]\nconsole => notice,warning,error,verbose(3)\n",
		"pjsip.conf":      pjsip.String(),
		"rtp.conf":        "[general]\nrtpstart=32100\nrtpend=32399\n",
		"extensions.conf": plan.Replace(dialplan),
		"manager.conf": fmt.Sprintf("[general]\nenabled=yes\nport=%d\nbindaddr=127.0.0.1\n[tester]\nsecret=tester\n"+
			"read=all\nwrite=all\n", a.manager),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.otherStack = begin(t, dir, "asterisk", "-f", "-vvv", "-C", filepath.Join(dir, "asterisk.conf"))
	a.says("Asterisk Ready.")
	return a
}

// originate has Asterisk call a channel, and do something with it then: "Application: Echo", or a number of the dialplan.
func (a *asterisk) originate(t *testing.T, channel string, then ...string) {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", a.manager))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if len(then) == 0 {
		then = argsOf("Application: Echo")
	}
	fmt.Fprintf(c, "Action: Login\r\nUsername: tester\r\nSecret: tester\r\nEvents: off\r\n\r\n")
	fmt.Fprintf(c, "Action: Originate\r\nChannel: %s\r\nAsync: true\r\nCallerID: <+15550009999>\r\n%s\r\n\r\n", channel,
		strings.Join(then, "\r\n"))
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

// exten is what originate takes to go on with a number of the dialplan.
func exten(n string) []string { return argsOf("Context: in", "Exten: "+n, "Priority: 1") }

// trunk returns a trunk that calls from the number of a row.
func (a *asterisk) trunk(row string, c call) Trunk {
	port := a.sip
	if c.transport == "tls" {
		port = a.tls
	}
	return c.trunk(numberOf(row), port, a.ca.pem)
}

// server starts one of our servers, whose certificate this Asterisk trusts.
func (a *asterisk) server(t *testing.T, c Config) (*Server, *answerer) {
	t.Helper()
	who := newAnswerer(1000)
	who.ring = make(chan struct{})
	close(who.ring)
	c.Answer, c.Secure, c.TLS, c.Softphone = who.answer, "127.0.0.1:0", a.ca.config(t, tomorrow, "127.0.0.1"), c.Trunks == nil
	return start(t, c), who
}

// both tries something in a call of each direction, with a number of the dialplan at the other end.
func (a *asterisk) both(t *testing.T, row, end, to string, test func(t *testing.T, r *running)) {
	try(t, "Asterisk", row, "in", func(t *testing.T) {
		s, who := a.server(t, Config{})
		a.originate(t, "PJSIP/"+numberOf(end)+"/sip:7@"+s.Addr().String(), exten(to)...)
		test(t, who.next(t).running)
	})
	try(t, "Asterisk", row, "out", func(t *testing.T) {
		test(t, dials(t, start(t, Config{}), a.trunk(end, call{}), to))
	})
}

func TestStackAsterisk(t *testing.T) {
	installed(t, "asterisk", "-V")
	const plain = "plain call, µ-law"
	x := newAsterisk(t)
	for _, c := range calls {
		if endpoints[c.row] == "" {
			continue
		}
		try(t, "Asterisk", c.row, "in", func(t *testing.T) {
			s, a := x.server(t, c.config())
			x.originate(t, "PJSIP/"+numberOf(c.row)+"/sip:7@"+c.reaches(s))
			r := a.next(t).running
			c.proves(t, r, 1000) // our own tone: it comes back
			r.hangUp(t)
		})
		if c.row == muxed || c.suite == "AES_CM_128_HMAC_SHA1_32" { // the first is nothing that we offer, the second nothing that it prefers
			continue
		}
		try(t, "Asterisk", c.row, "out", func(t *testing.T) {
			r := dials(t, start(t, c.config()), x.trunk(c.row, c), "+15550010107")
			c.proves(t, r, 1000)
			r.hangUp(t)
		})
	}
	for _, c := range []struct{ row, end, to, first string }{{"keys (RFC 4733)", plain, "+15550010101", ""},
		{"keys (INFO)", "keys (INFO)", "+15550010102", "7"}, {"keys in band", "keys in band", "+15550010101", ""}} {
		x.both(t, c.row, c.end, c.to, func(t *testing.T, r *running) {
			r.phone.await(t, "it runs", func() bool { return r.phone.ticks > 10 && r.phone.keys == c.first })
			time.Sleep(500 * time.Millisecond) // Asterisk does not say when it begins to listen
			if err := r.leg.Dial("95*"); err != nil {
				t.Fatal(err)
			}
			r.phone.await(t, "the keys come back", func() bool { return r.phone.keys == c.first+"95*" })
			r.hangUp(t)
		})
	}
	x.both(t, "UPDATE in an answered call", "UPDATE", "+15550010112", func(t *testing.T, r *running) {
		r.phone.hears(t, 1000)
		awaits(t, "UPDATE", func() bool { return strings.Contains(r.said(), "\nUPDATE sip:") })
		(&call{}).proves(t, r, 1000)
		r.hangUp(t)
	})
	x.both(t, "fax (T.38) refused, the call goes on", "fax", "+15550010109", func(t *testing.T, r *running) {
		awaits(t, "the refusal of T.38", func() bool {
			_, after, offered := strings.Cut(r.said(), "m=image")
			return offered && strings.Contains(after, "\nSIP/2.0 488 ")
		})
		before := r.own().Stats().Received
		awaits(t, "two seconds of its tones", func() bool { return r.own().Stats().Received > before+100 })
		r.hangUp(t)
	})
	x.both(t, "session refreshed", timed, "+15550010100", func(t *testing.T, r *running) { renewed(t, r, 1000) })
	x.both(t, "they hang up", plain, "+15550010106", func(t *testing.T, r *running) { r.ends(t, parley.CustomerHangup) })
	x.others(t, plain)
}

// others tries what goes one way.
func (a *asterisk) others(t *testing.T, plain string) {
	const stack = "Asterisk"
	try(t, stack, "password, ours asked for", "out", func(t *testing.T) {
		trunk := a.trunk("password", call{})
		trunk.Username, trunk.Password = "bob", "right"
		r := dials(t, start(t, Config{}), trunk, "+15550010100")
		r.phone.hears(t, 1000)
		r.hangUp(t)
	})
	try(t, stack, "password, theirs asked for", "in", func(t *testing.T) {
		s, who := a.server(t, Config{Trunks: fixed(Trunk{ID: 2, Number: "+15550001112", Username: "bob", Password: "right"})})
		a.originate(t, "PJSIP/"+numberOf("password")+"/sip:+15550001112@"+s.Addr().String())
		in := who.next(t)
		in.phone.hears(t, 1000)
		in.hangUp(t)
	})
	try(t, stack, "registration", "in", func(t *testing.T) {
		trunk := a.trunk("registration", call{transport: "tcp"})
		trunk.Username, trunk.Password, trunk.Register = trunk.Number, "right", true
		s, who := a.server(t, Config{Trunks: fixed(trunk)})
		awaits(t, "the registration", func() bool { return s.Registered(trunk.ID) })
		a.originate(t, "PJSIP/"+trunk.Number)
		in := who.next(t)
		in.phone.hears(t, 1000)
		in.hangUp(t)
	})
	try(t, stack, "transfer (REFER)", "out", func(t *testing.T) {
		s, who := a.server(t, Config{})
		r := dials(t, s, a.trunk(plain, call{}), "+15550010108")
		r.phone.hears(t, 1000)
		done := make(chan error, 1)
		go func() {
			done <- r.own().Transfer(soon(t), fmt.Sprintf("sip:9%d@127.0.0.1:%d", s.Addr().Port(), a.sip))
		}()
		if err := get(t, done); err != nil {
			t.Fatalf("the transfer: %v", err)
		}
		who.next(t).hangUp(t)
	})
	try(t, stack, "attended transfer to somebody (REFER with Replaces)", "in", func(t *testing.T) {
		number := numberOf(plain) // that of ours, whom pjsua calls and joins to Asterisk
		s, who := a.server(t,
			Config{Trunks: fixed(Trunk{ID: 1, Number: number, Address: fmt.Sprintf("127.0.0.1:%d", a.sip), ByIP: true, Allowed: loopback})})
		f, _ := startPJSUA(t, a.ca, call{}, argsOf("--no-vad", "--id", "sip:"+number+"@127.0.0.1"), "sip:"+number+"@"+s.Addr().String())
		r := who.next(t).running
		r.own().MayRefer(func(string) error { return nil })
		r.phone.hears(t, 440)
		f.types(fmt.Sprintf("m\nsip:+15550010100@127.0.0.1:%d", a.sip))
		f.says("Call 1 state changed to CONFIRMED")
		f.types("[\nX\n1")
		(&call{}).proves(t, r, 1000)
		r.hangUp(t)
	})
	try(t, stack, "redirect (302)", "out", func(t *testing.T) {
		l, err := start(t, Config{}).
			Dial(soon(t), Dialling{Trunk: a.trunk(plain, call{}), To: "+15550010110", From: numberOf(plain), May: func(string) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		r := run(l, newPhone(1000))
		r.phone.hears(t, 1000)
		r.hangUp(t)
	})
	try(t, stack, "early media heard", "out", func(t *testing.T) {
		r := hearsEarly(t, start(t, Config{}), a.trunk(plain, call{}), "+15550010103", 440, func() {})
		r.phone.hears(t, 1000)
		r.hangUp(t)
	})
	try(t, stack, "early media sent", "in", func(t *testing.T) { // through Asterisk, and back to us
		calls := make(chan early, 1)
		s := sounding(t, Config{}, func(ctx context.Context, e early) {
			calls <- e
			<-e.leg.(*leg).done
		})
		var e early
		r := hearsEarly(t, start(t, Config{}), a.trunk(plain, call{}), fmt.Sprintf("8%d", s.Addr().Port()), 1000, func() {
			e = get(t, calls)
			if _, err := e.in.Answer(soon(t)); err != nil {
				t.Error(err)
			}
		})
		e.phone.hears(t, 1000)
		r.hangUp(t)
		e.ends(t, parley.CustomerHangup)
	})
	try(t, stack, "INVITE of more than 1,300 octets: by TCP", "out", func(t *testing.T) {
		l, err := start(t, Config{}).Dial(soon(t), Dialling{Trunk: a.trunk(plain, call{}), To: "+15550010100", From: numberOf(plain),
			Headers: map[string]string{"X-Long": strings.Repeat("long ", 200)}})
		if err != nil {
			t.Fatal(err)
		}
		r := run(l, newPhone(1000))
		r.phone.hears(t, 1000)
		if !strings.Contains(r.said(), "SIP/2.0/TCP ") {
			t.Errorf("it went another way:\n%s", r.said())
		}
		r.hangUp(t)
	})
	try(t, stack, "who calls (PAI), Diversion, X- headers", "in", func(t *testing.T) {
		s, who := a.server(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
		a.originate(t, "Local/identified@in/n", "Application: Echo", fmt.Sprintf("Variable: __PORT=%d", s.Addr().Port()))
		in := who.next(t)
		got := in.in.Signalling
		if in.in.From != "+15550008888" || got.CallerName != "Carol" || len(got.Diversions) != 1 ||
			got.Diversions[0].PhoneNumber != "+15550007777" || !strings.Contains(in.said(), "\r\nX-Order-Id: 4711\r\n") {
			t.Errorf("from %s: %+v\n%s", in.in.From, got, in.said())
		}
		in.hangUp(t)
	})
	try(t, stack, "who calls (PAI), Diversion, X- headers", "out", func(t *testing.T) {
		l, err := start(t, Config{}).
			Dial(soon(t), Dialling{Trunk: a.trunk(plain, call{}), To: "+15550010111", From: numberOf(plain),
				Headers: map[string]string{"X-Order-Id": "4711"}})
		if err != nil {
			t.Fatal(err)
		}
		r := run(l, newPhone(1000))
		r.phone.await(t, "the header comes back as keys", func() bool { return r.phone.keys == "4711" })
		r.hangUp(t)
	})
	try(t, stack, "busy", "out", func(t *testing.T) {
		_, err := start(t, Config{}).Dial(soon(t), Dialling{Trunk: a.trunk(plain, call{}), To: "+15550010104", From: numberOf(plain)})
		if !errors.Is(err, parley.LineBusy) {
			t.Errorf("got %v", err)
		}
	})
}
