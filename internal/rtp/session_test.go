package rtp

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	pion "github.com/pion/rtp"

	"parley/internal/audio"
)

// still is a peer that does nothing, and allocates nothing.
type still struct{ heard, ticks int }

func (s *still) Hear(audio.Frame)              { s.heard++ }
func (s *still) Tick(in, out audio.Frame) bool { s.ticks++; return true }
func (s *still) Digit(byte)                    {}

var both = Direction{Send: true, Receive: true}

// codecOf returns a codec with the usual payload types.
func codecOf(f audio.Format, event bool) Codec {
	return Codec{Format: f, Send: f.PayloadType(), Receive: f.PayloadType(), Event: event, SendEvent: 101,
		ReceiveEvent: 101}
}

// desk returns a session whose packets go to a wire.
func desk(t testing.TB, format audio.Format, event bool, p audio.Peer) (*Session, *wire) {
	t.Helper()
	sock, err := NewPorts(30000, 39999).Open(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sock.Close)
	w := newWire(t, "127.0.0.1")
	m := NewSession(sock, format.Rate(), false, p)
	m.agree(Agreement{Codec: codecOf(format, event), Direction: both, Told: w.addr(), Signal: w.addr().Addr()}, 0)
	return m, w
}

func TestNoAllocations(t *testing.T) {
	for _, format := range []audio.Format{audio.PCMU, audio.PCMA, audio.G722, audio.Opus} {
		for _, event := range []bool{true, false} {
			m, w := desk(t, format, event, &still{})
			seq, at := uint16(0), time.Duration(0)
			data := packet(format.PayloadType(), false, 0, 0, 9, audio.NewEncoder(format).Encode(nil, tone(format.Rate(), 500)))
			receive := func() {
				seq++
				at += frameTime
				data[2], data[3] = byte(seq>>8), byte(seq)
				ts := uint32(seq) * uint32(format.ClockRate()/50)
				data[4], data[5], data[6], data[7] = byte(ts>>24), byte(ts>>16), byte(ts>>8), byte(ts)
				if seq%10 != 0 { // a lost packet is concealed
					m.packet(data, w.addr(), at)
				}
			}
			if n := testing.AllocsPerRun(200, receive); n != 0 {
				t.Errorf("%s: %v allocations per packet received", format, n)
			}
			if n := testing.AllocsPerRun(200, func() { at += frameTime; m.tick(at, 0) }); n != 0 {
				t.Errorf("%s: %v allocations per packet sent", format, n)
			}
		}
	}
	// Nor do several frames of Opus in a packet, or short ones.
	for each, list := range map[int][][]byte{0: opusPackets(500, 0, 1), 2: opusPackets(500, 2, 1), 3: opusPackets(500, 3, 1),
		6: opusPackets(500, 6, 1)} {
		m, w := desk(t, audio.Opus, true, &still{})
		span := max(time.Duration(each)*frameTime, frameTime/2)
		seq, at := uint16(0), time.Duration(0)
		data := packet(96, false, 0, 0, 9, list[0])
		if n := testing.AllocsPerRun(200, func() {
			seq++
			at += span
			binary.BigEndian.PutUint16(data[2:], seq)
			binary.BigEndian.PutUint32(data[4:], ticks(at, 48000))
			m.packet(data, w.addr(), at)
		}); n != 0 {
			t.Errorf("%v allocations per packet of %v", n, span)
		}
		if s := m.Stats(); s.Refused != 0 {
			t.Errorf("packets of %v: %d were refused", span, s.Refused)
		}
	}
	// The socket doesn't allocate either.
	m, w := desk(t, audio.PCMU, true, &still{})
	var buf [2048]byte
	data := packet(0, false, 0, 0, 9, make([]byte, audio.FrameBytes))
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(m.socket.Port))
	if n := testing.AllocsPerRun(100, func() {
		_, _ = w.WriteToUDPAddrPort(data, to)
		n, from, _ := m.socket.rtp.ReadFromUDPAddrPort(buf[:])
		m.packet(buf[:n], from, 0)
	}); n != 0 {
		t.Errorf("%v allocations per packet through the socket", n)
	}
}

// TestStall stops the clock: the missed time is a gap in the timestamps, not in the sequence numbers, and there is no
// burst.
func TestStall(t *testing.T) {
	m, w := desk(t, audio.PCMU, true, &still{})
	next := func() *pion.Packet {
		p, _ := w.listen(hang)
		if p == nil {
			t.Fatal("no packet")
		}
		return p
	}
	m.tick(0, 0)
	a := next()
	m.tick(time.Second, 50)
	b := next()
	if b.SequenceNumber != a.SequenceNumber+1 || b.Timestamp != a.Timestamp+51*frameTicks {
		t.Errorf("%v after %v", b, a)
	}
	if p, _ := w.listen(20 * time.Millisecond); p != nil {
		t.Error("a burst")
	}
	// A key that is pressed throughout a stall is one key.
	m.Dial("5")
	var reader EventReader
	keys := ""
	for i := range 12 {
		m.tick(2*time.Second, i%2*3)
		if p, _ := w.listen(200 * time.Millisecond); p != nil && p.PayloadType == 101 {
			if k := reader.Read(p.Payload, p.Timestamp, p.Marker, p.SSRC); k != 0 {
				keys += string(k)
			}
		}
	}
	if keys != "5" {
		t.Errorf("keys %q", keys)
	}
}

// TestTonesOut sends keys when RFC 4733 was not agreed on.
func TestTonesOut(t *testing.T) {
	m, w := desk(t, audio.PCMA, false, &still{})
	m.Dial("19#")
	d, dec, keys := audio.NewDigitDetector(audio.Narrow), audio.NewDecoder(audio.PCMA), ""
	for range 3*9 + 2 {
		m.tick(0, 0)
		p, _ := w.listen(hang)
		if p == nil || p.PayloadType != 8 {
			t.Fatalf("packet %v", p)
		}
		if k := d.Detect(dec.Decode(nil, p.Payload)); k != 0 {
			keys += string(k)
		}
	}
	if keys != "19#" {
		t.Errorf("keys %q", keys)
	}
}

// TestBadNetwork hears a tone through 5 % loss, duplicates and reordered packets: continuous for a live listener, and
// in order for a recording.
func TestBadNetwork(t *testing.T) {
	for _, size := range []int{80, 160, 240, 480} { // 10 to 60 ms a packet
		r := rand.New(rand.NewPCG(1, uint64(size)))
		p := &sink{}
		m, w := desk(t, audio.PCMU, true, p)
		const seconds = 20
		var held []byte
		sent := 0
		tick := time.Duration(0)
		for i := 0; i*size < seconds*8000; i++ {
			pcm := make([]int16, size)
			for k := range pcm {
				pcm[k] = int16(8000 * math.Sin(2*math.Pi*500*float64(i*size+k)/8000))
			}
			data := packet(0, false, uint16(i)+65500, uint32(i*size), 9, audio.EncodeULaw(nil, pcm))
			at := time.Duration(i*size) * time.Second / 8000
			for ; tick <= at; tick += frameTime {
				m.tick(tick, 0)
			}
			switch x := r.Float64(); {
			case x < 0.05:
				continue
			case x < 0.08 && held == nil:
				held = data
				continue
			case x < 0.10:
				m.packet(data, w.addr(), at)
			}
			m.packet(data, w.addr(), at)
			sent++
			if held != nil {
				m.packet(held, w.addr(), at)
				held = nil
				sent++
			}
		}
		all := seconds * 8000
		if n := len(p.heard); n < all*97/100 || n > all*101/100 {
			t.Errorf("packets of %d: %d of %d samples were heard at once", size, n, all)
		}
		tone := 0
		for i := 8000; i+800 < len(p.played); i += 800 {
			if share(p.played[i:i+800], 500, audio.Narrow) > 0.8 {
				tone++
			}
		}
		if most := (len(p.played) - 8000) / 800; tone < most*85/100 {
			t.Errorf("packets of %d: only %d of %d stretches of 100 ms are the tone", size, tone, most)
		}
		t.Logf("packets of %d: %d sent, heard %d of %d, tone in %d", size, sent, len(p.heard), all, tone)
	}
}

// TestPayloads sends payloads that aren't the call's sound.
func TestPayloads(t *testing.T) {
	p := &still{}
	m, w := desk(t, audio.PCMU, true, p)
	ulaw := make([]byte, 160)
	for i, data := range [][]byte{nil, {0x80}, packet(3, false, 1, 0, 9, ulaw), packet(0, false, 3, 0, 9, nil),
		packet(0, false, 4, 0, 9, make([]byte, maxSound+1)), packet(101, false, 5, 0, 9, []byte{1}),
		append([]byte{0x40}, packet(0, false, 6, 0, 9, ulaw)[1:]...),
		append([]byte{0xA0}, append(packet(0, false, 7, 0, 9, ulaw)[1:171], 255)...)} {
		m.packet(data, w.addr(), 0)
		if p.heard != 0 {
			t.Errorf("packet %d was heard", i)
		}
	}
	m.packet(packet(8, false, 8, 0, 9, ulaw), w.addr(), 0)
	if p.heard != 1 {
		t.Error("A-law in a call of µ-law wasn't heard: some telephones switch")
	}
	if from := netip.MustParseAddrPort("192.0.2.1:1"); !m.latch.from.IsValid() || m.latch.accept(from, 0, 1, 1) {
		t.Error("a stranger is heard")
	}
}

// TestStranger: a stranger who sends to the port of a silent caller hears nothing, however patient, and is not heard.
func TestStranger(t *testing.T) {
	p := &still{}
	m, w := desk(t, audio.PCMU, true, p)
	stranger := newWire(t, "127.0.0.2")
	for i := range 500 { // ten seconds
		at := time.Duration(i) * frameTime
		m.packet(packet(0, false, uint16(i), uint32(i)*frameTicks, 9, make([]byte, 160)), stranger.addr(), at)
		m.tick(at, 0)
		if got, _ := w.listen(hang); got == nil {
			t.Fatal("the caller hears nothing")
		}
	}
	if got, _ := stranger.listen(50 * time.Millisecond); got != nil || p.heard != 0 {
		t.Errorf("a stranger hears %v; %d frames of theirs were heard", got, p.heard)
	}
	if !m.Missed() {
		t.Error("nobody can tell why nothing was heard")
	}
}

// TestPayloadTypes: our packets have the payload types that the far end chose for them, which may differ from those
// that we chose.
func TestPayloadTypes(t *testing.T) {
	// First their answer to our offer, then their offer. In the first case they receive with their own payload types,
	// and send with ours.
	for name, c := range map[string]Codec{
		"answered": {Format: audio.PCMU, Send: 97, Receive: 0, Event: true, SendEvent: 99, ReceiveEvent: 101},
		"offered":  {Format: audio.PCMU, Send: 97, Receive: 97, Event: true, SendEvent: 99, ReceiveEvent: 99},
	} {
		p := &sink{}
		m, w := desk(t, audio.PCMU, true, p)
		m.agree(Agreement{Codec: c, Direction: both, Told: w.addr(), Signal: w.addr().Addr()}, 0)
		var sent [2]uint8
		m.tick(0, 0)
		m.Dial("7")
		for i := range sent {
			got, _ := w.listen(hang)
			if got == nil {
				t.Fatal(name, "no packet")
			}
			sent[i] = got.PayloadType
			m.tick(frameTime, 0)
		}
		if sent != [2]uint8{97, 99} {
			t.Errorf("%s: sound and keys are sent as %v, and the far end wants them as 97 and 99", name, sent)
		}
		m.packet(packet(c.Receive, false, 1, 0, 9, make([]byte, 160)), w.addr(), 0)
		for range 3 {
			m.packet(packet(c.ReceiveEvent, true, 2, 160, 9, []byte{7, 0x8A, 3, 0x20}), w.addr(), 0)
		}
		if len(p.heard) != 160 || p.keys != "7" {
			t.Errorf("%s: %d samples and the keys %q were heard", name, len(p.heard), p.keys)
		}
	}
}

// FuzzRTP: no packet makes it fail.
func FuzzRTP(f *testing.F) {
	f.Add(packet(0, true, 1, 160, 9, make([]byte, 160)), uint8(1))
	f.Add(packet(101, true, 1, 160, 9, []byte{5, 0x8A, 1, 2}), uint8(2))
	f.Add(packet(13, true, 1, 160, 9, []byte{60}), uint8(3))
	f.Add([]byte{0xBF, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0xBE, 0xDE, 0xFF, 0xFF}, uint8(4))
	sock := &Socket{rtp: &net.UDPConn{}, rtcp: &net.UDPConn{}}
	w := netip.MustParseAddrPort("127.0.0.1:9")
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		m := NewSession(sock, audio.Narrow, false, &still{})
		m.agree(Agreement{Codec: codecOf(audio.PCMU, n%2 == 0), Direction: both, Told: w, Signal: w.Addr()}, 0)
		for i := range int(n%8) + 1 {
			at := time.Duration(i) * frameTime
			m.packet(data, w, at)
			if len(data) > 3 {
				data = append([]byte(nil), data...)
				data[3] += n
			}
			m.tick(at, i)
		}
	})
}

// BenchmarkFrame is what 20 ms of a call cost without a network: a packet heard, a frame sent.
func BenchmarkFrame(b *testing.B) {
	for _, format := range []audio.Format{audio.PCMU, audio.G722} {
		b.Run(format.String(), func(b *testing.B) {
			m, w := desk(b, format, true, &still{})
			at, data := time.Duration(0), packet(format.PayloadType(), false, 0, 0, 9, make([]byte, audio.FrameBytes))
			for i := uint32(0); b.Loop(); i++ {
				ts := i * frameTicks
				data[2], data[3], data[4], data[5], data[6], data[7] = byte(i>>8), byte(i), byte(ts>>24),
					byte(ts>>16), byte(ts>>8), byte(ts)
				m.packet(data, w.addr(), at)
				m.tick(at, 0)
				at += frameTime
			}
		})
	}
}
