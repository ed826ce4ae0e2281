package sip

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/rtp"
)

func TestNegotiation(t *testing.T) {
	t.Parallel()
	head := "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
	own := allCodecs
	for name, c := range map[string]struct {
		text   string
		rate   audio.Rate
		own    *codecs
		bad    bool // malformed
		none   bool // nothing that we speak
		want   rtp.Codec
		place  int
		addr   string
		mirror string
	}{
		"the offerer's first": {text: head + "m=audio 4000 RTP/AVP 8 0 9 101\r\na=rtpmap:101 telephone-event/8000\r\n",
			want: rtp.Codec{Format: audio.PCMA, Send: 8, Receive: 8, Event: true, SendEvent: 101, ReceiveEvent: 101}},
		"G722 first": {text: head + "m=audio 4000 RTP/AVP 9 0\r\n",
			want: rtp.Codec{Format: audio.G722, Send: 9, Receive: 9}},
		"what we don't have": {text: head + "m=audio 4000 RTP/AVP 18 3 0\r\n", want: rtp.Codec{Format: audio.PCMU}},
		"dynamic types": {text: head + "m=audio 4000 RTP/AVP 96 97\r\na=rtpmap:96 pcma/8000/1\r\na=rtpmap:97 Telephone-Event/8000\r\n",
			want: rtp.Codec{Format: audio.PCMA, Send: 96, Receive: 96, Event: true, SendEvent: 97, ReceiveEvent: 97}},
		"a static type renamed": {text: head + "m=audio 4000 RTP/AVP 0 8\r\na=rtpmap:0 opus/48000/2\r\n",
			want: rtp.Codec{Format: audio.PCMA, Send: 8, Receive: 8}},
		"the answer's types": {text: head + "m=audio 4000 RTP/AVP 96 100\r\na=rtpmap:96 G722/8000\r\na=rtpmap:100 telephone-event/8000\r\n",
			own: &own, want: rtp.Codec{Format: audio.G722, Send: 96, Receive: 9, Event: true, SendEvent: 100, ReceiveEvent: 101}},
		"of a rate": {text: head + "m=audio 4000 RTP/AVP 9 8\r\n", rate: audio.Narrow,
			want: rtp.Codec{Format: audio.PCMA, Send: 8, Receive: 8}},
		"none of a rate": {text: head + "m=audio 4000 RTP/AVP 0 8\r\n", rate: audio.Wide, none: true},
		"video before it": {text: head + "m=video 5000 RTP/AVP 31\r\nm=audio 4000 RTP/AVP 0\r\n",
			want: rtp.Codec{Format: audio.PCMU}, place: 1},
		"encrypted only": {text: head + "m=audio 4000 RTP/SAVP 0\r\n", none: true},
		"encrypted or not": {text: head + "m=audio 4000 RTP/SAVP 0\r\nm=audio 4002 RTP/AVP 0\r\n",
			want: rtp.Codec{Format: audio.PCMU}, place: 1},
		"turned down": {text: head + "m=audio 0 RTP/AVP 0\r\n", none: true},
		"no streams":  {text: head, none: true},
		"its own address": {text: head + "m=audio 4000 RTP/AVP 0\r\nc=IN IP4 192.0.2.9/127\r\n",
			want: rtp.Codec{Format: audio.PCMU}, addr: "192.0.2.9"},
		"IPv6": {text: "v=0\r\nc=IN IP6 2001:db8::1\r\nm=audio 4000 RTP/AVP 0\r\n",
			want: rtp.Codec{Format: audio.PCMU}, addr: "2001:db8::1"},
		"a name": {text: "v=0\r\nc=IN IP4 media.example\r\nm=audio 4000 RTP/AVP 0\r\n",
			want: rtp.Codec{Format: audio.PCMU}, addr: "invalid IP"},
		"LF alone": {text: strings.ReplaceAll(head+"m=audio 4000 RTP/AVP 0\r\n", "\r\n", "\n"),
			want: rtp.Codec{Format: audio.PCMU}},
		"sendonly": {text: head + "a=sendonly\r\nm=audio 4000 RTP/AVP 0\r\n",
			want: rtp.Codec{Format: audio.PCMU}, mirror: "recvonly"},
		"recvonly": {text: head + "m=audio 4000 RTP/AVP 0\r\na=recvonly\r\n",
			want: rtp.Codec{Format: audio.PCMU}, mirror: "sendonly"},
		"inactive": {text: head + "a=sendonly\r\nm=audio 4000 RTP/AVP 0\r\na=inactive\r\n",
			want: rtp.Codec{Format: audio.PCMU}, mirror: "inactive"},
		"held as of old": {text: "v=0\r\nc=IN IP4 0.0.0.0\r\nm=audio 4000 RTP/AVP 0\r\n",
			want: rtp.Codec{Format: audio.PCMU}, mirror: "recvonly", addr: "0.0.0.0"},
		"not a description":  {text: "hello", bad: true},
		"a line without =":   {text: head + "nonsense\r\n", bad: true},
		"a port too high":    {text: head + "m=audio 70000 RTP/AVP 0\r\n", bad: true},
		"no formats":         {text: head + "m=audio 4000 RTP/AVP\r\n", bad: true},
		"a torn address":     {text: "v=0\r\nc=IN IP4\r\nm=audio 4000 RTP/AVP 0\r\n", bad: true},
		"far too many lines": {text: head + strings.Repeat("m=audio 4000 RTP/AVP 0\r\n", 100), bad: true},
		"a type that is none": {text: head + "m=audio 4000 RTP/AVP x 300 -1 0\r\n",
			want: rtp.Codec{Format: audio.PCMU}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := parseSDP([]byte(c.text))
			if (err != nil) != c.bad {
				t.Fatalf("error %v", err)
			}
			if c.bad {
				return
			}
			var own *ours
			if c.own != nil {
				own = &ours{codecs: *c.own}
			}
			chosen, ok := d.audio(c.rate, own, srtpOff)
			place, got := chosen.place, chosen.codec
			if ok == c.none {
				t.Fatalf("fits: %v", ok)
			}
			if c.none {
				return
			}
			if got != c.want || place != c.place {
				t.Errorf("place %d, %+v, want place %d, %+v", place, got, c.place, c.want)
			}
			m := &d.streams[place]
			if c.mirror == "" {
				c.mirror = "sendrecv"
			}
			if got := nameOf(m.mirror()); got != c.mirror {
				t.Errorf("mirror %s, want %s", got, c.mirror)
			}
			if c.addr == "" {
				c.addr = "192.0.2.1"
			}
			if m.addr.String() != c.addr {
				t.Errorf("address %s, want %s", m.addr, c.addr)
			}
		})
	}
}

func TestAnswerText(t *testing.T) {
	t.Parallel()
	d, err := parseSDP(
		[]byte("v=0\r\nc=IN IP4 192.0.2.1\r\nm=video 5000 RTP/AVP 31 32\r\nm=audio 4000 RTP/AVP 8 96\r\na=rtpmap:96 telephone-event/8000\r\n" +
			"m=audio 0 RTP/AVP 0\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := d.audio(0, nil, srtpOff)
	l := local{id: 5, addr: netip.MustParseAddrPort("198.51.100.1:20000")}
	const want = "v=0\r\no=parley 5 1 IN IP4 198.51.100.1\r\ns=-\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\nm=video 0 RTP/AVP 31\r\n" +
		"m=audio 20000 RTP/AVP 8 96\r\n" +
		"a=rtpmap:8 PCMA/8000\r\na=rtpmap:96 telephone-event/8000\r\na=fmtp:96 0-15\r\na=ptime:20\r\na=recvonly\r\nm=audio 0 RTP/AVP 0\r\n"
	if got := string(l.answer(d, c, directions["recvonly"])); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := l.offer(ours{codecs: narrowCodecs}, directions["sendrecv"], srtpOff); !bytes.Contains(got, []byte("o=parley 5 2 ")) ||
		!bytes.Contains(got, []byte("RTP/AVP 0 8 101\r\n")) {
		t.Errorf("the offer after it:\n%s", got)
	}
}

// FuzzSDP: no input makes it fail, and the answer can be read and matches.
func FuzzSDP(f *testing.F) {
	f.Add([]byte("v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 101\r\n" +
		"a=rtpmap:101 telephone-event/8000\r\na=sendonly\r\n"))
	f.Add([]byte("v=0\nm=audio 4000 RTP/AVP 96\na=rtpmap:96 G722/8000\nc=IN IP6 ::1\n"))
	f.Add([]byte("v=0\r\nm=audio 65535/2 RTP/AVPF 8\r\na=rtpmap:\r\na=inactive\r\nm=x 1 y z\r\n"))
	f.Add(
		[]byte("v=0\r\nm=audio 4 RTP/SAVP 0\r\n" +
			"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^31|1:4 WSH=64\r\n"))
	f.Add(
		[]byte("v=0\r\nm=audio 4 RTP/AVP 0\r\na=crypto:999999999 aead_aes_128_gcm inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==|1:128\r\n"))
	f.Add([]byte("v=0\r\nm=\x00 0 \xff 0\r\n"))
	f.Add([]byte("v=0\r\na=fingerprint:sha-256 " + strings.Repeat("AA:", 31) + "AA\r\na=setup:actpass\r\nm=audio 4 UDP/TLS/RTP/SAVPF 0\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := parseSDP(text)
		if err != nil {
			return
		}
		c, ok := d.audio(0, nil, srtpOptional)
		if !ok {
			return
		}
		if c.ours = c.theirs; c.theirs.key.Suite != "" {
			c.ours.key = rtp.NewKey(c.theirs.key.Suite)
		}
		l := local{id: 1, addr: netip.MustParseAddrPort("198.51.100.1:20000"), identity: &rtp.Identity{Print: strings.Repeat("00:", 31) + "00"}}
		back, err := parseSDP(l.answer(d, c, d.streams[c.place].mirror()))
		if err != nil {
			t.Fatalf("our answer can't be read: %v", err)
		}
		if len(back.streams) != len(d.streams) {
			t.Fatalf("%d streams were answered with %d", len(d.streams), len(back.streams))
		}
		srtp := srtpOff
		if c.ours.key.Suite != "" {
			srtp = srtpRequired
		}
		if c.dtls != nil {
			srtp = srtpDTLS
		}
		again, ok := back.audio(0, nil, srtp)
		if !ok || again.place != c.place || again.codec.Format != c.codec.Format || again.codec.Send != c.codec.Receive ||
			again.theirs != c.ours {
			t.Fatalf("%+v was answered with %+v", c, again)
		}
	})
}

func TestInfoKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]byte{"Signal=5\r\nDuration=160": '5', "signal = # ": '#', "Signal=10": '*',
		"Signal=11": '#', "Signal=a": 'A', "Signal=16": 0, "Duration=1": 0, "": 0, "Signal=55": 0} {
		if got, ok := infoKey("application/dtmf-relay; charset=utf-8", []byte(text)); got != want || !ok {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	if _, ok := infoKey("text/plain", []byte("5")); ok {
		t.Error("a text is a key")
	}
}

func TestMultipart(t *testing.T) {
	t.Parallel()
	text := "--b\r\nContent-Type: application/isup\r\n\r\nxx\r\n--b\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--b--\r\n"
	if sdp, ok := partOf(`multipart/mixed;boundary="b"`, []byte(text)); !ok || string(sdp) != "v=0" {
		t.Errorf("%q, %v", sdp, ok)
	}
	for _, kind := range []string{"multipart/mixed", "text/plain", "", ";;", "multipart/mixed;boundary=c"} {
		if _, ok := partOf(kind, []byte(text)); ok {
			t.Errorf("%q was read", kind)
		}
	}
}

// Reports go where the description says, and muxing is accepted if it was offered.
func TestControl(t *testing.T) {
	t.Parallel()
	const head = "v=0\r\nc=IN IP4 192.0.2.1\r\na=rtcp:9 IN IP4 192.0.2.9\r\na=rtcp-mux\r\nm=audio 4000 RTP/AVP 0\r\n"
	for attribute, want := range map[string]string{"": "invalid AddrPort", "a=rtcp:53020": "invalid AddrPort 53020",
		"a=rtcp:53020 IN IP4 192.0.2.7":     "192.0.2.7:53020",
		"a=rtcp:53020 IN IP6 2001:db8::7":   "[2001:db8::7]:53020",
		"a=rtcp:53020 IN IP4 media.example": "invalid AddrPort 53020", "a=rtcp:x": "invalid AddrPort",
		"a=rtcp:70000": "invalid AddrPort", "a=rtcp:1 2": "invalid AddrPort", "a=rtcp-mux": "mux"} {
		d, err := parseSDP([]byte(head + attribute + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		m := &d.streams[0]
		got := m.control.String()
		if !m.control.IsValid() && m.control.Port() != 0 {
			got = fmt.Sprint("invalid AddrPort ", m.control.Port())
		}
		if m.mux {
			got = "mux"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", attribute, got, want)
		}
		l := local{addr: netip.MustParseAddrPort("198.51.100.1:20000")}
		c, _ := d.audio(0, nil, srtpOff)
		if answer := string(l.answer(d, c, directions["sendrecv"])); strings.Contains(answer,
			"a=rtcp-mux\r\n") != m.mux {
			t.Errorf("%q is answered with %s", attribute, answer)
		}
	}
}

// TestPrefer: a trunk's order of codecs decides the order in our offer, and codecs that are not in it are left out.
func TestPrefer(t *testing.T) {
	t.Parallel()
	const offer = "v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 9 0 8 101\r\na=rtpmap:101 telephone-event/8000\r\n" +
		"m=video 5000 RTP/AVP 31\r\n"
	for name, c := range map[string]struct {
		own  codecs
		want audio.Format
	}{"as offered": {nil, audio.G722}, "ours": {codecs{audio.PCMA, audio.G722}, audio.PCMA}, "one": {codecs{audio.PCMU}, audio.PCMU}} {
		d, err := parseSDP([]byte(offer))
		if err != nil {
			t.Fatal(err)
		}
		if c.own != nil {
			d.prefer(c.own)
		}
		got, ok := d.audio(0, nil, srtpOff)
		if !ok || got.codec.Format != c.want || !got.codec.Event {
			t.Errorf("%s: %+v, %v", name, got.codec, ok)
		}
		l := local{addr: netip.MustParseAddrPort("192.0.2.2:4000")}
		if text := string(l.answer(d, got, directions["sendrecv"])); !strings.Contains(text, "m=video 0 RTP/AVP 31") {
			t.Errorf("%s: answered with %s", name, text)
		}
	}
	d, err := parseSDP([]byte("v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 0\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d.prefer(codecs{audio.PCMA}); true {
		if got, ok := d.audio(0, nil, srtpOff); ok {
			t.Errorf("a codec that the trunk does not want is taken: %+v", got)
		}
	}
	own := &Trunk{Codecs: []audio.Format{audio.G722}}
	if got := own.offered(); len(got) != 1 || len(own.narrow()) != 2 || len((*Trunk)(nil).offered()) != 3 {
		t.Errorf("offers %v, at first %v", got, own.narrow())
	}
}

func TestPacketLength(t *testing.T) {
	for lines, want := range map[string]time.Duration{"": 20, "a=ptime:40": 40, "a=ptime:5": 10, "a=ptime:200": 60, "a=ptime:x": 20,
		"a=ptime:20.0": 20, "a=ptime:40\r\na=maxptime:30": 30, "a=maxptime:10": 10, "a=ptime:-20": 20, "a=ptime:NaN": 20} {
		d, err := parseSDP([]byte("v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 0\r\n" + lines + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.streams[0].packet(); got != want*time.Millisecond {
			t.Errorf("%q: %s", lines, got)
		}
	}
}
