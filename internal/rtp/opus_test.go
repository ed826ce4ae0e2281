package rtp

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"parley/internal/audio"
)

// tone is a frame of a tone.
func tone(rate audio.Rate, hz float64) audio.Frame { return tones(rate, hz, 1)[0] }

// tones are frames of a tone.
func tones(rate audio.Rate, hz float64, n int) (all []audio.Frame) {
	for i := range n {
		f := make(audio.Frame, rate.FrameSize())
		for j := range f {
			f[j] = int16(8000 * math.Sin(2*math.Pi*hz*float64(i*len(f)+j)/float64(rate)))
		}
		all = append(all, f)
	}
	return all
}

// opusPackets are packets of a tone, of so many frames of 20 ms each; 0: of 10 ms, as silence.
func opusPackets(hz float64, each, n int) (all [][]byte) {
	if each == 0 {
		for range n {
			all = append(all, []byte{22 << 3, 0xff, 0xff}) // the silence of a frame of 10 ms
		}
		return all
	}
	e := audio.NewEncoder(audio.Opus)
	var frames [][]byte
	for _, f := range tones(audio.Wide, hz, each*n) {
		frames = append(frames, e.Encode(nil, f))
	}
	for ; len(frames) > 0; frames = frames[each:] {
		p := []byte{frames[0][0]}
		switch each {
		case 1:
		case 2: // RFC 6716, section 3.2.3
			p[0] |= 1
		default: // section 3.2.5
			p[0] |= 3
			p = append(p, byte(each))
		}
		for _, f := range frames[:each] {
			p = append(p, f[1:]...)
		}
		all = append(all, p)
	}
	return all
}

// TestOpusHeard: packets of any length are heard whole, in order, with losses concealed, and their jitter and losses are
// counted by a clock of 48 kHz.
func TestOpusHeard(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames int
		swap   bool // each third packet comes after the next one
		lose   int  // each such packet
		share  float64
	}{{"20 ms", 1, false, 0, 0.99}, {"40 ms", 2, false, 0, 0.99}, {"60 ms", 3, false, 0, 0.99},
		{"out of order", 1, true, 0, 0.99}, {"with losses", 1, false, 20, 0.9}, {"60 ms with losses", 3, false, 20, 0.75}} {
		e := &sink{}
		m, w := desk(t, audio.Opus, true, e)
		list := opusPackets(500, c.frames, 120/c.frames)
		span := time.Duration(c.frames) * frameTime
		put := func(i int, at time.Duration) {
			if c.lose == 0 || i%c.lose != 7 {
				m.packet(packet(96, i == 0, uint16(i), uint32(i*c.frames)*960, 9, list[i]), w.addr(), at)
			}
		}
		at, next := time.Duration(0), time.Duration(0)
		for i := range list {
			switch {
			case c.swap && i%3 == 1 && i+1 < len(list):
				put(i+1, at)
			case c.swap && i%3 == 2:
				put(i-1, at)
			default:
				put(i, at)
			}
			at += span
			for ; next < at; next += frameTime {
				m.tick(next, 0)
			}
		}
		lost := 0
		if c.lose > 0 {
			lost = (len(list)-8)/c.lose + 1
		}
		if n := len(e.heard) / audio.Wide.FrameSize(); n < 120-2*c.frames || n > 121 {
			t.Errorf("%s: %d frames heard at once of 120", c.name, n)
		}
		if got := share(e.heard[3200:], 500, audio.Wide); got < c.share {
			t.Errorf("%s: the tone is %.3f of what is heard at once", c.name, got)
		}
		if got := share(e.played[9600:], 500, audio.Wide); got < c.share {
			t.Errorf("%s: the tone is %.3f of what is heard by the clock", c.name, got)
		}
		if s := m.Stats(); s.Lost != lost || !c.swap && s.Jitter > time.Millisecond ||
			c.swap && (s.Jitter < 5*time.Millisecond || s.Jitter > 60*time.Millisecond) {
			t.Errorf("%s: %+v, %d are lost", c.name, s, lost)
		}
	}
}

// TestOpusShort: packets of 10 ms are heard whole, too: pairs of them fill the frames that are heard.
func TestOpusShort(t *testing.T) {
	e := &sink{}
	m, w := desk(t, audio.Opus, true, e)
	for i, p := range opusPackets(0, 0, 200) {
		at := time.Duration(i) * frameTime / 2
		m.packet(packet(96, i == 0, uint16(i), uint32(i)*480, 9, p), w.addr(), at)
		if i%2 == 1 {
			m.tick(at, 0)
		}
	}
	if n := len(e.heard) / audio.Wide.FrameSize(); n < 99 || n > 100 {
		t.Errorf("%d frames heard at once of 100", n)
	}
	if s := m.Stats(); s.Received != 200 || s.Lost != 0 || s.Jitter > time.Millisecond || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// TestOpusFlood: of far more sound than time, and of packets longer than they can be, little is decoded, and what isn't is
// counted. What the network held back for some seconds is heard.
func TestOpusFlood(t *testing.T) {
	const whole = 22<<3 | 3 // frames of 10 ms, as many as the next octet says
	long := append([]byte{whole, 12}, make([]byte, 12)...)
	for _, c := range []struct {
		name   string
		packet []byte
		each   time.Duration // between two
		n      int
		took   int // at least
		most   int
	}{
		{"120 ms in time", long, 120 * time.Millisecond, 500, 500, 500},
		{"120 ms as often as 20", long, 20 * time.Millisecond, 500, 200, 220}, // 5 s, and twice 10 s
		{"as many as come", long, time.Millisecond, 1000, 40, 60},
		{"four seconds at once", long, 0, 33, 33, 33},
		{"too long a frame", append([]byte{22 << 3}, make([]byte, 1276)...), 20 * time.Millisecond, 50, 0, 0},
		{"a frame as long as can be", append([]byte{22 << 3}, make([]byte, 1275)...), 20 * time.Millisecond, 50, 50, 50},
		{"130 ms", append([]byte{whole, 13}, make([]byte, 13)...), 20 * time.Millisecond, 50, 0, 0},
	} {
		e := &sink{}
		m, w := desk(t, audio.Opus, true, e)
		for i := range c.n {
			at := time.Duration(i) * c.each
			m.packet(packet(96, i == 0, uint16(i), uint32(i)*5760, 9, c.packet), w.addr(), at)
		}
		if s := m.Stats(); s.Received != c.n || c.n-s.Refused < c.took || c.n-s.Refused > c.most {
			t.Errorf("%s: %d of %d were decoded: %+v", c.name, c.n-s.Refused, c.n, s)
		}
	}
}

// TestOpusStops: a far end that falls silent (DTX) sends nothing, or packets without a frame, for a while.
func TestOpusStops(t *testing.T) {
	for name, still := range map[string]bool{"nothing comes": false, "empty frames come": true} {
		e := &sink{}
		m, w := desk(t, audio.Opus, true, e)
		list := opusPackets(500, 1, 100)
		seq := uint16(0)
		for i := range 150 {
			at := time.Duration(i) * frameTime
			switch {
			case i < 50:
				m.packet(packet(96, false, seq, uint32(i)*960, 9, list[i]), w.addr(), at)
				seq++
			case i >= 100:
				m.packet(packet(96, i == 100, seq, uint32(i)*960, 9, list[i-50]), w.addr(), at)
				seq++
			case still:
				m.packet(packet(96, false, seq, uint32(i)*960, 9, list[0][:1]), w.addr(), at)
				seq++
			}
			m.tick(at, 0)
		}
		size := audio.Wide.FrameSize()
		if level := audio.Level(e.played[70*size : 95*size]); level > -60 {
			t.Errorf("%s: the pause has %.0f dBFS", name, level)
		}
		if got := share(e.played[120*size:], 500, audio.Wide); got < 0.99 {
			t.Errorf("%s: after it the tone is %.3f of all", name, got)
		}
		if s := m.Stats(); s.Lost != 0 {
			t.Errorf("%s: %d are lost", name, s.Lost)
		}
	}
}

// TestOpusSaid: what is sent has timestamps of 48 kHz, as have its keys, and those of 8 kHz where only these were agreed
// on; and less where the far end wants less.
func TestOpusSaid(t *testing.T) {
	for _, events := range []int{48000, 0} {
		s, d := NewSender(audio.Wide), audio.NewDecoder(audio.Opus)
		s.Speak(Codec{Format: audio.G722, Send: 9})
		former := s.Header.SSRC
		c := Codec{Format: audio.Opus, Send: 111, Event: true, SendEvent: 102, EventClock: events, Bitrate: 24000}
		s.Speak(c)
		if s.Header.SSRC == former {
			t.Error("sound of another clock has the same source")
		}
		s.Fill(40 * time.Millisecond)
		var out []int16
		began := s.ts
		for i, f := range tones(audio.Wide, 500, 50) {
			s.Pass(0)
			p := s.Next(f, true)
			if len(p) != 60 || s.Header.PayloadType != 111 || s.Header.Timestamp != began+uint32(i+1)*960 ||
				s.Header.Marker != (i == 0) || s.More() != nil {
				t.Fatalf("packet %d has %d octets, %+v", i, len(p), s.Header)
			}
			if wire := s.Packet(p); !bytes.Equal(wire[headerSize:], p) {
				t.Fatal("other octets go over the wire")
			}
			out = d.Decode(out, p)
		}
		if got := share(out[3200:], 500, audio.Wide); got < 0.99 {
			t.Errorf("the tone is %.3f of what is said", got)
		}
		s.Dial("7")
		key, step := s.ts+960, 160
		if events > 0 {
			step = 960
		}
		for i := range 5 {
			s.Pass(0)
			p := s.Next(tone(audio.Wide, 500), true)
			if got := binary.BigEndian.Uint16(p[2:]); int(got) != (i+1)*step || s.Header.Timestamp != key || s.Header.PayloadType != 102 {
				t.Errorf("packet %d of a key: lasts %d, time %d after its beginning", i, got, s.Header.Timestamp-key)
			}
		}
	}
}

// TestOpusLeft: a call that is moved to a telephone without Opus, and back, is heard on, and its timestamps and jitter
// have the clock of what is spoken.
func TestOpusLeft(t *testing.T) {
	e := &sink{}
	m, w := desk(t, audio.Opus, true, e)
	at, seq := time.Duration(0), uint16(0)
	former := uint32(0)
	for round, format := range []audio.Format{audio.Opus, audio.G722, audio.Opus} {
		m.agree(Agreement{Codec: codecOf(format, true), Direction: both, Told: w.addr(), Signal: w.addr().Addr()}, at)
		enc, before, step := audio.NewEncoder(format), len(e.played), uint32(format.ClockRate()/50)
		var ssrc, ts uint32
		for i, f := range tones(audio.Wide, 500, 100) {
			seq++
			late := time.Duration(i%2) * 4 * time.Millisecond
			m.packet(packet(format.PayloadType(), i == 0, seq, uint32(i)*step, uint32(round), enc.Encode(nil, f)), w.addr(), at+late)
			m.tick(at+10*time.Millisecond, 0)
			at += frameTime
			p, _ := w.listen(hang)
			if p == nil || p.PayloadType != format.PayloadType() || i > 0 && (p.SSRC != ssrc || p.Timestamp-ts != step) {
				t.Fatalf("round %d: packet %d is %+v after the time %d", round, i, p, ts)
			}
			ssrc, ts = p.SSRC, p.Timestamp
		}
		if ssrc == former {
			t.Errorf("round %d: another clock has the same source", round)
		}
		former = ssrc
		if got := share(e.played[before+16000:], 500, audio.Wide); got < 0.99 {
			t.Errorf("round %d: the tone is %.3f of what is heard", round, got)
		}
		if got := m.Stats().Jitter; got < 2*time.Millisecond || got > 5*time.Millisecond {
			t.Errorf("round %d: the jitter is %s", round, got)
		}
	}
}
