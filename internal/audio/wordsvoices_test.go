//go:build train

package audio

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"parley/internal/lang"
)

// What the network of words hears: what voices say, and hums.

var humVoices = strings.Fields("m2 m5 m6 m8 f5 Alicia Andrea Andy Annie Denis Diogo Gene Henrique Jacky Lee Marco Mario Michael " +
	"Mike adam anika antonio aunty belinda benjamin boris caleb david ed edward grandma grandpa gustave iven john linda marcelo " +
	"max michel miguel norbert pablo paul pedro quincy rob robert sandro shelby steph travis victor zac klatt klatt2 klatt3")

// What hums is written as phonemes, as eSpeak NG spells words like "mhm".
var hums = []string{"[[m'h@m]]", "[[m:'hm]]", "[[mh'm:]]", "[[m'hm]]", "[[m:]]", "[[m]]", "[[hm:]]", "[[m:m:]]", "[[@h'V]]", "[[@h'@]]",
	"[[Vh'V]]", "[[V'hV:]]", "[[a:h'a:]]", "[[@:]]", "[[V:]]", "[[m'h@ m'h@m]]", "[[n'h@n]]", "[[m: m'hm]]", "[[o:]]", "[[O:h]]", "[[hVh]]"}

// drawnVoices are so many that are like no voice of eSpeak NG.
const drawnVoices = 120

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
		"yeah well that is not what I asked for", "right so how does that work", "okay stop", "mm no", "oh wait a second", "sure but what about the price", "I see but I still need it today",
		"there's somebody at the door", "this is the wrong department", "I ordered it three weeks ago", "send it to my old address", "seven hundred and twelve",
		"my flight leaves at noon", "the line is really bad", "you misunderstood me", "ask your colleague about it", "we talked about that yesterday",
		"it doesn't work any more", "the small one in green", "both of them", "neither of them", "give me a minute to write that down", "my wife will pick it up",
		"are you a real person", "I need a doctor", "how many are left", "turn left at the church", "double three nine", "who told you that", "let's do Monday then",
		"don't hang up", "I'd like to complain", "that sounds far too good", "only if it is free", "before Christmas", "from London to Paris", "under the name of Brown",
		"well I thought it was included", "so you can't help me", "because my daughter is ill", "if it rains we stay at home", "listen", "hello", "sorry", "please",
		"never", "nothing", "later", "who is that"},
	"de": {"warten Sie kurz", "Moment bitte", "stopp", "halt", "nein", "nein danke", "wie viel macht das zusammen", "wann haben Sie geöffnet", "das habe ich schon bezahlt",
		"ich verstehe Sie ganz schlecht", "noch einmal bitte", "entschuldigung was haben Sie gesagt", "geht das auch am Dienstag", "ich möchte lieber stornieren",
		"wo finde ich Sie denn", "gibt es etwas Günstigeres", "verbinden Sie mich mit jemandem", "ja aber das ist zu spät", "okay und was ist mit der Rechnung", "warum denn",
		"sprechen Sie bitte langsamer", "meine Nummer ist eine andere", "können wir das später machen", "hören Sie mir mal zu",
		"das ist die falsche Abteilung", "da ist jemand an der Tür", "ich brauche einen neuen Termin", "fünfundzwanzig Euro", "unter dem Namen Schneider",
		"haben Sie das auch in Blau", "mein Zug fährt um acht", "das habe ich nicht bestellt", "schicken Sie es per Post", "meine Frau holt das ab",
		"sind Sie ein echter Mensch", "nächste Woche lieber", "weil ich krank bin", "wer hat das gesagt", "bleiben Sie dran", "später", "niemals", "bitte"},
	"fr": {"attendez", "un instant", "non", "non merci", "stop", "c'est trop cher", "à quelle heure vous fermez", "je ne comprends pas", "pouvez-vous parler plus lentement",
		"excusez-moi", "je voudrais annuler", "où êtes-vous exactement", "et pour samedi", "oui mais pas demain", "d'accord mais combien", "ce n'est pas mon adresse", "pourquoi",
		"j'ai déjà payé", "passez-moi quelqu'un", "quel est le prix",
		"il y a quelqu'un à la porte", "j'ai besoin d'un rendez-vous", "au nom de Dupont", "vingt-cinq euros", "ma femme va passer", "ce n'est pas ce que j'ai commandé",
		"vous êtes une vraie personne", "la semaine prochaine plutôt", "parce que je suis malade", "envoyez-le par la poste", "mon train part à huit heures",
		"qui vous a dit ça", "plus tard", "jamais", "écoutez-moi"},
	"es": {"espera un momento", "no gracias", "no", "alto", "cuándo abren", "es demasiado caro", "no le entiendo", "más despacio por favor", "perdone", "quiero cancelar",
		"dónde están ustedes", "y el domingo", "sí pero mañana no puedo", "vale pero cuánto es", "esa no es mi dirección", "por qué", "ya lo he pagado", "páseme con alguien",
		"qué ha dicho", "otra vez por favor",
		"hay alguien en la puerta", "necesito una cita", "a nombre de García", "veinticinco euros", "mi mujer lo recoge", "eso no es lo que pedí", "es usted una persona",
		"mejor la semana que viene", "porque estoy enfermo", "mándelo por correo", "mi tren sale a las ocho", "quién le dijo eso", "más tarde", "nunca", "escúcheme"},
	"it": {"aspetta un attimo", "no grazie", "no", "basta", "quando aprite", "è troppo caro", "non la capisco", "più piano per favore", "mi scusi", "vorrei annullare",
		"dove siete", "e domenica", "sì ma domani non posso", "va bene ma quanto viene", "non è il mio indirizzo", "perché", "ho già pagato", "mi passi qualcuno", "cosa ha detto",
		"c'è qualcuno alla porta", "mi serve un appuntamento", "a nome Rossi", "venticinque euro", "passa mia moglie", "non è quello che ho ordinato",
		"lei è una persona vera", "meglio la settimana prossima", "perché sono malato", "lo mandi per posta", "il mio treno parte alle otto", "chi gliel'ha detto",
		"più tardi", "mai", "mi ascolti"},
	"nl": {"wacht eens", "nee", "nee bedankt", "stop", "hoe laat gaan jullie open", "dat is te duur", "ik versta u niet", "wat langzamer graag", "sorry", "ik wil afzeggen",
		"waar zitten jullie", "en zondag", "ja maar morgen kan ik niet", "oké maar hoeveel is het", "dat is mijn adres niet", "waarom", "ik heb al betaald", "wat zei u",
		"er staat iemand voor de deur", "ik heb een afspraak nodig", "op naam van Jansen", "vijfentwintig euro", "mijn vrouw haalt het op", "dat heb ik niet besteld",
		"bent u een echt mens", "liever volgende week", "omdat ik ziek ben", "stuur het maar op", "mijn trein gaat om acht uur", "wie heeft dat gezegd", "later", "nooit",
		"luister eens"},
	"pl": {"chwileczkę", "nie", "nie dziękuję", "stop", "o której otwieracie", "to za drogo", "nie rozumiem pana", "wolniej proszę", "przepraszam", "chcę odwołać",
		"gdzie państwo są", "a w niedzielę", "tak ale jutro nie mogę", "dobrze ale ile", "to nie mój adres", "dlaczego", "już zapłaciłem", "co pan powiedział",
		"ktoś stoi pod drzwiami", "potrzebuję wizyty", "na nazwisko Kowalski", "dwadzieścia pięć złotych", "żona to odbierze", "nie to zamawiałem",
		"czy pan jest człowiekiem", "lepiej w przyszłym tygodniu", "bo jestem chory", "proszę wysłać pocztą", "mój pociąg odjeżdża o ósmej", "kto panu to powiedział",
		"później", "nigdy", "proszę posłuchać"},
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
		if r.IntN(4) == 0 && len(words) > 2 { // many interrupt with a word, and go on after a pause
			words = slices.Clone(words)
			words[r.IntN(2)] += ","
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
		cmd         *exec.Cmd
		voice, kind string
		means       bool
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
				if said := (saying{o.voice, o.kind, o.means, s.trimmed(out)}); len(said.pcm[Narrow]) > 400 {
					mu.Lock()
					s.sayings = append(s.sayings, said)
					mu.Unlock()
				}
			}
		})
	}
	dir := s.drawn()
	languages := strings.Fields("en en en en de de fr es it nl pl")
	for range n {
		language := languages[r.IntN(len(languages))]
		text, means := s.draw(language)
		speed, pitch := fmt.Sprint(120+r.IntN(90)), fmt.Sprint(20+r.IntN(65))
		hum, kind := !means && r.IntN(5) < 2, "words"
		switch {
		case hum:
			kind = "hum"
		case !means:
			kind = "listening"
		}
		if language == "en" && r.IntN(2) == 0 {
			voice := []string{"rms", "kal", "kal16", "rms"}[r.IntN(4)]
			args := []string{"-voice", voice, "--setf", "duration_stretch=" + fmt.Sprint(0.8+0.5*r.Float64()), "--setf",
				"int_f0_target_mean=" + fmt.Sprint(85+90*r.IntN(2)+r.IntN(60)), "-o", "/dev/stdout"}
			if hum {
				args = append(args, "-p", "pau "+fliteHums[r.IntN(len(fliteHums))]+" pau")
			} else {
				args = append(args, "-t", text)
			}
			orders <- order{exec.Command("flite", args...), voice, kind, means}
		} else {
			if language == "en" {
				language = []string{"en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland"}[r.IntN(4)]
			}
			voice := humVoices[r.IntN(len(humVoices))]
			if r.IntN(2) == 0 {
				voice = fmt.Sprint("drawn", r.IntN(drawnVoices))
			}
			if hum {
				text, speed = hums[r.IntN(len(hums))], fmt.Sprint(80+r.IntN(120))
			}
			orders <- order{exec.Command("espeak-ng", "--path="+dir, "-b", "1", "-v", language+"+"+voice, "-s", speed, "-p", pitch,
				"--stdout", text), voice, kind, means}
		}
	}
	close(orders)
	wg.Wait()
	slices.SortStableFunc(s.sayings, func(a, b saying) int { return strings.Compare(a.voice, b.voice) })
}

// drawn makes a directory for eSpeak NG, with voices whose pitch, formants and breath are drawn by lot beside those of
// humVoices: it finds no more than 350, languages included.
func (s *sounder) drawn() string {
	r, dir := s.rand, s.t.TempDir()
	out, err := exec.Command("espeak-ng", "--version").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	_, from, _ := strings.Cut(strings.TrimSpace(string(out)), "Data at: ")
	to := filepath.Join(dir, "espeak-ng-data")
	entries, err := os.ReadDir(from)
	err = errors.Join(err, os.MkdirAll(filepath.Join(to, "voices/!v"), 0o755))
	for _, e := range entries {
		if e.Name() != "voices" {
			err = errors.Join(err, os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
		}
	}
	for _, name := range humVoices {
		err = errors.Join(err, os.Symlink(filepath.Join(from, "voices/!v", name), filepath.Join(to, "voices/!v", name)))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range drawnVoices {
		pitch, tract := 70*math.Exp(1.2*r.Float64()), 100*math.Exp(0.3*r.Float64()-0.12)
		v := fmt.Sprintf("language variant\nname drawn%d\npitch %.0f %.0f\nflutter %d\nroughness %d\nvoicing %d\nconsonants %d %d\n", i, pitch,
			pitch*(1.2+0.6*r.Float64()), r.IntN(12), r.IntN(5), 90+r.IntN(70), 70+r.IntN(60), 70+r.IntN(60))
		for f := range 9 {
			v += fmt.Sprintf("formant %d %.0f %d %d\n", f, tract*(0.94+0.12*r.Float64()), 60+r.IntN(60), 70+r.IntN(90))
		}
		if r.IntN(3) == 0 {
			v += fmt.Sprintf("breath %d %d %d %d\n", r.IntN(10), r.IntN(20), r.IntN(20), r.IntN(20))
		}
		if r.IntN(6) == 0 {
			v += fmt.Sprintf("klatt %d\n", 1+r.IntN(5))
		}
		if r.IntN(3) == 0 {
			v += fmt.Sprintf("intonation %d\n", 1+r.IntN(4))
		}
		if err := os.WriteFile(filepath.Join(to, "voices/!v", fmt.Sprint("drawn", i)), []byte(v), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	return dir
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

// hum is an "mm" or an "uh", or two of them with a breath between: a voice through three resonances, those of a nose or, at
// times, of an open mouth.
func (s *sounder) hum(rate Rate) []int16 {
	r, fs := s.rand, float64(rate)
	between := func(a, b float64) float64 { return a + (b-a)*r.Float64() }
	n := int(fs * between(0.15, 0.7))
	type resonance struct{ hz, width, gain, a, b float64 }
	tract := []resonance{{hz: between(200, 350), width: between(40, 160), gain: 1},
		{hz: between(900, 1300), width: between(80, 300), gain: Gain(between(-40, -8))},
		{hz: between(2000, 2600), width: between(100, 400), gain: Gain(between(-50, -12))}}
	if r.IntN(4) == 0 {
		tract[0] = resonance{hz: between(400, 800), width: between(60, 160), gain: 1}
		tract[1].gain, tract[2].gain = Gain(between(-20, -3)), Gain(between(-30, -8))
	}
	hz, first, bend, last := 80*math.Exp(1.32*r.Float64()), 0.15*r.NormFloat64(), 0.1*r.NormFloat64(), 0.15*r.NormFloat64()
	jitter, shimmer, breath, saw := 0.02*r.Float64(), 0.15*r.Float64(), between(0, 0.06), r.IntN(2) == 0
	rise, fall := between(0.01, 0.08)*fs, between(0.02, 0.15)*fs
	gap, wide, left := 2.0, between(0.03, 0.08)*fs/float64(n), between(0, 0.3)
	if r.IntN(2) == 0 {
		gap = between(0.35, 0.6)
	}
	second := between(0.5, 1.5) // how loud the second part is
	x, phase, loud, dull, wave := make([]float64, n), 0.0, 1.0, between(0.3, 0.9), 0.0
	pace := 1.0
	for i := range x {
		at := float64(i) / float64(n)
		now := hz * math.Exp(first*(1-at)*(1-at)+4*bend*at*(1-at)+last*at*at)
		push := 0.0
		if phase += now * pace / fs; phase >= 1 {
			phase, pace, loud = phase-1, 1+jitter*r.NormFloat64(), 1+shimmer*r.NormFloat64()
			if !saw {
				push = loud * math.Sqrt(fs/now)
			}
		}
		if saw {
			push = loud * (1 - 2*phase)
		}
		voiced, air := math.Min(1, math.Min(float64(i)/rise, float64(n-i)/fall)), breath
		if at > gap {
			voiced *= second
		}
		if off := math.Abs(at-gap) / wide; off < 1.5 {
			air += 0.15 * (1.5 - off)
			voiced *= left + (1-left)*max(0, 2*off-2)
		}
		wave = dull*wave + (1-dull)*voiced*push
		for k := range tract {
			t := &tract[k]
			decay := math.Exp(-math.Pi * t.width / fs)
			t.a, t.b = (1-decay)*(wave+air*voiced*r.NormFloat64()+0.1*air*r.NormFloat64())+
				2*decay*math.Cos(2*math.Pi*t.hz/fs)*t.a-decay*decay*t.b, t.a
			x[i] += t.gain * t.a
		}
	}
	out := make([]int16, n)
	for i, v := range unit(x) {
		out[i] = clip(3000 * v)
	}
	return out
}
