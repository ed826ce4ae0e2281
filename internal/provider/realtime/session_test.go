package realtime

import (
	"testing"

	"parley/internal/audio"
)

// Writing sound allocates nothing.
func TestRealtimeWriteAllocatesNothing(t *testing.T) {
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		s := &session{dialect: Dialect{Eager: true}}
		if rate != audio.Narrow {
			var err error
			if s.rateIn, err = audio.NewResampler(int(rate), Rate); err != nil {
				t.Fatal(err)
			}
		}
		frame := make([]int16, rate.FrameSize())
		if n := testing.AllocsPerRun(500, func() { s.Write(frame) }); n > 0 {
			t.Errorf("%d Hz: %v allocations a frame", rate, n)
		}
	}
}
