package opus

import "testing"

func BenchmarkEncoder(b *testing.B) {
	pcm := speech(b)
	e := NewEncoder(48000)
	var p []byte
	at := 0
	b.ReportAllocs()
	for b.Loop() {
		p = e.Encode(p[:0], pcm[at:at+FrameSize])
		if at += FrameSize; at+FrameSize > len(pcm) {
			at = 0
		}
	}
}

func BenchmarkDecoder(b *testing.B) {
	pcm := speech(b)
	e, d := NewEncoder(48000), NewDecoder()
	var packets [][]byte
	for i := 0; i+FrameSize <= len(pcm); i += FrameSize {
		packets = append(packets, e.Encode(nil, pcm[i:i+FrameSize]))
	}
	var out []int16
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		out = d.Decode(out[:0], packets[i%len(packets)])
		i++
	}
}
