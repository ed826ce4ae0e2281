package voice_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
)

// slowDisk writes the header at once, and then nothing more for a while.
type slowDisk struct {
	memory
	stuck time.Duration
	began bool
}

func (d *slowDisk) Write(p []byte) (int, error) {
	if d.began {
		time.Sleep(d.stuck)
		d.stuck = 0
	}
	d.began = true
	return d.memory.Write(p)
}

// Sound that a slow disk has no time for becomes silence: later sound is still at its right time, and the recording is
// as long as the call.
func TestRecordingOnSlowDisk(t *testing.T) {
	const frames = 450
	// the disk recovers, or doesn't within the call
	for _, stuck := range []time.Duration{5 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			file := &slowDisk{stuck: stuck}
			s := voice.Session{Persona: persona(&aitest.Fake{}, &aitest.Synthesizer{}, deaf{}), Record: file}
			leg := &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
				in, out := make([]int16, 160), make([]int16, 160)
				for i := range frames {
					for j := range in {
						in[j] = int16(i + 1)
					}
					time.Sleep(20 * time.Millisecond)
					p.Tick(in, out)
				}
				return parley.CustomerHangup
			}}
			if r := s.Run(t.Context(), leg); r.Err != nil {
				t.Fatal(r.Err)
			}
			w, err := audio.NewWAVReader(bytes.NewReader(file.b))
			if err != nil {
				t.Fatal(err)
			}
			pcm := make([]int16, 4*160*frames)
			n, _ := w.Read(pcm)
			if n != 2*160*frames {
				t.Errorf("stuck for %v: %d samples, want %d", stuck, n, 2*160*frames)
			}
			kept := 0
			for i := range n / 320 {
				switch v := pcm[320*i]; int(v) {
				case i + 1:
					kept++
				case 0:
				default:
					t.Fatalf("stuck for %v: at frame %d there is that of %d", stuck, i, v-1)
				}
			}
			if kept < 75 || kept > frames-10 {
				t.Errorf("stuck for %v: %d frames of %d were kept", stuck, kept, frames)
			}
		})
	}
}
