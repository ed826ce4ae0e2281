//go:build train

package audio

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/lang"
)

// sounder makes the network of words. It learns from sounds on a line that was silent, or on which somebody spoke before:
// words of listening of internal/lang's catalog and hums, noises, and parts of sentences, by voices of eSpeak NG and
// flite's rms and kal, and parts of what people of testdata/real.tsv say. The voices of TestOverlaps are kept for it, but
// for rms and kal; so are its sentences and the noises that it makes. PARLEY_TRAIN_MINUTES says how long (20).
type sounder struct {
	*trainer
	sayings []saying
	checked []lesson2
	shelf   []lesson2
}

// saying is something that a voice says.
type saying struct {
	voice string
	means bool // it has words that mean something
	pcm   map[Rate][]int16
}

// lesson2 is a sound, as the network hears it.
type lesson2 struct {
	x     [][vadBasic]float32
	means bool
}

var humVoices = strings.Fields("m2 m5 m6 m8 f5 Alicia Andrea Andy Annie Denis Diogo Gene Henrique Jacky Lee Marco Mario Michael " +
	"Mike adam anika antonio aunty belinda benjamin boris caleb david ed edward grandma grandpa gustave iven john linda marcelo " +
	"max michel miguel norbert pablo paul pedro quincy rob robert sandro shelby steph travis victor zac klatt klatt2 klatt3")

// What hums is written as phonemes, as eSpeak NG spells words like "mhm".
var hums = []string{"[[m'h@m]]", "[[m:'hm]]", "[[mh'm:]]", "[[m'hm]]", "[[m:]]", "[[m]]", "[[hm:]]", "[[m:m:]]", "[[@h'V]]", "[[@h'@]]",
	"[[Vh'V]]", "[[V'hV:]]", "[[a:h'a:]]", "[[@:]]", "[[V:]]", "[[m'h@ m'h@m]]", "[[n'h@n]]", "[[m: m'hm]]", "[[o:]]", "[[O:h]]", "[[hVh]]"}

var fliteHums = []string{"m m m", "m hh ah m", "m hh ax m", "hh m m", "ah hh ah", "ax hh ah", "m m", "ah hh ax", "aa hh aa", "ow", "aa"}

// What is asked and told in calls. Parts of these interrupt: none is one of TestOverlaps.
var askings = map[string][]string{
	"en": {"hold on a second I need to find my card", "no no that's not right at all", "sorry but I already paid for this", "what time do you close on Saturdays",
		"is there anything cheaper than that", "how much is the delivery", "can you say that again please", "please slow down a little", "wait wait wait", "hey listen to me",
		"but I ordered the blue one", "I can't hear you very well", "actually I would rather come on Thursday", "could I get a receipt for that", "when will it be delivered",
		"who am I speaking with", "my order number starts with seven", "don't do that please", "let me think about it for a moment", "I would like to change my booking",
		"why is it so expensive", "where exactly are you located", "does that include the tax", "just give me the address", "stop it", "stop please", "stop talking",
		"no thanks", "no", "nope", "wait", "stop", "hello are you there", "pardon", "what", "what did you say", "excuse me sir", "one moment please", "just a second",
		"hang on a minute", "hold on", "can we go back to the first one", "I think there is a mistake", "that was last week", "tell me about the other offer", "which one is better",
		"I have another appointment then", "put me through to your manager", "I want my money back", "cancel it please", "forget about it", "do you take credit cards",
		"is it far from the station", "we are five people not four", "she lives in Manchester", "my name is Peter Walker", "it's about my bill", "you already told me that",
		"never heard of it", "the second one please", "not today", "and what about Sunday", "how do I get there", "that's too late for me", "I don't understand", "I don't want this",
		"why", "when", "how come", "tomorrow", "after six o'clock", "more slowly please", "shut up", "be quiet for a second", "okay but I have a question", "yes but not on Monday",
		"yeah well that is not what I asked for", "right so how does that work", "okay stop", "mm no", "oh wait a second", "sure but what about the price", "I see but I still need it today"},
	"de": {"warten Sie kurz", "Moment bitte", "stopp", "halt", "nein", "nein danke", "wie viel macht das zusammen", "wann haben Sie geöffnet", "das habe ich schon bezahlt",
		"ich verstehe Sie ganz schlecht", "noch einmal bitte", "entschuldigung was haben Sie gesagt", "geht das auch am Dienstag", "ich möchte lieber stornieren",
		"wo finde ich Sie denn", "gibt es etwas Günstigeres", "verbinden Sie mich mit jemandem", "ja aber das ist zu spät", "okay und was ist mit der Rechnung", "warum denn",
		"sprechen Sie bitte langsamer", "meine Nummer ist eine andere", "können wir das später machen", "hören Sie mir mal zu"},
	"fr": {"attendez", "un instant", "non", "non merci", "stop", "c'est trop cher", "à quelle heure vous fermez", "je ne comprends pas", "pouvez-vous parler plus lentement",
		"excusez-moi", "je voudrais annuler", "où êtes-vous exactement", "et pour samedi", "oui mais pas demain", "d'accord mais combien", "ce n'est pas mon adresse", "pourquoi",
		"j'ai déjà payé", "passez-moi quelqu'un", "quel est le prix"},
	"es": {"espera un momento", "no gracias", "no", "alto", "cuándo abren", "es demasiado caro", "no le entiendo", "más despacio por favor", "perdone", "quiero cancelar",
		"dónde están ustedes", "y el domingo", "sí pero mañana no puedo", "vale pero cuánto es", "esa no es mi dirección", "por qué", "ya lo he pagado", "páseme con alguien",
		"qué ha dicho", "otra vez por favor"},
	"it": {"aspetta un attimo", "no grazie", "no", "basta", "quando aprite", "è troppo caro", "non la capisco", "più piano per favore", "mi scusi", "vorrei annullare",
		"dove siete", "e domenica", "sì ma domani non posso", "va bene ma quanto viene", "non è il mio indirizzo", "perché", "ho già pagato", "mi passi qualcuno", "cosa ha detto"},
	"nl": {"wacht eens", "nee", "nee bedankt", "stop", "hoe laat gaan jullie open", "dat is te duur", "ik versta u niet", "wat langzamer graag", "sorry", "ik wil afzeggen",
		"waar zitten jullie", "en zondag", "ja maar morgen kan ik niet", "oké maar hoeveel is het", "dat is mijn adres niet", "waarom", "ik heb al betaald", "wat zei u"},
	"pl": {"chwileczkę", "nie", "nie dziękuję", "stop", "o której otwieracie", "to za drogo", "nie rozumiem pana", "wolniej proszę", "przepraszam", "chcę odwołać",
		"gdzie państwo są", "a w niedzielę", "tak ale jutro nie mogę", "dobrze ale ile", "to nie mój adres", "dlaczego", "już zapłaciłem", "co pan powiedział"},
}

func TestWordsTrain(t *testing.T) {
	s := &sounder{trainer: &trainer{t: t, rand: rand.New(rand.NewPCG(2, 1)), people: map[Rate][][]int16{},
		noises: map[string]map[Rate][][]int16{"clip": {}, "typing": {}}}}
	for _, r := range recordings(t, "train", "speech", "clip", "typing") {
		if r.kind != "speech" {
			s.add(s.noises[r.kind], r.pcm)
		} else if still(r.pcm) {
			s.add(s.people, alone(r.pcm, Wide))
		}
	}
	s.record(8000)
	fmt.Printf("%d recordings of people, %d sayings\n", len(s.people[Wide]), len(s.sayings))
	for range 1500 {
		s.checked = append(s.checked, s.sound(true)...)
	}
	s.learn()
}

// draw is a text for a voice, of a language, and whether it means something.
func (s *sounder) draw(language string) (text string, means bool) {
	r, l := s.rand, slices.Sorted(maps.Keys(lang.Of(language).Words.Listening))
	l = slices.DeleteFunc(l, func(text string) bool { return !lang.IsNod(text, language) }) // no hums: those are spelled
	if means = r.IntN(2) == 0; means {
		all := askings[language]
		words := strings.Fields(all[r.IntN(len(all))])
		if r.IntN(6) == 0 {
			words = strings.Fields(sentences[language])
		}
		if len(words) > 2 && r.IntN(2) == 0 || len(words) > 9 {
			words = words[r.IntN(len(words)-1):]
			words = words[:2+r.IntN(min(len(words), 8)-1)]
		}
		if text = strings.Trim(strings.Join(words, " "), ".,?"); !lang.IsBackchannel(text, language, false) {
			return text, true
		}
	}
	if text = l[r.IntN(len(l))]; r.IntN(3) == 0 && language == "en" || text == "no" || r.IntN(12) == 0 {
		text = []string{"okay", "oh okay", "okay", "aha", "uh huh", "ah okay", "ok"}[r.IntN(7)]
	}
	if r.IntN(6) == 0 {
		text += []string{" ", ", "}[r.IntN(2)] + []string{text, "okay", l[0]}[r.IntN(3)]
	}
	return text, false
}

// record has voices say things, two at a time.
func (s *sounder) record(n int) {
	r := s.rand
	type order struct {
		cmd   *exec.Cmd
		voice string
		means bool
	}
	orders := make(chan order)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		wg.Go(func() {
			for o := range orders {
				out, err := o.cmd.Output()
				if err != nil {
					s.t.Errorf("%v: %v", o.cmd, err)
					continue
				}
				if said := (saying{o.voice, o.means, s.trimmed(out)}); len(said.pcm[Narrow]) > 400 {
					mu.Lock()
					s.sayings = append(s.sayings, said)
					mu.Unlock()
				}
			}
		})
	}
	languages := strings.Fields("en en en en de de fr es it nl pl")
	for range n {
		language := languages[r.IntN(len(languages))]
		text, means := s.draw(language)
		speed, pitch := fmt.Sprint(120+r.IntN(90)), fmt.Sprint(20+r.IntN(65))
		if hum := !means && r.IntN(5) < 2; language == "en" && r.IntN(2) == 0 {
			voice := []string{"rms", "kal", "kal16", "rms"}[r.IntN(4)]
			args := []string{"-voice", voice, "--setf", "duration_stretch=" + fmt.Sprint(0.8+0.5*r.Float64()), "--setf",
				"int_f0_target_mean=" + fmt.Sprint(85+90*r.IntN(2)+r.IntN(60)), "-o", "/dev/stdout"}
			if hum {
				args = append(args, "-p", "pau "+fliteHums[r.IntN(len(fliteHums))]+" pau")
			} else {
				args = append(args, "-t", text)
			}
			orders <- order{exec.Command("flite", args...), voice, means}
		} else {
			if language == "en" {
				language = []string{"en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland"}[r.IntN(4)]
			}
			voice := humVoices[r.IntN(len(humVoices))]
			if hum {
				text, speed = hums[r.IntN(len(hums))], fmt.Sprint(80+r.IntN(120))
			}
			orders <- order{exec.Command("espeak-ng", "-b", "1", "-v", language+"+"+voice, "-s", speed, "-p", pitch, "--stdout", text), voice, means}
		}
	}
	close(orders)
	wg.Wait()
	slices.SortStableFunc(s.sayings, func(a, b saying) int { return strings.Compare(a.voice, b.voice) })
}

// trimmed is the sound of a file without the silence at its ends.
func (s *sounder) trimmed(file []byte) map[Rate][]int16 {
	w, err := NewWAVReader(bytes.NewReader(file))
	if err != nil {
		s.t.Error(err)
		return nil
	}
	pcm := make([]int16, 20*w.Rate)
	n, _ := w.Read(pcm)
	pcm = pcm[:n]
	if w.Rate != 16000 {
		pcm = resampled(s.t, pcm, w.Rate, 16000)
	}
	for len(pcm) > 320 && level(pcm[:320]) < -50 {
		pcm = pcm[320:]
	}
	for len(pcm) > 320 && level(pcm[len(pcm)-320:]) < -50 {
		pcm = pcm[:len(pcm)-320]
	}
	return map[Rate][]int16{Wide: pcm, Narrow: resampled(s.t, pcm, 16000, 8000)}
}

// sound makes a sound on a line, and gives its parts as the network hears them. Some voices are for checking only.
func (s *sounder) sound(check bool) []lesson2 {
	r, rate := s.rand, []Rate{Narrow, Wide}[s.rand.IntN(2)]
	var pcm []int16
	var before []int16
	means := false
	for {
		v := s.sayings[r.IntN(len(s.sayings))]
		if check != (strings.IndexByte("mM", v.voice[0]) >= 0 && len(v.voice) > 3) {
			continue
		}
		pcm, means = v.pcm[rate], v.means
		break
	}
	switch kind := r.IntN(20); {
	case kind < 4 && !check: // somebody begins to speak
		all := s.people[rate]
		part := all[r.IntN(len(all))]
		n, quiet := rate.FrameSize(), 0
		at := r.IntN(max(len(part)/n, 1))
		for ; at < len(part)/n; at++ {
			if level(part[at*n:(at+1)*n]) > -45 && quiet > 8 {
				break
			} else if level(part[at*n:(at+1)*n]) < -60 {
				quiet++
			} else {
				quiet = 0
			}
		}
		if rest := part[min(at*n, len(part)):]; len(rest) > int(rate)/4 {
			pcm, means = rest[:min(len(rest), int((0.25+1.5*r.Float64())*float64(rate)))], true
		}
	case kind < 7 && !check:
		kinds := [2]string{"clip", "typing"}
		pcm, means = s.other(s.noises[kinds[r.IntN(8)/7]][rate], rate, 0.15+1.5*r.Float64()), false
		if r.IntN(3) == 0 {
			pcm = s.cough(rate)
		}
	}
	if r.IntN(2) == 0 { // they have spoken before
		all := s.sayings
		before = all[r.IntN(len(all))].pcm[rate]
	}
	return s.line(rate, before, tilted(pcm, 0.8*r.Float64()-0.4), means)
}

func (s *sounder) line(rate Rate, before, pcm []int16, means bool) (all []lesson2) {
	r, n := s.rand, rate.FrameSize()
	most := 1e-9
	for i := 0; i+n <= len(pcm); i += n {
		most = max(most, math.Pow(10, level(pcm[i:i+n])/20))
	}
	gain := Gain(-32+20*r.Float64()) / most
	scaled := func(pcm []int16) []float64 {
		out := make([]float64, len(pcm))
		for i, v := range pcm {
			out[i] = gain * float64(v)
		}
		return out
	}
	var x []float64
	x = append(x, make([]float64, int(float64(rate)*(0.3+r.Float64())))...)
	if before != nil {
		x = append(x, scaled(before[:min(len(before), 2*int(rate))])...)
		x = append(x, make([]float64, int(float64(rate)*(0.6+2*r.Float64())))...)
	}
	from := len(x) / n
	x = append(append(x, scaled(pcm)...), make([]float64, int(rate)*2/5)...)
	to := (len(x)-int(rate)*2/5)/n + 8
	hiss := 32768 * Gain(-75+25*r.Float64()*r.Float64())
	line := make([]int16, len(x)/n*n)
	for i := range line {
		line[i] = clip(x[i] + hiss*r.NormFloat64())
	}
	if rate == Narrow || r.IntN(3) == 0 {
		line = DecodeULaw(nil, EncodeULaw(nil, line))
	}
	v, open := NewVAD(rate), false
	var last [wordsBefore][vadBasic]float32
	for i := range len(line) / n {
		speech, _ := v.Detect(line[i*n : (i+1)*n])
		in := [vadBasic]float32(v.mind.x[:vadBasic])
		copy(last[:], last[1:])
		last[wordsBefore-1] = in
		switch {
		case !speech || i < from || i > to+6:
			open = false
		case !open:
			open = true
			all = append(all, lesson2{means: means, x: slices.Clone(last[:])})
		default:
			if l := &all[len(all)-1]; len(l.x) < 150 {
				l.x = append(l.x, in)
			}
		}
	}
	return slices.DeleteFunc(all, func(l lesson2) bool { return len(l.x) < wordsBefore+3 })
}

// counts is how much a frame of a sound counts: the first ones tell little, and long sounds are no more than short ones.
func (l *lesson2) counts(i int) float64 {
	switch {
	case i < wordsBefore+2:
		return 0.3
	case i < 40:
		return 1
	}
	return 0.3
}

func (l *lesson2) judge(p *pass, i int) float64 {
	y, said, k := float32(0), p.says(0), float32(l.counts(i))
	if l.means {
		y = 1
	}
	p.head[0] = k * (said - y)
	return -float64(k) * math.Log(max(1e-9, math.Abs(float64(1-y-said))))
}

func (s *sounder) learn() {
	n, minutes := wordsNetwork, trainMinutes(20)
	if os.Getenv("PARLEY_TRAIN_ON") == "" {
		n.forget(s.rand)
	}
	begun, told, down := time.Now(), time.Now(), descend(n)
	loss, frames, checks := 0.0, 0, 1
	for {
		done := time.Since(begun).Minutes() / minutes
		if done >= 1 {
			break
		}
		clear(down.g.all)
		count := 0
		for range 16 {
			l := s.next()
			loss += study(n, down.g, len(l.x), make([]float32, n.units), func(i int) []float32 { return l.x[i][:] }, l.judge)
			count += len(l.x)
		}
		frames += count
		down.step(count, 0.003, done)
		if time.Since(told) > 30*time.Second {
			fmt.Printf("%s: loss %.4f, %.0f steps\n", time.Since(begun).Round(time.Second), loss/float64(frames), down.steps)
			loss, frames, told = 0, 0, time.Now()
			if n.write(s.t, "words.weights"); time.Since(begun) > time.Duration(checks)*4*time.Minute {
				s.check()
				checks++
			}
		}
	}
	s.check()
	n.write(s.t, "words.weights")
}

func (s *sounder) next() lesson2 {
	const most = 12000
	if len(s.shelf) < 64 || s.rand.IntN(9) == 0 {
		for _, l := range s.sound(false) {
			if len(s.shelf) < most {
				s.shelf = append(s.shelf, l)
			} else {
				s.shelf[s.rand.IntN(most)] = l
			}
		}
	}
	return s.shelf[s.rand.IntN(len(s.shelf))]
}

// check prints how well the network tells sounds of voices from which it does not learn, so long after they began.
func (s *sounder) check() {
	for _, at := range []int{6, 9, 12, 16, 20, 30, 1000} {
		var logits [2][]float32
		for _, l := range s.checked {
			if len(l.x) < at && at < 1000 {
				continue
			}
			m, v := newMind(wordsNetwork), float32(0)
			for _, x := range l.x[:min(at, len(l.x))] {
				copy(m.x, x[:])
				v = m.infer()
			}
			i := 0
			if l.means {
				i = 1
			}
			logits[i] = append(logits[i], v)
		}
		fmt.Printf("   %3d frames: %d and %d:", at, len(logits[0]), len(logits[1]))
		for _, limit := range []float32{-3, -2, -1, 0, 1, 2, 3} {
			below := func(list []float32) float64 {
				n := 0
				for _, v := range list {
					if v < limit {
						n++
					}
				}
				return 100 * float64(n) / float64(max(len(list), 1))
			}
			fmt.Printf("  <%g: %.0f %.1f", limit, below(logits[0]), below(logits[1]))
		}
		fmt.Println()
	}
}
