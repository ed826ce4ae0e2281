package sip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"parley/internal/audio"
	"parley/internal/rtp"
)

// local is our side of a session.
type local struct {
	id, version uint64
	addr        netip.AddrPort
	identity    *rtp.Identity // shown in handshakes
}

func (l *local) head(b *strings.Builder) {
	l.version++
	family := "IP4"
	if l.addr.Addr().Is6() {
		family = "IP6"
	}
	fmt.Fprintf(b, "v=0\r\no=parley %d %d IN %s %s\r\ns=-\r\nc=IN %s %s\r\nt=0 0\r\n", l.id, l.version, family,
		l.addr.Addr(), family, l.addr.Addr())
}

// mapSound says what a payload type of sound is. Of Opus nothing beyond 8 kHz and one channel is heard.
func mapSound(b *strings.Builder, pt uint8, f audio.Format) {
	fmt.Fprintf(b, "a=rtpmap:%d %s/%d", pt, f, f.ClockRate())
	if f == audio.Opus {
		fmt.Fprintf(b, "/2\r\na=fmtp:%d maxplaybackrate=16000;sprop-maxcapturerate=16000;stereo=0;useinbandfec=0", pt)
	}
	b.WriteString("\r\n")
}

// mapEvents says what a codec's payload type of telephone events is.
func mapEvents(b *strings.Builder, c rtp.Codec) {
	fmt.Fprintf(b, "a=rtpmap:%d telephone-event/%d\r\na=fmtp:%d 0-15\r\n", c.ReceiveEvent, cmp.Or(c.EventClock, 8000), c.ReceiveEvent)
}

// offer describes what we would like. Optional encryption is offered the way most PBXs do it, in a plain stream: a far
// end that doesn't know it ignores it.
func (l *local) offer(o ours, dir rtp.Direction, srtp secrecy) []byte {
	var b strings.Builder
	l.head(&b)
	c, proto := o.codecs, "RTP/AVP"
	switch {
	case o.dtls:
		proto = "UDP/TLS/RTP/SAVP"
	case srtp == srtpRequired:
		proto = "RTP/SAVP"
	}
	fmt.Fprintf(&b, "m=audio %d %s", l.addr.Port(), proto)
	for _, f := range c {
		fmt.Fprintf(&b, " %d", o.typeOf(f))
	}
	events := []rtp.Codec{}
	if slices.ContainsFunc(c, func(f audio.Format) bool { return f != audio.Opus }) {
		events = append(events, rtp.Codec{ReceiveEvent: o.eventsOf(0)})
	}
	if slices.Contains(c, audio.Opus) {
		events = append(events, rtp.Codec{ReceiveEvent: o.eventsOf(48000), EventClock: 48000})
	}
	for _, e := range events {
		fmt.Fprintf(&b, " %d", e.ReceiveEvent)
	}
	b.WriteString("\r\n")
	for _, f := range c {
		mapSound(&b, o.typeOf(f), f)
	}
	for _, e := range events {
		mapEvents(&b, e)
	}
	fmt.Fprintf(&b, "a=ptime:20\r\na=%s\r\n", nameOf(dir))
	for _, k := range o.keys {
		b.WriteString(k.line())
	}
	if o.dtls {
		b.WriteString("a=rtcp-mux\r\n")
		l.shows(&b, "actpass")
	}
	return []byte(b.String())
}

// answer accepts one stream of an offer, and rejects the others (RFC 3264, section 6).
func (l *local) answer(d *description, taken choice, dir rtp.Direction) []byte {
	var b strings.Builder
	l.head(&b)
	c := taken.codec
	for i, m := range d.streams {
		if i != taken.place {
			fmt.Fprintf(&b, "m=%s 0 %s %s\r\n", m.kind, m.proto, m.formats[0])
			continue
		}
		fmt.Fprintf(&b, "m=audio %d %s %d", l.addr.Port(), m.proto, c.Receive)
		if c.Event {
			fmt.Fprintf(&b, " %d", c.ReceiveEvent)
		}
		b.WriteString("\r\n")
		mapSound(&b, c.Receive, c.Format)
		if c.Event {
			mapEvents(&b, c)
		}
		if m.mux {
			b.WriteString("a=rtcp-mux\r\n")
		}
		fmt.Fprintf(&b, "a=ptime:20\r\na=%s\r\n", nameOf(dir))
		if taken.ours.key.Suite != "" {
			b.WriteString(taken.ours.line())
		}
		if taken.dtls != nil {
			l.shows(&b, roles[taken.dtls.Active])
		}
	}
	return []byte(b.String())
}
