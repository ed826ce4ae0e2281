package voice_test

import (
	"context"
	"testing"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
)

// BenchmarkFrame is the cost of 20 ms of a call: both directions, silent and speaking, with the owner's share.
func BenchmarkFrame(b *testing.B) {
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		for _, clean := range []bool{false, true} {
			name := map[audio.Rate]string{audio.Narrow: "8kHz", audio.Wide: "16kHz"}[rate]
			if clean {
				name += "-cleaned"
			}
			b.Run(name, func(b *testing.B) {
				s := voice.Session{Persona: persona(&aitest.Fake{}, &aitest.Synthesizer{}, deaf{})}
				s.Persona.Assistant.EnableNoiseCancellation = clean
				s.Detect = nil
				s.Run(b.Context(), &driven{rate: rate, run: func(_ context.Context, p audio.Peer) error {
					said, out := speechLike(rate, 500), make([]int16, rate.FrameSize())
					for i := range said { // they speak for two fifths of the time
						if i%250 >= 100 {
							clear(said[i])
						}
					}
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						p.Hear(said[i%len(said)])
						p.Tick(said[i%len(said)], out)
						voice.Settle(p)
					}
					return parley.CustomerHangup
				}})
			})
		}
	}
}
