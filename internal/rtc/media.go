package rtc

import (
	"sync"
	"time"

	pion "github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"parley/internal/audio"
	"parley/internal/audio/opus"
	"parley/internal/rtp"
)

const (
	maxPacket = 1500
	opusClock = 48000 // of RTP timestamps (RFC 7587, section 4.1)

	maxAhead = 2 * time.Second       // of sound that comes faster than it is spoken, after a network that stood still
	keyTime  = 50 * time.Millisecond // nobody presses keys faster for long
	maxKeys  = 32                    // that come at once
)

// media is the sound of a call: packets to frames and back. It has no clock: the leg's goroutines call packet and
// tick. Nothing here allocates once it is under way.
type media struct {
	begun time.Time
	out   *voice

	mu    sync.Mutex
	peer  *rtp.Teller
	heard time.Duration

	// Receiving.
	header   pion.Header
	decoder  *opus.Decoder
	receiver *rtp.Receiver
	pcm      []int16

	queue *rtp.Queue

	sound, keys bucket

	// Sending.
	sender *rtp.Sender
}

// bucket holds what came faster than it may for long; it runs out as time passes.
type bucket struct {
	full, at time.Duration
}

// add takes something that lasts so long, unless there is too much already.
func (b *bucket) add(at, lasts, most time.Duration) bool {
	b.full, b.at = max(b.full-(at-b.at), 0), at
	if b.full > most {
		return false
	}
	b.full += lasts
	return true
}

func newMedia(out *voice, p audio.Peer) *media {
	m := &media{begun: time.Now(), out: out, decoder: opus.NewDecoder(), sender: rtp.NewSender(audio.Wide)}
	m.peer = rtp.NewTeller(&m.mu, audio.Wide, p, m.pull, m.push)
	m.queue = rtp.NewQueue(m.take)
	m.receiver = rtp.NewReceiver(audio.Wide, opusClock, m.peer.Hear)
	m.sender.Speak(rtp.Codec{Format: audio.G722})
	return m
}

// packet takes what came from the network, at a moment since begun.
func (m *media) packet(data []byte, at time.Duration) {
	m.mu.Lock()
	defer m.peer.Tell()
	h := &m.header
	if _, err := h.Unmarshal(data); err != nil {
		return
	}
	m.heard = at
	if m.out.hears(h.PayloadType) {
		m.queue.Put(h, data, at)
	}
}

// take decodes a packet in its turn.
func (m *media) take(data []byte, at time.Duration) {
	h := &m.header
	n, err := h.Unmarshal(data)
	if err != nil {
		return
	}
	payload := rtp.Unpad(h, data[n:])
	if len(payload) == 0 || !m.sound.add(at, 0, maxAhead) {
		return
	}
	if m.pcm = m.decoder.Decode(m.pcm[:0], payload); len(m.pcm) == 0 {
		return // what can't be decoded is as good as lost
	}
	m.sound.full += time.Duration(len(m.pcm)) * time.Second / time.Duration(audio.Wide)
	m.receiver.Put(at, h.SequenceNumber, h.Timestamp, h.SSRC, m.pcm)
}

// digit takes a key that was pressed.
func (m *media) digit(key byte, at time.Duration) {
	m.mu.Lock()
	if m.keys.add(at, keyTime, (maxKeys-1)*keyTime) {
		m.peer.Digit(key)
	}
	m.peer.Tell()
}

// tick moves 20 ms of sound in both directions.
func (m *media) tick(at time.Duration, missed int) {
	m.mu.Lock()
	m.peer.Tick(at, missed)
	m.peer.Tell()
}

// pull is the half of a tick in which the peer hears.
func (m *media) pull(at time.Duration, missed int, in audio.Frame) bool {
	m.sender.Pass(missed)
	m.queue.Due(at)
	m.receiver.Pull(at, in)
	return true
}

// push is the half of a tick in which it speaks.
func (m *media) push(out audio.Frame, spoken bool) {
	if !spoken {
		clear(out)
	}
	payload := m.sender.Next(out, spoken)
	m.out.send(&m.sender.Header, payload)
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

// send sends a packet. One that can't be sent is as good as lost: a network that comes back goes on, one that doesn't
// ends the call.
func (v *voice) send(h *pion.Header, payload []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.writer == nil {
		return
	}
	h.SSRC, h.PayloadType = v.ssrc, v.g722
	_, _ = v.writer.WriteRTP(h, payload)
}
