package sip

import (
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/icholy/digest"
	"github.com/pion/srtp/v3"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/preset"
	"parley/internal/rtp"
)

// meta is a far end that speaks as Meta's own documents show it: SIP over TLS, a digest challenge, sound by SRTP with SDES and
// Opus, bundled and with RTCP on the port of the sound.
type meta struct {
	t    testing.TB
	conn *tls.Conn
	left []byte
	rtp  *wire
	key  rtp.Key
}

const (
	business = "17125550259"
	whatsapp = "12195550714"
)

func newMeta(t testing.TB, c *tls.Conn) *meta {
	t.Cleanup(func() { c.Close() })
	return &meta{t: t, conn: c, rtp: newWire(t, "127.0.0.1"), key: rtp.NewKey(rtp.AES80)}
}

func (m *meta) write(lines []string, body string) {
	m.t.Helper()
	if body != "" {
		lines = append(lines, "Content-Type: application/sdp")
	}
	text := strings.Join(append(lines, fmt.Sprintf("Content-Length:   %d", len(body))), "\r\n") + "\r\n\r\n" + body
	if _, err := io.WriteString(m.conn, text); err != nil {
		m.t.Fatal(err)
	}
}

// next is the next message that begins so.
func (m *meta) next(begins string) string {
	m.t.Helper()
	buf := make([]byte, 8192)
	for {
		if head, rest, whole := strings.Cut(string(m.left), "\r\n\r\n"); whole {
			size, _ := strconv.Atoi(field(head+"\r\n", "Content-Length"))
			if len(rest) >= size {
				text := head + "\r\n\r\n" + rest[:size]
				if m.left = []byte(rest[size:]); strings.HasPrefix(text, begins) {
					return text
				}
				continue
			}
		}
		_ = m.conn.SetReadDeadline(time.Now().Add(2 * hang))
		n, err := m.conn.Read(buf)
		if err != nil {
			m.t.Fatalf("waited for %s: %v; have %q", begins, err, m.left)
		}
		m.left = append(m.left, buf[:n]...)
	}
}

func (m *meta) sdp(tag, opus, events int) string {
	return fmt.Sprintf("v=0\r\no=- 1746657286595 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE audio\r\na=msid-semantic: WMS 42da\r\n"+
		"m=audio %d RTP/SAVP %d %d\r\nc=IN IP4 127.0.0.1\r\na=rtcp:9 IN IP4 0.0.0.0\r\na=mid:audio\r\na=sendrecv\r\n"+
		"a=msid:42da WhatsAppTrack1\r\na=rtcp-mux\r\n%s"+
		"a=rtpmap:%d opus/48000/2\r\n"+
		"a=fmtp:%d maxaveragebitrate=20000;maxplaybackrate=16000;minptime=20;sprop-maxcapturerate=16000;useinbandfec=1\r\n"+
		"a=rtpmap:%d telephone-event/8000\r\na=maxptime:20\r\na=ptime:20\r\na=ssrc:1238967757 cname:WhatsAppAudioStream1\r\n",
		m.rtp.addr().Port(), opus, events, sdes{tag, m.key}.line(), opus, opus, events)
}

// talk says 440 Hz to whoever has said something first, and wants 1000 Hz from there.
func (m *meta) talk(theirs string, opus uint8, p *phone) {
	m.t.Helper()
	d, err := parseSDP([]byte(bodyOf(theirs)))
	if err != nil || len(d.streams) != 1 || d.streams[0].proto != "RTP/SAVP" || len(d.streams[0].crypto) == 0 {
		m.t.Fatalf("%v\n%s", err, theirs)
	}
	context := func(k rtp.Key) *srtp.Context {
		c, err := srtp.CreateContext([]byte(k.Secret[:16]), []byte(k.Secret[16:]), srtp.ProtectionProfileAes128CmHmacSha1_80)
		if err != nil {
			m.t.Fatal(err)
		}
		return c
	}
	seal, open := context(m.key), context(d.streams[0].crypto[0].key)
	to := netip.AddrPortFrom(d.streams[0].addr, uint16(d.streams[0].port))
	encoder, decoder := audio.NewEncoder(audio.Opus), audio.NewDecoder(audio.Opus)
	var heard []int16
	buf := make([]byte, 2048)
	for n := range 100 {
		_ = m.rtp.SetReadDeadline(time.Now().Add(hang)) // it says nothing before it has heard something
		size, err := m.rtp.Read(buf)
		if err != nil {
			m.t.Fatalf("no sound came: %v", err)
		}
		if buf[1] >= 192 && buf[1] <= 223 { // RTCP, on the port of the sound
			continue
		}
		plain, err := open.DecryptRTP(nil, buf[:size], nil)
		if err != nil {
			m.t.Fatal(err)
		}
		if plain[1]&0x7f == opus {
			heard = decoder.Decode(heard, plain[12:])
		}
		pcm := make(audio.Frame, 320)
		for k := range pcm {
			pcm[k] = int16(8000 * math.Sin(2*math.Pi*440*float64(n*320+k)/16000))
		}
		sealed, err := seal.EncryptRTP(nil, packet(opus, n == 0, uint16(n), uint32(n)*960, 1238967757, encoder.Encode(nil, pcm)), nil)
		if err != nil {
			m.t.Fatal(err)
		}
		_, _ = m.rtp.WriteToUDPAddrPort(sealed, to)
	}
	if n := len(heard) - 8000; n < 0 || share(heard[n:], 1000, audio.Wide) < 0.9 {
		m.t.Errorf("of %d samples the end is no tone", len(heard))
	}
	p.await(m.t, "a tone of 440 Hz is heard",
		func() bool { n := len(p.heard) - 3200; return n > 0 && share(p.heard[n:], 440, audio.Wide) > 0.9 })
}

// whatsAppTrunk is a trunk as the preset fills it in, and as its page says.
func whatsAppTrunk(address, ca string) Trunk {
	s := preset.Of("whatsapp").Settings
	t := Trunk{ID: 7, Number: "+" + business, Address: address, Transport: *s.Transport, CA: ca, SRTP: *s.SRTP, Username: business,
		Password: "made by Meta", Manners: Manners{Format: *s.SIPCallingFormat, FromDomain: "meta-voip.example.com"}}
	for _, name := range s.Codecs {
		for _, f := range []audio.Format{audio.PCMU, audio.PCMA, audio.Opus} {
			if f.String() == name {
				t.Codecs = append(t.Codecs, f)
			}
		}
	}
	return t
}

// TestWhatsAppOut calls a WhatsApp user: Meta wants the business number in From, without its plus in the proof, and the host
// that is entered at Meta.
func TestWhatsAppOut(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	far, err := tls.Listen("tcp", "127.0.0.1:0", ca.config(t, tomorrow, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	s := start(t, Config{Session: 30 * time.Minute})
	p := newPhone(1000)
	out := make(chan dialled, 1)
	go func() {
		l, err := s.Dial(soon(t), Dialling{Trunk: whatsAppTrunk(far.Addr().String(), ca.pem), To: "+" + whatsapp, From: "+" + business})
		if err != nil {
			out <- dialled{err: err}
			return
		}
		out <- dialled{leg: run(l, p)}
	}()
	c, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	m := newMeta(t, c.(*tls.Conn))
	answer := func(req, status string, body string, more ...string) {
		lines := []string{"SIP/2.0 " + status, "Via: " + field(req, "Via"),
			"Record-Route: <sip:onevc-sip-proxy.fbinfra.net:8191;transport=tls;lr>",
			"Record-Route: <sip:127.0.0.1:" + strconv.Itoa(int(netip.MustParseAddrPort(far.Addr().String()).Port())) + ";transport=tls;lr>",
			"Call-ID: " + field(req, "Call-ID"), "From: " + field(req, "From"),
			"To: " + field(req, "To") + ";tag=0d185053", "CSeq: " + field(req, "CSeq"), "Allow: INVITE, ACK, BYE, CANCEL, NOTIFY, OPTIONS",
			"Supported: timer"}
		m.write(append(lines, more...), body)
	}
	req := m.next("INVITE ")
	uri := strings.Fields(req)[1]
	if !strings.HasPrefix(uri, "sip:+"+whatsapp+"@") || !strings.HasSuffix(uri, ";transport=tls") ||
		!strings.HasPrefix(field(req, "From"), "<sip:+"+business+"@meta-voip.example.com>") || !strings.Contains(req, " RTP/SAVP 96 0 8 ") ||
		strings.Count(req, "a=crypto:") != 5 || !strings.Contains(req, " AES_256_CM_HMAC_SHA1_80 inline:") {
		t.Errorf("the INVITE:\n%s", req)
	}
	answer(req, "407 Proxy Authentication Required", "",
		`Proxy-Authenticate: Digest realm="wa.meta.vc",nonce="419ac2415577f8e1",opaque="440badfc05072367",algorithm=MD5,qop="auth"`)
	m.next("ACK ")
	req = m.next("INVITE ")
	if c := proved(t, req, field(req, "Proxy-Authorization"), business, "made by Meta"); c.Realm != "wa.meta.vc" ||
		c.Opaque != "440badfc05072367" || c.QOP != "auth" {
		t.Errorf("the proof: %+v", c)
	}
	answer(req, "100 Trying", "")
	answer(req, "180 Ringing", "")
	answer(req, "200 OK", m.sdp(1, 96, 101), "X-FB-External-Domain: wa.meta.vc",
		"Contact: <sip:+"+whatsapp+"@wa.meta.vc;transport=tls;ob;X-FB-Sip-Smc-Tier=collaboration.sip_gateway.sip.prod>;isfocus")
	m.next("ACK sip:+" + whatsapp + "@wa.meta.vc;transport=tls;ob")
	r := get(t, out)
	if r.err != nil {
		t.Fatal(r.err)
	}
	m.talk(req, 96, p)
	r.leg.stop(parley.AssistantHangup)
	bye := m.next("BYE ")
	if field(bye, "Reason") != `Q.850;cause=16;text="Normal call clearing"` || !strings.Contains(bye, "Route: ") {
		t.Errorf("the end:\n%s", bye)
	}
	answer(bye, "200 OK", "")
	r.leg.ends(t, parley.AssistantHangup)
}

// TestWhatsAppIn takes the call of a WhatsApp user, who is asked for the password.
func TestWhatsAppIn(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	a := newAnswerer(1000)
	s := start(t, Config{Secure: "127.0.0.1:0", TLS: ca.config(t, tomorrow, "meta-voip.example.com"), Answer: a.answer,
		Trunks: fixed(whatsAppTrunk("wa.meta.vc", ""))})
	for _, password := range []string{"wrong", "made by Meta"} {
		c, err := tls.Dial("tcp", s.over(), &tls.Config{RootCAs: ca.pool(), ServerName: "meta-voip.example.com"})
		if err != nil {
			t.Fatal(err)
		}
		m := newMeta(t, c)
		const uri = "sip:+" + business + "@meta-voip.example.com"
		to, seq := "<"+uri+">", 9989
		head := func(method string) []string {
			return []string{method + " " + uri + ";transport=tls SIP/2.0",
				"Via: SIP/2.0/TLS [2803:6080:f948:9597::]:47237;rport;branch=z9hG4bKPj1e6c" + strconv.Itoa(seq) + method + ";alias",
				"Record-Route: <sip:wa.meta.vc;transport=tls;lr>", "Record-Route: <sip:onevc-sip-proxy.fbinfra.net:8191;transport=tls;lr>",
				"Via: SIP/2.0/TLS [2803:6080:f948:9597:7253:922a:400:0]:5061;branch=z9hG4bKPj1e6c", "Max-Forwards: 69",
				`From: "` + whatsapp + `" <sip:+` + whatsapp + "@wa.meta.vc>;tag=ece2da15", "To: " + to,
				"Contact: <sip:+" + whatsapp + "@wa.meta.vc;transport=tls;ob>;isfocus", "Call-ID: outgoing:wacid.HBgL" + password[:5],
				fmt.Sprintf("CSeq: %d %s", seq, method), "X-FB-External-Domain: wa.meta.vc", "Allow: INVITE, ACK, BYE, CANCEL, NOTIFY, OPTIONS",
				"User-Agent: Facebook SipGateway", "X-WA-Meta-WACID: wacid.1", "X-WA-Meta-CTA-Payload: order=4711"}
		}
		m.write(head("INVITE"), m.sdp(1, 111, 126))
		challenge, err := digest.ParseChallenge(field(m.next("SIP/2.0 401"), "WWW-Authenticate"))
		if err != nil {
			t.Fatal(err)
		}
		m.write(head("ACK"), "")
		seq++
		// Its proof names the address without the transport.
		proof, err := digest.Digest(challenge, digest.Options{Method: "INVITE", URI: uri, Username: business, Password: password, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		m.write(append(head("INVITE"), "Authorization: "+proof.String()), m.sdp(1, 111, 126))
		if password == "wrong" {
			m.next("SIP/2.0 403")
			continue
		}
		res := m.next("SIP/2.0 200")
		if !strings.Contains(res, " RTP/SAVP 111 126\r\n") || strings.Contains(res, "a=group") || !strings.Contains(res, "a=rtcp-mux\r\n") {
			t.Errorf("the answer:\n%s", res)
		}
		to = field(res, "To")
		m.write(head("ACK"), "")
		in := a.next(t)
		if in.in.From != "+"+whatsapp || in.in.To != "+"+business || in.in.Signalling.Headers["X-WA-Meta-CTA-Payload"] != "order=4711" {
			t.Errorf("from %s to %s with %v", in.in.From, in.in.To, in.in.Signalling.Headers)
		}
		if vars := in.in.Signalling.Given(nil); vars["wa_meta_cta_payload"] != "order=4711" || vars["wa_meta_wacid"] != "wacid.1" {
			t.Errorf("its variables are %v", vars)
		}
		m.talk(res, 111, in.phone)
		seq++
		m.write(append(head("BYE"), "X-WA-Meta-Call-Duration: 2", `Reason: Q.850;cause=16;text="NORMAL_CLEARING"`), "")
		m.next("SIP/2.0 200")
		in.ends(t, parley.CustomerHangup)
	}
}
