package turn

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/provider/local"
	"parley/internal/testenv"
)

// sample is one way to say a text on a line.
type sample struct {
	pcm   []int16
	text  string
	seed  uint64
	begin time.Duration // when the speech begins, after the answer
}

// judged plays a sample to a detector, and returns its verdict and when it came. Recognition is simulated: a quarter
// of the words are not understood, and each word is known 300 ms after it was said.
func judged(s sample) (parley.AnsweredBy, time.Duration) {
	r := rand.New(rand.NewPCG(s.seed, 7))
	m := New(Manner{Language: "en", Interruptible: true, Confirm: 300 * time.Millisecond,
		Endpoint: 600 * time.Millisecond, Reengage: time.Minute,
		MaxSilence: time.Minute, MaxDuration: 10 * time.Minute, Wait: true, Outbound: true})
	vad := audio.NewVAD(audio.Narrow)
	gain, noise := 0.3+0.7*r.Float64(), 20+80*r.Float64()*r.Float64()
	words := strings.Fields(s.text)
	length := time.Duration(len(s.pcm)) * time.Second / 8000
	understood := make([]bool, len(words))
	for i := range words {
		understood[i] = r.IntN(4) > 0
	}
	frame := make([]int16, 160)
	result, when := parley.AnsweredUnknown, time.Duration(0)
	sorted := false // until it is known what machine it is, it may still be a person, and nothing is done about it
	var heard string
	var segment int
	for at := time.Duration(0); at < s.begin+length+5*time.Second; at += audio.FrameTime {
		k := int((at - s.begin) / time.Millisecond * 8)
		for j := range frame {
			v := r.NormFloat64() * noise
			if i := k + j; at >= s.begin && i < len(s.pcm) {
				v += gain * float64(s.pcm[i])
			}
			frame[j] = int16(max(min(v, 32767), -32768))
		}
		speech, voiced := vad.Detect(frame)
		do := func(e Event) {
			e.At = at
			for _, a := range slices.Clone(m.Step(e)) {
				switch a.Kind {
				case AnsweredBy:
					by := parley.AnsweredHuman
					if a.Machine {
						by = parley.AnsweredMachine
					}
					if by != result {
						result, when = by, at
					}
					sorted = a.Machine && a.Who != Nobody
				case OpenRecognizer:
					segment, heard = m.next-1, ""
				}
			}
		}
		do(Event{Kind: Voice, Speech: speech, Voiced: voiced})
		do(Event{Kind: Tick})
		for i, w := range words {
			known := s.begin + length*time.Duration(i+1)/time.Duration(len(words)) + 300*time.Millisecond
			if known >= at && known < at+audio.FrameTime && understood[i] {
				heard = strings.TrimSpace(heard + " " + strings.ToLower(strings.Trim(w, ".,?")))
				do(Event{Kind: Text, N: segment, Text: heard, Final: !m.open})
			}
		}
		if sorted {
			break
		}
	}
	return result, when
}

// People are told apart from machines: at most 1 of 100 people is lost, 9 of 10 machines are caught, and the median
// result comes within 2.5 s of the answer. The voices are synthetic, and recognition is simulated.
func TestWhoAnswered(t *testing.T) {
	for _, find := range []func() (string, error){(local.Flite{}).Find, (local.ESpeak{}).Find} {
		_, err := find()
		testenv.Nil(t, err)
	}
	held := []string{"slt", "awb", "en-gb+m3", "en-us+f4"}
	judgement(t, "other voices", slices.Concat(people[0], people[1]), slices.Concat(machines[0], machines[1]), held,
		true)
	if os.Getenv("PARLEY_QUALITY") == "all" {
		judgement(t, "tuned on", people[0], machines[0], []string{"rms", "kal16"}, false)
		judgement(t, "other voices and words", people[1], machines[1], held, false)
	}
}

// judgement tests the rules with greetings in some voices.
func judgement(t *testing.T, name string, people, machines, voices []string, bound bool) {
	type line struct {
		text    string
		machine bool
		pcm     []int16
	}
	var lines [2][]*line
	var wg sync.WaitGroup
	room := make(chan struct{}, 2)
	for k, texts := range [2][]string{people, machines} {
		for i, text := range texts {
			for j := range 2 {
				voice := voices[(i+j*len(voices)/2)%len(voices)]
				l := &line{text: text, machine: k == 1}
				lines[k] = append(lines[k], l)
				if k == 0 && len(strings.Fields(text)) < 5 { // two of three people say little
					lines[k] = append(lines[k], l, l)
				}
				wg.Go(func() {
					room <- struct{}{}
					defer func() { <-room }()
					var speaker ai.Plain = local.Flite{}
					if strings.Contains(voice, "+") {
						speaker = local.ESpeak{}
					}
					err := speaker.Say(t.Context(),
						ai.Speech{Voice: voice, Language: "en", Rate: audio.Narrow}, text, func(p []int16) error {
							l.pcm = append(l.pcm, p...)
							return nil
						})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	const each = 330
	var wrong [2]int
	var times [2][]time.Duration
	for i := range 2 * each {
		k := i % 2
		l := lines[k][i/2%len(lines[k])]
		s := sample{pcm: l.pcm, text: l.text, seed: uint64(i),
			begin: time.Duration(200+rand.New(rand.NewPCG(uint64(i), 9)).IntN(900)) * time.Millisecond}
		who, when := judged(s)
		if who == parley.AnsweredUnknown {
			when = time.Minute
		}
		times[k] = append(times[k], when)
		if l.machine != (who == parley.AnsweredMachine) && (l.machine || who != parley.AnsweredUnknown) {
			wrong[k]++
			t.Logf("%s: %s at %v, begun at %v: %q", name, who, when, s.begin, l.text)
		}
	}
	for k, what := range []string{"people lost, of %d", "machines caught, of %d"} {
		slices.Sort(times[k])
		share, goal, met := 100*float64(wrong[k])/float64(each), "<= 1", 100*wrong[k] <= each
		if k == 1 {
			share, goal, met = 100-share, ">= 90", 10*wrong[k] <= each
		}
		median, late := times[k][each/2], times[k][each*9/10]
		t.Logf("quality: %s: voicemail: %s: %.1f %% (goal %s %%: %s)", name, fmt.Sprintf(what, each), share, goal,
			result(met))
		t.Logf("quality: %s: voicemail: the median verdict on these comes %v after the answer, 9 of 10 within %v",
			name, median, late)
		if bound && !met {
			t.Errorf("%s: %.1f %%", fmt.Sprintf(what, each), share)
		}
	}
	all := slices.Concat(times[0], times[1])
	slices.Sort(all)
	t.Logf("quality: %s: voicemail: the median verdict comes %v after the answer (goal <= 2.5s: %s)", name,
		all[each], result(all[each] <= 2500*time.Millisecond))
	if bound && all[each] > 2500*time.Millisecond {
		t.Errorf("the median verdict comes after %v", all[each])
	}
}

func result(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}
