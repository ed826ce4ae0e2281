package turn

import (
	"strings"
	"testing"
	"time"
)

// teller is a customer who tells something in groups, with pauses between them.
type teller struct {
	m     *Machine
	at    time.Duration
	last  time.Duration // when they last spoke
	turns []string
	ends  []time.Duration // how long after they last spoke each turn was over
	held  []string        // the numbers that the model is told
	shut  int             // utterances that were heard to their end
	nods  []time.Duration // when the assistant said a word of listening
}

func (c *teller) step(e Event) {
	e.At = c.at
	for _, a := range c.m.Step(e) {
		if a.Kind == CloseRecognizer {
			c.shut++
		}
		if a.Kind == Nod {
			c.nods = append(c.nods, c.at)
		}
		if a.Kind == Think {
			c.turns, c.ends = append(c.turns, a.Text), append(c.ends, c.at-c.last)
			c.held = append(c.held, a.Digits)
		}
	}
}

func (c *teller) wait(d time.Duration) {
	for end := c.at + d; c.at < end; c.at += frameTime {
		c.step(Event{Kind: Voice})
		c.step(Event{Kind: Tick})
	}
}

// tell says a group, or presses keys; its text is there 300 ms later.
func (c *teller) tell(n int, group string) (said int) {
	if keys, ok := strings.CutPrefix(group, "#"); ok {
		for _, k := range keys {
			c.step(Event{Kind: Key, Key: byte(k)})
			c.last = c.at
			c.wait(200 * time.Millisecond)
		}
		return n
	}
	for i := range 25 {
		c.step(Event{Kind: Voice, Speech: true, Voiced: true, Sure: i > 2, Silences: i > 2})
		c.last = c.at
		c.at += frameTime
	}
	c.wait(300 * time.Millisecond)
	c.step(Event{Kind: Text, N: n, Text: group, Final: true})
	return n + 1
}

// asked begins a call in which the assistant has just asked something.
func asked(language, question string, smart bool) *teller {
	m := New(Manner{Language: language, Interruptible: true, Confirm: 300 * time.Millisecond,
		Endpoint: 600 * time.Millisecond, Smart: smart, Initial: question, Reengage: time.Minute, MaxSilence: time.Minute,
		MaxDuration: time.Hour})
	c := &teller{m: m}
	for _, a := range m.Start(0) {
		if a.Kind == Say {
			c.at = time.Second
			c.step(Event{Kind: Sounded, Reply: a.Reply})
			c.step(Event{Kind: Played, Reply: a.Reply})
		}
	}
	c.wait(time.Second)
	return c
}

// Who tells a number or an address in groups, with pauses of two seconds, is not cut off in the middle; once all that
// was asked for is told, the answer comes as soon as ever, or sooner.
func TestDictation(t *testing.T) {
	for _, c := range []struct {
		language, question string
		groups             []string
		digits             string
	}{
		{"en", "What is your six-digit code?", []string{"it's four seven", "one five", "three three"}, "471533"},
		{"en", "What is your six-digit code?", []string{"four seven one", "no seven", "five three three"}, "477533"},
		{"en", "What is your six-digit code?", []string{"double four", "#15", "nine nine"}, "441599"},
		{"en", "What is your six-digit code?", []string{"four seven", "#1533"}, "471533"},
		{"en", "And your e-mail address?", []string{"j o h n", "dot smith at", "example", "dot com"}, ""},
		{"en", "What is your date of birth?", []string{"May 4", "1984"}, ""},
		{"en", "What is your date of birth?", []string{"the third of May", "nineteen eighty-four"}, ""},
		{"de", "Wie lautet Ihr Geburtsdatum?", []string{"am dritten Mai", "neunzehnhundertvierundachtzig"}, ""},
		{"fr", "Quelle est votre date de naissance ?", []string{"le trois mai", "mille neuf cent quatre-vingt-quatre"}, ""},
		{"es", "¿Cuál es su fecha de nacimiento?", []string{"tres de mayo", "de mil novecientos ochenta y cuatro"}, ""},
		{"it", "Qual è la sua data di nascita?", []string{"tre maggio", "millenovecentottantaquattro"}, ""},
		{"pt", "Qual é a sua data de nascimento?", []string{"três de maio", "de mil novecentos e oitenta e quatro"}, ""},
		{"nl", "Wat is uw geboortedatum?", []string{"drie mei", "negentienhonderdvierentachtig"}, ""},
		{"pl", "Jaka jest pana data urodzenia?", []string{"trzeci maja", "tysiąc dziewięćset osiemdziesiąty czwarty"}, ""},
		{"de", "Wie lautet Ihre sechsstellige Kundennummer?", []string{"vier sieben", "fünfzehn", "dreiunddreißig"}, "471533"},
		{"fr", "Quel est votre code à six chiffres ?", []string{"quarante-sept", "quinze", "quatre-vingt-treize"}, "471593"},
		{"es", "Dígame el código de seis dígitos.", []string{"cuarenta y siete", "quince", "treinta y tres"}, "471533"},
		{"it", "Mi dica il codice di sei cifre.", []string{"quarantasette", "quindici", "trentatré"}, "471533"},
		{"pt", "Qual é o código de seis dígitos?", []string{"quarenta e sete", "meia cinco", "trinta e três"}, "476533"},
		{"nl", "Wat is uw zescijferige code?", []string{"zevenenveertig", "vijftien", "drieëndertig"}, "471533"},
		{"pl", "Proszę podać sześciocyfrowy kod.", []string{"czterdzieści siedem", "piętnaście", "trzydzieści trzy"}, "471533"},
		{"ja", "番号を教えてください。", []string{"471533"}, ""},
	} {
		for _, smart := range []bool{false, true} {
			a := asked(c.language, c.question, smart)
			n := 0
			for i, g := range c.groups {
				if i > 0 {
					a.wait(2 * time.Second)
				}
				if len(a.turns) > 0 {
					t.Fatalf("%s %q: cut off after %q", c.language, c.groups, a.turns)
				}
				n = a.tell(n, g)
			}
			a.wait(4 * time.Second)
			if len(a.turns) != 1 {
				t.Fatalf("%s %q: %d turns: %q", c.language, c.groups, len(a.turns), a.turns)
			}
			if a.held[0] != c.digits {
				t.Errorf("%s %q: digits %q, want %q", c.language, c.groups, a.held[0], c.digits)
			}
			if most := 620 * time.Millisecond; a.ends[0] > most && !(smart && c.language == "ja") {
				t.Errorf("%s %q: answered after %v, want %v at most", c.language, c.groups, a.ends[0], most)
			}
		}
	}
}

// Who was asked for a number and says something else, or stops in the middle of it, is answered all the same.
func TestDictationGivenUp(t *testing.T) {
	for _, c := range []struct {
		text string
		most time.Duration
	}{
		{"I don't have it here", 620 * time.Millisecond}, {"four seven one", 3520 * time.Millisecond},
		{"why do you need one", 620 * time.Millisecond},
	} {
		a := asked("en", "What is your six-digit code?", false)
		a.tell(0, c.text)
		a.wait(5 * time.Second)
		if len(a.turns) != 1 || a.ends[0] > c.most {
			t.Errorf("%q: %q after %v", c.text, a.turns, a.ends)
		}
	}
}

// TestDictationRecognizer: nor is who tells a number cut off by a recognizer that finds turns and takes a pause for an end.
func TestDictationRecognizer(t *testing.T) {
	a := asked("en", "What is your six-digit code?", true)
	a.step(Event{Kind: Started, N: 0})
	a.tell(0, "four seven one")
	a.step(Event{Kind: Ended, N: 0})
	a.wait(2 * time.Second)
	if len(a.turns) > 0 {
		t.Fatalf("cut off after %q", a.turns)
	}
	a.tell(1, "five three three")
	a.step(Event{Kind: Ended, N: 1})
	if len(a.turns) != 1 || a.held[0] != "471533" {
		t.Errorf("%q, digits %q", a.turns, a.held)
	}
}
