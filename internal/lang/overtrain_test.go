//go:build train

package lang_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/lang"
)

const (
	overBits   = 20
	overMost   = 7000 // sentences of a source
	overLeast  = 4000 // lessons of a language, as far as its sentences can be repeated
	overRounds = 5
	overModels = 2
	overDrop   = 0.15 // of the clues are left out
	overTrust  = 0.9  // found with the sentences to choose by: sums of what was learned by heart are too certain
	overRare   = 3    // what is met less often tells nothing

	netSentences = 12000 // sentences of a source
	netRounds    = 3
	netForeign   = 0.08 // of the sentences are read as if nobody knew their language
	netBare      = 0.3  // the same where there are no spaces between words: few of the languages are written so
)

// TestOverTrain makes the weights of lang.Over from the sentences of testdata/turns.tsv in the directory that
// PARLEY_SENTENCES names, cut where people pause. It takes half an hour of one processor, and the same data gives the
// same weights. PARLEY_TRAIN_WITHOUT names languages to leave out, and PARLEY_TRAIN_TO another file for the weights.
func TestOverTrain(t *testing.T) {
	without := strings.Fields(os.Getenv("PARLEY_TRAIN_WITHOUT"))
	learn := slices.DeleteFunc(languages(), func(l string) bool { return slices.Contains(without, l) })
	weights := append(linear(t, learn), network(t, learn)...)
	file := "over.weights"
	if to := os.Getenv("PARLEY_TRAIN_TO"); to != "" {
		file = to
	}
	if err := os.WriteFile(file, weights, 0o644); err != nil {
		t.Fatal(err)
	}
}

// lessonsOf reads the sentences of languages, at most so many of a source.
func lessonsOf(t *testing.T, languages []string, most int) (all []*sentences, lessons []lesson) {
	for _, l := range languages {
		s := saidIn(t, l, "train", most)
		t.Logf("%s: %d", l, len(s.turns))
		again := min(max(overLeast/len(s.turns), 1), 4) // each time cut elsewhere
		for range again {
			for i := range s.turns {
				lessons = append(lessons, lesson{len(all), i})
			}
		}
		all = append(all, s)
	}
	return all, lessons
}

// linear learns the linear part: logistic regression by stochastic gradient descent with Adagrad.
func linear(t *testing.T, languages []string) []byte {
	all, lessons := lessonsOf(t, languages, overMost)
	met := make([]uint8, 1<<26) // how often each clue is
	for _, l := range lessons {
		words := all[l.s].turns[l.i]
		for _, part := range [][]string{words, words[:(len(words)+1)/2]} {
			for _, c := range lang.Clues(plain(strings.Join(part, "")), all[l.s].language, nil) {
				met[c>>6] = min(met[c>>6]+1, overRare)
			}
		}
	}
	// The mean of several models errs less than each of them.
	var models [overModels][]float32
	var wait sync.WaitGroup
	for m := range models {
		wait.Go(func() { models[m] = learnt(t, uint64(17+m), all, slices.Clone(lessons), met) })
	}
	wait.Wait()
	weights := make([]float32, 1<<overBits)
	for _, m := range models {
		for i, w := range m {
			weights[i] += w / overModels
		}
	}
	high := float32(0)
	for _, w := range weights {
		high = max(high, w, -w)
	}
	high = min(high, 6)
	out := bytes.NewBuffer(binary.LittleEndian.AppendUint32(nil, math.Float32bits(high/127*(1-overDrop)*overTrust)))
	used := 0
	for _, w := range weights {
		q := int8(max(-127, min(127, math.Round(float64(w/high*127)))))
		if q != 0 {
			used++
		}
		out.WriteByte(byte(q))
	}
	t.Logf("%d weights are not zero, the largest is %.2f", used, high)
	return out.Bytes()
}

// network learns the other part, from all places of a sentence at once where somebody may pause.
func network(t *testing.T, languages []string) []byte {
	all, lessons := lessonsOf(t, languages, netSentences)
	met := make([]uint8, 1<<24)
	for _, l := range lessons {
		for _, w := range all[l.s].turns[l.i] {
			for _, token := range lang.Tokens(w) {
				for _, c := range lang.WordClues(token, "", all[l.s].language, nil) {
					met[c>>8] = min(met[c>>8], 254) + 1
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 99))
	learner := lang.NewLearner(languages, met, netRounds*len(lessons), r)
	began := time.Now()
	for round := range netRounds {
		r.Shuffle(len(lessons), func(i, j int) { lessons[i], lessons[j] = lessons[j], lessons[i] })
		learner.Loss, learner.Sum = 0, 0
		for _, l := range lessons {
			language := all[l.s].language
			if foreign := r.Float64(); foreign < netForeign || foreign < netBare && joints[language] != "" {
				language = ""
			}
			words, ends := all[l.s].read(l.i, language, learner, r)
			learner.Learn(words, ends)
		}
		t.Logf("the network, round %d: loss %.4f of %d, %v", round, learner.Loss/learner.Sum, len(lessons), time.Since(began).Round(time.Second))
	}
	return learner.Octets()
}

// read makes the clues of an utterance that begins with the i-th turn, and of each place where it may be paused in.
func (s *sentences) read(i int, language string, learner *lang.Learner, r *rand.Rand) (words [][]uint32, ends []lang.End) {
	said := s.spoken(i, r)
	pauses, total := s.pauses(said)
	punctuated := r.IntN(3) == 0
	words = append(words, learner.Begin(language))
	text, mark := "", ""
	for k, word := range said {
		text += word
		for _, token := range lang.Tokens(word) {
			words = append(words, learner.Word(token, mark, language))
			mark = ""
		}
		end := lang.End{After: len(words), Over: 1, Weight: 1}
		written := ""
		if k == len(said)-1 {
			written = wholeOf(text, punctuated, r)
		} else {
			end.Over, end.Weight = 0, float32(pauses[k+1]/total)
			written = pausedOf(text, punctuated, r)
		}
		end.Clues = lang.EndClues(written, len(words)-1, language, s.language)
		ends = append(ends, end)
		if punctuated {
			mark = lang.Stop(strings.TrimSpace(word))
		}
	}
	return words, ends
}

// lesson is a sentence by its place.
type lesson struct{ s, i int }

// learnt are the weights after the rounds of one model.
func learnt(t *testing.T, seed uint64, all []*sentences, lessons []lesson, met []uint8) []float32 {
	r := rand.New(rand.NewPCG(seed, 17))
	began := time.Now()
	var found []uint32
	weights := make([]float32, 1<<overBits)
	squares := make([]float32, 1<<overBits)
	loss, seen := 0.0, 0
	learn := func(text, language string, over float64) {
		// A part of the clues is left out at random each time, so that none is relied on alone.
		found = slices.DeleteFunc(lang.Clues(text, language, found[:0]), func(c uint32) bool {
			return met[c>>6] < overRare || r.Float64() < overDrop
		})
		sum := float32(0)
		for _, c := range found {
			sum += weights[c>>(32-overBits)]
		}
		p := 1 / (1 + math.Exp(-float64(sum)))
		loss -= math.Log(math.Max(1e-9, over*p+(1-over)*(1-p)))
		seen++
		g := float32(p - over)
		for _, c := range found {
			i := c >> (32 - overBits)
			d := g + 2e-6*weights[i]
			squares[i] += d * d
			weights[i] -= 0.08 * d / (float32(math.Sqrt(float64(squares[i]))) + 1e-3)
		}
	}
	for round := range overRounds {
		r.Shuffle(len(lessons), func(i, j int) { lessons[i], lessons[j] = lessons[j], lessons[i] })
		loss, seen = 0, 0
		for _, l := range lessons {
			s := all[l.s]
			u := s.utter(l.i, r)
			if u == nil {
				learn(plain(strings.Join(s.turns[l.i], "")), s.language, 1)
				continue
			}
			paused, whole := u.texts(r.IntN(3) == 0, r)
			learn(paused, s.language, 0)
			learn(whole, s.language, 1)
		}
		t.Logf("model %d, round %d: loss %.4f of %d, %v", seed, round, loss/float64(seen), seen, time.Since(began).Round(time.Second))
	}
	return weights
}
