package rtp

import (
	"bytes"
	"testing"
	"time"

	"parley/internal/audio"
)

// TestPacketLength: packets are as long as the far end wants them, and together they carry all of the sound, without a
// gap in their timestamps.
func TestPacketLength(t *testing.T) {
	const frames = 30
	for want, octets := range map[time.Duration]int{0: 160, 10 * time.Millisecond: 80, 20 * time.Millisecond: 160,
		30 * time.Millisecond: 240, 40 * time.Millisecond: 320, 50 * time.Millisecond: 400, 60 * time.Millisecond: 480,
		25 * time.Millisecond: 160, 200 * time.Millisecond: 160} {
		s, plain := NewSender(audio.Narrow), audio.NewEncoder(audio.PCMU)
		s.Speak(codecOf(audio.PCMU, true))
		s.Fill(want)
		var sent, all []byte
		n := 0
		first := s.ts + frameTicks
		for i := range frames {
			f := make(audio.Frame, audio.Narrow.FrameSize())
			for j := range f {
				f[j] = int16(100*i + j)
			}
			all = plain.Encode(all, f)
			s.Pass(0)
			for p := s.Next(f, true); p != nil; p = s.More() {
				if len(p) != octets || s.Header.Timestamp != first+uint32(len(sent)) || s.Header.Marker != (n == 0) {
					t.Fatalf("%s: packet %d has %d octets, time %d, marker %t", want, n, len(p), s.Header.Timestamp-first, s.Header.Marker)
				}
				sent = append(sent, p...)
				n++
			}
		}
		if n != frames*160/octets || !bytes.Equal(sent, all[:len(sent)]) {
			t.Errorf("%s: %d packets, or other sound than was said", want, n)
		}
	}
}

// TestPacketInterrupted: sound that waits for a packet to fill is not sent after a gap or a key as if it followed
// directly.
func TestPacketInterrupted(t *testing.T) {
	for name, interrupt := range map[string]func(s *Sender){"frames are missed": func(s *Sender) { s.Pass(2) },
		"a hold": func(s *Sender) { s.Pass(0); s.Pause(); s.Pass(0) }} {
		s := NewSender(audio.Narrow)
		s.Speak(codecOf(audio.PCMU, true))
		s.Fill(40 * time.Millisecond)
		f := make(audio.Frame, audio.Narrow.FrameSize())
		s.Pass(0)
		if s.Next(f, true) != nil {
			t.Fatal("half a packet is sent")
		}
		interrupt(s)
		at := s.ts
		if s.Next(f, true) != nil {
			t.Errorf("%s: a packet of what was before and after", name)
		}
		s.Pass(0)
		if s.Next(f, true) == nil || s.Header.Timestamp != at {
			t.Errorf("%s: the packet after it is not of that time", name)
		}
	}
}
