package aitest

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/ai"
	"parley/internal/audio"
)

// Synthesizer is an ai.Synthesizer that says every text as a tone of its own, as long as SpeechTime says: Find tells
// which text a piece of audio holds. It speaks at once and completely, unless On or Usually say otherwise. The zero
// value is ready.
type Synthesizer struct {
	// Times makes it report when each word has been said, with the piece that holds the word's end.
	Times bool

	mu     sync.Mutex
	on     map[string]Saying
	usual  Saying
	pitch  map[string]float64 // by text, in Hz
	spoken []Spoken
	live   int
}

// Spoken is a text that a Synthesizer was given.
type Spoken struct {
	ai.Speech
	Text string
}

// Saying is how a Synthesizer says a text.
type Saying struct {
	Delay time.Duration // before the first piece
	Pace  time.Duration // before each further piece, of PieceTime
	// Gate, if set, holds the audio back after its first piece until it is closed.
	Gate <-chan struct{}
	Hang bool  // after what After lets through, nothing more until ctx ends
	Err  error // after what After lets through
	// After is how much audio comes before Hang or Err; 0 means none.
	After time.Duration
}

// PieceTime is how much audio a Synthesizer yields at once; the last piece of a text may be shorter.
const PieceTime = 100 * time.Millisecond

const (
	lowestPitch = 400.0 // Hz
	pitchStep   = 50.0  // far enough apart for 100 ms to tell them from each other
	pitches     = 56    // up to 3150 Hz, what a telephone carries
	loudness    = 8000  // amplitude
)

// SpeechTime is how long a Synthesizer's audio of a text is: 50 ms for each character, in whole frames; none without a
// letter or digit.
func SpeechTime(text string, speed float64) time.Duration {
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return 0
	}
	if speed == 0 {
		speed = 1
	}
	n := math.Round(float64(len([]rune(strings.TrimSpace(text)))) * 2.5 / speed)
	return time.Duration(n) * audio.FrameTime
}

// On sets how a text is said, each time.
func (s *Synthesizer) On(text string, how Saying) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on == nil {
		s.on = map[string]Saying{}
	}
	s.on[text] = how
}

// Usually sets how all other texts are said.
func (s *Synthesizer) Usually(how Saying) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usual = how
}

// Said lists what it was asked to say, in order.
func (s *Synthesizer) Said() []Spoken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spoken)
}

// Live is how many texts are being said.
func (s *Synthesizer) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// Pitch is the tone of a text, in Hz. The first 56 texts, in the order of their requests, have different ones.
func (s *Synthesizer) Pitch(text string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pitchOf(text)
}

func (s *Synthesizer) pitchOf(text string) float64 {
	if s.pitch == nil {
		s.pitch = map[string]float64{}
	}
	p, ok := s.pitch[text]
	if !ok {
		// Neighbours in time are far apart in pitch.
		p = lowestPitch + pitchStep*float64(len(s.pitch)*17%pitches)
		s.pitch[text] = p
	}
	return p
}

// Find returns the text whose tone makes up most of a piece of audio, "" if there is none. 40 ms are enough.
func (s *Synthesizer) Find(pcm []int16, rate audio.Rate) string {
	s.mu.Lock()
	pitch := maps.Clone(s.pitch)
	s.mu.Unlock()
	total := 0.0
	for _, v := range pcm {
		total += float64(v) * float64(v)
	}
	// A tone of amplitude a has the mean energy a²/2. What is weaker than a hundredth of ours is nothing.
	if total < loudness*loudness/200*float64(len(pcm)) {
		return ""
	}
	best, most := "", 0.0
	for text, p := range pitch {
		if e := energyAt(pcm, p/float64(rate)); e > most {
			best, most = text, e
		}
	}
	if most < total/2 {
		return ""
	}
	return best
}

// energyAt is how much of a signal's energy is in the tone of a frequency, in cycles per sample.
func energyAt(pcm []int16, frequency float64) float64 {
	var re, im float64
	for i, v := range pcm {
		sin, cos := math.Sincos(2 * math.Pi * frequency * float64(i))
		re += float64(v) * cos
		im += float64(v) * sin
	}
	if len(pcm) == 0 {
		return 0
	}
	return 2 * (re*re + im*im) / float64(len(pcm))
}

// Speak implements ai.Synthesizer.
func (s *Synthesizer) Speak(ctx context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	for i := 0; ; i++ {
		var text string
		open := false
		if ctx.Err() == nil {
			select {
			case text, open = <-texts:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !open {
			return nil
		}
		var words []ai.Word
		if s.Times {
			words = WordTimes(text, as.Speed)
		}
		said := time.Duration(0)
		err := s.say(ctx, as, text, func(pcm []int16) error {
			said += time.Duration(len(pcm)) * time.Second / time.Duration(as.Rate)
			n := 0
			for n < len(words) && words[n].At <= said {
				n++
			}
			known := words[:n:n]
			words = words[n:]
			return yield(ai.Sound{Text: i, PCM: pcm, Words: known})
		})
		if err == nil {
			err = yield(ai.Sound{Text: i, Words: words, Last: true})
		}
		if err != nil {
			return err
		}
	}
}

// WordTimes says when a Synthesizer has said each word of a text: all its characters take the same time.
func WordTimes(text string, speed float64) []ai.Word {
	all, runes := SpeechTime(text, speed), utf8.RuneCountInString(text)
	if all == 0 {
		return nil
	}
	var words []ai.Word
	n, before := 0, ' '
	for at, r := range text {
		if unicode.IsSpace(r) && !unicode.IsSpace(before) {
			words = append(words, ai.Word{Until: at, At: all * time.Duration(n) / time.Duration(runes)})
		}
		n, before = n+1, r
	}
	return append(words, ai.Word{Until: len(text), At: all})
}

// say says one text.
func (s *Synthesizer) say(ctx context.Context, as ai.Speech, text string, yield func(pcm []int16) error) error {
	s.mu.Lock()
	s.spoken = append(s.spoken, Spoken{as, text})
	s.live++
	how, ok := s.on[text]
	if !ok {
		how = s.usual
	}
	pitch := s.pitchOf(text)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.live--
		s.mu.Unlock()
	}()

	left := SpeechTime(text, as.Speed)
	ends := how.Hang || how.Err != nil
	if ends {
		left = min(left, how.After)
	}
	piece := make([]int16, int(PieceTime*time.Duration(as.Rate)/time.Second))
	at := 0
	for i := 0; left > 0; i++ {
		pause := how.Pace
		if i == 0 {
			pause = how.Delay
		}
		if err := wait(ctx, pause, how.Gate, i); err != nil {
			return err
		}
		n := min(len(piece), int(left*time.Duration(as.Rate)/time.Second))
		for j := range n {
			piece[j] = int16(loudness * math.Sin(2*math.Pi*pitch*float64(at+j)/float64(as.Rate)))
		}
		at += n
		left -= PieceTime
		if err := yield(piece[:n]); err != nil {
			return err
		}
	}
	switch {
	case how.Hang:
		<-ctx.Done()
	case ends && at == 0:
		if err := wait(ctx, how.Delay, nil, 0); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return how.Err
}

// ErrVoice is an error for scripts, of a kind that a retry may fix.
var ErrVoice = &ai.Error{Kind: ai.Unreachable, Err: errors.New("the vendor is not there")}
