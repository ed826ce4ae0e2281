package rtp

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	pion "github.com/pion/rtp"

	"parley/internal/audio"
)

// Session is the sound of a call over a socket. It calls its peer one call at a time, under its own lock: a peer calls nothing of it.
type Session struct {
	socket *Socket
	rate   audio.Rate
	began  time.Time

	mu    sync.Mutex // serialises the peer's calls too
	peer  audio.Peer
	latch latch
	codec Codec
	dir   Direction     // ours
	held  bool          // the far end doesn't listen: a hold
	heard time.Duration // when a packet came last
	quiet time.Duration // since when none is expected, or we are held; 0 where neither is so

	// Receiving.
	header   pion.Header
	decoder  *audio.Decoder
	other    *audio.Decoder // of another format at the same rate, which some send although it wasn't agreed on last
	receiver *Receiver
	events   audio.EventReader
	detector *audio.DigitDetector // where telephone-event wasn't agreed on
	keys     keys
	pcm      []int16
	now      time.Duration // when the packet came that is being heard

	// Sending.
	sender  *Sender
	in, out audio.Frame

	reports reports

	dialled struct {
		sync.Mutex
		keys string
	}
}

// NewSession is one whose time begins now. With loose, sound is taken from addresses that nothing has named, where no other comes.
func NewSession(s *Socket, rate audio.Rate, loose bool, p audio.Peer) *Session {
	m := &Session{socket: s, rate: rate, began: time.Now(), peer: p, latch: latch{loose: loose}, pcm: make([]int16, 0, 2*rate.FrameSize()),
		sender: NewSender(rate), reports: newReports(), in: make(audio.Frame, rate.FrameSize()), out: make(audio.Frame, rate.FrameSize())}
	m.receiver = NewReceiver(rate, rtpClock, m.hear)
	m.reports.latch.loose = loose
	return m
}

// Agree takes over what both ends agreed on, as often as they do.
func (m *Session) Agree(a Agreement) { m.agree(a, m.time()) }

func (m *Session) time() time.Duration { return time.Since(m.began) }

func (m *Session) agree(a Agreement, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, dir := a.Codec, a.Direction
	first := m.decoder == nil
	if first || c.Format != m.codec.Format {
		m.decoder, m.other = audio.NewDecoder(c.Format), nil
		switch c.Format {
		case audio.PCMU:
			m.other = audio.NewDecoder(audio.PCMA)
		case audio.PCMA:
			m.other = audio.NewDecoder(audio.PCMU)
		}
	}
	m.detector = nil
	if !c.Event {
		m.detector = audio.NewDigitDetector(m.rate)
	}
	m.codec = c
	m.sender.Speak(c)
	m.latch.tell(a.Told, a.Signal, at)
	m.reports.mux = a.Mux
	m.reports.latch.tell(a.control(), a.Signal, at)
	if first || m.dir != dir {
		m.dir, m.held, m.heard, m.quiet = dir, !dir.Send, at, 0
		if !dir.Receive || !dir.Send {
			m.quiet = max(at, 1)
		}
	}
}

// Run moves sound between the socket and the peer until done is closed; the peer will not be called then any more. watch is called after
// each frame.
func (m *Session) Run(done <-chan struct{}, watch func()) {
	var readers sync.WaitGroup
	readers.Go(func() { m.read(m.socket.rtp, done, m.packet) })
	readers.Go(func() { m.read(m.socket.rtcp, done, m.control) })
	NewClock(m.began).Run(done, func(at time.Duration, missed int) {
		m.tick(at, missed)
		watch()
	})
	_ = m.socket.rtp.SetReadDeadline(past)
	_ = m.socket.rtcp.SetReadDeadline(past)
	readers.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report(m.time(), true)
}

// read takes packets until done is closed and the socket's deadline is set.
func (m *Session) read(conn *net.UDPConn, done <-chan struct{}, take func([]byte, netip.AddrPort, time.Duration)) {
	var buf [mostPacket]byte
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf[:])
		select {
		case <-done:
			return
		default:
		}
		if err != nil { // an ICMP message that came back for a packet of ours
			continue
		}
		take(buf[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), m.time())
	}
}

// packet takes what came from the network.
func (m *Session) packet(data []byte, from netip.AddrPort, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reports.mux && isReport(data) {
		if from == m.latch.to() {
			m.reported(data, at)
		}
		return
	}
	h := &m.header
	n, err := h.Unmarshal(data)
	if err != nil || h.Version != 2 || m.decoder == nil {
		return
	}
	decoder := m.decoderOf(h.PayloadType)
	isEvent := m.codec.Event && h.PayloadType == m.codec.ReceiveEvent
	if decoder == nil && !isEvent && h.PayloadType != noise || !m.latch.accept(from, at, h.SequenceNumber, h.SSRC) {
		return
	}
	m.heard, m.now = at, at
	m.reports.in.packet(h.SequenceNumber, h.Timestamp, h.SSRC, at, !isEvent)
	payload := Unpad(h, data[n:])
	switch {
	case isEvent:
		if key := m.events.Read(payload, h.Timestamp, h.Marker, h.SSRC); key != 0 {
			m.digit(key, byEvent, at)
		}
	case decoder == nil || len(payload) == 0 || len(payload) > mostSound || m.held || m.receiver.Twice(h.SequenceNumber, h.SSRC):
	default:
		m.pcm = decoder.Decode(m.pcm[:0], payload)
		m.receiver.Put(at, h.SequenceNumber, h.Timestamp, h.SSRC, m.pcm)
	}
}

// Unpad takes the padding off a payload.
func Unpad(h *pion.Header, payload []byte) []byte {
	if h.Padding && len(payload) > 0 {
		return payload[:max(0, len(payload)-int(payload[len(payload)-1]))]
	}
	return payload
}

// decoderOf is the one for a payload type, nil where it is none of ours.
func (m *Session) decoderOf(pt uint8) *audio.Decoder {
	if pt == m.codec.Receive {
		return m.decoder
	}
	if m.other != nil && (pt == audio.PCMU.PayloadType() || pt == audio.PCMA.PayloadType()) {
		return m.other
	}
	return nil
}

// hear is called with each frame that is heard at once.
func (m *Session) hear(f audio.Frame) {
	if m.detector != nil {
		if key := m.detector.Detect(f); key != 0 {
			m.digit(key, byTone, m.now)
		}
	}
	m.peer.Hear(f)
}

// digit tells a key that was pressed.
func (m *Session) digit(key byte, w way, at time.Duration) {
	if m.keys.first(key, w, at) {
		m.peer.Digit(key)
	}
}

// Press takes a key that came by signalling.
func (m *Session) Press(key byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.digit(key, byInfo, m.time())
}

// Dial sends keys to the far end.
func (m *Session) Dial(keys string) {
	m.dialled.Lock()
	defer m.dialled.Unlock()
	m.dialled.keys += keys
}

// takeDialled moves what was dialled to where it is sent from.
func (m *Session) takeDialled() {
	m.dialled.Lock()
	keys := m.dialled.keys
	m.dialled.keys = ""
	m.dialled.Unlock()
	if keys != "" {
		m.sender.Dial(keys)
	}
}

// tick moves 20 ms of sound in both directions.
func (m *Session) tick(at time.Duration, missed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sender.Pass(missed)
	if at >= m.reports.next {
		m.report(at, false)
		m.reports.next = at + interval(false, rand.Float64())
	}
	if m.held { // nobody is there: the conversation stands still, and what was to be said isn't lost
		m.sender.Pause()
		return
	}
	m.receiver.Pull(at, m.in)
	spoken := m.peer.Tick(m.in, m.out)
	if !spoken {
		clear(m.out)
	}
	m.takeDialled()
	payload := m.sender.Next(m.out, spoken)
	if payload == nil {
		return
	}
	// A packet that can't be sent is as good as one that is lost: a network that comes back goes on, one that doesn't ends the call by
	// its silence.
	_, _ = m.socket.rtp.WriteToUDPAddrPort(m.sender.Packet(payload), m.latch.to())
	m.reports.sent++
	m.reports.octets += uint32(len(payload))
}

// Missed says whether sound came in vain: from addresses that aren't the call's, and none since from one that is.
func (m *Session) Missed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latch.strange && !m.latch.from.IsValid()
}

// Silence says for how long nothing has come, and whether that was to be expected: by a hold.
func (m *Session) Silence() (since time.Duration, agreed bool) { return m.silence(m.time()) }

func (m *Session) silence(at time.Duration) (since time.Duration, agreed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.quiet != 0 {
		return at - m.quiet, true
	}
	return at - m.heard, false
}
