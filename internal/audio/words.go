package audio

import _ "embed"

// words tells, while a sound goes on, whether it has words that mean something, or is only a word of listening ("mm-hm",
// "okay") or a noise. It is a network like that of VAD, with its basic inputs, which begins anew with each sound. It
// learned from synthetic voices, from recordings of people, and from noises: `go test -tags train -run WordsTrain`.
type words struct {
	mind   mind
	before [wordsBefore][vadBasic]float32 // the inputs of the newest frames
	at     int                            // the frame that it has heard last; 0 at the beginning of a sound
	logit  float32
}

const (
	wordsUnits  = 64
	wordsBefore = 4 // frames: so many belong to a sound before it is taken for speech, at most
)

//go:embed words.weights
var wordsWeights []byte

var wordsNetwork = newGRU(vadBasic, wordsUnits, 1).learned(wordsWeights)

// keep remembers the inputs of a frame.
func (w *words) keep(frame int, inputs []float32) { copy(w.before[frame%wordsBefore][:], inputs) }

// Words says how likely the present sound has words that mean something, as a logit; 0 where there is none. It hears what
// came since it was last asked, so that it costs nothing in streams where nobody asks.
func (v *VAD) Words() float32 {
	w := &v.words
	if v.hang == 0 {
		return 0
	}
	if w.at < v.frames-wordsBefore {
		w.at = max(v.frames-wordsBefore, 0)
		clear(w.mind.x)
	}
	for w.at < v.frames {
		w.at++
		copy(w.mind.x, w.before[w.at%wordsBefore][:])
		w.logit = w.mind.infer()
	}
	return w.logit
}
