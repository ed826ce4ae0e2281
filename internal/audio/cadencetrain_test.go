//go:build train

package audio

import (
	"math"
	"testing"
)

// cadenceTrust is how much of what was learned counts: the words tell part of it, too.
const cadenceTrust = 0.5

// TestCadenceTrain learns cadenceWeights from the recordings of the list whose end is the end of what was said, and logs
// them; they are written into cadence.go by hand. Each kind of recording counts alike, and its ends like its pauses. What
// it logs first is how well those do that learned nothing from the kind they are measured with.
func TestCadenceTrain(t *testing.T) {
	kinds := []string{"Picovoice", "cuttledoc", "/CV/"}
	from := recordings(t, "train", "speech")
	var sets [][]ending
	for _, k := range kinds {
		sets = append(sets, readEndings(t, from, k))
	}
	for left, set := range sets {
		var others [][]ending
		for i, s := range sets {
			if i != left {
				others = append(others, s)
			}
		}
		w := regress(others)
		t.Logf("%s: %d ends and pauses, told apart in %.1f %% of pairs with what the others teach", kinds[left], len(set),
			100*area(set, func(e ending) float32 { return float32(weigh(w, e.traits)) }))
	}
	w := regress(sets)
	for i := range w {
		w[i] *= cadenceTrust
	}
	t.Logf("cadenceWeights = {%.2f}", w)
	for i, x := range w {
		if math.Abs(x-float64(cadenceWeights[i])) > 0.02 {
			t.Errorf("cadenceWeights[%d] is %v, and %.2f was learned", i, cadenceWeights[i], x)
		}
	}
}

func weigh(w [len(cadenceWeights)]float64, t cadenceTraits) float64 {
	sum := w[len(t)]
	for i, x := range t {
		sum += w[i] * float64(x)
	}
	return sum
}

// regress is logistic regression by gradient descent.
func regress(sets [][]ending) (w [len(cadenceWeights)]float64) {
	for range 3000 {
		var slope [len(cadenceWeights)]float64
		for _, set := range sets {
			over := 0.0
			for _, e := range set {
				if e.over {
					over++
				}
			}
			for _, e := range set {
				miss, many := 1/(1+math.Exp(-weigh(w, e.traits))), float64(len(set))-over
				if e.over {
					miss, many = miss-1, over
				}
				for i, x := range e.traits {
					slope[i] += miss * float64(x) / many
				}
				slope[len(e.traits)] += miss / many
			}
		}
		for i := range w {
			w[i] -= 0.3 * slope[i]
		}
	}
	return w
}
