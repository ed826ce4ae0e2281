package lang

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"
)

// net is the part of the model that reads the words in their order: a small recurrent neural network (a GRU). A word goes
// in as the sum of what was learned of it, of its endings and of its beginning, so that words which were never met say
// something, too. In a language that was not learned ("") it goes by what all languages have in common. No product is
// fused with a sum: it is the same on every machine.
type net struct {
	learned []string // languages
	met     []byte   // a bit for each of netMet clues: it is frequent enough to have been learned
	words   []byte   // signed octets, netDim for each of netWords clues of a word
	ends    []byte   // signed octets, netLast for each of netEnds clues of a whole text

	wordScale, endScale float32
	dense
}

// dense are the weights that are used for each word. A gate's are in a row: first of the three is what is kept of the
// state, then what of it goes into the third, which is what is new.
type dense struct {
	in, back, bias []float32 // of each gate: from the word, from the state before
	hidden         []float32 // of each unit of the last layer: from the state
	out            []float32 // from the last layer, and a constant behind it
}

const (
	netMet   = 1 << 19
	netWords = 1 << 15
	netEnds  = 1 << 10
	netDim   = 24
	netState = 40
	netLast  = 32
	netMost  = 32 // words before the end that are read

	denseSize = 3*netState*(netDim+netState+1) + netLast*netState + netLast + 1
)

// densely cuts weights into those of the layers.
func densely(all []float32) (d dense) {
	for _, part := range []struct {
		to   *[]float32
		size int
	}{{&d.in, 3 * netState * netDim}, {&d.back, 3 * netState * netState}, {&d.bias, 3 * netState}, {&d.hidden, netLast * netState},
		{&d.out, netLast + 1}} {
		*part.to, all = all[:part.size:part.size], all[part.size:]
	}
	return d
}

// netOf reads what octets makes.
func netOf(raw []byte) *net {
	n := &net{}
	cut := func(size int) []byte {
		part := raw[:size:size]
		raw = raw[size:]
		return part
	}
	float := func() float32 { return math.Float32frombits(binary.LittleEndian.Uint32(cut(4))) }
	n.learned = strings.Fields(string(cut(int(binary.LittleEndian.Uint32(cut(4))))))
	n.wordScale, n.endScale = float(), float()
	all := make([]float32, denseSize)
	for i := range all {
		all[i] = float()
	}
	n.dense = densely(all)
	n.met, n.words, n.ends = cut(netMet/8), cut(netWords*netDim), cut(netEnds*netLast)
	return n
}

// judge is what the network makes of a text: the logarithm of the odds that it is over.
func (n *net) judge(text string, tokens []string, language string, rule rule) float64 {
	var s memory
	var found [16]uint32
	n.read(&s, beginningClues(language, found[:0]))
	marks := marksOf(text, tokens)
	for i := max(0, len(tokens)-netMost); i < len(tokens); i++ {
		before := ""
		if i > 0 && marks != nil {
			before = marks[i-1]
		}
		n.read(&s, n.known(wordClues(tokens[i], before, language, found[:0])))
	}
	return float64(n.last(&s, endClues(text, len(tokens), language, rule, found[:0])))
}

// known are those of the clues that were met often enough.
func (n *net) known(clues []uint32) []uint32 {
	kept := clues[:0]
	for _, c := range clues {
		if i := c / (1 << 32 / netMet); n.met[i/8]>>(i%8)&1 != 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// memory is what the network remembers of the words so far.
type memory [netState]float32

// read changes the state by a word.
func (n *net) read(s *memory, clues []uint32) {
	var x [netDim]float32
	for _, c := range clues {
		for i, w := range n.words[c/(1<<32/netWords)*netDim:][:netDim] {
			x[i] += float32(int8(w))
		}
	}
	for i := range x {
		x[i] *= n.wordScale
	}
	var next memory
	for j := range next {
		next[j] = n.gates(j, &x, s).state(s[j])
	}
	*s = next
}

// unit is what one unit of the state is computed from.
type unit struct{ keep, use, was, new float32 }

func (d *dense) gates(j int, x *[netDim]float32, s *memory) (u unit) {
	k, l := netState+j, 2*netState+j
	u.keep = sigmoid(d.bias[j] + dot(d.in[j*netDim:][:netDim], x[:]) + dot(d.back[j*netState:][:netState], s[:]))
	u.use = sigmoid(d.bias[k] + dot(d.in[k*netDim:][:netDim], x[:]) + dot(d.back[k*netState:][:netState], s[:]))
	u.was = dot(d.back[l*netState:][:netState], s[:])
	u.new = tanh(d.bias[l] + dot(d.in[l*netDim:][:netDim], x[:]) + float32(u.use*u.was))
	return u
}

func (u unit) state(before float32) float32 { return u.new + float32(u.keep*(before-u.new)) }

// last is what comes out where a text ends.
func (n *net) last(s *memory, clues []uint32) float32 {
	var known [netLast]float32
	for _, c := range clues {
		for j, w := range n.ends[c/(1<<32/netEnds)*netLast:][:netLast] {
			known[j] += float32(int8(w))
		}
	}
	sum := n.out[netLast]
	for j, k := range known {
		sum += float32(n.out[j] * max(0, dot(n.hidden[j*netState:][:netState], s[:])+float32(k*n.endScale)))
	}
	return sum
}

func dot(a, b []float32) float32 {
	var s, t, u, v float32
	for len(a) >= 4 && len(b) >= 4 {
		s += float32(a[0] * b[0])
		t += float32(a[1] * b[1])
		u += float32(a[2] * b[2])
		v += float32(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	return (s + t) + (u + v)
}

// tanh is close to the hyperbolic tangent.
func tanh(x float32) float32 {
	x = max(-3, min(3, x))
	q := float32(x * x)
	return float32(x*(27+q)) / (27 + float32(9*q))
}

func sigmoid(x float32) float32 { return 0.5 + float32(0.5*tanh(float32(0.5*x))) }

// beginningClues are the clues of what stands before the first word.
func beginningClues(language string, out []uint32) []uint32 {
	return append(out, clue(60, ""), clue(61, language))
}

// wordClues are the clues of a word behind a mark, in a language, or in none that was learned ("").
func wordClues(token, before, language string, out []uint32) []uint32 {
	token = numeral(token)
	one, two, three := ending(token, 1), ending(token, 2), ending(token, 3)
	size := string(rune('a' + min(utf8.RuneCountInString(token), 12)))
	out = append(out, clue(62, "", token), clue(63, "", one), clue(63, "", two), clue(63, "", three), clue(64, "", size))
	if before != "" {
		out = append(out, clue(65, "", before))
	}
	if language == "" {
		return out
	}
	return append(out, clue(66, language, token), clue(67, language, two), clue(67, language, three),
		clue(67, language, ending(token, 4)), clue(68, language, beginning(token, 3)))
}

// beginning is the first n runes of a word, with a sign where the word is no longer.
func beginning(word string, n int) string {
	for i := range word {
		if n == 0 {
			return word[:i]
		}
		n--
	}
	return "^"
}

// endClues are the clues of a text that ends here, behind n words.
func endClues(text string, n int, language string, rule rule, out []uint32) []uint32 {
	mark, inner, size := stop(text), innerOf(text), sizeOf(text, n)
	return append(out, clue(70, "", mark), clue(71, "", mark, inner), clue(72, "", string(rule)), clue(73, "", string(rule), mark),
		clue(74, "", size), clue(75, "", size, mark), clue(76, language), clue(77, language, mark))
}

// sizeOf tells how long a text of n words is. Scripts without spaces are read by the character: of these a sentence has
// more than others have words, in whatever language it is.
func sizeOf(text string, n int) string {
	if last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, stops+" ")); spaceless(last) {
		return "s" + string(rune('a'+min(n/2, 16)))
	}
	return string(rune('a' + min(n, 16)))
}

// marksOf is the punctuation behind each word of a text, nil if it has none.
func marksOf(text string, tokens []string) []string {
	if !strings.ContainsAny(text, stops) {
		return nil
	}
	marks, rest := make([]string, len(tokens)), strings.ToLower(text)
	for i, token := range tokens {
		at := strings.Index(rest, token)
		if at < 0 {
			break // it was written in another way
		}
		if i > 0 {
			marks[i-1] = stop(strings.TrimSpace(rest[:at]))
		}
		rest = rest[at+len(token):]
	}
	return marks
}
