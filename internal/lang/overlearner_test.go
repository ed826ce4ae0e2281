//go:build train

package lang

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
)

const (
	netRare  = 10    // a clue of a word that is met less often is not learned
	netRate  = 0.1   // of learning, at the beginning, for what stands in tables
	netDense = 0.003 // for the other weights
	netBatch = 16    // texts after which these change
	netDrop  = 0.15  // of the clues of a word are left out
	netDull  = 8     // one in so many units of the state is left out at an end
)

// Learner learns the network by going back from the ends of texts to their beginnings: the tables with Adagrad, the
// other weights with Adam.
type Learner struct {
	net
	words, ends table
	flat        adam
	grown       dense // the gradients of the other weights
	steps       []step
	texts, all  int
	r           *rand.Rand
	Loss, Sum   float64
}

// step is what is remembered of a word.
type step struct {
	clues    []uint32
	x        [netDim]float32
	units    [netState]unit
	state, d memory // d is the gradient
}

// End is a place where a text may end: behind so many words, with what is known of the text as a whole.
type End struct {
	After        int
	Clues        []uint32
	Over, Weight float32
}

// NewLearner learns from so many texts. met says how often each clue of a word is among them, by its first 24 bits.
func NewLearner(learned []string, met []uint8, texts int, r *rand.Rand) *Learner {
	l := &Learner{r: r, all: texts, words: newTable(netWords * netDim), ends: newTable(netEnds * netLast), flat: newAdam()}
	l.net.learned, l.net.met, l.net.dense, l.grown = learned, make([]byte, netMet/8), densely(l.flat.weights), densely(l.flat.grown)
	for c, n := range met {
		if n >= netRare {
			i := c / (1 << 24 / netMet)
			l.met[i/8] |= 1 << (i % 8)
		}
	}
	fill := func(weights []float32, size float64) {
		for i := range weights {
			weights[i] = float32(r.NormFloat64() * size)
		}
	}
	fill(l.words.weights, 0.1)
	fill(l.in, 1/math.Sqrt(netDim))
	fill(l.back, 0.7/math.Sqrt(netState))
	fill(l.hidden, 1/math.Sqrt(netState))
	fill(l.out[:netLast], 0.7/math.Sqrt(netLast))
	for j := range netState {
		l.bias[j] = 1 // at first much of the state is kept
	}
	return l
}

// Begin gives the clues before a text, and Word those of a word, some of them left out by chance.
func (l *Learner) Begin(language string) []uint32 { return beginningClues(language, nil) }
func (l *Learner) Word(token, before, language string) []uint32 {
	kept := make([]uint32, 0, 12)
	for _, c := range l.known(wordClues(token, before, language, nil)) {
		if l.r.Float64() >= netDrop {
			kept = append(kept, c)
		}
	}
	return kept
}

// Learn goes through a text once.
func (l *Learner) Learn(words [][]uint32, ends []End) {
	for len(l.steps) < len(words)+1 {
		l.steps = append(l.steps, step{})
	}
	for i, clues := range words {
		s, p := &l.steps[i+1], &l.steps[i]
		s.clues, s.x, s.d = clues, [netDim]float32{}, memory{}
		for _, c := range clues {
			for k, w := range l.words.row(c/(1<<32/netWords), netDim) {
				s.x[k] += w
			}
		}
		for j := range s.units {
			s.units[j] = l.gates(j, &s.x, &p.state)
			s.state[j] = s.units[j].state(p.state[j])
		}
	}
	rate := float32(1 - 0.95*float64(l.texts)/float64(l.all))
	for i := range ends {
		l.end(&ends[i], rate*netRate)
	}
	for i := len(words); i > 0; i-- {
		l.word(&l.steps[i], &l.steps[i-1], rate*netRate)
	}
	l.steps[0].d = memory{}
	if l.texts++; l.texts%netBatch == 0 {
		l.flat.learn(rate * netDense)
	}
}

// end learns whether a text ends here.
func (l *Learner) end(e *End, rate float32) {
	s := &l.steps[e.After]
	state, kept := s.state, memory{}
	for j := range state {
		if l.r.Uint32()%netDull != 0 {
			kept[j] = netDull / (netDull - 1.)
		}
		state[j] *= kept[j]
	}
	var last, d [netLast]float32
	for _, c := range e.Clues {
		for j, w := range l.ends.row(c/(1<<32/netEnds), netLast) {
			last[j] += w
		}
	}
	sum := l.out[netLast]
	for j := range last {
		last[j] = max(0, last[j]+dot(l.hidden[j*netState:][:netState], state[:]))
		sum += l.out[j] * last[j]
	}
	p := 1 / (1 + math.Exp(-float64(sum)))
	over := float64(e.Over)
	l.Loss -= float64(e.Weight) * math.Log(max(1e-9, over*p+(1-over)*(1-p)))
	l.Sum += float64(e.Weight)
	g := float32(p-over) * e.Weight
	l.grown.out[netLast] += g
	for j, v := range last {
		if v <= 0 {
			continue
		}
		l.grown.out[j] += g * v
		d[j] = g * l.out[j]
		grown, hidden := l.grown.hidden[j*netState:][:netState], l.hidden[j*netState:][:netState]
		for k := range grown {
			grown[k] += d[j] * state[k]
			s.d[k] += d[j] * hidden[k] * kept[k]
		}
	}
	for _, c := range e.Clues {
		l.ends.learn(c/(1<<32/netEnds), d[:], rate)
	}
}

// word takes the gradients of a state back to the word and to the state before it.
func (l *Learner) word(s, before *step, rate float32) {
	var dx [netDim]float32
	for j, d := range s.d {
		u := &s.units[j]
		before.d[j] += d * u.keep
		fresh := d * (1 - u.keep) * (1 - u.new*u.new)
		gates := [3]float32{d * (before.state[j] - u.new) * u.keep * (1 - u.keep), fresh * u.was * u.use * (1 - u.use), fresh}
		for gate, d := range gates {
			k := gate*netState + j
			l.grown.bias[k] += d
			grown, in := l.grown.in[k*netDim:][:netDim], l.in[k*netDim:][:netDim]
			for m := range grown {
				grown[m] += d * s.x[m]
				dx[m] += d * in[m]
			}
			if gate == 2 {
				d *= u.use
			}
			grown, back := l.grown.back[k*netState:][:netState], l.back[k*netState:][:netState]
			for m := range grown {
				grown[m] += d * before.state[m]
				before.d[m] += d * back[m]
			}
		}
	}
	for _, c := range s.clues {
		l.words.learn(c/(1<<32/netWords), dx[:], rate)
	}
}

// table is learned by Adagrad, a row at a time.
type table struct{ weights, squares []float32 }

func newTable(size int) table { return table{make([]float32, size), make([]float32, size)} }

func (t *table) row(i uint32, size int) []float32 { return t.weights[int(i)*size:][:size] }

func (t *table) learn(i uint32, grown []float32, rate float32) {
	weights, squares := t.row(i, len(grown)), t.squares[int(i)*len(grown):][:len(grown)]
	for k, g := range grown {
		g += 1e-6 * weights[k]
		squares[k] += g * g
		weights[k] -= rate * g / (float32(math.Sqrt(float64(squares[k]))) + 0.03)
	}
}

// octets are the weights as signed octets, and their scale.
func (t *table) octets() (out []byte, scale float32) {
	squares := 0.0
	for _, w := range t.weights {
		squares += float64(w) * float64(w)
	}
	scale = float32(6 * math.Sqrt(squares/float64(len(t.weights))) / 127)
	for _, w := range t.weights {
		out = append(out, byte(int8(max(-127, min(127, math.Round(float64(w/scale)))))))
	}
	return out, scale
}

// adam learns weights by their gradients and by how these were before.
type adam struct {
	weights, grown, mean, squares []float32
	times                         float64
}

func newAdam() adam {
	float := func() []float32 { return make([]float32, denseSize) }
	return adam{weights: float(), grown: float(), mean: float(), squares: float()}
}

func (a *adam) learn(rate float32) {
	a.times++
	rate *= float32(math.Sqrt(1-math.Pow(0.999, a.times)) / (1 - math.Pow(0.9, a.times)))
	for i, g := range a.grown {
		g /= netBatch
		a.mean[i] += 0.1 * (g - a.mean[i])
		a.squares[i] += 0.001 * (g*g - a.squares[i])
		a.weights[i] -= rate * (a.mean[i]/(float32(math.Sqrt(float64(a.squares[i])))+1e-7) + 1e-5*a.weights[i])
	}
	clear(a.grown)
}

// Octets is what was learned, as the program reads it.
func (l *Learner) Octets() []byte {
	words, wordScale := l.words.octets()
	ends, endScale := l.ends.octets()
	learned := strings.Join(l.learned, " ")
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(learned)))
	out = append(out, learned...)
	for _, w := range append([]float32{wordScale, endScale}, l.flat.weights...) {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(w))
	}
	out = append(out, l.met...)
	return append(append(out, words...), ends...)
}
