package rtc

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pion/opus"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"parley/internal/audio"
)

const (
	mostPacket = 1500
	opusClock  = 48000 // of RTP timestamps (RFC 7587, section 4.1)
	perMS      = opusClock / 1000
	longest    = 120 // ms of sound in an Opus packet (RFC 6716, section 3.2.5)
	frameTicks = 160 // a frame's ticks of G.722's RTP clock
)

// media is the sound of a call: packets to frames and back. It has no clock: the leg's goroutines call packet and tick. Nothing here
// allocates once it is under way.
type media struct {
	begun time.Time
	out   *voice

	mu    sync.Mutex // serialises the peer's calls too
	peer  audio.Peer // nil when the call is over
	heard time.Duration

	// Receiving.
	header  rtp.Header
	decoder opus.Decoder
	jitter  *audio.Jitter
	pcm     []int16

	// The stream as it is heard at once.
	hearing bool
	seq     uint16
	ts      uint32
	ssrc    uint32
	conceal *audio.Conceal
	frame   audio.Frame
	filled  int

	// Sending.
	encoder  *audio.Encoder
	to, from audio.Frame
	payload  [audio.FrameBytes]byte
	rtp      rtp.Header
	silent   bool
}

func newMedia(out *voice, p audio.Peer) *media {
	decoder, err := opus.NewDecoderWithOutput(int(audio.Wide), 1)
	if err != nil {
		panic("rtc: " + err.Error()) // of constants
	}
	return &media{begun: time.Now(), out: out, peer: p, decoder: decoder, jitter: audio.NewJitter(audio.Wide, opusClock), pcm: make([]int16, longest*int(audio.Wide)/1000),
		conceal: audio.NewConceal(audio.Wide), frame: make(audio.Frame, audio.MaxFrame), encoder: audio.NewEncoder(audio.G722), to: make(audio.Frame, audio.MaxFrame),
		from: make(audio.Frame, audio.MaxFrame), rtp: rtp.Header{Version: 2, SequenceNumber: uint16(rand.Uint32()), Timestamp: rand.Uint32()}, silent: true}
}

// stop returns when the peer will not be called any more.
func (m *media) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peer = nil
}

// packet takes what came from the network, at a moment since begun.
func (m *media) packet(data []byte, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := &m.header
	n, err := h.Unmarshal(data)
	if err != nil || m.peer == nil {
		return
	}
	payload := data[n:]
	if h.Padding && len(payload) > 0 {
		payload = payload[:max(0, len(payload)-int(payload[len(payload)-1]))]
	}
	m.heard = at
	if len(payload) == 0 || !m.out.hears(h.PayloadType) {
		return
	}
	// Opus is decoded in the order in which it was encoded: what comes late would upset the decoder, and is concealed instead.
	ahead := h.SequenceNumber - m.seq
	if m.hearing && h.SSRC == m.ssrc && (ahead == 0 || ahead > 1<<15) {
		return
	}
	samples, err := m.decoder.DecodeToInt16(payload, m.pcm)
	if err != nil || samples == 0 {
		return // what can't be decoded is as good as lost
	}
	pcm := m.pcm[:samples]
	m.jitter.Put(at, h.SequenceNumber, h.Timestamp, h.SSRC, pcm)
	if m.hearing && h.SSRC == m.ssrc {
		m.bridge(h.Timestamp-m.ts, int(ahead))
	} else {
		m.filled = 0
	}
	m.hearing, m.seq, m.ts, m.ssrc = true, h.SequenceNumber, h.Timestamp, h.SSRC
	m.conceal.Good(pcm)
	m.hear(pcm)
}

// bridge conceals up to three packets that were lost, so that who listens at once keeps the time.
func (m *media) bridge(ticks uint32, ahead int) {
	if ahead < 2 || ahead > 4 || ticks > uint32(ahead*longest*perMS) {
		return
	}
	missing := int(ticks) / ahead * (ahead - 1) * int(audio.Wide) / opusClock
	var gap [audio.MaxFrame]int16
	for missing > 0 {
		n := min(missing, len(gap))
		m.conceal.Lost(gap[:n])
		m.hear(gap[:n])
		missing -= n
	}
}

// hear cuts what came into frames.
func (m *media) hear(pcm []int16) {
	for len(pcm) > 0 {
		n := copy(m.frame[m.filled:], pcm)
		pcm = pcm[n:]
		if m.filled += n; m.filled == len(m.frame) {
			m.filled = 0
			m.peer.Hear(m.frame)
		}
	}
}

// digit takes a key that was pressed.
func (m *media) digit(key byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peer != nil {
		m.peer.Digit(key)
	}
}

// tick moves 20 ms of sound in both directions. Of the frames that were missed before it, by a process that was stopped, nothing is sent:
// the far end hears a gap, not a burst.
func (m *media) tick(at time.Duration, missed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rtp.Timestamp += uint32(missed+1) * frameTicks
	m.jitter.Pull(at, m.to)
	spoken := m.peer.Tick(m.to, m.from)
	if !spoken {
		clear(m.from)
	}
	m.encoder.Encode(m.payload[:0], m.from)
	m.rtp.SequenceNumber++
	m.rtp.Marker = spoken && m.silent
	m.silent = !spoken
	m.out.send(&m.rtp, m.payload[:])
}

// silence says for how long nothing has come.
func (m *media) silence(at time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return at - m.heard
}

// voice is our track: what the browser hears.
type voice struct {
	mu     sync.Mutex
	writer webrtc.TrackLocalWriter // nil until it is bound, and afterwards
	ssrc   uint32
	g722   uint8 // payload types
	opus   uint8
}

// Bind is called when the codecs are agreed on.
func (v *voice) Bind(c webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var ours webrtc.RTPCodecParameters
	for _, codec := range c.CodecParameters() {
		switch codec.MimeType {
		case webrtc.MimeTypeG722:
			ours = codec
			v.g722 = uint8(codec.PayloadType)
		case webrtc.MimeTypeOpus:
			v.opus = uint8(codec.PayloadType)
		}
	}
	if ours.MimeType == "" {
		return ours, webrtc.ErrUnsupportedCodec
	}
	v.writer, v.ssrc = c.WriteStream(), uint32(c.SSRC())
	return ours, nil
}

// Unbind is called when nothing can be sent any more.
func (v *voice) Unbind(webrtc.TrackLocalContext) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writer = nil
	return nil
}

// ID, RID, StreamID and Kind say in our description what it is.
func (v *voice) ID() string                { return "voice" }
func (v *voice) RID() string               { return "" }
func (v *voice) StreamID() string          { return "parley" }
func (v *voice) Kind() webrtc.RTPCodecType { return webrtc.RTPCodecTypeAudio }

// hears says whether a payload type is that of the browser's sound.
func (v *voice) hears(pt uint8) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return pt == v.opus
}

// send sends a packet. One that can't be sent is as good as lost: a network that comes back goes on, one that doesn't ends the call.
func (v *voice) send(h *rtp.Header, payload []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.writer == nil {
		return
	}
	h.SSRC, h.PayloadType = v.ssrc, v.g722
	_, _ = v.writer.WriteRTP(h, payload)
}
