package rehearsal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/internal/audio"
	"parley/internal/simulator/phone"
)

// line is the line on which the case's telephone speaks.
func (p *performer) line() (phone.Options, error) {
	o := phone.Options{Types: []int{codecs[p.Sound.Codec]}, Seed: p.Seed, Loss: p.Sound.Loss, Jitter: p.Sound.Jitter,
		Echo: p.Sound.Echo}
	switch n := p.Sound.Noise; n.Place {
	case "":
	case talk:
		o.Noise = leveled(p.sound[talk], ambience-n.SNR)
	default:
		a, err := audio.NewAmbient(places[n.Place], p.rate(), p.Seed)
		if err != nil {
			return o, err
		}
		o.Noise = loop(a, 16*time.Second, p.rate(), math.Pow(10, (ambience-n.SNR-audio.AmbientLevel)/20))
	}
	return o, nil
}

func (c *Case) rate() audio.Rate {
	if c.Sound.Codec == "g722" {
		return audio.Wide
	}
	return audio.Narrow
}

// loop is an ambient sound at a gain.
func loop(a *audio.Ambient, length time.Duration, rate audio.Rate, gain float64) []int16 {
	out := make([]int16, int(length.Seconds()*float64(rate)))
	n := rate.FrameSize()
	for at := 0; at < len(out); at += n {
		a.Mix(out[at:min(at+n, len(out))], at, gain)
	}
	return out
}

// leveled is a sound at another level, in dBFS.
func leveled(pcm []int16, level float64) []int16 {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	gain := math.Pow(10, level/20) * math.MaxInt16 / math.Sqrt(sum/float64(max(1, len(pcm)))+1)
	out := make([]int16, len(pcm))
	for i, s := range pcm {
		out[i] = int16(max(math.MinInt16, min(math.MaxInt16, float64(s)*gain)))
	}
	return out
}

// tone is an answering machine's.
func tone(rate audio.Rate) []int16 {
	const hz, seconds, loudness = 1000, 0.5, 8000
	out := make([]int16, int(seconds*float64(rate)))
	for i := range out {
		out[i] = int16(loudness * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
	}
	return out
}

// behind is what people say who talk behind the caller, one after the other.
var behind = []struct{ voice, words string }{
	{"awb", "So I told her that the train was late again, and that nobody had said a word about it."},
	{"rms", "Well, what did she say? I would have taken the car, as we did last summer."},
	{"awb", "She laughed, of course. Pass me the paper, please. Did you see the pictures of the house?"},
}

// prepare makes all sounds before the call: nobody waits for them in it.
func (p *performer) prepare() error {
	if p.sound == nil {
		p.sound = map[string][]int16{}
	}
	for _, s := range p.Steps {
		for _, part := range s.Parts {
			if p.sound[s.Voice+"\n"+part.Words] != nil {
				continue
			}
			pcm, err := p.voiced(s.Voice, part.Words)
			if err != nil {
				return err
			}
			p.sound[s.Voice+"\n"+part.Words] = pcm
		}
	}
	if p.Sound.Noise.Place != talk || p.sound[talk] != nil {
		return nil
	}
	for _, one := range behind {
		pcm, err := p.voiced(one.voice, one.words)
		if err != nil {
			return err
		}
		p.sound[talk] = append(append(p.sound[talk], pcm...), make([]int16, int(p.rate())/4)...)
	}
	return nil
}

// voiced makes the sound of words.
func (p *performer) voiced(voice, words string) ([]int16, error) {
	if voice == "" {
		voice = p.Caller.Voice
	}
	pcm, err := p.synthesize(p.ctx, voice, p.Caller.Pace, p.rate(), words)
	if err != nil {
		return nil, fmt.Errorf("the caller can't say %q: %w", words, err)
	}
	if pcm = trimmed(pcm); len(pcm) == 0 {
		return nil, errors.New("the caller's voice is silent")
	}
	return pcm, nil
}

// trimmed is a sound without the silence around it.
func trimmed(pcm []int16) []int16 {
	const quiet = 200
	voiced := func(s int16) bool { return s > quiet || s < -quiet }
	from := slices.IndexFunc(pcm, voiced)
	if from < 0 {
		return pcm
	}
	to := len(pcm)
	for !voiced(pcm[to-1]) {
		to--
	}
	return pcm[from:to]
}

// chunk is words that are told when their sound begins.
type chunk struct {
	at    time.Duration
	words string
}

// speech is the sound of a step, where its parts are, and when its words are told.
func (p *performer) speech(s *Step) (pcm []int16, parts []Span, chunks []chunk) {
	rate := int(p.rate())
	length := func(n int) time.Duration { return time.Duration(n) * time.Second / time.Duration(rate) }
	switch s.Kind {
	case Beep:
		return tone(p.rate()), nil, nil
	case Music:
		return loop(audio.NewMusic(p.rate()), s.Wait, p.rate(), 1), nil, nil
	}
	for _, part := range s.Parts {
		pcm = append(pcm, make([]int16, int(part.Pause*time.Duration(rate)/time.Second))...)
		sound, from := p.sound[s.Voice+"\n"+part.Words], length(len(pcm))
		pcm = append(pcm, sound...)
		to := length(len(pcm))
		parts = append(parts, Span{from, to})
		words := strings.Fields(part.Words)
		pieces := min(len(words), max(1, int((to-from)/telling)))
		for k := range pieces {
			chunks = append(chunks, chunk{from + (to-from)*time.Duration(k)/time.Duration(pieces),
				strings.Join(words[len(words)*k/pieces:len(words)*(k+1)/pieces], " ")})
		}
	}
	return pcm, parts, chunks
}
