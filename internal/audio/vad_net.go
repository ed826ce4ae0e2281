package audio

import (
	_ "embed"
	"encoding/binary"
)

// A network of VAD: a layer of gated recurrent units (Cho and others, 2014), and above it one value that says
// whether there is speech, one that says whether it is certainly speech, and one for each band that says how much of
// its power is speech. Their weights are made by `go test -tags train -run VADTrain`.

const (
	vadUnits  = 64
	vad2Units = 96
	vadHeads  = headShare + vadBands
)

// The values above the units.
const (
	headSpeech = iota
	headSure
	headShare // and those of the other bands
)

// gru is a layer of such units with values above it: its weights, in one row so that they can be learned, read and written
// as one.
type gru struct {
	inputs, units int
	all           []float32
	gate          [3][][]float32 // update, reset, new: for inputs and units
	bias          [4][]float32   // of the gates; the last is that of the units in "new"
	head          [][]float32    // for the units, and its bias
}

func newGRU(inputs, units, heads int) *gru {
	width := inputs + units // what a gate looks at
	n := &gru{inputs: inputs, units: units, all: make([]float32, 3*units*width+4*units+heads*(units+1))}
	rest := n.all
	take := func(size int) (part []float32) {
		part, rest = rest[:size:size], rest[size:]
		return part
	}
	for g := range n.gate {
		for range units {
			n.gate[g] = append(n.gate[g], take(width))
		}
	}
	for g := range n.bias {
		n.bias[g] = take(units)
	}
	for range heads {
		n.head = append(n.head, take(units+1))
	}
	return n
}

// learned sets what was learned: each weight as a 16-bit whole number of 1/2048.
func (n *gru) learned(weights []byte) *gru {
	if len(weights) == 2*len(n.all) { // it isn't before the first training
		for i := range n.all {
			n.all[i] = float32(int16(binary.LittleEndian.Uint16(weights[2*i:]))) / 2048
		}
	}
	return n
}

//go:embed vad.weights
var vadWeights []byte

//go:embed vad2.weights
var vad2Weights []byte

// Two networks say whether there is speech, and the mean of what they say is better than either. The second is larger, hears
// finer and learned from sounds that were changed more; it alone is too sure of noises that it hasn't heard.
var (
	vadNetwork  = newGRU(vadTuned, vadUnits, vadHeads).learned(vadWeights)
	vad2Network = newGRU(vadInputs, vad2Units, vadHeads).learned(vad2Weights)
)

// mind is the state of a network in a stream.
type mind struct {
	n    *gru
	x    []float32 // the inputs, and the units after the last frame
	sums []float32 // of update, reset, new, and of what new hears of the units
}

func newMind(n *gru) mind {
	return mind{n: n, x: make([]float32, n.inputs+n.units), sums: make([]float32, 4*n.units)}
}

// infer takes the inputs in x and gives the first value above the units, which is a logit.
func (m *mind) infer() float32 {
	n, units := m.n, m.x[m.n.inputs:]
	I, U := n.inputs, len(units)
	W := I + U
	update, reset, fresh, under := m.sums[:U], m.sums[U:2*U], m.sums[2*U:3*U], m.sums[3*U:4*U]
	products(m.sums[:2*U], m.x, n.all, W)
	products(fresh, m.x[:I], n.all[2*U*W:], W)
	products(under, units, n.all[2*U*W+I:], W)
	for u := range U {
		update[u] += n.bias[0][u]
		reset[u] += n.bias[1][u]
	}
	squashAll(m.sums[:2*U])
	for u := range U { // tanh(x) is 2*squash(2x) - 1
		fresh[u] = 2 * (n.bias[2][u] + fresh[u] + reset[u]*(n.bias[3][u]+under[u]))
	}
	squashAll(fresh)
	for u, was := range units {
		f := 2*fresh[u] - 1
		units[u] = f + update[u]*(was-f)
	}
	return m.value(0)
}

// shares sets how much of each band's power is speech.
func (m *mind) shares(to *[vadBands]float32) {
	for b := range to {
		to[b] = squash(m.value(headShare + b))
	}
}

func (m *mind) value(head int) float32 {
	n := m.n
	w := n.head[head]
	return w[n.units] + dot(m.x[n.inputs:], w[:n.units])
}

func squash(x float32) float32 { return 1 / (1 + exp(-x)) }
