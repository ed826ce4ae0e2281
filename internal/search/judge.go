package search

import (
	"math"
	"strings"
)

// How passages are judged: BM25 over text and headings, and what brings the question's words close together.
const (
	saturation = 1.2 // BM25's k1
	lengthPart = 0.6 // BM25's b
	usualWords = 180 // in a passage
	ownHeading = 2.5 // a word in the heading right above counts as often as that in the text
	farHeading = 0.8 // in one further above, or in the document's title
	adjacent   = 0.5 // of the rarer word's weight, for two words of the question that stand together in the text
	reach      = 3   // words that may stand between them, plus one
	sameTopic  = 1.5 // of the matched weight, for a heading that says what the question does, no more and no less
)

// scorer scores passages by their text.
type scorer struct {
	stems  []*weighed
	at     map[string][]int // stem -> what it stands for
	first  [256]bool        // bytes that a stem begins with
	terms  [][]int          // the question's words in order: the stems that stand for each
	cached Lexicon

	text, own, far [][]int // positions of each stem in the present passage
	others         int     // other words in its own heading
}

func newScorer(stems []*weighed, list []term) *scorer {
	j := &scorer{stems: stems, at: map[string][]int{}, cached: Lexicon{}, text: make([][]int, len(stems)),
		own: make([][]int, len(stems)), far: make([][]int, len(stems))}
	at := make(map[string]int, len(stems))
	for i, w := range stems {
		at[w.stem] = i
		for _, s := range w.all {
			j.at[s] = append(j.at[s], i)
			j.first[s[0]] = true
		}
	}
	for _, t := range list {
		var of []int
		for s := range t.stems {
			of = append(of, at[s])
		}
		j.terms = append(j.terms, of)
	}
	return j
}

// find notes where a text has the stems, and counts its words and those that are neither a stem nor a stop word.
func (j *scorer) find(text string, into [][]int) (words, others int) {
	for i := range into {
		into[i] = into[i][:0]
	}
	terms(text, func(w string) {
		words++
		if j.first[w[0]] {
			if of, ok := j.at[j.cached.stem(w)]; ok {
				for _, i := range of {
					into[i] = append(into[i], words)
				}
				return
			}
		}
		if !stopwords[w] {
			others++
		}
	})
	return words, others
}

// scorer scores a passage by the words as they are written, and as they were probably meant.
func (j *scorer) scorer(c *Chunk) (exact, tolerant float64) {
	far, own := c.Title, c.Heading
	if i := strings.LastIndex(c.Heading, " > "); i >= 0 {
		far, own = far+"\n"+c.Heading[:i], c.Heading[i+3:]
	}
	words, _ := j.find(c.Text, j.text)
	_, j.others = j.find(own, j.own)
	j.find(far, j.far)
	length := 1 - lengthPart + lengthPart*float64(words)/usualWords
	return j.score(length, func(w *weighed) float64 { return w.exact }),
		j.score(length, func(w *weighed) float64 { return w.tolerant })
}

func (j *scorer) score(length float64, counts func(*weighed) float64) float64 {
	sum, heading, all := 0.0, 0.0, 0.0
	inHeading := 0
	for _, of := range j.terms {
		best, topic, weight := 0.0, 0.0, 0.0
		for _, i := range of { // of the stems that stand for a word the one that says most
			w := j.stems[i]
			n := float64(len(j.text[i]))/length + ownHeading*float64(min(1,
				len(j.own[i]))) + farHeading*float64(min(1, len(j.far[i])))
			value := w.idf * counts(w)
			weight = max(weight, value)
			if n > 0 {
				best = max(best, value*n*(saturation+1)/(n+saturation))
			}
			if len(j.own[i]) > 0 {
				topic = max(topic, value)
			}
		}
		sum += best
		all += weight
		if topic > 0 {
			heading += topic
			inHeading++
		}
	}
	if sum == 0 {
		return 0
	}
	for k := 1; k < len(j.terms); k++ {
		sum += adjacent * j.together(j.terms[k-1], j.terms[k], counts)
	}
	if inHeading > 0 {
		share := float64(inHeading) / float64(inHeading+j.others)
		sum += sameTopic * heading * (heading / all) * share
	}
	return sum
}

// together is the weight of the rarer of two words of the question where they stand near each other and in order.
func (j *scorer) together(a, b []int, counts func(*weighed) float64) float64 {
	best := 0.0
	for _, i := range a {
		for _, k := range b {
			value := math.Min(j.stems[i].idf*counts(j.stems[i]), j.stems[k].idf*counts(j.stems[k]))
			if value > best && i != k && (follows(j.text[i], j.text[k]) || follows(j.own[i], j.own[k])) {
				best = value
			}
		}
	}
	return best
}

// follows says whether a position of b is shortly behind one of a. Both are sorted.
func follows(a, b []int) bool {
	k := 0
	for _, p := range a {
		for k < len(b) && b[k] <= p {
			k++
		}
		if k < len(b) && b[k]-p <= reach {
			return true
		}
	}
	return false
}
