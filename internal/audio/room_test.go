package audio

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// room is the response of a room, from a loudspeaker to a microphone, at 16 kHz, from its strongest sound on.
type room struct {
	name string
	h    []float64
}

// measuredRooms reads those that are wanted from the directory that PARLEY_ROOMS names: testdata/rooms.tsv lists them. It
// holds the repositories of the list, each as owner/name. What is missing there is left out; none at all, and the test is
// skipped.
func measuredRooms(t *testing.T, use string) (all []room) {
	t.Helper()
	dir := os.Getenv("PARLEY_ROOMS")
	if dir == "" {
		t.Log("quality: echo in real rooms: not measured, as PARLEY_ROOMS names no directory with their responses")
		t.Skip("PARLEY_ROOMS names no directory with the responses of testdata/rooms.tsv")
	}
	list, err := os.ReadFile("testdata/rooms.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(list)) {
		c := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		if c[0] != use {
			continue
		}
		raw, err := exec.Command("ffmpeg", "-v", "error", "-nostdin", "-i", filepath.Join(dir, c[2]), "-ar", "16000", "-ac", "1",
			"-f", "f32le", "-").Output()
		if err != nil {
			t.Logf("%s: %v", c[2], err)
			continue
		}
		h := make([]float64, len(raw)/4)
		strongest := 0
		for i := range h {
			if h[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))); math.Abs(h[i]) > math.Abs(h[strongest]) {
				strongest = i
			}
		}
		all = append(all, room{c[1], h[max(strongest-16000*4/1000, 0):]})
	}
	if len(all) == 0 {
		t.Fatalf("no response of testdata/rooms.tsv is below %s", dir)
	}
	return all
}

// madeRooms have the decay of rooms: some early sounds, and a tail that is fainter by 60 dB after so many seconds, whose
// high sounds die away in half the time.
func madeRooms(seed uint64) (all []room) {
	for i, decay := range []float64{0.3, 0.5, 0.8} {
		r := rand.New(rand.NewPCG(seed+uint64(i), 11))
		h := make([]float64, int(16000*decay))
		low := 0.0
		for j := range h {
			at := float64(j) / 16000
			x := r.NormFloat64()
			low += 0.4 * (x - low)
			h[j] = 0.06 * (low*math.Exp(-6.9*at/decay) + (x-low)*math.Exp(-6.9*at/(decay/2)))
			if j < 320 && r.IntN(40) == 0 {
				h[j] += 0.5 * math.Exp(-60*at) * r.NormFloat64()
			}
		}
		h[0] = 1
		all = append(all, room{fmt.Sprintf("made, %.1f s", decay), h})
	}
	return all
}

// at is the response at a rate: at 8 kHz by the mean of neighbours, which is good enough as a filter for a response.
func (r room) at(rate Rate) []float64 {
	if rate == Wide {
		return r.h
	}
	low := make([]float64, len(r.h)/2)
	for i := range low {
		if low[i] = r.h[2*i]; i > 0 {
			low[i] = 0.5*r.h[2*i] + 0.25*(r.h[2*i-1]+r.h[2*i+1])
		}
	}
	return low
}

// loudAs makes a sound so many dB louder than another.
func loudAs(x []float64, than []int16, dB float64) {
	have, want := 1e-9, 1e-9
	for i, v := range than {
		have, want = have+x[i]*x[i], want+float64(v)*float64(v)
	}
	for i, k := 0, math.Sqrt(want/have)*Gain(dB); i < len(x); i++ {
		x[i] *= k
	}
}

// tail is how loud a response is from a time on, in dB of all of it.
func (r room) tail(from float64) float64 {
	all, late := 1e-12, 1e-12
	for i, v := range r.h {
		if all += v * v; float64(i) >= from*16000 {
			late += v * v
		}
	}
	return 10 * math.Log10(late/all)
}

// convolved is what comes back by a long path.
func convolved(sent []float64, h []float64, delay int) []float64 {
	const n = 32768
	f := newFFT(n)
	x, a, b := make([]float32, n), make([]complex64, n/2+1), make([]complex64, n/2+1)
	out := make([]float64, len(sent))
	for part := 0; part < len(h); part += n / 2 {
		clear(x)
		for i, v := range h[part:min(part+n/2, len(h))] {
			x[i] = float32(v)
		}
		f.forward(b, x)
		for from := 0; from < len(sent); from += n / 2 {
			clear(x)
			for i, v := range sent[from:min(from+n/2, len(sent))] {
				x[i] = float32(v)
			}
			f.forward(a, x)
			for k := range a {
				a[k] *= b[k]
			}
			f.inverse(x, a)
			for i, v := range x {
				if at := from + part + delay + i; at < len(out) {
					out[at] += float64(v)
				}
			}
		}
	}
	return out
}

// played is what a loudspeaker makes of a sound: a cheap one is not linear where the sound is loud.
func played(sent []int16, distorts bool) []float64 {
	out := make([]float64, len(sent))
	for i, v := range sent {
		if out[i] = float64(v); distorts {
			const most = 6500 // -14 dBFS
			x := float64(v) / most
			out[i] = most * (math.Tanh(x+0.1) - math.Tanh(0.1)) // by its odd and its even harmonics
		}
	}
	return out
}

// roomFigures are those of many calls.
type roomFigures struct {
	early, late      []float64 // dB less in the first second, and after that
	calls, silenced  int       // of them, replies that the echo silences
	answered         int       // or that it would have been understood as a turn in
	frames, speaking int       // in which nobody speaks, and of them taken for speech
	missed, loudest  int       // callers over it, and of them over one at -6 dB
	waits            []int     // ms
	changed          []float64 // dB
}

// answeredFrames of speech, 300 ms, are as long as an interruption must be.
const answeredFrames = 15

func (r *roomFigures) add(l *echoLine, first, loud float64) (silenced bool) {
	r.calls++
	r.early = append(r.early, l.less(first, first+1))
	r.late = append(r.late, l.less(first+1, 5.8))
	until := int(5.8 * 50)
	if silenced = slices.Contains(l.silences[:until], true); silenced {
		r.silenced++
	}
	run, quiet, answered := 0, 0, false
	for _, yes := range l.spoke[:until] {
		r.frames++
		if quiet++; yes {
			r.speaking++
			run, quiet = run+1, 0
		}
		if quiet > 10 {
			run = 0
		}
		answered = answered || run >= answeredFrames
	}
	if answered {
		r.answered++
	}
	begins, n := 300, l.rate.FrameSize()
	for level(l.near[begins*n:(begins+1)*n]) < -45 {
		begins++
	}
	wait := 20 * (slices.Index(l.silences[begins:], true) + 1)
	if wait <= 0 || wait > 300 {
		if r.missed++; loud >= -6 {
			r.loudest++
		}
	} else {
		r.waits = append(r.waits, wait)
	}
	all, _ := l.changed(6.2)
	r.changed = append(r.changed, math.Abs(all))
	return silenced
}

// below is what a share of some values is below.
func below[T int | float64](all []T, q float64) T {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

func (r *roomFigures) String() string {
	return fmt.Sprintf("%d calls: fainter in its first second by %.1f dB in the middle, %.1f in nine of ten, after that %.1f and %.1f "+
		"(goal >= 20); %.2f %% of frames taken for speech, %d replies silenced (goal 0), %d echoes that would be answered (goal 0); "+
		"callers over it: %d missed, %d of them at -6 dB (goal 0), heard after %d ms in the middle, %d in 95 of 100 (goal <= 150), "+
		"changed by %.2f dB in the middle, %.2f at most",
		r.calls, below(r.early, 0.5), below(r.early, 0.1), below(r.late, 0.5), below(r.late, 0.1),
		100*float64(r.speaking)/float64(r.frames), r.silenced, r.answered, r.missed, r.loudest, below(r.waits, 0.5),
		below(r.waits, 0.95), below(r.changed, 0.5), below(r.changed, 1))
}

// calls are made in rooms: three delays, three levels, both rates, and pairs of voices.
func roomCalls(t *testing.T, all []room, distorts bool, speakers [][3][]int16) *roomFigures {
	sum := &roomFigures{}
	for _, place := range all {
		each := &roomFigures{}
		for _, rate := range []Rate{Narrow, Wide} {
			for s, who := range speakers {
				length := 10 * int(rate)
				for i := range who {
					if rate == Narrow {
						who[i] = resampled(t, who[i], 16000, 8000)
					}
				}
				talk := scaled(concat(int(rate)/4, make([]int16, int(rate)/2), who[0], who[1]), rate, -20)
				talk = slices.Concat(talk, talk, talk)[:length]
				caller := scaled(concat(0, make([]int16, 6*int(rate)), who[2], make([]int16, length))[:length], rate, -20)
				sound := played(talk, distorts)
				for i, delay := range []float64{0.03, 0.12, 0.3} {
					for j, loud := range []float64{-6, -12, -18} {
						l := &echoLine{rate: rate, sent: talk, near: caller}
						l.echo = convolved(sound, place.at(rate), int(delay*float64(rate)))
						loudAs(l.echo, talk, loud)
						l.run(uint64(j % 2 * (i + 1)))
						sum.add(l, 0.5+delay, loud)
						if each.add(l, 0.5+delay, loud) {
							t.Logf("%s at %d Hz, voices %d, %v s late, %v dB: silenced in frame %d", place.name, rate, s, delay, loud,
								slices.Index(l.silences, true))
						}
					}
				}
			}
		}
		t.Logf("%s, %.1f dB after 80 ms: %v", place.name, place.tail(0.08), each)
	}
	return sum
}

// talkers are two voices of an assistant and one of a caller, at 16 kHz: made ones, or real ones where PARLEY_RECORDINGS
// names a directory with them.
func talkers(t *testing.T, use string) (all [][3][]int16, what string) {
	made := [][3]string{{"awb2", "slt", "kal"}, {"slt2", "rms2", "awb"}}
	if use == "choose" {
		made = [][3]string{{"rms", "kal", "slt"}}
	}
	if os.Getenv("PARLEY_RECORDINGS") == "" {
		for _, names := range made {
			all = append(all, [3][]int16{speech(t, names[0], Wide), speech(t, names[1], Wide), speech(t, names[2], Wide)})
		}
		return all, "made voices"
	}
	who, voices := map[string]bool{}, [][]int16(nil)
	for _, r := range recordings(t, use, "speech") { // one recording of each reader
		if !who[r.who] && still(r.pcm) && len(r.pcm) > 4*16000 {
			who[r.who] = true
			voices = append(voices, alone(r.pcm, Wide))
		}
	}
	for i := 0; i+3 <= len(voices) && len(all) < 2; i += 3 {
		all = append(all, [3][]int16{voices[i], voices[i+1], voices[i+2]})
	}
	return all, fmt.Sprintf("%d real voices", 3*len(all))
}

// TestEchoRooms measures with the responses of rooms that were measured. PARLEY_QUALITY=all adds those by which it was made.
func TestEchoRooms(t *testing.T) {
	uses := []string{"held"}
	if os.Getenv("PARLEY_QUALITY") == "all" {
		uses = append(uses, "choose")
	}
	for _, use := range uses {
		all := measuredRooms(t, use)
		speakers, what := talkers(t, use)
		for _, distorts := range []bool{false, true} {
			t.Logf("quality: echo in %d real rooms, %s, %s, loudspeaker distorts %v: %v", len(all), use, what, distorts,
				roomCalls(t, all, distorts, speakers))
		}
	}
}

// TestEchoTails: the tail of a room is taken out, too, and a caller over it is heard.
func TestEchoTails(t *testing.T) {
	who := [3][]int16{speech(t, "rms", Wide), speech(t, "kal", Wide), speech(t, "slt", Wide)}
	f := roomCalls(t, madeRooms(1), false, [][3][]int16{who})
	t.Logf("quality: echo in 3 made rooms: %v", f)
	if below(f.late, 0.1) < 20 || f.silenced > 2 || f.answered > 2 || f.missed > 2 {
		t.Errorf("in made rooms: %v", f)
	}
}
