package rehearsal

import (
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/simulator/phone"
)

// The tape has every packet's sound at its place: silence and keys before it move nothing, nor do packets that are late; a
// stream that begins anew is where it is heard.
func TestLay(t *testing.T) {
	const n = 160 // samples of a packet
	zero := time.Now()
	var packets []phone.Packet
	var sound []int16
	add := func(at time.Duration, ts uint32, ssrc uint32, sample int16) {
		p := phone.Packet{At: zero.Add(at), TS: ts, SSRC: ssrc, Level: -100, From: len(sound), To: len(sound)}
		if sample >= 0 {
			for range n {
				sound = append(sound, sample)
			}
			p.To = len(sound)
		}
		packets = append(packets, p)
	}
	const ms20 = 20 * time.Millisecond
	for k := range 100 { // two seconds of digital silence
		add(time.Duration(k)*ms20, uint32(1000+n*k), 7, 0)
	}
	add(100*ms20, 1000+100*n, 7, -1)                 // a key
	add(101*ms20, 1000+101*n, 7, 1)                  // a reply,
	add(107*ms20, 1000+102*n, 7, 2)                  // late packets of it, in one go
	add(107*ms20, 1000+103*n, 7, 3)                  //
	add(107*ms20+time.Millisecond, 1000+104*n, 7, 4) //
	add(200*ms20, 5, 8, 5)                           // another stream
	add(201*ms20, 5+n, 8, 6)
	add(300*ms20, 5+2*n, 8, 7) // whose time stamps stood still meanwhile
	tape := lay(400*n, audio.Narrow, zero, packets, sound)
	want := map[int]int16{101: 1, 102: 2, 103: 3, 104: 4, 200: 5, 201: 6, 300: 7}
	for k := range 400 {
		for i, got := range tape[k*n : (k+1)*n] {
			if got != want[k] {
				t.Fatalf("%v and %d samples from the beginning the tape has %d, not %d", time.Duration(k)*ms20, i, got, want[k])
			}
		}
	}
}
