package opus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	pion "github.com/pion/opus"

	"parley/internal/testenv"
)

func TestTransformIsTheCosineSum(t *testing.T) {
	for _, m := range []*mdct{newMDCT(FrameSize, 10), newMDCT(FrameSize/shorts, 4)} {
		x, out := make([]float32, m.n+overlap), make([]float32, m.n)
		for i := range x {
			x[i] = float32(rand.NormFloat64())
		}
		m.transform(x, out, 1)
		for k, got := range out {
			want := 0.0
			for i, v := range x {
				w := 1.0
				if i < overlap {
					w = float64(window[i])
				} else if i >= m.n {
					w = float64(window[m.n+overlap-1-i])
				}
				at := float64(i+(m.n-overlap)/2) + 0.5 + float64(m.n)/2
				want += w * float64(v) * math.Cos(math.Pi/float64(m.n)*at*(float64(k)+0.5))
			}
			if want *= 2 / float64(m.n); math.Abs(want-float64(got)) > 1e-5 {
				t.Fatalf("%d of %d: %v, not %v", k, m.n, got, want)
			}
		}
	}
}

// decoded is what the reference decoder makes of a packet.
type decoded struct {
	final uint32
	pcm   []int16
}

// libopus decodes streams of packets by the reference decoder.
func libopus(t testing.TB, streams [][][]byte) (all []decoded) {
	t.Helper()
	var in, problems bytes.Buffer
	count := 0
	for _, packets := range streams {
		_ = binary.Write(&in, binary.LittleEndian, int16(-1))
		for _, p := range packets {
			_ = binary.Write(&in, binary.LittleEndian, int16(len(p)))
			in.Write(p)
			count++
		}
	}
	cmd := exec.Command(testenv.Program(t, "python3"), "testdata/libopus.py")
	cmd.Stdin, cmd.Stderr = &in, &problems
	out, err := cmd.Output()
	if err != nil {
		testenv.Nil(t, fmt.Errorf("libopus: %w: %s", err, problems.String()))
	}
	for len(out) > 0 {
		n := int(int32(binary.LittleEndian.Uint32(out)))
		d := decoded{final: binary.LittleEndian.Uint32(out[4:])}
		for i := range max(n, 0) {
			d.pcm = append(d.pcm, int16(binary.LittleEndian.Uint16(out[8+2*i:])))
		}
		all = append(all, d)
		out = out[8+2*max(n, 0):]
	}
	if len(all) != count {
		t.Fatalf("%d of %d packets", len(all), count)
	}
	return all
}

// sounds are what codecs are tried with.
func sounds(seconds int) map[string][]int16 {
	n := seconds * 16000
	all := map[string][]int16{}
	add := func(name string, f func(i int) float64) {
		pcm := make([]int16, n)
		for i := range pcm {
			pcm[i] = int16(max(math.MinInt16, min(math.MaxInt16, f(i))))
		}
		all[name] = pcm
	}
	r := rand.New(rand.NewPCG(1, 2))
	tone := func(hz float64, i int) float64 { return math.Sin(2 * math.Pi * hz * float64(i) / 16000) }
	add("tone", func(i int) float64 { return 8000 * tone(440, i) })
	add("high tone", func(i int) float64 { return 8000 * tone(6500, i) })
	add("keys", func(i int) float64 { return 6000 * (tone(770, i) + tone(1336, i)) })
	add("noise", func(i int) float64 { return 3000 * r.NormFloat64() })
	add("faint noise", func(i int) float64 { return 2 * r.NormFloat64() })
	add("silence", func(i int) float64 { return 0 })
	add("clipped", func(i int) float64 { return 90000 * tone(300, i) })
	add("square", func(i int) float64 { return math.Copysign(math.MaxInt16, tone(1000, i)) })
	add("constant", func(i int) float64 { return 20000 })
	add("clicks", func(i int) float64 {
		if i%3001 == 0 {
			return 30000
		}
		return 0
	})
	add("bursts", func(i int) float64 {
		if i/4000%2 == 0 {
			return 0
		}
		return 6000 * tone(500, i) * (1 + 0.3*r.NormFloat64())
	})
	add("buzz", func(i int) float64 { return 12000*float64(i%133)/133 - 6000 })
	return all
}

// speech is a sentence of flite's.
func speech(t testing.TB) []int16 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "speech.wav")
	if out, err := exec.Command(testenv.Program(t, "flite"), "-voice", "slt", "-t",
		"The quick brown fox jumps over the lazy dog, six times a day.", "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, (len(data)-44)/2/FrameSize*FrameSize)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(data[44+2*i:]))
	}
	return pcm
}

// TestFramesAreValid holds all frames against the reference decoder, which must end each with the range that the encoder
// ended it with; and our decoder's sound against its.
func TestFramesAreValid(t *testing.T) {
	all := sounds(1)
	all["speech"] = speech(t)
	type frame struct {
		name   string
		rate   int
		width  uint32
		packet []byte
	}
	var frames []frame
	var streams [][][]byte
	for name, pcm := range all {
		for _, rate := range []int{1, 6000, 12000, 20000, 32000, 48000, 64000, 80000} {
			e := NewEncoder(rate)
			var packets [][]byte
			for i := 0; i < len(pcm); i += FrameSize {
				p := e.Encode(nil, pcm[i:i+FrameSize])
				if e.coder.over || len(p) > min(max(rate/400, minSize), maxSize) {
					t.Fatalf("%s at %d: frame %d has %d octets, over %v", name, rate, i/FrameSize, len(p), e.coder.over)
				}
				packets = append(packets, p)
				frames = append(frames, frame{name, rate, e.width, p})
			}
			streams = append(streams, packets)
		}
	}
	var d *Decoder
	var now frame
	var wrong, power float64
	for i, ref := range libopus(t, streams) {
		f := frames[i]
		if len(ref.pcm) != FrameSize || ref.final != f.width {
			t.Fatalf("%s at %d: of frame %d libopus has %d samples and the range %08x, not %08x", f.name, f.rate, i,
				len(ref.pcm), ref.final, f.width)
		}
		if now.name != f.name || now.rate != f.rate {
			if wrong > power/400 {
				t.Errorf("%s at %d: our decoder's sound is %.1f dB from libopus's", now.name, now.rate, 10*math.Log10(power/wrong))
			}
			now, d, wrong, power = f, NewDecoder(), 0, 1e4
		}
		got := d.Decode(nil, f.packet)
		if len(got) != FrameSize {
			t.Fatalf("%s at %d: our decoder has %d samples", f.name, f.rate, len(got))
		}
		for j, v := range ref.pcm { // libopus bends what would be clipped
			if power += float64(v) * float64(v); f.name != "clipped" && f.name != "square" {
				wrong += (float64(v) - float64(got[j])) * (float64(v) - float64(got[j]))
			}
		}
	}
}

func TestQuality(t *testing.T) {
	all := sounds(1)
	all["speech"] = speech(t)
	for name, least := range map[string][3]float64{ // segmental signal to noise ratio at 24, 32 and 48 kbit/s, in dB
		"speech": {12, 15, 20}, "tone": {30, 32, 33}, "keys": {25, 28, 29}, "noise": {3.5, 6, 10},
		"clipped": {18, 19, 24}, "square": {9, 11.5, 13}, "bursts": {12, 14, 18}, "buzz": {14, 17, 21}, "clicks": {3, 5.5, 10},
	} {
		for i, rate := range []int{24000, 32000, 48000} {
			e := NewEncoder(rate)
			d, err := pion.NewDecoderWithOutput(48000, 1)
			if err != nil {
				t.Fatal(err)
			}
			var out []int16
			for pcm := all[name]; len(pcm) > 0; pcm = pcm[FrameSize:] {
				var got [3 * FrameSize]int16
				if n, err := d.DecodeToInt16(e.Encode(nil, pcm[:FrameSize]), got[:]); err != nil || n != len(got) {
					t.Fatal(n, err)
				}
				out = append(out, got[:]...)
			}
			got := snr(all[name], out)
			t.Logf("%s at %d: %.1f dB", name, rate, got)
			if got < least[i] {
				t.Errorf("%s at %d: %.1f dB, less than %v", name, rate, got, least[i])
			}
		}
	}
}

// TestEveryTone sees that tones come out as loud as they went in, wherever they are in their band.
func TestEveryTone(t *testing.T) {
	for hz := 100.0; hz < 7700; hz += 87 {
		e, d := NewEncoder(48000), NewDecoder()
		var out, pcm []int16
		for i := range 20 * FrameSize {
			pcm = append(pcm, int16(8000*math.Sin(2*math.Pi*hz*float64(i)/16000)))
		}
		for ; len(pcm) > 0; pcm = pcm[FrameSize:] {
			out = d.Decode(out, e.Encode(nil, pcm[:FrameSize]))
		}
		var s, c, p, n float64
		for i := 10 * FrameSize; i < len(out); i++ {
			sin, cos := math.Sincos(2 * math.Pi * hz * float64(i) / 16000)
			v := float64(out[i])
			s, c, p, n = s+v*sin, c+v*cos, p+v*v, n+1
		}
		if loud, pure := 2*math.Hypot(s, c)/n, (s*s+c*c)/n*2/p; math.Abs(loud/8000-1) > 0.1 || pure < 0.97 {
			t.Errorf("%v Hz comes out with %.0f of 8000, and is %.3f of all", hz, loud, pure)
		}
	}
}

// TestNothingIsAllocated: neither frames nor packets allocate once a stream is under way.
func TestNothingIsAllocated(t *testing.T) {
	pcm := sounds(1)["bursts"]
	e, d := NewEncoder(48000), NewDecoder()
	packet, out := make([]byte, 0, maxSize), make([]int16, 0, longest)
	at := 0
	if n := testing.AllocsPerRun(200, func() {
		packet = e.Encode(packet[:0], pcm[at:at+FrameSize])
		out = d.Decode(out[:0], packet)
		at = (at + FrameSize) % len(pcm)
	}); n > 0 {
		t.Errorf("a frame allocates %v times", n)
	}
}

// packs makes packets of frames in every way that there is: by their number, of one size or of several, with padding.
func packs(frames [][]byte) (all map[string][]byte) {
	join := func(head ...byte) []byte {
		head[0] |= frames[0][0] &^ 3
		for _, f := range frames {
			head = append(head, f[1:]...)
		}
		return head
	}
	size := func(f []byte) []byte {
		if n := len(f) - 1; n >= 252 {
			return []byte{252 + byte(n&3), byte((n - 252) >> 2)}
		}
		return []byte{byte(len(f) - 1)}
	}
	var sizes []byte
	same := true
	for i, f := range frames {
		if same = same && len(f) == len(frames[0]); i < len(frames)-1 {
			sizes = append(sizes, size(f)...)
		}
	}
	n := byte(len(frames))
	all = map[string][]byte{
		"any sizes":               join(append([]byte{3, n | 128}, sizes...)...),
		"any sizes, with padding": append(join(append([]byte{3, n | 128 | 64, 255, 3}, sizes...)...), make([]byte, 254+3)...),
	}
	if same {
		all["one size"] = join(3, n)
		all["one size, with padding"] = append(join(3, n|64, 2), 0, 0)
	}
	if n == 2 {
		all["two"] = join(append([]byte{2}, sizes...)...)
		if same {
			all["two of a size"] = join(1)
		}
	}
	return all
}

// TestSeveralFrames: a packet of several frames gives what they give one by one, and what pion makes of the whole packet;
// nothing is allocated for it, and a packet that is cut off gives nothing.
func TestSeveralFrames(t *testing.T) {
	pcm := sounds(1)["bursts"]
	for _, rate := range []int{16000, 48000, 120000} {
		for _, n := range []int{2, 3, 6} {
			e := NewEncoder(rate)
			var packets []map[string][]byte
			var single [][]byte
			for at := 0; at+n*FrameSize <= len(pcm); at += n * FrameSize {
				var frames [][]byte
				for i := range n {
					frames = append(frames, e.Encode(nil, pcm[at+i*FrameSize:][:FrameSize]))
				}
				single, packets = append(single, frames...), append(packets, packs(frames))
			}
			var want []int16
			one := NewDecoder()
			for _, p := range single {
				want = one.Decode(want, p)
			}
			for way := range packets[0] {
				d := NewDecoder()
				whole, err := pion.NewDecoderWithOutput(16000, 1)
				if err != nil {
					t.Fatal(err)
				}
				var got, theirs []int16
				buf := make([]int16, longest)
				for i, p := range packets {
					if p[way] == nil { // its frames differ in size
						p[way] = p["any sizes"]
					}
					if got = d.Decode(got, p[way]); i == 3 && len(p[way]) < 2*n {
						t.Fatal("that is too little to be tried")
					}
					k, err := whole.DecodeToInt16(p[way], buf)
					if err != nil {
						t.Fatalf("%d frames, %s: pion: %v", n, way, err)
					}
					theirs = append(theirs, buf[:k]...)
				}
				if !slices.Equal(got, want) || !slices.Equal(got, theirs) {
					t.Errorf("%d frames, %s: %d samples, not the %d of the frames, or the %d of pion", n, way, len(got), len(want), len(theirs))
				}
				p, out := packets[3][way], make([]int16, 0, longest)
				if allocs := testing.AllocsPerRun(100, func() { out = d.Decode(out[:0], p) }); allocs > 0 {
					t.Errorf("%d frames, %s: %v allocations", n, way, allocs)
				}
				if way == "any sizes" || way == "two" {
					for cut := range 2 + n {
						if got := d.Decode(nil, p[:cut]); len(got) > 0 {
							t.Errorf("%d frames, %s: %d samples of its first %d octets", n, way, len(got), cut)
						}
					}
				}
			}
		}
	}
}

// TestDecoderTakesWhatComes: what isn't Opus gives no sound and no panic.
func TestDecoderTakesWhatComes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	d := NewDecoder()
	for range 3000 {
		p := make([]byte, r.IntN(120))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		if n := len(d.Decode(nil, p)); n > longest {
			t.Fatalf("%d samples of %x", n, p)
		}
	}
	if n := len(d.Decode(nil, nil)); n != 0 {
		t.Errorf("%d samples of nothing", n)
	}
}

// snr is the segmental signal to noise ratio, in dB, of sound at 16 kHz and what was made of it, at 48 kHz.
func snr(in, out []int16) float64 {
	best := -100.0
	for late := 117; late < 126; late++ { // samples: what has few frequencies comes at slightly different times
		total, n := 0.0, 0
		for i := 0; i+2*FrameSize <= len(in); i += FrameSize {
			var s, d float64
			for j := i; j < i+FrameSize; j++ {
				s += float64(in[j]) * float64(in[j])
				e := float64(in[j]) - float64(out[3*j+late])
				d += e * e
			}
			if s < FrameSize*100*100 {
				continue
			}
			total += max(-10, min(35, 10*math.Log10(s/(d+1))))
			n++
		}
		best = max(best, total/float64(n))
	}
	return best
}
