package audio

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8])
}

// same says where two byte strings differ.
func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: octet %d is %#x, ffmpeg's is %#x", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d octets, ffmpeg's are %d", what, len(got), len(want))
	}
}

// The checksums are those of ffmpeg's output, so that the test works without ffmpeg; where ffmpeg is installed, it is
// run.
func TestG711(t *testing.T) {
	var every []int16
	var codes []byte
	for v := range 1 << 16 {
		every = append(every, int16(v-1<<15))
	}
	for c := range 256 {
		codes = append(codes, byte(c))
	}
	for _, c := range []struct {
		format        Format
		name          string
		coded, opened string
	}{
		{PCMU, "mulaw", "e0be5288dc67592c", "3dab54339e520bb2"},
		{PCMA, "alaw", "de19ff5b8d6a1950", "e04788d110e58ff8"},
	} {
		coded := NewEncoder(c.format).Encode(nil, every)
		opened := octets(NewDecoder(c.format).Decode(nil, codes))
		if want := ffmpeg(t, octets(every), "-f", "s16le", "-ar", "8000", "-i", "-", "-f", c.name, "-"); want != nil {
			same(t, c.name+" encoder", coded, want)
			same(t, c.name+" decoder", opened, ffmpeg(t, codes, "-f", c.name, "-ar", "8000", "-i", "-", "-f",
				"s16le", "-"))
		}
		if got := sum(coded); got != c.coded {
			t.Errorf("%s encoder: sum %s, want %s", c.name, got, c.coded)
		}
		if got := sum(opened); got != c.opened {
			t.Errorf("%s decoder: sum %s, want %s", c.name, got, c.opened)
		}
	}
}

func TestG722(t *testing.T) {
	for _, c := range []struct {
		name          string
		pcm           []int16
		coded, opened string
	}{
		{"speech", concat(1600, speech(t, "rms", Wide), speech(t, "slt", Wide)), "0c2195a27725fd16",
			"78a09cdf2f2bd63e"},
		{"white noise", whiteNoise(1, 5000, 32000), "82c92bfa340bb290", "00923516274aece7"},
		{"clipping noise", whiteNoise(2, 40000, 32000), "50ffd44b8939d009", "1fd84475000af1d2"},
		{"low tone", tone(16000, 440, 12000, 16000), "4a39975605222479", "b614dfb1fbac8419"},
		{"high tone", tone(16000, 6300, 12000, 16000), "b717db2307e077fe", "9d407507941f7cca"},
		{"full-scale tone", tone(16000, 1000, 32767, 16000), "f6ca54c3c9924698", "df8026bf87c2e6dc"},
		{"square wave", concat(0, tone(16000, 250, 1e9, 16000), tone(16000, 4000, 1e9, 16000)), "260dac80dd53a00d",
			"45313b96aabbd3c7"},
		{"silence, a click, silence", concat(8000, make([]int16, 8000), []int16{32767, -32768}), "4938c5fb510bd947",
			"0ffc4e43ba6a8322"},
	} {
		coded := NewEncoder(G722).Encode(nil, c.pcm)
		opened := octets(NewDecoder(G722).Decode(nil, coded))
		if want := ffmpeg(t, octets(c.pcm), "-f", "s16le", "-ar", "16000", "-i", "-", "-c:a", "g722", "-trellis",
			"0", "-f", "g722", "-"); want != nil {
			same(t, c.name+" encoder", coded, want)
			same(t, c.name+" decoder", opened, ffmpeg(t, coded, "-f", "g722", "-i", "-", "-f", "s16le", "-"))
		}
		if got := sum(coded); got != c.coded {
			t.Errorf("%s encoder: sum %s, want %s", c.name, got, c.coded)
		}
		if got := sum(opened); got != c.opened {
			t.Errorf("%s decoder: sum %s, want %s", c.name, got, c.opened)
		}
	}
}

// TestG722AnyOctets decodes octets that no encoder makes, as ffmpeg decodes them.
func TestG722AnyOctets(t *testing.T) {
	data := octets(whiteNoise(3, 30000, 16000))
	opened := octets(NewDecoder(G722).Decode(nil, data))
	if want := ffmpeg(t, data, "-f", "g722", "-i", "-", "-f", "s16le", "-"); want != nil {
		same(t, "decoder", opened, want)
	}
	if got, want := sum(opened), "d8c646102a0543b7"; got != want {
		t.Errorf("sum %s, want %s", got, want)
	}
}

func TestCodecFrames(t *testing.T) {
	for _, f := range []Format{PCMU, PCMA, G722} {
		frame := whiteNoise(1, 3000, f.Rate().FrameSize())
		e, d := NewEncoder(f), NewDecoder(f)
		data := e.Encode(nil, frame)
		if len(data) != FrameBytes {
			t.Errorf("%v: a frame takes %d octets", f, len(data))
		}
		if back := d.Decode(nil, data); len(back) != len(frame) {
			t.Errorf("%v: %d samples of %d came back", f, len(back), len(frame))
		}
		octets, pcm := make([]byte, 0, FrameBytes), make([]int16, 0, MaxFrame)
		quiet(t, f.String(), func() { pcm = d.Decode(pcm[:0], e.Encode(octets[:0], frame)) })
	}
	if !bytes.Equal(NewEncoder(G722).Encode(nil, []int16{1, 2, 3}), NewEncoder(G722).Encode(nil, []int16{1, 2})) {
		t.Error("an odd sample is not dropped")
	}
}

func BenchmarkG711(b *testing.B) {
	e, d, frame := NewEncoder(PCMU), NewDecoder(PCMU), whiteNoise(1, 3000, 160)
	octets, pcm := make([]byte, 0, FrameBytes), make([]int16, 0, MaxFrame)
	for b.Loop() {
		pcm = d.Decode(pcm[:0], e.Encode(octets[:0], frame))
	}
}

func BenchmarkG722(b *testing.B) {
	e, d, frame := NewEncoder(G722), NewDecoder(G722), whiteNoise(1, 3000, 320)
	octets, pcm := make([]byte, 0, FrameBytes), make([]int16, 0, MaxFrame)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			octets = e.Encode(octets[:0], frame)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			pcm = d.Decode(pcm[:0], octets)
		}
	})
}
