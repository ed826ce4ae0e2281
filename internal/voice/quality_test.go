package voice_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/local"
	"parley/internal/testenv"
)

// Tests measure the figures that the design promises: on a few samples in every run, and on all that are held out in `make
// bench GROUP=quality`, which prints the lines that begin with "quality: ". With PARLEY_QUALITY=all it also measures with
// the voices that the rules were made with, and with a third group.

// whole says whether to use all samples.
func whole(testing.TB) bool { return os.Getenv("PARLEY_QUALITY") != "" }

// measured are the groups of voices to measure with.
func measured() []int {
	if os.Getenv("PARLEY_QUALITY") == "all" {
		return []int{0, 1, 2}
	}
	return []int{1}
}

// told prints a figure with its goal. If held, it fails when the figure misses the goal.
func told(t *testing.T, held bool, figure, goal float64, least bool, format string, args ...any) {
	t.Helper()
	met := figure <= goal
	sign := "<="
	if least {
		met, sign = figure >= goal, ">="
	}
	verdict := map[bool]string{true: "met", false: "MISSED"}[met]
	t.Logf("quality: %s (goal %s %.3g %%: %s)", fmt.Sprintf(format, args...), sign, goal, verdict)
	if held && !met {
		t.Errorf("%.1f, the goal is %s %v", figure, sign, goal)
	}
}

// How well the recognizer understands speech in noise: with noise suppression no worse than without.
func TestNoiseSuppressionAndRecognition(t *testing.T) {
	if !whole(t) {
		return // it is a measurement, and takes minutes
	}
	sphinx := recognizer(t)
	texts := []string{
		"please tell me when the bakery opens in the morning", "I want to cancel my appointment for tomorrow",
		"I am calling about my order from last week",
		"my name is John Miller and I live in Boston", "can you tell me how much a room costs",
		"I would like to speak with somebody about my bill",
		"we need a table for four people on Friday evening", "is there a train to the airport after midnight",
		"the package has not arrived and I am not happy about it",
		"could you send me the address of the office", "do you have anything that is less expensive",
		"I have lost my card and I need a new one",
	}
	for _, kind := range []string{"hiss", "cafe", "office", "city"} {
		var wrong [2]int
		words := 0
		for i, text := range texts {
			clean := leveled(say(t, []string{"slt", "awb", "rms", "kal16"}[i%4], text), -14)
			noisy := append(append(make([]int16, wide/2), clean...), make([]int16, wide/2)...)
			add(t, noisy, kind, uint64(i), 0.18*rms(clean)) // 15 dB below
			words += len(strings.Fields(text))
			for suppressed := range 2 {
				pcm := slices.Clone(noisy)
				if d := audio.NewDenoiser(audio.Wide); suppressed == 1 {
					for f := pcm; len(f) >= wide/50; f = f[wide/50:] {
						d.Clean(f[:wide/50])
					}
				}
				wrong[suppressed] += wordErrors(recognized(t, sphinx, pcm), text)
			}
		}
		share := func(n int) float64 { return 100 * float64(n) / float64(words) }
		told(t, false, share(wrong[1]), share(wrong[0]), false,
			"recognition of speech in noise (%s, 15 dB): %.1f %% of %d words wrong with noise suppression, %.1f %% without",
			kind, share(wrong[1]), words, share(wrong[0]))
	}
}

func rms(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(len(pcm)))
}

// add mixes noise with an rms into a sound.
func add(t testing.TB, pcm []int16, kind string, seed uint64, level float64) {
	r := rand.New(rand.NewPCG(seed, 11))
	noise := make([]int16, len(pcm))
	if kind == "hiss" {
		low := 0.0
		for i := range noise {
			low = 0.7*low + r.NormFloat64()
			noise[i] = int16(500 * low)
		}
	} else {
		a, err := audio.NewAmbient(kind, audio.Wide, seed)
		if err != nil {
			t.Fatal(err)
		}
		for at, f := r.IntN(16*wide), noise; len(f) > 0; f = f[min(wide/50, len(f)):] {
			at = a.Mix(f[:min(wide/50, len(f))], at, 4)
		}
	}
	k := level / rms(noise)
	for i, v := range noise {
		pcm[i] = int16(max(min(float64(pcm[i])+k*float64(v), 32767), -32768))
	}
}

// recognizer is the local recognizer.
func recognizer(t *testing.T) *local.Sphinx {
	t.Helper()
	s := local.NewSphinx(local.SphinxConfig{})
	testenv.Nil(t, s.Find())
	t.Cleanup(s.Close)
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// recognized is what a recognizer understands of a sound, at 16 kHz.
func recognized(t testing.TB, s ai.Recognizer, pcm []int16) string {
	t.Helper()
	recognition, err := s.Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Wide})
	if err != nil {
		t.Fatal(err)
	}
	defer recognition.Close()
	recognition.Write(pcm)
	recognition.End()
	for got := range recognition.Transcripts() {
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if got.Final {
			return got.Text
		}
	}
	return ""
}

// wordErrors is how many words are wrong, missing or extra.
func wordErrors(got, want string) int {
	a, b := strings.Fields(strings.ToLower(want)), strings.Fields(strings.ToLower(got))
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, v := range b {
			change := diagonal
			if v != w {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
