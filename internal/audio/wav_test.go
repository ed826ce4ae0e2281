package audio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func create(t testing.TB) *os.File {
	f, err := os.Create(filepath.Join(t.TempDir(), "a.wav"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func readWAV(t testing.TB, data []byte) (*WAVReader, []int16) {
	t.Helper()
	r, err := NewWAVReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var all []int16
	for buffer := make([]int16, 333); ; {
		n, err := r.Read(buffer)
		all = append(all, buffer[:n]...)
		if errors.Is(err, io.EOF) {
			return r, all
		}
		if err != nil || n == 0 {
			t.Fatalf("%d samples, %v", n, err)
		}
	}
}

func TestRecorder(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		f := create(t)
		r, err := NewRecorder(f, rate)
		if err != nil {
			t.Fatal(err)
		}
		var want []int16
		for i := range 177 {
			customer, assistant := whiteNoise(uint64(i), 9000, rate.FrameSize()), Frame(nil)
			if i%3 > 0 {
				assistant = tone(int(rate), 440, 9000, rate.FrameSize())
			}
			for j, s := range customer {
				want = append(want, s, 0)
				if assistant != nil {
					want[len(want)-1] = assistant[j]
				}
			}
			if err := r.Write(customer, assistant); err != nil {
				t.Fatal(err)
			}
		}

		// The process dies here: the header has no sizes, and the end is missing. The file ends in half a sample.
		died, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if missing := 2*len(want) + wavHeader - len(died); missing > int(rate)*2 {
			t.Errorf("%d octets were not written yet: more than half a second", missing)
		}
		torn := create(t)
		if _, err := torn.Write(append(died, 1, 2, 3)); err != nil {
			t.Fatal(err)
		}
		if err := RepairRecording(torn); err != nil {
			t.Fatal(err)
		}
		mended, _ := os.ReadFile(torn.Name())
		if got, pcm := readWAV(t, mended); got.left != 0 || len(mended) != len(died) ||
			!slices.Equal(pcm, want[:len(pcm)]) {
			t.Errorf("mended: %d octets of %d", len(mended), len(died))
		} else if size := mended[40:44]; !bytes.Equal(size,
			AppendWAVHeader(nil, int(rate), 2, int64(len(died)-wavHeader))[40:44]) {
			t.Errorf("mended: size %x", size)
		}

		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		closed, _ := os.ReadFile(f.Name())
		if int64(len(closed)) != r.Size() {
			t.Errorf("%d octets, Size says %d", len(closed), r.Size())
		}
		if got, pcm := readWAV(t, closed); got.Rate != int(rate) || got.Channels != 2 || !slices.Equal(pcm, want) {
			t.Errorf("read back: %d Hz, %d channels, %d samples of %d", got.Rate, got.Channels, len(pcm), len(want))
		}
		if err := RepairRecording(f); err != nil {
			t.Fatal(err)
		}
		if again, _ := os.ReadFile(f.Name()); !bytes.Equal(again, closed) {
			t.Error("the repair changed a file that was whole")
		}
		if want := ffmpeg(t, closed, "-i", "-", "-f", "s16le", "-"); want != nil {
			same(t, "recording", closed[wavHeader:], want)
		}
	}
}

func TestRecorderFails(t *testing.T) {
	f := create(t)
	r, err := NewRecorder(f, Narrow)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	frame := make(Frame, 160)
	for range 100 {
		err = r.Write(frame, frame)
	}
	if !errors.Is(err, os.ErrClosed) || !errors.Is(r.Close(), os.ErrClosed) {
		t.Errorf("the error of a lost file is %v", err)
	}
	other := create(t)
	other.WriteString("RIFF....WAVE and no recording, but long enough to be one")
	if err := RepairRecording(other); err == nil {
		t.Error("the repair took a file that is no recording")
	}
}

func TestWAVReader(t *testing.T) {
	good := AppendWAVHeader(nil, 8000, 1, 4)
	chunk := func(b []byte) []byte { // puts a chunk of odd length before the format
		return slices.Concat(b[:12], []byte("LIST\x03\x00\x00\x00abc\x00"), b[12:])
	}
	for _, c := range []struct {
		name string
		data []byte
		want []int16
	}{
		{"plain", append(good, 1, 0, 2, 0, 9, 9), []int16{1, 2}},
		{"other chunks", append(chunk(good), 1, 0, 2, 0), []int16{1, 2}},
		{"size unknown", append(AppendWAVHeader(nil, 8000, 1, 0), 1, 0, 2, 0, 3, 0), []int16{1, 2, 3}},
		{"size the largest", append(AppendWAVHeader(nil, 8000, 1, 1<<40), 1, 0, 2, 0, 3, 0), []int16{1, 2, 3}},
		{"breaks off", append(AppendWAVHeader(nil, 24000, 2, 400), 1, 0, 2, 0, 3, 0), []int16{1, 2}},
	} {
		if _, got := readWAV(t, c.data); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for name, data := range map[string][]byte{
		"empty":    {},
		"text":     []byte("this is a text and not a WAV file, whatever it was sent as"),
		"no data":  good[:36],
		"44.1 kHz": AppendWAVHeader(nil, 44100, 1, 4),
		"three":    AppendWAVHeader(nil, 8000, 3, 4),
		"8 bits":   slices.Concat(good[:34], []byte{8, 0}, good[36:]),
		"µ-law":    slices.Concat(good[:20], []byte{7, 0}, good[22:]),
		"no fmt":   slices.Concat(good[:12], good[36:]),
	} {
		if r, err := NewWAVReader(bytes.NewReader(data)); err == nil {
			t.Errorf("%s is taken: %+v", name, r)
		}
	}
	// ffmpeg writes an extensible header for more than two channels or 16 bits only when asked; its plain one has a
	// LIST chunk.
	if made := ffmpeg(t, octets(tone(24000, 400, 9000, 4800)), "-f", "s16le", "-ar", "24000", "-i", "-", "-f",
		"wav", "-"); made != nil {
		if _, got := readWAV(t, made); !slices.Equal(got, tone(24000, 400, 9000, 4800)) {
			t.Error("ffmpeg's file is read as something else")
		}
	}
}

func FuzzWAVReader(f *testing.F) {
	f.Add(append(AppendWAVHeader(nil, 8000, 2, 8), 1, 2, 3, 4, 5))
	f.Add(AppendWAVHeader(nil, 48000, 1, 1<<40))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewWAVReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		total, buffer := 0, make([]int16, 100)
		for {
			n, err := r.Read(buffer)
			if total += n; err != nil {
				break
			}
		}
		if total%r.Channels != 0 || 2*total > len(data) {
			t.Fatalf("%d samples of %d channels in %d octets", total, r.Channels, len(data))
		}
	})
}

func TestRecorderAllocates(t *testing.T) {
	r, err := NewRecorder(create(t), Wide)
	if err != nil {
		t.Fatal(err)
	}
	frame := make(Frame, 320)
	quiet(t, "recorder", func() { r.Write(frame, frame) })
	data := append(AppendWAVHeader(nil, 16000, 1, 0), make([]byte, 320*2*300)...)
	w, _ := NewWAVReader(bytes.NewReader(data))
	quiet(t, "reader", func() { w.Read(frame) })
}

func BenchmarkRecorder(b *testing.B) {
	f := create(b)
	r, _ := NewRecorder(f, Wide)
	frame := whiteNoise(1, 3000, 320)
	for b.Loop() {
		if r.Write(frame, frame); r.Size() > 1<<24 {
			f.Seek(0, io.SeekStart)
			r.size = 0
		}
	}
}
