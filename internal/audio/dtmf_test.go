package audio

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// detect runs a detector over sound, frame by frame.
func detect(rate Rate, pcm []int16) string {
	d := NewDigitDetector(rate)
	var keys []byte
	for n := rate.FrameSize(); len(pcm) > 0; pcm = pcm[min(n, len(pcm)):] {
		if k := d.Detect(pcm[:min(n, len(pcm))]); k != 0 {
			keys = append(keys, k)
		}
	}
	return string(keys)
}

// press is a key of so many milliseconds after silence that lasts offset samples: low and high are the tones' dBFS,
// off the factor on their frequencies.
func press(rate Rate, key byte, offset int, ms, low, high, off float64) []int16 {
	i := strings.IndexByte(dtmfKeys, key)
	n := int(ms * float64(rate) / 1000)
	a := tone(int(rate), dtmfLow[i/4]*off, Gain(low+3.01)*32768, n)
	Mix(a, tone(int(rate), dtmfHigh[i%4]*off, Gain(high+3.01)*32768, n), 1)
	return append(make([]int16, offset, offset+2*n+int(rate)/5), concat(int(rate)/5, a)...)
}

func TestDigits(t *testing.T) {
	const keys = "0123456789*#ABCD11"
	for _, rate := range []Rate{Narrow, Wide} {
		d := NewDigits(rate)
		d.Dial("0123456789 *#")
		d.Dial("xABCD11")
		var pcm []int16
		frame := make(Frame, rate.FrameSize())
		for d.Fill(frame) {
			pcm = append(pcm, frame...)
		}
		if want := int(rate) * 18 * 180 / 1000; len(pcm) != want {
			t.Errorf("%d samples, want %d", len(pcm), want)
		}
		if got := detect(rate, pcm); got != keys {
			t.Errorf("at %d Hz: played %s, detected %s", rate, keys, got)
		}
		// On the line: through µ-law, 20 dB weaker, with noise 20 dB below it.
		Fade(pcm, 0.1, 0.1)
		Mix(pcm, whiteNoise(1, Gain(level(pcm)-20)*32768, len(pcm)), 1)
		pcm = DecodeULaw(nil, EncodeULaw(nil, pcm))
		if got := detect(rate, pcm); got != keys {
			t.Errorf("at %d Hz: played %s on a bad line, detected %s", rate, keys, got)
		}
		d.Dial(strings.Repeat("1", 100))
		quiet(t, "digits", func() { d.Fill(frame) })
	}
	if !ValidKeys("01*#AD") || ValidKeys("1 2") || ValidKeys("a") {
		t.Error("ValidKeys")
	}
}

// TestDigitDetector goes through Q.24's limits for every key, at beginnings that fall anywhere into a block.
func TestDigitDetector(t *testing.T) {
	for _, c := range []struct {
		name               string
		ms, low, high, off float64
		want               bool
	}{
		{"40 ms", 40, -10, -10, 1, true},
		{"loud", 50, -4, -4, 1, true},
		{"weak", 50, -35, -35, 1, true},
		{"upper 4 dB stronger", 50, -14, -10, 1, true},
		{"lower 8 dB stronger", 50, -10, -18, 1, true},
		{"1.5 % sharp", 50, -10, -10, 1.015, true},
		{"1.5 % flat", 50, -10, -10, 0.985, true},
		{"a second", 1000, -10, -10, 1, true},
		{"23 ms", 23, -10, -10, 1, false},
		{"10 ms", 10, -10, -10, 1, false},
		{"too weak", 60, -46, -46, 1, false},
		{"3.5 % sharp", 60, -10, -10, 1.035, false},
		{"3.5 % flat", 60, -10, -10, 0.965, false},
		{"upper 12 dB stronger", 60, -22, -10, 1, false},
		{"lower 14 dB stronger", 60, -8, -22, 1, false},
	} {
		wrong := 0
		for _, key := range []byte(dtmfKeys) {
			for offset := range 11 {
				for _, rate := range []Rate{Narrow, Wide} {
					want := ""
					if c.want {
						want = string(key)
					}
					if got := detect(rate, press(rate, key, offset*23, c.ms, c.low, c.high, c.off)); got != want {
						if wrong++; wrong < 4 {
							t.Errorf("%s: key %c at %d Hz, offset %d: detected %q", c.name, key, rate, offset*23, got)
						}
					}
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: wrong %d times of 352", c.name, wrong)
		}
	}
}

// TestDigitDetectorGaps: 10 ms of silence within a key are no second key, 40 ms between two are.
func TestDigitDetectorGaps(t *testing.T) {
	for offset := range 30 {
		one := press(Narrow, '5', 0, 60, -10, -10, 1)[:480]
		lead := make([]int16, 7*offset)
		if got := detect(Narrow, concat(800, concat(0, lead, one, make([]int16, 80), one))); got != "5" {
			t.Errorf("offset %d: a gap of 10 ms: %q", offset, got)
		}
		if got := detect(Narrow, concat(800, concat(0, lead, one, make([]int16, 320), one))); got != "55" {
			t.Errorf("offset %d: a gap of 40 ms: %q", offset, got)
		}
	}
}

// TestDigitTalkOff: speech, noise and single tones have no keys in them.
func TestDigitTalkOff(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		for _, name := range voices {
			if got := detect(rate, speech(t, name, rate)); got != "" {
				t.Errorf("%s at %d Hz: detected %q in speech", name, rate, got)
			}
		}
		for _, hz := range append(dtmfLow[:], dtmfHigh[:]...) {
			if got := detect(rate, tone(int(rate), hz, 10000, int(rate))); got != "" {
				t.Errorf("%.0f Hz alone: %q", hz, got)
			}
		}
		if got := detect(rate, whiteNoise(4, 5000, 20*int(rate))); got != "" {
			t.Errorf("noise: %q", got)
		}
	}
	d, frame := NewDigitDetector(Wide), whiteNoise(1, 5000, 320)
	quiet(t, "digit detector", func() { d.Detect(frame) })
}

func BenchmarkDigitDetector(b *testing.B) {
	d, frame := NewDigitDetector(Wide), whiteNoise(1, 5000, 320)
	for b.Loop() {
		d.Detect(frame)
	}
}

// packet is an event as the reader gets it.
type packet struct {
	payload [4]byte
	ts      uint32
	marker  bool
}

// sent are the packets of keys whose stream begins at ts.
func sent(keys string, ts uint32) (all []packet) {
	var s EventSender
	s.Dial(keys)
	for ; s.Active(); ts += eventStep {
		if p, ok := s.Next(); ok {
			all = append(all, packet{p.Payload, ts - p.Offset, p.Marker})
		}
	}
	return all
}

func heard(r *EventReader, packets []packet) string {
	var keys []byte
	for _, p := range packets {
		if k := r.Read(p.payload[:], p.ts, p.marker, 1); k != 0 {
			keys = append(keys, k)
		}
	}
	return string(keys)
}

func TestEventSender(t *testing.T) {
	all := sent("7 x#", 1000)
	if len(all) != 2*eventLast {
		t.Fatalf("%d packets", len(all))
	}
	for i, p := range all {
		key, begin, step := byte(7), 1000, i
		if i >= eventLast {
			key, begin, step = 11, 1000+eventAll*eventStep, i-eventLast
		}
		duration := binary.BigEndian.Uint16(p.payload[2:])
		if p.payload[0] != key || p.ts != uint32(begin) || p.marker != (step == 0) ||
			(p.payload[1]&0x80 != 0) != (step >= 4) ||
			duration != uint16(min(step+1, 5)*160) || p.payload[1]&0x40 != 0 {
			t.Errorf("packet %d: %+v", i, p)
		}
	}
	var s EventSender
	s.Dial(strings.Repeat("1", 100))
	quiet(t, "event sender", func() { s.Next() })
}

func TestEventReader(t *testing.T) {
	event := func(code byte, end bool, ts uint32, duration uint16, marker bool) packet {
		p := packet{[4]byte{code, 10, byte(duration >> 8), byte(duration)}, ts, marker}
		if end {
			p.payload[1] |= 0x80
		}
		return p
	}
	long := []packet{event(1, false, 0xFFFFFF00, 160, true), event(1, false, 0xFFFFFF00, 0xFFFF, false),
		event(1, false, 0xFFFF-0x100, 160, false), event(1, false, 0xFFFFFF00, 0xFFFF, false),
		event(1, true, 0xFFFF-0x100, 320, false)}
	all := sent("1122", 0xFFFFFF00)
	for _, c := range []struct {
		name    string
		packets []packet
		want    string
	}{
		{"as sent, across the timestamp's wrap", all, "1122"},
		{"each twice", append(sent("1122", 50), sent("1122", 50)...), "1122"},
		{"last ends alone", []packet{all[eventLast-1], all[2*eventLast-1], all[4*eventLast-1]}, "112"},
		{"first packets alone", []packet{all[0], all[eventLast], all[2*eventLast]}, "112"},
		{"second packets alone", []packet{all[1], all[eventLast+1], all[2*eventLast+1]}, "112"},
		{"eight seconds and more", long, "1"},
		{"first segment lost at its end", []packet{long[0], long[2], long[4]}, "1"},
		{"a timestamp that moves", []packet{event(5, false, 0, 160, true), event(5, false, 160, 320, false),
			event(5, false, 320, 480, false),
			event(5, true, 480, 640, false), event(5, true, 480, 640, false), event(5, false, 1600, 160, true)}, "55"},
		{"flash and fax", []packet{event(16, true, 0, 160, true), event(36, true, 1000, 160, true)}, ""},
		{"every key", sent("0123456789*#ABCD", 5), "0123456789*#ABCD"},
	} {
		if got := heard(new(EventReader), c.packets); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	var r EventReader
	if r.Read([]byte{1, 2, 3}, 0, true, 1) != 0 {
		t.Error("three octets are an event")
	}
	if r.Read([]byte{1, 0, 0, 1}, 0, true, 1) != '1' || r.Read([]byte{1, 0, 0, 1}, 0, true, 2) != '1' {
		t.Error("another source's key is taken for the first one's")
	}
}

// FuzzEventReader sends keys through a network that loses, doubles and reorders: every key of which something arrives
// is told once.
func FuzzEventReader(f *testing.F) {
	f.Add(uint64(1), "1234567890", uint32(0), uint8(30), uint8(3))
	f.Add(uint64(2), "111111*#AA", uint32(0xFFFFF000), uint8(80), uint8(1))
	f.Add(uint64(3), "55", uint32(0x7FFFFF00), uint8(0), uint8(6))
	f.Fuzz(func(t *testing.T, seed uint64, keys string, ts uint32, loss, spread uint8) {
		if len(keys) > 40 || !ValidKeys(keys) {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 9))
		type arrival struct {
			packet
			at int
		}
		var line []arrival
		arrives := map[uint32]bool{}
		for i, p := range sent(keys, ts) {
			for range 1 + rnd.IntN(2) {
				if rnd.IntN(100) >= int(loss%100) {
					at := i + rnd.IntN(1+int(spread%7))
					line, arrives[p.ts] = append(line, arrival{p, at}), true
				}
			}
		}
		var r EventReader
		told := ""
		for step := range len(keys)*eventLast + 8 {
			for _, p := range line {
				if p.at == step {
					told += heard(&r, []packet{p.packet})
				}
			}
		}
		// Keys come in order where no more than a key's packets are overtaken; with fewer than all of them arriving,
		// count each.
		var want string
		for i := range keys {
			if arrives[ts+uint32(i*eventAll*eventStep)] {
				want += keys[i : i+1]
			}
		}
		for _, k := range eventKeys {
			if strings.Count(told, string(k)) != strings.Count(want, string(k)) {
				t.Fatalf("%q was sent, %q arrived, %q was told", keys, want, told)
			}
		}
		if loss%100 == 0 && spread%7 <= 6 && told != want {
			t.Fatalf("%q was told as %q", want, told)
		}
	})
}

func FuzzEventReaderAny(f *testing.F) {
	f.Add([]byte{1, 0x80, 0, 160, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		var r EventReader
		for len(data) > 6 {
			if k := r.Read(data[1:min(5, len(data))], uint32(data[5])<<24, data[6]&1 != 0,
				uint32(data[0]&1)); k != 0 && !strings.ContainsRune(eventKeys, rune(k)) {
				t.Fatalf("key %q", k)
			}
			data = data[1:]
		}
	})
}

func TestGoertzelOffset(t *testing.T) {
	d := NewDigitDetector(Narrow)
	for _, off := range []float64{-15, 0, 8, 25} {
		pcm := tone(8000, 770+off, 10000, 204)
		g := &d.tones[1]
		var v [2]complex128
		for i, s := range pcm {
			if g.take(float64(s)); i%102 == 101 {
				v[i/102] = g.value()
			}
		}
		if got := d.offset(v[0], v[1], g.turn) * 8000 / 2 / math.Pi; math.Abs(got-off) > 1.5 {
			t.Errorf("a tone %v Hz off is measured %v Hz off", off, got)
		}
	}
}
