package turn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
	"parley/internal/provider/local"
	"parley/internal/testenv"
)

// code is a number that somebody tells in groups, on a line with noise.
type code struct {
	seed     uint64
	language string
	digits   string
	groups   []string // as they are said
	sounds   [][]int16
	pauses   []time.Duration // before each
	noise    *audio.Ambient
	snr      float64
}

var coders = map[string]struct{ question, voice, sorry string }{
	"en": {"Please tell me your %s-digit code.", "slt awb en-us+m3 en-gb+f4", "no"},
	"de": {"Wie lautet Ihre %sstellige Kundennummer?", "de+m2 de+f3", "nein"},
	"fr": {"Quel est votre code à %s chiffres ?", "fr+f1 fr+m1", "non pardon"},
	"es": {"Dígame el código de %s dígitos.", "es+m7 es+f2", "no perdón"},
	"it": {"Mi dica il codice di %s cifre.", "it+f2 it+m3", "no scusi"},
	"nl": {"Wat is uw %scijferige code?", "nl+f5 nl+m2", "nee sorry"},
}

// coded draws a code: 4 to 10 digits in groups of 1 to 4, told digit by digit or in pairs, every fifth with a group that
// is taken back. The pauses are as long as people's: half of them are longer than 420 ms, one in ten longer than 1.9 s.
func coded(seed uint64) *code {
	r := rand.New(rand.NewPCG(seed, 21))
	names := []string{"en", "en", "de", "fr", "es", "it", "nl"}
	c := &code{seed: seed, language: names[r.IntN(len(names))], snr: 15 * r.Float64()}
	numerals := lang.Of(c.language).Dictation.Numerals
	say := func(n int) string { return strings.Split(numerals[n], "|")[0] }
	length := 4 + r.IntN(7)
	for len(c.digits) < length {
		var words []string
		group := ""
		for n := min(1+r.IntN(4), length-len(c.digits)); len(group) < n; {
			if d := 10 + r.IntN(90); n-len(group) >= 2 && r.IntN(3) == 0 && d%10 != 0 {
				words, group = append(words, say(d)), group+fmt.Sprint(d)
			} else {
				d %= 10
				words, group = append(words, say(d)), group+fmt.Sprint(d)
			}
		}
		if r.IntN(5) == 0 && len(group) == 1 { // they say another digit first
			words = append([]string{say(r.IntN(10)), coders[c.language].sorry}, words...)
		}
		c.digits += group
		c.groups = append(c.groups, strings.Join(words, " "))
		pause := 420 * math.Exp(1.18*r.NormFloat64())
		c.pauses = append(c.pauses, time.Duration(min(max(pause, 150), 2600))*time.Millisecond)
	}
	return c
}

// record has the groups said, and finds a noise.
func (c *code) record(t *testing.T) {
	r := rand.New(rand.NewPCG(c.seed, 22))
	voices := strings.Fields(coders[c.language].voice)
	voice := voices[r.IntN(len(voices))]
	for _, text := range c.groups {
		var speaker ai.Plain = local.Flite{}
		if strings.Contains(voice, "+") {
			speaker = local.ESpeak{}
		}
		var pcm []int16
		err := speaker.Say(t.Context(), ai.Speech{Voice: voice, Language: c.language, Rate: audio.Narrow}, text,
			func(p []int16) error {
				pcm = append(pcm, p...)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		silent := func(v int16) bool { return v > -300 && v < 300 }
		for len(pcm) > 0 && silent(pcm[0]) {
			pcm = pcm[1:]
		}
		for len(pcm) > 0 && silent(pcm[len(pcm)-1]) {
			pcm = pcm[:len(pcm)-1]
		}
		c.sounds = append(c.sounds, pcm)
	}
	places := []string{"office", "city", "cafe", "crowded_room"}
	var err error
	if c.noise, err = audio.NewAmbient(places[r.IntN(len(places))], audio.Narrow, c.seed); err != nil {
		t.Fatal(err)
	}
}

// line is all of the code's sound, and when each group begins and ends in it.
func (c *code) line() (pcm []int16, ends []time.Duration) {
	r := rand.New(rand.NewPCG(c.seed, 23))
	energy, n := 0.0, 0
	for i, s := range c.sounds {
		pcm = append(pcm, make([]int16, 8*int(c.pauses[i].Milliseconds()))...)
		pcm = append(pcm, s...)
		ends = append(ends, time.Duration(len(pcm))*time.Second/8000)
		for _, v := range s {
			if v > 300 || v < -300 {
				energy, n = energy+float64(v)*float64(v), n+1
			}
		}
	}
	pcm = append(pcm, make([]int16, 6*8000)...)
	gain := math.Sqrt(energy/float64(max(n, 1))) / 32768 / audio.Gain(audio.AmbientLevel+c.snr)
	for at, f := r.IntN(8*8000), pcm; len(f) >= 160; f = f[160:] {
		at = c.noise.Mix(f[:160], at, gain)
	}
	return pcm, ends
}

// telling is what became of a code that was told.
type telling struct {
	text, digits string        // what the model was given, in all turns
	cut          bool          // a turn was taken for over while there was more to say
	unheard      bool          // the detector missed the end of it in the noise
	delay        time.Duration // from the end of the last group to the end of the turn
}

// hold tells the code to a machine. Recognition is imitated: one word in twenty is lost, and the text of an utterance
// is there 300 ms after its end.
func (c *code) hold(t *testing.T, form bool) (got telling) {
	question := "Go on, please."
	if n := len(c.digits); form {
		question = fmt.Sprintf(coders[c.language].question, strings.Split(lang.Of(c.language).Dictation.Numerals[n], "|")[0])
	}
	a, v, r := asked(c.language, question, false), audio.NewVAD(audio.Narrow), rand.New(rand.NewPCG(c.seed, 24))
	pcm, ends := c.line()
	begun, next, shut, turns := a.at, 0, 0, 0
	type late struct {
		n    int
		at   time.Duration
		text string
	}
	var texts []late
	for i := 0; i+160 <= len(pcm); i += 160 {
		speech, voiced := v.Detect(pcm[i : i+160])
		a.at = begun + time.Duration(i)*time.Second/8000
		for len(texts) > 0 && a.at >= texts[0].at {
			a.step(Event{Kind: Text, N: texts[0].n, Text: texts[0].text, Final: true})
			texts = texts[1:]
		}
		a.step(Event{Kind: Voice, Speech: speech, Voiced: voiced, Sure: v.Sure(), Silences: v.Sure()})
		a.step(Event{Kind: Tick})
		if n := len(a.turns); n > turns {
			turns, got.delay = n, a.at-begun-ends[len(ends)-1]
			got.cut = got.cut || got.delay < 0
		}
		for ; shut < a.shut; shut++ { // what was said to its end is part of this utterance
			var words []string
			for ; next < len(ends) && a.at-begun >= ends[next]-400*time.Millisecond; next++ {
				for _, w := range strings.Fields(c.groups[next]) {
					if r.IntN(20) > 0 {
						words = append(words, w)
					}
				}
			}
			texts = append(texts, late{shut, a.at + 300*time.Millisecond, strings.Join(words, " ")})
		}
	}
	a.wait(4 * time.Second)
	got.text, got.digits, got.unheard = strings.Join(a.turns, " "), strings.Join(a.held, ""), next < len(ends)
	return got
}

// TestCodes: numbers that are told in groups in noise 0 to 15 dB below, in six languages' synthetic voices, are not cut
// off in the middle, and more are right than in the recognizer's text.
func TestCodes(t *testing.T) {
	for _, find := range []func() (string, error){(local.Flite{}).Find, (local.ESpeak{}).Find} {
		_, err := find()
		testenv.Nil(t, err)
	}
	count := 12
	if os.Getenv("PARLEY_QUALITY") != "" {
		count = 500
	}
	cut, plainCut, unheard, right, raw := 0, 0, 0, 0, 0
	var delays []time.Duration
	for i := range count {
		c := coded(uint64(i))
		c.record(t)
		got, plain := c.hold(t, true), c.hold(t, false)
		delays = append(delays, got.delay)
		if plain.cut {
			plainCut++
		}
		if got.digits == c.digits {
			right++
		} else {
			t.Logf("%s %.0f dB %q: %q, not %q", c.language, c.snr, got.text, got.digits, c.digits)
		}
		if plainly(got.text, c.language) == c.digits {
			raw++
		}
		if got.cut {
			cut++
			t.Logf("%s %.0f dB %q (%v): cut off: %q", c.language, c.snr, c.groups, c.pauses, got.text)
		}
		if got.unheard {
			unheard++
		}
	}
	slices.Sort(delays)
	t.Logf("quality: %d numbers told in groups by synthetic voices in six languages at 0 to 15 dB, "+
		"one word in twenty lost (recognition is imitated): %d cut off (goal 0), by silence alone %d; of %d the end was lost in the noise; "+
		"%.1f %% right, and %.1f %% of the recognizer's texts",
		count, cut, plainCut, unheard, 100*float64(right)/float64(count), 100*float64(raw)/float64(count))
	t.Logf("quality: their turns are over %v (median) and %v (nine of ten) after the last of it", delays[count/2], delays[count*9/10])
	if cut*100 > count || unheard > count/20 || right < raw {
		t.Errorf("%d of %d cut off, the end of %d lost, %d right, %d in the text", cut, count, unheard, right, raw)
	}
}

// plainly is the digits of a text, one word after the other.
func plainly(text, language string) (digits string) {
	for _, w := range strings.Fields(text) {
		d, _ := lang.Digits(w, language)
		digits += d
	}
	return digits
}
