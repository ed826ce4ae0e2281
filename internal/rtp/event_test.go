package rtp

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/audio"
)

// eventPacket is an event as the reader gets it.
type eventPacket struct {
	payload [4]byte
	ts      uint32
	marker  bool
}

// eventsOf returns the packets of keys, whose stream begins at ts.
func eventsOf(keys string, ts uint32) (all []eventPacket) {
	var s EventSender
	s.Dial(keys)
	for ; s.Active(); ts += eventStep {
		if p, ok := s.Next(); ok {
			all = append(all, eventPacket{p.Payload, ts - p.Offset, p.Marker})
		}
	}
	return all
}

func keysOf(r *EventReader, packets []eventPacket) string {
	var keys []byte
	for _, p := range packets {
		if k := r.Read(p.payload[:], p.ts, p.marker, 1); k != 0 {
			keys = append(keys, k)
		}
	}
	return string(keys)
}

func TestEventSender(t *testing.T) {
	all := eventsOf("7 x#", 1000)
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
	if n := testing.AllocsPerRun(200, func() { s.Next() }); n != 0 {
		t.Errorf("it allocates %v times per packet", n)
	}
}

func TestEventReader(t *testing.T) {
	event := func(code byte, end bool, ts uint32, duration uint16, marker bool) eventPacket {
		p := eventPacket{[4]byte{code, 10, byte(duration >> 8), byte(duration)}, ts, marker}
		if end {
			p.payload[1] |= 0x80
		}
		return p
	}
	long := []eventPacket{event(1, false, 0xFFFFFF00, 160, true), event(1, false, 0xFFFFFF00, 0xFFFF, false),
		event(1, false, 0xFFFF-0x100, 160, false), event(1, false, 0xFFFFFF00, 0xFFFF, false),
		event(1, true, 0xFFFF-0x100, 320, false)}
	all := eventsOf("1122", 0xFFFFFF00)
	for _, c := range []struct {
		name    string
		packets []eventPacket
		want    string
	}{
		{"as sent, across the timestamp's wrap", all, "1122"},
		{"each twice", append(eventsOf("1122", 50), eventsOf("1122", 50)...), "1122"},
		{"last ends alone", []eventPacket{all[eventLast-1], all[2*eventLast-1], all[4*eventLast-1]}, "112"},
		{"first packets alone", []eventPacket{all[0], all[eventLast], all[2*eventLast]}, "112"},
		{"second packets alone", []eventPacket{all[1], all[eventLast+1], all[2*eventLast+1]}, "112"},
		{"eight seconds and more", long, "1"},
		{"first segment lost at its end", []eventPacket{long[0], long[2], long[4]}, "1"},
		{"a timestamp that moves", []eventPacket{event(5, false, 0, 160, true), event(5, false, 160, 320, false),
			event(5, false, 320, 480, false),
			event(5, true, 480, 640, false), event(5, true, 480, 640, false), event(5, false, 1600, 160, true)}, "55"},
		{"flash and fax", []eventPacket{event(16, true, 0, 160, true), event(36, true, 1000, 160, true)}, ""},
		{"every key", eventsOf("0123456789*#ABCD", 5), "0123456789*#ABCD"},
	} {
		if got := keysOf(new(EventReader), c.packets); got != c.want {
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

// FuzzEventReader sends keys through a network that loses, duplicates and reorders packets: every key of which
// something arrives is reported once.
func FuzzEventReader(f *testing.F) {
	f.Add(uint64(1), "1234567890", uint32(0), uint8(30), uint8(3))
	f.Add(uint64(2), "111111*#AA", uint32(0xFFFFF000), uint8(80), uint8(1))
	f.Add(uint64(3), "55", uint32(0x7FFFFF00), uint8(0), uint8(6))
	f.Fuzz(func(t *testing.T, seed uint64, keys string, ts uint32, loss, spread uint8) {
		if len(keys) > 40 || !audio.ValidKeys(keys) {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 9))
		type arrival struct {
			eventPacket
			at int
		}
		var line []arrival
		arrives := map[uint32]bool{}
		for i, p := range eventsOf(keys, ts) {
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
					told += keysOf(&r, []eventPacket{p.eventPacket})
				}
			}
		}
		// Keys come in order if packets are reordered by no more than one key; if not all of them arrive, each is
		// counted.
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
