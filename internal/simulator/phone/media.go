package phone

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/rtp"
)

// Packet is one that was heard.
type Packet struct {
	At     time.Time
	Seq    uint16
	TS     uint32
	SSRC   uint32
	Type   uint8
	Marker bool
	Level  float64 // dBFS; -100 of events and comfort noise
	// From and To are where its sound begins and ends in Sound; equal where it has none
	From, To int
}

// Loud says whether it holds more than silence.
func (p Packet) Loud() bool { return p.Level > -50 }

// Report is what the far end told by RTCP: how many packets it has sent, and how many of ours it misses.
type Report struct {
	At         time.Time
	Sent, Lost int
}

// Utterance is something that is said.
type Utterance struct {
	mu       sync.Mutex
	from, to time.Time
	done     chan struct{}
}

// Done is closed when its last packet is sent.
func (u *Utterance) Done() <-chan struct{} { return u.done }

// From is when its first packet was sent, on a line with jitter when the line gave it on; zero before.
func (u *Utterance) From() time.Time { u.mu.Lock(); defer u.mu.Unlock(); return u.from }

// To is when its last packet was sent, likewise.
func (u *Utterance) To() time.Time { u.mu.Lock(); defer u.mu.Unlock(); return u.to }

// opusType is the payload type of Opus here.
const opusType = 96

// media is the sound of a call.
type media struct {
	options Options
	conn    *net.UDPConn
	control *net.UDPConn // RTCP's, at the port after it
	running sync.WaitGroup
	post    post
	stopped chan struct{}
	once    sync.Once
	started bool

	mu      sync.Mutex
	to      netip.AddrPort
	format  audio.Format
	rate    audio.Rate // of tones and line
	events  int
	sending bool
	queue   []saying
	keys    rtp.EventSender
	tones   *audio.Digits
	packets []Packet
	sound   []int16 // at the format's rate, as it came
	digits  []byte
	reports []Report
	sent    int
	line    *line
}

type saying struct {
	pcm  []int16
	said *Utterance
}

func newMedia(o Options) (*media, error) {
	for tries := 0; ; tries++ {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, fmt.Errorf("phone: %w", err)
		}
		stamp(conn)
		m := &media{options: o, conn: conn, stopped: make(chan struct{})}
		m.control, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(m.addr().Port()) + 1})
		if err == nil {
			return m, nil
		}
		conn.Close()
		if tries == 100 {
			return nil, fmt.Errorf("phone: no pair of ports: %w", err)
		}
	}
}

func (m *media) addr() netip.AddrPort { return m.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// begin takes what the far end described, starts the sound where it has not begun, and returns our own description.
func (m *media) begin(theirs description, o Options) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to, m.events = theirs.at, 0
	chosen := -1
	for _, t := range theirs.types {
		for _, ours := range o.types() {
			if t == ours && chosen < 0 {
				chosen = t
			}
		}
	}
	m.format = map[int]audio.Format{0: audio.PCMU, 8: audio.PCMA, 9: audio.G722, opusType: audio.Opus}[chosen]
	if m.format == 0 {
		m.format, chosen = audio.PCMU, 0
	}
	switch {
	case o.NoEvents:
	case m.format == audio.Opus:
		m.events = theirs.wide
	default:
		m.events = theirs.events
	}
	direction := "sendrecv"
	switch theirs.direction {
	case "sendonly", "inactive":
		direction, m.sending = "recvonly", false
	default:
		m.sending = theirs.direction != "recvonly"
	}
	if theirs.direction == "recvonly" { // our own hold
		m.sending = false
	}
	if rate := m.format.Rate(); rate != m.rate {
		m.rate, m.tones, m.line = rate, audio.NewDigits(rate), newLine(o, rate)
	}
	if !m.started {
		m.started = true
		m.running.Go(m.hear)
		m.running.Go(m.told)
		m.running.Go(m.speak)
	}
	return offer(m.addr(), []int{chosen}, m.events, direction)
}

func (m *media) stop() {
	m.once.Do(func() {
		close(m.stopped)
		m.conn.Close()
		m.control.Close()
	})
}

func (m *media) wait() {
	m.running.Wait()
	m.post.close()
}

// speak sends a packet every 20 ms, by the program's own clock. The packets are made here, octet by octet: who takes
// the program's code for it would not see what is wrong with that.
func (m *media) speak() {
	m.mu.Lock()
	format := m.format
	encoder := audio.NewEncoder(format)
	n, clock := format.Rate().FrameSize(), format.ClockRate()
	m.mu.Unlock()
	seq, ts, ssrc, key := uint16(rand.Uint32()), rand.Uint32(), rand.Uint32(), uint32(0)
	frame, packet := make([]int16, n), make([]byte, 0, 200)
	rtp.NewClock(time.Now()).Run(m.stopped, func(_ time.Duration, missed int) {
		ts += uint32(clock / 50 * (missed + 1))
		m.mu.Lock()
		if m.format != format {
			format = m.format
			encoder, clock, frame = audio.NewEncoder(format), format.ClockRate(), make([]int16, format.Rate().FrameSize())
		}
		packet = packet[:12]
		packet[0], packet[1] = 0x80, m.format.PayloadType()
		sendAs, send := ts, m.sending
		var ended, began *Utterance
		switch {
		case !m.sending:
		case m.keys.Active():
			e, ok := m.keys.Next()
			e.In(clock, clock)
			packet[1] = byte(m.events)
			if e.Marker {
				key = ts - e.Offset
				packet[1] |= 0x80
			}
			send, sendAs = ok, key
			packet = append(packet, e.Payload[:]...)
		default:
			clear(frame)
			if !m.tones.Fill(frame) && len(m.queue) > 0 {
				s := &m.queue[0]
				if s.said.from.IsZero() {
					began = s.said
				}
				s.pcm = s.pcm[copy(frame, s.pcm):]
				if len(s.pcm) == 0 {
					ended, m.queue = s.said, m.queue[1:]
				}
			}
			m.line.color(frame)
			packet = encoder.Encode(packet, frame)
		}
		to, lost, late := m.to, m.line.lost(), m.line.delay()
		if send {
			m.sent++
		}
		m.mu.Unlock()
		now := time.Now() // before it is sent: who receives it may run first
		if send {
			binary.BigEndian.PutUint16(packet[2:], seq)
			binary.BigEndian.PutUint32(packet[4:], sendAs)
			binary.BigEndian.PutUint32(packet[8:], ssrc)
			seq++
			switch {
			case lost:
			case late > 0:
				m.post.send(late, packet, func(raw []byte) { m.conn.WriteToUDPAddrPort(raw, to) })
			default:
				m.conn.WriteToUDPAddrPort(packet, to)
			}
		}
		sent := now.Add(late) // on a line with jitter
		if began != nil {
			began.mu.Lock()
			began.from = sent
			began.mu.Unlock()
		}
		if ended != nil {
			ended.mu.Lock()
			ended.to = sent
			ended.mu.Unlock()
			close(ended.done)
		}
	})
}

// hear keeps what comes.
func (m *media) hear() {
	m.mu.Lock()
	decoder, format := audio.NewDecoder(m.format), m.format
	m.mu.Unlock()
	var keys rtp.EventReader
	buf, control := make([]byte, 2000), make([]byte, stampBytes)
	pcm := make([]int16, 0, 2000)
	for {
		n, told, _, _, err := m.conn.ReadMsgUDPAddrPort(buf, control)
		if err != nil {
			return
		}
		if n < 12 || buf[0]>>6 != 2 {
			continue
		}
		p := Packet{At: arrival(control[:told]), Seq: binary.BigEndian.Uint16(buf[2:]), TS: binary.BigEndian.Uint32(buf[4:]),
			SSRC: binary.BigEndian.Uint32(buf[8:]),
			Type: buf[1] & 127, Marker: buf[1]&128 != 0, Level: -100}
		m.mu.Lock()
		if m.format != format {
			decoder, format = audio.NewDecoder(m.format), m.format
		}
		events := m.events
		m.mu.Unlock()
		body := buf[12+4*int(buf[0]&15) : n]
		var key byte
		switch {
		case int(p.Type) == events && events > 0:
			key = keys.Read(body, p.TS, p.Marker, p.SSRC)
		case p.Type == format.PayloadType():
			pcm = decoder.Decode(pcm[:0], body)
			p.Level = audio.Level(pcm)
		}
		m.mu.Lock()
		p.From, p.To = len(m.sound), len(m.sound)
		if p.Type == format.PayloadType() && !m.options.Forget {
			m.sound = append(m.sound, pcm...)
			m.line.heard(pcm)
			p.To = len(m.sound)
		}
		m.packets = append(m.packets, p)
		if key != 0 {
			m.digits = append(m.digits, key)
		}
		m.mu.Unlock()
	}
}

// told keeps what is reported.
func (m *media) told() {
	buf := make([]byte, 2000)
	for {
		n, _, err := m.control.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if b := buf[:n]; n >= 52 && b[0] == 0x81 && b[1] == 200 { // a sender's, of one source
			r := Report{At: time.Now(), Sent: int(binary.BigEndian.Uint32(b[20:])),
				Lost: int(binary.BigEndian.Uint32(b[32:]) & 0xFFFFFF)}
			m.mu.Lock()
			m.reports = append(m.reports, r)
			m.mu.Unlock()
		}
	}
}

// Rate is that of the call's sound.
func (c *Call) Rate() audio.Rate {
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	return c.media.format.Rate()
}

// Say adds sound, at the call's rate, to what is being said; silence is sent otherwise.
func (c *Call) Say(pcm []int16) *Utterance {
	u := &Utterance{done: make(chan struct{})}
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	c.media.queue = append(c.media.queue, saying{pcm, u})
	return u
}

// Press presses keys: as events where the far end takes them, else as tones.
func (c *Call) Press(keys string) {
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	if c.media.events > 0 {
		c.media.keys.Dial(keys)
	} else {
		c.media.tones.Dial(keys)
	}
}

// Packets are those that were heard so far.
func (c *Call) Packets() []Packet {
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	return c.media.packets[:len(c.media.packets):len(c.media.packets)]
}

// Reports are what the far end told by RTCP so far.
func (c *Call) Reports() []Report {
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	return c.media.reports[:len(c.media.reports):len(c.media.reports)]
}

// Sound is what was heard so far, packet after packet.
func (c *Call) Sound() []int16 {
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	return c.media.sound[:len(c.media.sound):len(c.media.sound)]
}

// Sent is how many packets went out, those counted that were lost on purpose.
func (c *Call) Sent() int {
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	return c.media.sent
}

// Digits are the keys that the far end pressed, by events.
func (c *Call) Digits() string {
	c.media.mu.Lock()
	defer c.media.mu.Unlock()
	return string(c.media.digits)
}
