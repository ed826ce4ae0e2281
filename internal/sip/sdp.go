package sip

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/audio"
	"parley/internal/rtp"
)

// Session descriptions (RFC 8866) as far as an audio call needs them (RFC 3264). Telephones often send them incomplete
// or out of order, so lines are accepted wherever they are.

const (
	maxStreams = 16
	maxFormats = 64
	eventType  = 101 // the payload type that we offer telephone-event with
	eventWide  = 102 // and for the clock of Opus (RFC 7587, section 4.1; RFC 4733, section 2.1)
	maxRate    = 510000
	maxStatic  = 34 // payload types up to this one always mean the same (RFC 3551, section 6)
)

var directions = map[string]rtp.Direction{"sendrecv": {Send: true, Receive: true}, "sendonly": {Send: true},
	"recvonly": {Receive: true}, "inactive": {}}

// nameOf is what a description calls a direction.
func nameOf(d rtp.Direction) string {
	for name, known := range directions {
		if known == d {
			return name
		}
	}
	return ""
}

// stream is one m= line of a description.
type stream struct {
	kind, proto string
	port        int
	formats     []string
	addr        netip.Addr // invalid where it is a name
	dir         rtp.Direction
	names       map[string]string // by payload type: NAME/CLOCK
	rates       map[string]int    // by payload type: the most bits a second that the far end wants of Opus
	control     netip.AddrPort    // a=rtcp (RFC 3605); port 0: none, and the address may be invalid
	mux         bool              // a=rtcp-mux (RFC 5761)
	ptime, most int               // how many ms the far end likes in a packet (a=ptime), and at most; 0: it doesn't say
	crypto      []sdes            // that we can do
	hash, print string            // a=fingerprint (RFC 8122); "" without one that we can check
	setup       string            // a=setup (RFC 4145)
	order       []string          // of formats, as we prefer them; nil: as the far end does
}

// description holds the parts of a session description that matter.
type description struct{ streams []stream }

var errSDP = errors.New("malformed session description")

func parseSDP(text []byte) (*description, error) {
	d := &description{}
	session := stream{dir: directions["sendrecv"]}
	now := &session
	for i, line := range strings.Split(strings.ReplaceAll(string(text), "\r", "\n"), "\n") {
		line = strings.TrimRight(line, " \t\x00")
		if line == "" {
			continue
		}
		if i == 0 && line != "v=0" {
			return nil, fmt.Errorf("%w: it doesn't begin with v=0", errSDP)
		}
		if len(line) < 2 || line[1] != '=' {
			return nil, fmt.Errorf("%w: line %d", errSDP, i+1)
		}
		value := line[2:]
		switch line[0] {
		case 'm':
			m, err := parseMedia(value)
			if err != nil || len(d.streams) == maxStreams {
				return nil, fmt.Errorf("%w: line %d", errSDP, i+1)
			}
			m.addr, m.dir = session.addr, session.dir
			m.hash, m.print, m.setup = session.hash, session.print, session.setup
			d.streams = append(d.streams, m)
			now = &d.streams[len(d.streams)-1]
		case 'c':
			f := strings.Fields(value)
			if len(f) != 3 || f[0] != "IN" {
				return nil, fmt.Errorf("%w: line %d", errSDP, i+1)
			}
			host, _, _ := strings.Cut(f[2], "/") // a multicast's ttl
			now.addr, _ = netip.ParseAddr(host)
			now.addr = now.addr.Unmap()
		case 'a':
			now.attribute(value)
		}
	}
	return d, nil
}

func parseMedia(value string) (stream, error) {
	f := strings.Fields(value)
	if len(f) < 4 || len(f) > 3+maxFormats {
		return stream{}, errSDP
	}
	number, _, _ := strings.Cut(f[1], "/") // a number of ports
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return stream{}, errSDP
	}
	return stream{kind: f[0], port: int(port), proto: f[2], formats: f[3:], names: map[string]string{},
		rates: map[string]int{}}, nil
}

func (m *stream) attribute(value string) {
	name, rest, _ := strings.Cut(value, ":")
	if dir, ok := directions[name]; ok {
		m.dir = dir
		return
	}
	switch {
	case name == "fingerprint":
		m.fingerprint(rest)
	case name == "setup":
		m.setup = strings.ToLower(strings.TrimSpace(rest))
	case m.names == nil: // of the session
	case name == "rtpmap" && len(m.names) < maxFormats:
		pt, encoding, _ := strings.Cut(strings.TrimSpace(rest), " ")
		m.names[pt] = strings.ToUpper(strings.TrimSpace(encoding))
	case name == "fmtp" && len(m.rates) < maxFormats:
		pt, list, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if n := parseRate(list); n > 0 {
			m.rates[pt] = n
		}
	case name == "rtcp-mux":
		m.mux = true
	case name == "ptime":
		m.ptime = parseLength(rest)
	case name == "maxptime":
		m.most = parseLength(rest)
	case name == "rtcp":
		m.control = parseControl(rest)
	case name == "crypto" && len(m.crypto) < maxCrypto:
		if c, ok := parseCrypto(rest); ok {
			m.crypto = append(m.crypto, c)
		}
	}
}

// parseRate parses Opus's maxaveragebitrate (RFC 7587, section 6.1); 0 if there is none.
func parseRate(list string) int {
	for p := range strings.SplitSeq(list, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if strings.EqualFold(strings.TrimSpace(name), "maxaveragebitrate") && err == nil && n >= 6000 && n <= maxRate {
			return n
		}
	}
	return 0
}

// parseLength parses the length of a packet in ms; 0 if there is none.
func parseLength(value string) int {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64) // some write 20.0
	if err != nil || !(n > 0 && n < 1000) {
		return 0
	}
	return int(n)
}

// packet is how long the far end wants our packets.
func (m *stream) packet() time.Duration {
	n := cmp.Or(m.ptime, 20)
	if m.most > 0 {
		n = min(n, m.most)
	}
	return time.Duration(min(max(n, 10), 60)) * time.Millisecond
}

// parseControl parses where RTCP goes: a port, and perhaps an address, "IN IP4 192.0.2.1".
func parseControl(value string) netip.AddrPort {
	f := strings.Fields(value)
	if len(f) != 1 && len(f) != 4 {
		return netip.AddrPort{}
	}
	port, err := strconv.ParseUint(f[0], 10, 16)
	if err != nil {
		return netip.AddrPort{}
	}
	var addr netip.Addr
	if len(f) == 4 {
		addr, _ = netip.ParseAddr(f[3])
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port))
}

// mirror is what our side of the stream does: it sends if the far end listens, which it doesn't at the address 0.0.0.0
// either (the hold of RFC 2543).
func (m *stream) mirror() rtp.Direction {
	return rtp.Direction{Send: m.dir.Receive && !(m.addr.IsValid() && m.addr.IsUnspecified()), Receive: m.dir.Send}
}

// encoding is the format that a payload type of the stream stands for, or the clock of its telephone events.
func (m *stream) encoding(pt string) (format audio.Format, event int, ok bool) {
	name, mapped := m.names[pt]
	if !mapped {
		name = map[string]string{"0": "PCMU/8000", "8": "PCMA/8000", "9": "G722/8000"}[pt]
	}
	switch strings.TrimSuffix(name, "/1") {
	case "PCMU/8000":
		return audio.PCMU, 0, true
	case "PCMA/8000":
		return audio.PCMA, 0, true
	case "G722/8000", "G722/16000": // the second is wrong, and sent
		return audio.G722, 0, true
	case "OPUS/48000/2", "OPUS/48000": // the second is wrong, and sent
		if n, err := strconv.Atoi(pt); err == nil && n > maxStatic {
			return audio.Opus, 0, true
		}
	case "TELEPHONE-EVENT/8000":
		return 0, 8000, true
	case "TELEPHONE-EVENT/48000":
		return 0, 48000, true
	}
	return 0, 0, false
}

// choose picks the codec of the first format that we have, and so the one that the far end likes most, among those of a
// rate (0 for any). Received packets have the payload types of own, if that is a description of ours that the far end
// answered.
func (m *stream) choose(rate audio.Rate, own *ours) (c rtp.Codec, ok bool) {
	formats := m.formats
	if m.order != nil {
		formats = m.order
	}
	events := map[int]uint8{} // by clock
	for _, pt := range formats {
		number, err := strconv.ParseUint(pt, 10, 8)
		if err != nil || number > 127 {
			continue
		}
		format, event, known := m.encoding(pt)
		switch {
		case !known:
		case event > 0:
			if _, known := events[event]; !known {
				events[event] = uint8(number)
			}
		case !ok && (rate == 0 || format.Rate() == rate) && (own == nil || slices.Contains(own.codecs, format)):
			ok, c.Format, c.Send, c.Receive = true, format, uint8(number), uint8(number)
			if own != nil {
				c.Receive = own.typeOf(format)
			}
			if format == audio.Opus {
				c.Bitrate = m.rates[pt]
			}
		}
	}
	chooseEvents(&c, events, own)
	return c, ok
}

// chooseEvents chooses the telephone events: of the clock of the sound, or of 8 kHz, which is sent beside Opus too.
func chooseEvents(c *rtp.Codec, events map[int]uint8, own *ours) {
	if pt, ok := events[48000]; ok && c.Format == audio.Opus {
		c.Event, c.SendEvent, c.ReceiveEvent, c.EventClock = true, pt, pt, 48000
	} else if pt, ok := events[8000]; ok {
		c.Event, c.SendEvent, c.ReceiveEvent = true, pt, pt
	}
	if c.Event && own != nil {
		c.ReceiveEvent = own.eventsOf(c.EventClock)
	}
}

// codecs are formats in our order of preference.
type codecs []audio.Format

var (
	// what is offered where the trunk says nothing; Opus, which costs more and sounds no better without losses, isn't
	allCodecs    = codecs{audio.G722, audio.PCMU, audio.PCMA}
	narrowCodecs = codecs{audio.PCMU, audio.PCMA}
)

// prefer has an offer's streams judged by our order of preference: whoever answers an offer decides (RFC 3264, section
// 6.1). Formats that are not in it are not taken.
func (d *description) prefer(c codecs) {
	for i := range d.streams {
		m := &d.streams[i]
		var events []string
		m.order = []string{}
		for _, want := range c {
			for _, pt := range m.formats {
				if f, event, known := m.encoding(pt); known && event == 0 && f == want {
					m.order = append(m.order, pt)
				}
			}
		}
		for _, pt := range m.formats {
			if _, event, known := m.encoding(pt); known && event > 0 {
				events = append(events, pt)
			}
		}
		m.order = append(m.order, events...)
	}
}

// codecs are the trunk's formats, the one that is liked most first; nil where it is the far end that decides.
func (t *Trunk) codecs() codecs {
	if t == nil {
		return nil
	}
	return t.Codecs
}

// offered are the formats that we offer to a trunk.
func (t *Trunk) offered() codecs {
	if own := t.codecs(); len(own) > 0 {
		return own
	}
	return allCodecs
}

// narrow are the formats that we offer before the far end has said anything: both ends have G.711.
func (t *Trunk) narrow() codecs {
	if own := t.codecs().ofRate(audio.Narrow); len(own) > 0 {
		return own
	}
	return narrowCodecs
}

// ofRate are those of a rate.
func (c codecs) ofRate(r audio.Rate) codecs {
	return slices.DeleteFunc(slices.Clone(c), func(f audio.Format) bool { return f.Rate() != r })
}

// choice is what is chosen from a description.
type choice struct {
	place        int // of the stream
	codec        rtp.Codec
	theirs, ours sdes // without a suite where sound is plain; ours is known where theirs answers it
	dtls         *rtp.DTLS
}

// ours is what we said in an offer that a description answers.
type ours struct {
	codecs codecs
	took   *rtp.Codec // what was agreed on before, or is by an answer; nil: nothing was
	keys   []sdes
	dtls   bool // in place of keys
}

// typeOf is the payload type that sound of a format has. What one means never changes within a call (RFC 3264, section
// 8.3.2): what was taken from an offer of the far end's keeps its number when we offer it.
func (o *ours) typeOf(f audio.Format) uint8 {
	if o.took != nil && o.took.Format == f {
		return o.took.Receive
	}
	return o.free(f.PayloadType())
}

// eventsOf is the payload type of the telephone events of a clock, likewise; 0 is 8 kHz.
func (o *ours) eventsOf(clock int) uint8 {
	switch t := o.took; {
	case t != nil && t.Event && t.EventClock == clock:
		return t.ReceiveEvent
	case clock == 48000:
		return o.free(eventWide)
	}
	return o.free(eventType)
}

// free is a payload type of ours, or another one if something else was agreed on under this number.
func (o *ours) free(pt uint8) uint8 {
	if t := o.took; t != nil && (pt == t.Receive || t.Event && pt == t.ReceiveEvent) {
		return o.free(pt + 10)
	}
	return pt
}

// audio finds the first stream that can carry a call: first among the encrypted ones, then among the others, as far as
// both are wanted. Many offer encryption in a plain stream (RTP/AVP with a=crypto), to be used or not.
func (d *description) audio(rate audio.Rate, own *ours, srtp secrecy) (c choice, ok bool) {
	var keys []sdes
	if own != nil {
		keys = append([]sdes{}, own.keys...)
	}
	for _, encrypted := range []bool{true, false} {
		if encrypted && srtp == srtpOff || !encrypted && (srtp == srtpRequired || srtp == srtpDTLS) {
			continue
		}
		for i := range d.streams {
			m := &d.streams[i]
			plain := m.proto == "RTP/AVP" || m.proto == "RTP/AVPF"
			if m.kind != "audio" || m.port == 0 || !plain && (!encrypted || !m.covered()) {
				continue
			}
			c = choice{place: i}
			if encrypted {
				if srtp != srtpDTLS && !m.overDTLS() {
					c.theirs, c.ours, ok = m.cryptoFor(keys)
				}
				if c.theirs.key.Suite == "" && (own == nil || own.dtls) {
					c.dtls, ok = m.handshake()
				}
				if !ok {
					continue
				}
			}
			if c.codec, ok = m.choose(rate, own); ok {
				return c, true
			}
		}
	}
	return choice{}, false
}
