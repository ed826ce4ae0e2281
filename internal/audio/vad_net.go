package audio

import (
	_ "embed"
	"encoding/binary"
	"math"
)

// The network of VAD: a layer of gated recurrent units (Cho and others, 2014), and above it one value that says
// whether there is speech, one that says whether it is certainly speech, and one for each band that says how much of
// its power is speech. Its weights are made by `go test -tags train -run VADTrain`.

const (
	vadUnits = 40
	vadWidth = vadInputs + vadUnits // what a gate looks at
	vadHeads = headShare + vadBands
)

// The values above the units.
const (
	headSpeech = iota
	headSure
	headShare // and those of the other bands
)

// gru is its weights, in one row so that they can be learned, read and written as one.
type gru struct {
	all  []float32
	gate [3][vadUnits][]float32 // update, reset, new: for inputs and units
	bias [4][vadUnits]*float32  // of the gates; the last is that of the units in "new"
	head [vadHeads][]float32    // for the units, and its bias
}

func newGRU() *gru {
	n := &gru{all: make([]float32, 3*vadUnits*vadWidth+4*vadUnits+vadHeads*(vadUnits+1))}
	rest := n.all
	take := func(size int) (part []float32) {
		part, rest = rest[:size:size], rest[size:]
		return part
	}
	for g := range n.gate {
		for u := range n.gate[g] {
			n.gate[g][u] = take(vadWidth)
		}
	}
	for g := range n.bias {
		for u := range n.bias[g] {
			n.bias[g][u] = &take(1)[0]
		}
	}
	for h := range n.head {
		n.head[h] = take(vadUnits + 1)
	}
	return n
}

//go:embed vad.weights
var vadWeights []byte

// vadNetwork is what was learned: each weight as a 16-bit whole number of 1/2048.
var vadNetwork = func() *gru {
	n := newGRU()
	if len(vadWeights) == 2*len(n.all) { // it isn't before the first training
		for i := range n.all {
			n.all[i] = float32(int16(binary.LittleEndian.Uint16(vadWeights[2*i:]))) / 2048
		}
	}
	return n
}()

// mind is the state of the network in a stream.
type mind struct {
	x    [vadWidth]float32 // the inputs, and the units after the last frame
	next [vadUnits]float32
}

// infer takes the inputs in x and says how likely they are speech, as a logit.
func (m *mind) infer() float32 {
	n := vadNetwork
	for u := range vadUnits {
		update := squash(*n.bias[0][u] + dot(m.x[:], n.gate[0][u]))
		reset := squash(*n.bias[1][u] + dot(m.x[:], n.gate[1][u]))
		w := n.gate[2][u]
		fresh := tanh(*n.bias[2][u] + dot(m.x[:vadInputs], w[:vadInputs]) +
			reset*(*n.bias[3][u]+dot(m.x[vadInputs:], w[vadInputs:])))
		m.next[u] = fresh + update*(m.x[vadInputs+u]-fresh)
	}
	copy(m.x[vadInputs:], m.next[:])
	return m.value(headSpeech)
}

// shares sets how much of each band's power is speech.
func (m *mind) shares(to *[vadBands]float32) {
	for b := range to {
		to[b] = squash(m.value(headShare + b))
	}
}

func (m *mind) value(head int) float32 {
	w := vadNetwork.head[head]
	return w[vadUnits] + dot(m.x[vadInputs:], w[:vadUnits])
}

func squash(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

func tanh(x float32) float32 { return 2*squash(2*x) - 1 }
