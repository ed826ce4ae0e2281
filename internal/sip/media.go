package sip

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/rtp"

	"parley/internal/audio"
)

const (
	comfortNoise = 13             // RFC 3389's payload type at 8 kHz
	frameTicks   = 160            // of the RTP clock, which is 8 kHz for all that we speak
	mostPayload  = 8 * frameTicks // a packet of 160 ms
	mostBridge   = 6 * frameTicks
	rtpHeader    = 12
)

// media is the sound of a call: packets to frames and back. It has no clock: Leg's goroutines call packet and tick. Nothing here
// allocates once it is under way.
type media struct {
	socket *socket
	rate   audio.Rate

	mu    sync.Mutex // serialises the peer's calls too
	peer  audio.Peer
	latch latch
	codec codec
	dir   direction     // ours
	held  bool          // the far end doesn't listen: a hold
	heard time.Duration // when a packet came last
	quiet time.Duration // since when none is expected, or we are held; 0 where neither is so

	// Receiving.
	header   rtp.Header
	decoder  *audio.Decoder
	other    *audio.Decoder // of another format at the same rate, which some send although it wasn't agreed on last
	jitter   *audio.Jitter
	reader   audio.EventReader
	detector *audio.DigitDetector // where telephone-event wasn't agreed on
	keys     keys
	pcm      []int16

	// The stream as it is heard at once.
	hearing bool
	seq     uint16
	ts      uint32
	ssrc    uint32
	seen    uint64 // of the 64 packets before seq: what came
	conceal *audio.Conceal
	frame   audio.Frame
	filled  int

	// Sending.
	encoder *audio.Encoder
	out     struct {
		seq     uint16
		ts      uint32
		ssrc    uint32
		key     uint32 // the timestamp of the key that is being sent
		silent  bool
		packet  [rtpHeader + audio.FrameBytes]byte
		in, out audio.Frame
	}
	events audio.EventSender
	tones  *audio.Digits

	dialled struct {
		sync.Mutex
		keys string
	}
}

func newMedia(s *socket, rate audio.Rate, p audio.Peer) *media {
	m := &media{socket: s, rate: rate, peer: p, jitter: audio.NewJitter(rate, 8000), conceal: audio.NewConceal(rate), frame: make(audio.Frame, rate.FrameSize()),
		pcm: make([]int16, 0, 2*rate.FrameSize()), tones: audio.NewDigits(rate)}
	m.out.in, m.out.out = make(audio.Frame, rate.FrameSize()), make(audio.Frame, rate.FrameSize())
	m.out.seq, m.out.ts, m.out.ssrc, m.out.silent = uint16(rand.Uint32()), rand.Uint32(), rand.Uint32(), true
	return m
}

// agree takes over what a description agreed on, at a moment.
func (m *media) agree(c codec, dir direction, told netip.AddrPort, signal netip.Addr, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.decoder == nil
	if first || c.format != m.codec.format {
		m.decoder, m.encoder, m.other = audio.NewDecoder(c.format), audio.NewEncoder(c.format), nil
		switch c.format {
		case audio.PCMU:
			m.other = audio.NewDecoder(audio.PCMA)
		case audio.PCMA:
			m.other = audio.NewDecoder(audio.PCMU)
		}
	}
	m.detector = nil
	if !c.event {
		m.detector = audio.NewDigitDetector(m.rate)
	}
	m.codec = c
	m.latch.tell(told, signal, at)
	if first || m.dir != dir {
		m.dir, m.held, m.heard, m.quiet = dir, !dir.send, at, 0
		if !dir.receive || !dir.send {
			m.quiet = max(at, 1)
		}
	}
}

// packet takes what came from the network.
func (m *media) packet(data []byte, from netip.AddrPort, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := &m.header
	n, err := h.Unmarshal(data)
	if err != nil || h.Version != 2 || m.decoder == nil {
		return
	}
	payload := data[n:]
	if h.Padding && len(payload) > 0 {
		payload = payload[:max(0, len(payload)-int(payload[len(payload)-1]))]
	}
	decoder := m.decoderOf(h.PayloadType)
	isEvent := m.codec.event && h.PayloadType == m.codec.receiveEvent
	if decoder == nil && !isEvent && h.PayloadType != comfortNoise || !m.latch.accept(from, at, h.SequenceNumber, h.SSRC) {
		return
	}
	m.heard = at
	switch {
	case isEvent:
		if key := m.reader.Read(payload, h.Timestamp, h.Marker, h.SSRC); key != 0 {
			m.digit(key, byEvent, at)
		}
	case decoder == nil || len(payload) == 0 || len(payload) > mostPayload || m.held:
	default:
		m.sound(decoder, payload, at)
	}
}

// decoderOf is the one for a payload type, nil where it is none of ours.
func (m *media) decoderOf(pt uint8) *audio.Decoder {
	if pt == m.codec.receive {
		return m.decoder
	}
	if m.other != nil && (pt == audio.PCMU.PayloadType() || pt == audio.PCMA.PayloadType()) {
		return m.other
	}
	return nil
}

func (m *media) sound(d *audio.Decoder, payload []byte, at time.Duration) {
	h := &m.header
	if m.hearing && h.SSRC == m.ssrc && m.twice(h.SequenceNumber) {
		return // decoding it again would upset the decoder
	}
	m.pcm = d.Decode(m.pcm[:0], payload)
	m.jitter.Put(at, h.SequenceNumber, h.Timestamp, h.SSRC, m.pcm)
	switch ahead := h.SequenceNumber - m.seq; {
	case !m.hearing || h.SSRC != m.ssrc || ahead == 0 || ahead > 1<<15 && ahead < 1<<16-64: // a new stream
		m.hearing, m.ssrc, m.seen, m.filled = true, h.SSRC, 0, 0
	case ahead > 1<<15:
		return // late: its place was concealed
	default:
		m.seen = m.seen<<ahead | 1<<(ahead-1)
		m.bridge(h.Timestamp-m.ts, int(ahead))
	}
	m.seq, m.ts = h.SequenceNumber, h.Timestamp
	m.conceal.Good(m.pcm)
	m.hear(m.pcm, at)
}

// twice says whether a packet came before, of the last 64, and notes it.
func (m *media) twice(seq uint16) bool {
	behind := m.seq - seq
	if behind == 0 {
		return true
	}
	if behind > 64 {
		return false
	}
	bit := uint64(1) << (behind - 1)
	again := m.seen&bit != 0
	m.seen |= bit
	return again
}

// bridge conceals up to 120 ms that were lost, so that who listens at once keeps the time.
func (m *media) bridge(ticks uint32, ahead int) {
	if ahead < 2 || ticks > 8*mostBridge {
		return
	}
	lost := int(ticks) / ahead * (ahead - 1) // packets last equally long
	if lost > mostBridge {
		return
	}
	missing := lost * int(m.rate) / 8000
	var gap [audio.MaxFrame]int16
	for missing > 0 {
		n := min(missing, len(gap))
		m.conceal.Lost(gap[:n])
		m.hear(gap[:n], m.heard)
		missing -= n
	}
}

// hear cuts what came into frames.
func (m *media) hear(pcm []int16, at time.Duration) {
	for len(pcm) > 0 {
		n := copy(m.frame[m.filled:], pcm)
		pcm = pcm[n:]
		if m.filled += n; m.filled < len(m.frame) {
			return
		}
		m.filled = 0
		if m.detector != nil {
			if key := m.detector.Detect(m.frame); key != 0 {
				m.digit(key, byTone, at)
			}
		}
		m.peer.Hear(m.frame)
	}
}

// digit tells a key that was pressed.
func (m *media) digit(key byte, w way, at time.Duration) {
	if m.keys.first(key, w, at) {
		m.peer.Digit(key)
	}
}

// info takes a key that came by SIP INFO.
func (m *media) info(key byte, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.digit(key, byInfo, at)
}

// tick moves 20 ms of sound in both directions. Of the frames that were missed before it, by a process that was stopped, nothing is sent:
// the far end hears a gap, not a burst.
func (m *media) tick(at time.Duration, missed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out.ts += uint32(missed+1) * frameTicks
	if m.held {
		m.out.silent = true // sound after a hold is a talkspurt
		return              // nobody is there: the conversation stands still, and what was to be said isn't lost
	}
	m.jitter.Pull(at, m.out.in)
	spoken := m.peer.Tick(m.out.in, m.out.out)
	if !spoken {
		clear(m.out.out)
	}
	m.takeKeys()
	if m.events.Active() {
		if p, ok := m.events.Next(); ok {
			if p.Marker { // all packets of a key have the time of its beginning, also when frames were missed since
				m.out.key = m.out.ts - p.Offset
			}
			copy(m.out.packet[rtpHeader:], p.Payload[:])
			m.send(m.codec.sendEvent, m.out.key, p.Marker, len(p.Payload))
		}
		m.out.silent = true
		return
	}
	if m.tones.Fill(m.out.out) {
		spoken = true
	}
	m.encoder.Encode(m.out.packet[rtpHeader:rtpHeader], m.out.out)
	m.send(m.codec.send, m.out.ts, spoken && m.out.silent, audio.FrameBytes)
	m.out.silent = !spoken
}

// takeKeys moves what was dialled to where it is sent from.
func (m *media) takeKeys() {
	m.dialled.Lock()
	keys := m.dialled.keys
	m.dialled.keys = ""
	m.dialled.Unlock()
	if keys == "" {
		return
	}
	if m.codec.event {
		m.events.Dial(keys)
	} else {
		m.tones.Dial(keys)
	}
}

func (m *media) send(pt uint8, ts uint32, marker bool, n int) {
	m.out.seq++
	h := rtp.Header{Version: 2, Marker: marker, PayloadType: pt, SequenceNumber: m.out.seq, Timestamp: ts, SSRC: m.out.ssrc}
	if _, err := h.MarshalTo(m.out.packet[:]); err != nil {
		return
	}
	// A packet that can't be sent is as good as one that is lost: a network that comes back goes on, one that doesn't ends the call by
	// its silence.
	_, _ = m.socket.rtp.WriteToUDPAddrPort(m.out.packet[:rtpHeader+n], m.latch.to())
}

// missed says whether sound came in vain: from addresses that aren't the call's, and none since from one that is.
func (m *media) missed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latch.strange && !m.latch.from.IsValid()
}

// silence says for how long nothing has come, and whether that was to be expected.
func (m *media) silence(at time.Duration) (since time.Duration, agreed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.quiet != 0 {
		return at - m.quiet, true
	}
	return at - m.heard, false
}

// way is how a key comes. Later ones are more reliable.
type way uint8

const (
	byTone way = iota + 1
	byInfo
	byEvent
)

// keys tells each key once, although some telephones send it in two ways: once a better way has brought a key, the worse ones are not
// believed any more.
type keys struct {
	best way
	key  byte
	at   time.Duration
}

// first says whether a key is a new one.
func (k *keys) first(key byte, w way, at time.Duration) bool {
	if w < k.best {
		return false
	}
	again := w > k.best && k.best != 0 && key == k.key && at-k.at < time.Second
	k.best, k.key, k.at = w, key, at
	return !again
}
