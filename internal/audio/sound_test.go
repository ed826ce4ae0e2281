package audio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"parley/internal/testenv"
)

// The sounds for the tests: sounds made here, and speech from testdata. The speech was made with flite's voices (as
// their names say) and is stored as G.722.

func speech(t testing.TB, name string, rate Rate) []int16 {
	t.Helper()
	key := fmt.Sprint(name, rate)
	if pcm, ok := spoken[key]; ok {
		return slices.Clone(pcm)
	}
	data, err := os.ReadFile("testdata/" + name + ".g722")
	if err != nil {
		t.Fatal(err)
	}
	pcm := NewDecoder(G722).Decode(nil, data)
	if rate != Wide {
		pcm = resampled(t, pcm, 16000, int(rate))
	}
	spoken[key] = pcm
	return slices.Clone(pcm)
}

// spoken caches what speech has decoded. No test here is parallel.
var spoken = map[string][]int16{}

// resampled drops samples that don't fill a frame.
func resampled(t testing.TB, pcm []int16, from, to int) []int16 {
	t.Helper()
	r, err := NewResampler(from, to)
	if err != nil {
		t.Fatal(err)
	}
	var out []int16
	for n := from / 50; len(pcm) >= n; pcm = pcm[n:] {
		out = r.Resample(out, pcm[:n])
	}
	return out
}

func tone(rate int, hz, amplitude float64, samples int) []int16 {
	pcm := make([]int16, samples)
	for i := range pcm {
		pcm[i] = int16(math.Round(amplitude * math.Sin(2*math.Pi*hz*float64(i)/float64(rate))))
	}
	return pcm
}

func whiteNoise(seed uint64, rms float64, samples int) []int16 {
	r := rand.New(rand.NewPCG(seed, 1))
	pcm := make([]int16, samples)
	for i := range pcm {
		pcm[i] = clip(r.NormFloat64() * rms)
	}
	return pcm
}

// concat joins pieces, with this many samples of silence after each.
func concat(gap int, pieces ...[]int16) (all []int16) {
	for _, p := range pieces {
		all = append(append(all, p...), make([]int16, gap)...)
	}
	return all
}

func log10(x float64) float64 { return math.Log10(x) }

// level is the rms level in dBFS.
func level(pcm []int16) float64 { return Level(pcm) }

// ffmpeg runs ffmpeg on an input; it returns nil where ffmpeg isn't installed.
func ffmpeg(t *testing.T, input []byte, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("ffmpeg")
	if !testenv.Met(t, err) { // the test then uses testdata alone
		return nil
	}
	cmd := exec.Command(path, append([]string{"-v", "error", "-nostdin"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("ffmpeg %v: %v: %s", args, err, errs.String())
	}
	return out.Bytes()
}

func octets(pcm []int16) []byte {
	b := make([]byte, 0, 2*len(pcm))
	for _, s := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// quiet fails when f allocates. Every function that runs once per frame must pass it.
func quiet(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(200, f); n != 0 {
		t.Errorf("%s allocates %v times per frame", name, n)
	}
}

// voices are the pieces of speech in testdata.
var voices = []string{"rms", "rms2", "slt", "slt2", "awb", "awb2", "kal", "kal2"}
