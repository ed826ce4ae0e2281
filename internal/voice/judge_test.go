package voice

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/local"
)

var people = []string{
	"Hello?", "Yes?", "Hello, this is Peter.", "Good morning.", "Hi, who is this?", "Smith speaking.", "Hello, hello?",
	"Acme bakery, this is Sarah, how can I help you?", "Good afternoon, Doctor Miller's office, how may I help you today?", "Yeah, hi.",
	"Thank you for calling Green Garden, you are speaking with Tom, what can I do for you?", "One moment please. Hello?",
}

var machines = []string{
	"Hi, you've reached John Smith. I'm not available right now, please leave a message after the tone.",
	"You have reached the voicemail of five five five, one two three four. Please leave your message after the beep.",
	"Hello, this is Anna. I can't come to the phone at the moment. Leave your name and number and I will call you back as soon as possible.",
	"The person you are calling is not available. Please record your message at the tone. When you have finished recording, you may hang up.",
	"Thank you for calling Acme Plumbing. Our office is closed for the day. Our opening hours are nine to five, Monday to Friday.",
	"Your call has been forwarded to an automatic voice message system. The number you dialled is not available.",
	"Hey, it's Bob, you know what to do. Wait for the beep and tell me what you want, and I may or may not call you back.",
	"We are sorry, nobody can take your call right now. All of our agents are helping other customers and the office will open again tomorrow.",
	"Hi there. You've reached the Miller family. We're out in the garden or at the lake, so leave us a message and have a great day.",
	"Please leave a message.",
}

// sample is a way in which a text is said on a line.
type sample struct {
	pcm   []int16
	text  string
	seed  uint64
	begin time.Duration // of the speech, after the answer
}

// judged plays a sample to a machine that called, and says what it thought and when. Recognition is imitated: a quarter of the words are
// not understood, and each is known 300 ms after it was said.
func judged(s sample) (parley.AnsweredBy, time.Duration) {
	r := rand.New(rand.NewPCG(s.seed, 7))
	m := newMachine(manner{language: "en", interruptible: true, confirm: 300 * time.Millisecond, endpoint: 600 * time.Millisecond, reengage: time.Minute,
		maxSilence: time.Minute, maxDuration: 10 * time.Minute, wait: true, outbound: true})
	vad := audio.NewVAD(audio.Narrow)
	gain, noise := 0.3+0.7*r.Float64(), 20+80*r.Float64()*r.Float64()
	words := strings.Fields(s.text)
	length := time.Duration(len(s.pcm)) * time.Second / 8000
	understood := make([]bool, len(words))
	for i := range words {
		understood[i] = r.IntN(4) > 0
	}
	frame := make([]int16, 160)
	verdict, when := parley.AnsweredUnknown, time.Duration(0)
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
		do := func(e event) {
			e.at = at
			for _, a := range slices.Clone(m.step(e)) {
				switch a.kind {
				case acVerdict:
					verdict, when = parley.AnsweredHuman, at
					if a.machine {
						verdict = parley.AnsweredMachine
					}
				case acOpen:
					segment, heard = m.next-1, ""
				}
			}
		}
		do(event{kind: evVoice, speech: speech, voiced: voiced})
		do(event{kind: evTick})
		for i, w := range words {
			known := s.begin + length*time.Duration(i+1)/time.Duration(len(words)) + 300*time.Millisecond
			if known >= at && known < at+audio.FrameTime && understood[i] {
				heard = strings.TrimSpace(heard + " " + strings.ToLower(strings.Trim(w, ".,?")))
				do(event{kind: evText, n: segment, text: heard, final: !m.open})
			}
		}
		if verdict == parley.AnsweredMachine {
			break
		}
	}
	return verdict, when
}

// People are told from machines: at most 1 of 100 people is lost, 9 of 10 machines are caught, by 2.5 s after the answer in the median. The
// voices are synthetic, and recognition is imitated.
func TestWhoAnswered(t *testing.T) {
	if raced {
		t.Skip("it has one goroutine")
	}
	if _, err := (local.Flite{}).Find(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	voices := []string{"slt", "awb"} // rms and kal16 are those that the rules were made with
	if v := os.Getenv("PARLEY_TEST_VOICES"); v != "" {
		voices = strings.Split(v, ",")
	}
	type line struct {
		text    string
		machine bool
		pcm     []int16
	}
	var lines []*line
	var wg sync.WaitGroup
	room := make(chan struct{}, 2)
	for i, text := range slices.Concat(people, machines) {
		for _, v := range voices[i%len(voices):][:1] {
			l := &line{text: text, machine: i >= len(people)}
			lines = append(lines, l)
			wg.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				err := local.Flite{}.Speak(t.Context(), ai.Speech{Text: text, Voice: v, Language: "en", Rate: audio.Narrow}, func(p []int16) error {
					l.pcm = append(l.pcm, p...)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	var count, wrong [2]int
	var times [2][]time.Duration
	for i := range 660 {
		l := lines[i%len(lines)]
		s := sample{pcm: l.pcm, text: l.text, seed: uint64(i), begin: time.Duration(200+rand.New(rand.NewPCG(uint64(i), 9)).IntN(900)) * time.Millisecond}
		who, when := judged(s)
		k, want := 0, parley.AnsweredHuman
		if l.machine {
			k, want = 1, parley.AnsweredMachine
		}
		count[k]++
		times[k] = append(times[k], when)
		if l.machine && who != want || !l.machine && who == parley.AnsweredMachine {
			wrong[k]++
			t.Logf("%s at %v: %q", who, when, l.text)
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	person, machine := times[0][len(times[0])/2], times[1][len(times[1])/2]
	t.Logf("%d people, %d taken for machines, verdict after %v; %d machines, %d not caught, verdict after %v (median), %v (90 %%)",
		count[0], wrong[0], person, count[1], wrong[1], machine, times[1][len(times[1])*9/10])
	if 100*wrong[0] > count[0] || 10*wrong[1] > count[1] || count[0] < 300 || count[1] < 300 {
		t.Errorf("people %v lost of %v, machines missed %v of %v", wrong[0], count[0], wrong[1], count[1])
	}
	all := slices.Concat(times[0], times[1])
	slices.Sort(all)
	if all[len(all)/2] > 2500*time.Millisecond {
		t.Errorf("the median verdict comes after %v", all[len(all)/2])
	}
}
