package lang

import (
	_ "embed"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Over is how likely it is that who has said this, and is silent now, has finished: a probability. A small model of our
// own looks at the last words and their endings, at how the text began, at its length, and at punctuation if the
// recognizer writes any: one part adds up what it knows of these, the other reads the words in their order. In a
// language that it has learned nothing of it looks at what languages have in common. Our words and rules are among its
// inputs. Where they know better, they decide: nobody ends with "my number is", and "yes
// please" is all. A full stop counts where the words agree with it. Of no text nothing is known. It is the same on every
// machine.
//
// The weights were learned by TestOverTrain, from sentences that were cut where people pause. testdata/turns.tsv lists
// them with their makers and licences, docs/lab/turn-taking.md what came of it.
func Over(text, language string) float64 {
	tokens := Tokens(text)
	if len(tokens) == 0 {
		return 0.5
	}
	rule := ruleOf(text, tokens, language)
	sum := logit(text, tokens, language, rule)
	switch {
	case rule == consenting, rule == answering && (sum > goesLogit || Asks(text) || answers(text, language)),
		rule == stopping && sum > stopLogit:
		sum = max(sum, sureLogit)
	case rule == breaking && (sum < goesLogit || counts(tokens, &Of(language).Words)):
		sum = min(sum, breakLogit)
	}
	return min(max(1/(1+math.Exp(-sum)), 0.001), 0.999)
}

// answers reports whether a text is a short answer, a greeting, thanks or "that is all", and nothing else: "hello" is,
// "yes it" is not.
func answers(text, language string) bool {
	l := &Of(language).Words
	return allOf(text, false, l.Answers, l.Greetings, l.Farewells, l.Closings)
}

// counts reports whether a text ends in the middle of numbers, which are told in groups.
func counts(tokens []string, l *Words) bool {
	n := len(tokens)
	return n > 1 && isNumber(tokens[n-1], l) && isNumber(tokens[n-2], l)
}

// logit is what the model makes of a text: the logarithm of the odds that it is over.
func logit(text string, tokens []string, language string, rule rule) float64 {
	text = strings.TrimSpace(text)
	m := overModel()
	if !slices.Contains(m.net.learned, language) {
		return m.net.judge(text, tokens, "", rule) // most of what the linear part knows is of one language
	}
	share, special := linearShares[language]
	low := netLow
	few := stop(text) == "" && len(tokens) <= fewWords
	switch {
	case few && (special || len(tokens) < fewLearned || rule == breaking):
		share = 1
	case few:
		share, low = fewShare, fewLow
	case !special:
		share = linearShare
	}
	sum := share * m.linear.sum(text, tokens, language, rule)
	if share < 1 {
		sum += (1 - share) * (m.net.judge(text, tokens, language, rule) + low)
	}
	return sum
}

// What the linear part says counts so much; the rest is the network's. This was found with the sentences to choose by.
// In scripts without spaces the network reads characters, of which it learns less than of words, and of Thai it has seen
// only 500 sentences. Sentences begin with what short answers and questions in calls are all of, so that the network
// takes them for beginnings ("when do you open"): without punctuation it counts less where there are few words, and not
// at all where there are one or two.
const (
	linearShare = 0.4
	fewShare    = 0.5
	fewWords    = 4
	fewLearned  = 3
	netLow      = 0.5 // the network takes turns for this much less over than they are
	fewLow      = 1.2 // and few words for this much
)

var linearShares = map[string]float64{"zh": 0.7, "ja": 0.7, "th": 1}

// linear is the part of the model that adds up: a scale, and a signed octet for each of 1 << overBits clues, which
// share them by chance.
type linear struct {
	scale   float64
	weights []byte
}

func (l *linear) sum(text string, tokens []string, language string, rule rule) float64 {
	var found [maxClues]uint32
	sum := 0
	for _, clue := range clues(text, tokens, language, rule, found[:0]) {
		sum += int(int8(l.weights[clue>>(32-overBits)]))
	}
	return float64(sum) * l.scale
}

//go:embed over.weights
var overWeights []byte

// overModel reads the weights when they are first needed: those of the linear part, then those of the network.
var overModel = sync.OnceValue(func() model { return modelOf(overWeights) })

type model struct {
	linear
	net *net
}

func modelOf(raw []byte) model {
	scale, rest := binary.LittleEndian.Uint32(raw), raw[4:]
	return model{linear{float64(math.Float32frombits(scale)), rest[:1<<overBits]}, netOf(rest[1<<overBits:])}
}

// rule is what our words and rules make of a text.
type rule string

const (
	undecided  rule = ""
	consenting rule = "yes"    // it is a plain yes or no
	answering  rule = "answer" // it is a short answer or a question
	stopping   rule = "stop"   // it ends like a sentence, for a recognizer that writes punctuation
	breaking   rule = "break"  // it breaks off
)

const (
	sureLogit  = 1.75  // a probability of 0.85: half of the usual silence
	breakLogit = -2.32 // 0.09: two and a half times
	stopLogit  = 0.85  // 0.7: the words agree with the full stop
	goesLogit  = -0.5  // 0.38: the words don't say that the rule is wrong
)

func ruleOf(text string, tokens []string, language string) rule {
	known, ends := Completeness(text, language), strings.TrimSpace(text)
	mark := stop(ends)
	whole := mark != "," && mark != "…" && answers(text, language) // whatever it ends with: "thank you"
	switch {
	case known == Unfinished && !whole:
		return breaking
	case consents(tokens, &Of(language).Consent):
		return consenting
	case known == Undecided && !whole:
		return undecided
	case closed(ends) && !Asks(ends) && Completeness(strings.TrimRight(ends, stops+" "), language) != Finished:
		return stopping
	}
	return answering
}

const (
	overBits = 20
	maxClues = 96
	maxBag   = 24 // words before the last whose mere presence counts
)

// clues finds what a text tells, as hashes. They are the inputs of the model.
func clues(text string, tokens []string, language string, rule rule, out []uint32) []uint32 {
	n := len(tokens)
	last := func(i int) string { // the i-th from the end
		if i > n {
			return "^"
		}
		return numeral(tokens[n-i])
	}
	add := func(kind byte, shared bool, parts ...string) {
		if shared {
			out = append(out, clue(kind, "", parts...))
		} else {
			out = append(out, clue(kind, language, parts...))
		}
	}
	size := string(rune('a' + min(n, 16)))
	first, second := last(max(n, 1)), last(max(n-1, 1))
	t1, t2, t3, t4 := last(1), last(2), last(3), last(4)
	add(0, true)
	add(1, false)
	add(2, false, t1)
	add(3, false, t2, t1)
	add(4, false, t3, t2, t1)
	add(5, false, t4, t3, t2, t1)
	add(6, false, t2)
	add(7, false, t3)
	add(8, false, t4)
	add(9, false, t3, t1)
	add(10, false, first)
	add(11, false, first, second)
	add(12, false, first, t1)
	add(13, false, size)
	add(14, true, size)
	add(15, false, size, t1)
	if n <= 5 {
		add(16, false, tokens...)
	}
	if n > 0 && spacelessIn(t1) {
		add(17, false, last(5), t4, t3, t2, t1)
		add(18, false, last(6), last(5), t4, t3, t2, t1)
		add(19, false, t3, t2)
	}
	for i := 1; i <= 4; i++ {
		end := ending(t1, i)
		add(20, false, end)
		add(21, true, end)
		add(22, false, end, ending(t2, i))
	}
	add(23, true, t1)
	for i := 2; i <= min(n, maxBag); i++ {
		add(24, false, last(i))
	}
	mark := stop(text)
	add(25, false, mark)
	add(26, true, mark)
	inner := innerOf(text)
	add(27, false, mark, inner)
	add(28, true, mark, inner)
	add(40, true, string(rule))
	add(41, false, string(rule))
	add(42, true, string(rule), mark)
	add(43, true, string(rule), size)
	add(44, false, string(rule), ending(t1, 3))
	add(45, false, t1, ending(t2, 2), ending(t3, 1))
	add(46, false, ending(t1, 3), ending(t2, 2), ending(t3, 2))
	if mark == "" && inner == "-" {
		return out
	}
	// Recognizers write full stops into pauses, too: what a mark means depends on the words before it.
	since := string(rune('a' + min(sinceMark(text), 12)))
	add(29, false, mark, t1)
	add(30, false, mark, t2, t1)
	add(31, false, mark, size)
	add(32, true, mark, size)
	add(33, false, mark, ending(t1, 2))
	add(34, false, mark, ending(t1, 3))
	add(35, true, mark, ending(t1, 3))
	add(36, true, mark, since)
	add(37, false, mark, since)
	add(38, false, mark, first)
	add(39, false, mark, t2)
	return out
}

// clue is a hash of what is known of a text, in a language or, with "", in all of them. Its high bits are good.
func clue(kind byte, language string, parts ...string) uint32 {
	h := uint32(2166136261)
	mix := func(s string) {
		for i := range len(s) {
			h = (h ^ uint32(s[i])) * 16777619
		}
		h = (h ^ 0xff) * 16777619
	}
	h = (h ^ uint32(kind)) * 16777619
	if language != "" {
		mix(language)
	}
	for _, p := range parts {
		mix(p)
	}
	h ^= h >> 16
	h *= 0x7feb352d
	h ^= h >> 15
	h *= 0x846ca68b
	return h ^ h>>16
}

// innerOf says by "+" that a text has punctuation before its end: the recognizer writes it.
func innerOf(text string) string {
	if strings.ContainsAny(strings.TrimRight(text, stops), inside) {
		return "+"
	}
	return "-"
}

// sinceMark is how many words a text has behind its last mark but the one that ends it.
func sinceMark(text string) int {
	text = strings.TrimRight(text, stops+" ")
	if i := strings.LastIndexAny(text, inside); i >= 0 {
		text = text[i:]
	}
	n := 0
	for _, r := range text {
		if r == ' ' || spaceless(r) {
			n++
		}
	}
	return n
}

// numeral makes all numbers that are written in digits alike.
func numeral(token string) string {
	if token[0] >= '0' && token[0] <= '9' {
		return "0"
	}
	return token
}

// ending is the last n runes of a word, with a sign where the word is no longer.
func ending(word string, n int) string {
	i := len(word)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(word[:i])
		i -= size
	}
	if i == 0 {
		return "^"
	}
	return word[i:]
}

const inside = ".!?,。！？，、؟،।" // a text that has one of them is of a recognizer that writes punctuation

const stops = ".!?…。！？؟।,،，、;:-–—"

// stop is the punctuation at the end of a text, by its kind.
func stop(text string) string {
	for _, c := range []struct{ kind, ends string }{
		{"…", "... … - – —"}, {".", ". 。 । 。"}, {"?", "? ？ ؟"}, {"!", "! ！"}, {",", ", ، ， 、 ; : ；"},
	} {
		for end := range strings.FieldsSeq(c.ends) {
			if strings.HasSuffix(text, end) {
				return c.kind
			}
		}
	}
	return ""
}
