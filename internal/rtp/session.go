package rtp

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	pion "github.com/pion/rtp"

	"parley/internal/audio"
	"parley/internal/crash"
)

// Session carries the audio of a call over a socket. It calls its peer one call at a time, under no lock.
type Session struct {
	Pace *Pace // is told how late the frames are sent; nil: nobody is

	socket *Socket
	rate   audio.Rate
	began  time.Time

	mu    sync.Mutex
	peer  *Teller
	latch latch
	codec Codec
	dir   Direction     // ours
	held  bool          // the far end doesn't listen: a hold
	heard time.Duration // when a packet came last
	quiet time.Duration // since when none is expected, or we are held; 0 where neither is so

	// Receiving.
	header    pion.Header
	decoder   *audio.Decoder
	other     *audio.Decoder // of another format at the same rate, which some send although it wasn't agreed on last
	receiver  *Receiver
	queue     *Queue // before the decoder, where that needs packets in order
	timeline  timeline
	flood     flood // likewise: that decoder takes more time than the others
	events    EventReader
	detector  *audio.DigitDetector // where telephone-event wasn't agreed on
	keys      keys
	comfort   comfort
	pcm       []int16
	resampler *audio.Resampler // of what the decoders make, to the session's rate; nil: it is the same
	resampled []int16
	now       time.Duration // when the packet came that is being heard

	// Sending.
	sender *Sender

	reports reports
	cover   cover
	shaking map[bool]*handshake // false: for the sound; true: for RTCP on its own port
	shakers sync.WaitGroup      // goroutines of these
	failed  error               // why no keys were found for the sound, or a panic: from then on nothing is taken and nothing is sent

	dialled struct {
		sync.Mutex
		keys string
	}
}

// NewSession makes a session whose time begins now. With loose, audio is accepted from addresses that nothing has
// named, if no other arrives.
func NewSession(socket *Socket, rate audio.Rate, loose bool, p audio.Peer) *Session {
	s := &Session{socket: socket, rate: rate, began: time.Now(), latch: latch{loose: loose},
		pcm: make([]int16, 0, 2*rate.FrameSize()), sender: NewSender(rate), reports: newReports(),
		shaking: map[bool]*handshake{}}
	s.peer = NewTeller(&s.mu, rate, p, s.pull, s.push)
	s.receiver = NewReceiver(rate, rtpClock, s.hear)
	s.reports.latch.loose = loose
	return s
}

// Agree adopts what both ends agreed on, each time they do.
func (s *Session) Agree(a Agreement) { s.agree(a, s.time()) }

func (s *Session) time() time.Duration { return time.Since(s.began) }

func (s *Session) agree(a Agreement, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, dir := a.Codec, a.Direction
	first := s.decoder == nil
	if first || c.Format != s.codec.Format {
		s.decoder, s.other = audio.NewDecoder(c.Format), nil
		if first || c.Format.Rate() != s.codec.Format.Rate() {
			s.resampler = between(c.Format.Rate(), s.rate)
		}
		switch c.Format {
		case audio.PCMU:
			s.other = audio.NewDecoder(audio.PCMA)
		case audio.PCMA:
			s.other = audio.NewDecoder(audio.PCMU)
		}
	}
	s.detector = nil
	if !c.Event {
		s.detector = audio.NewDigitDetector(s.rate)
	}
	if clock := c.Format.ClockRate(); clock != s.receiver.clock {
		s.receiver = NewReceiver(s.rate, clock, s.hear)
		s.reports.in.tell(clock)
	}
	switch {
	case c.Format != audio.Opus:
		s.queue = nil
	case s.queue == nil:
		s.queue = NewQueue(s.decode)
	}
	s.codec = c
	s.secure(&a)
	former := s.sender.Header.SSRC
	if s.sender.Speak(c); s.sender.Header.SSRC != former {
		s.reports.rename()
	}
	s.sender.Fill(a.Packet)
	s.latch.tell(a.Told, a.Signal, at)
	s.reports.mux = a.Mux
	s.reports.latch.tell(a.control(), a.Signal, at)
	if first || s.dir != dir {
		s.dir, s.held, s.heard, s.quiet = dir, !dir.Send, at, 0
		if !dir.Receive || !dir.Send {
			s.quiet = max(at, 1)
		}
	}
}

// Run moves audio between the socket and the peer until done is closed; after that the peer is not called any more.
// watch is called after each frame.
func (s *Session) Run(done <-chan struct{}, watch func()) {
	for _, c := range []*net.UDPConn{s.socket.rtp, s.socket.rtcp} {
		_ = c.SetReadDeadline(time.Time{}) // another session may have run on this socket
	}
	for _, k := range s.socket.kept {
		s.packet(k.data, k.from, s.time())
	}
	s.socket.kept = nil
	var readers sync.WaitGroup
	crash.Go(&readers, func() { s.read(s.socket.rtp, done, s.packet) }, s.crashed)
	crash.Go(&readers, func() { s.read(s.socket.rtcp, done, s.control) }, s.crashed)
	c := NewClock(s.began)
	c.Pace = s.Pace
	c.Run(done, func(at time.Duration, missed int) {
		s.tick(at, missed)
		watch()
	})
	_ = s.socket.rtp.SetReadDeadline(past)
	_ = s.socket.rtcp.SetReadDeadline(past)
	readers.Wait()
	s.peer.Stop()
	s.part()
	s.shakers.Wait()
}

// part says goodbye.
func (s *Session) part() {
	defer crash.Contain(s.crashed)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.unshake(true)
	defer s.unshake(false)
	if !crash.Is(s.failed) {
		s.report(s.time(), true)
	}
}

// crashed ends the session's work after a panic. Its owner finds the panic by Failed, and ends the call.
func (s *Session) crashed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !crash.Is(s.failed) { // the first says what is wrong
		s.failed = err
	}
}

// read takes packets until done is closed and the socket's deadline is set.
func (s *Session) read(conn *net.UDPConn, done <-chan struct{}, take func([]byte, netip.AddrPort, time.Duration)) {
	var buf [maxPacket]byte
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
		take(buf[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), s.time())
	}
}

// packet takes what came from the network. A packet that a decoder panics on ends its own call.
func (s *Session) packet(data []byte, from netip.AddrPort, at time.Duration) {
	defer crash.Contain(s.crashed)
	s.mu.Lock()
	defer s.peer.Tell()
	if !crash.Is(s.failed) {
		s.take(data, from, at)
	}
}

func (s *Session) take(data []byte, from netip.AddrPort, at time.Duration) {
	if s.reports.mux && isReport(data) {
		if data = s.readable(data); data != nil && from == s.latch.to() {
			s.reported(data, at)
		}
		return
	}
	if isHandshake(data) {
		s.feed(data, from, at, false)
		return
	}
	h := &s.header
	n, err := h.Unmarshal(data)
	if err != nil || h.Version != 2 || s.decoder == nil {
		return
	}
	decoder := s.decoderOf(h.PayloadType)
	isEvent := s.codec.Event && h.PayloadType == s.codec.ReceiveEvent
	isNoise := h.PayloadType == noise && s.codec.Format.ClockRate() == rtpClock
	if decoder == nil && !isEvent && !isNoise {
		return
	}
	if s.cover.on() {
		if data = s.cover.packet(h, data); data == nil {
			return
		}
	}
	if !s.latch.accept(from, at, h.SequenceNumber, h.SSRC) {
		return
	}
	s.heard, s.now = at, at
	s.reports.in.packet(h.SequenceNumber, h.Timestamp, h.SSRC, at, !isEvent && s.timeline.still < stuck)
	payload := Unpad(h, data[n:])
	switch {
	case isEvent:
		if key := s.events.Read(payload, h.Timestamp, h.Marker, h.SSRC); key != 0 {
			s.digit(key, byEvent, at)
		}
	case s.queue != nil:
		if !s.held {
			s.queue.Put(h, data, at)
		}
	case len(payload) == 0 || len(payload) > maxSound || s.held || s.receiver.Twice(h.SequenceNumber, h.SSRC):
	case decoder == nil: // the far end falls silent, or is
		s.pcm = s.comfort.fill(s.pcm[:0], s.rate.FrameSize(), payload[0])
		s.receiver.Put(at, h.SequenceNumber, h.Timestamp, h.SSRC, s.pcm)
	default:
		s.pcm = decoder.Decode(s.pcm[:0], payload)
		s.put(at)
	}
}

// decode takes a packet in its turn.
func (s *Session) decode(data []byte, at time.Duration) {
	h := &s.header
	n, err := h.Unmarshal(data)
	if err != nil {
		return
	}
	payload := Unpad(h, data[n:])
	if len(payload) > 0 && !s.flood.takes(s.decoder.Duration(payload), at) {
		return
	}
	// What can't be decoded is as good as lost.
	if s.pcm = s.decoder.Decode(s.pcm[:0], payload); len(s.pcm) > 0 {
		s.put(at)
	}
}

// put has what was decoded heard, at the session's rate.
func (s *Session) put(at time.Duration) {
	h, pcm := &s.header, s.pcm
	clock := s.codec.Format.ClockRate()
	ts, ok := s.timeline.read(h.SequenceNumber, h.Timestamp, h.SSRC, uint32(len(pcm)*clock/int(s.codec.Format.Rate())), clock, at)
	if !ok {
		return
	}
	if s.resampler != nil {
		s.resampled = s.resampler.Resample(s.resampled[:0], pcm)
		pcm = s.resampled
	}
	s.receiver.Put(at, h.SequenceNumber, ts, h.SSRC, pcm)
}

// Unpad removes the padding from a payload.
func Unpad(h *pion.Header, payload []byte) []byte {
	if h.Padding && len(payload) > 0 {
		return payload[:max(0, len(payload)-int(payload[len(payload)-1]))]
	}
	return payload
}

// decoderOf is the decoder for a payload type, nil if it is none of ours.
func (s *Session) decoderOf(pt uint8) *audio.Decoder {
	if pt == s.codec.Receive {
		return s.decoder
	}
	if s.other != nil && (pt == audio.PCMU.PayloadType() || pt == audio.PCMA.PayloadType()) {
		return s.other
	}
	return nil
}

// hear is called with each frame of the immediate audio.
func (s *Session) hear(f audio.Frame) {
	if s.detector != nil {
		if key := s.detector.Detect(f); key != 0 {
			s.digit(key, byTone, s.now)
		}
	}
	s.peer.Hear(f)
}

// digit reports a key that was pressed.
func (s *Session) digit(key byte, w way, at time.Duration) {
	if s.keys.first(key, w, at) {
		s.peer.Digit(key)
	}
}

// Press takes a key that came by signalling.
func (s *Session) Press(key byte) {
	s.mu.Lock()
	s.digit(key, byInfo, s.time())
	s.peer.Tell()
}

// Dial sends keys to the far end.
func (s *Session) Dial(keys string) {
	s.dialled.Lock()
	defer s.dialled.Unlock()
	s.dialled.keys += keys
}

// takeDialled moves dialled keys to where they are sent from.
func (s *Session) takeDialled() {
	s.dialled.Lock()
	keys := s.dialled.keys
	s.dialled.keys = ""
	s.dialled.Unlock()
	if keys != "" {
		s.sender.Dial(keys)
	}
}

// tick moves 20 ms of audio in both directions.
func (s *Session) tick(at time.Duration, missed int) {
	defer crash.Contain(s.crashed)
	s.mu.Lock()
	if !crash.Is(s.failed) {
		s.peer.Tick(at, missed)
	}
	s.peer.Tell()
}

// pull is the half of a tick in which the peer hears.
func (s *Session) pull(at time.Duration, missed int, in audio.Frame) bool {
	s.sender.Pass(missed)
	if at >= s.reports.next {
		s.report(at, false)
		s.reports.next = at + interval(false, rand.Float64())
	}
	if s.held { // nobody is there: the conversation stands still, and what was to be said isn't lost
		s.sender.Pause()
		return false
	}
	if s.queue != nil {
		s.queue.Due(at)
	}
	s.receiver.Pull(at, in)
	return true
}

// push is the half of a tick in which it speaks.
func (s *Session) push(out audio.Frame, spoken bool) {
	if !spoken {
		clear(out)
	}
	s.takeDialled()
	for payload := s.sender.Next(out, spoken); payload != nil; payload = s.sender.More() {
		s.send(payload)
	}
}

// send sends the packet with a payload.
func (s *Session) send(payload []byte) {
	packet := s.sender.Packet(payload)
	if s.cover.on() {
		packet = s.cover.send(packet)
	}
	if packet == nil {
		return
	}
	// A packet that can't be sent is as good as lost: if the network comes back the call goes on, if not the silence
	// ends it.
	_, _ = s.socket.rtp.WriteToUDPAddrPort(packet, s.latch.to())
	s.reports.sent++
	s.reports.octets += uint32(len(payload))
}

// Missed reports whether audio arrived in vain: from addresses that aren't the call's, with none since from one that
// is.
func (s *Session) Missed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.latch
	return l.strangers > 0 && (!l.from.IsValid() || l.strangeAt > l.last)
}

// Silence is how long nothing has arrived, and whether that was expected because of a hold.
func (s *Session) Silence() (since time.Duration, agreed bool) { return s.silence(s.time()) }

func (s *Session) silence(at time.Duration) (since time.Duration, agreed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet != 0 {
		return at - s.quiet, true
	}
	return at - s.heard, false
}
