package search

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What the index holds is the same for all languages: words cut to their English stems. In languages that inflect in
// other ways a question's word stands for all words of the vocabulary that have its stem there. So nothing need be
// indexed anew, documents in several languages may stand side by side, and a language can be added at any time. All
// words here are as [terms] yields them: lower case, without accents.

// language is how one language makes its words, and how it is recognised.
type language struct {
	// words that its texts are full of, and no other's here; none of them are stop words of the index
	marks   map[string]bool
	stops   map[string]bool     // words of questions that say nothing of what is asked for
	endings []string            // the longest first
	derived []string            // endings that make other words; more must be left of a word than with the others
	letters [][2]string         // what is written in two ways
	tidy    func(string) string // makes stems alike that differ by what sound changes do
	other   map[string]string   // stems that are another's
	heads   []string            // what may stand before a word: participles, articles that have lost their vowel
	elides  bool                // heads stand before vowels alone
	glues   bool                // words are put together from others
}

var languages = []*language{dutch, french, polish, spanish}

// stem cuts a word's endings.
func (l *language) stem(w string) string {
	if w == "" || w[0] >= '0' && w[0] <= '9' {
		return w
	}
	w = l.plain(w)
	s := cutEnding(w, l.derived, 4)
	if s == w {
		s = cutEnding(w, l.endings, 3)
	}
	if s = l.tidy(s); l.other[s] != "" {
		return l.other[s]
	}
	return s
}

// plain writes a word in one of the ways in which it may be written.
func (l *language) plain(w string) string {
	for _, p := range l.letters {
		w = strings.ReplaceAll(w, p[0], p[1])
	}
	return w
}

// written are the ways in which the beginning of a word may be written.
func (l *language) written(head string) []string {
	out := []string{head}
	for _, p := range l.letters {
		for i := 0; i < len(head); i++ {
			if strings.HasPrefix(head[i:], p[1]) {
				out = append(out, head[:i]+p[0]+head[i+len(p[1]):])
			}
		}
	}
	return out
}

func cutEnding(w string, endings []string, least int) string {
	for _, e := range endings {
		if s, ok := strings.CutSuffix(w, e); ok && len(s) >= least {
			return s
		}
	}
	return w
}

// bare are the words that a word of a text may be, without what can stand before it.
func (l *language) bare(w string) []string {
	out := []string{w}
	for _, h := range l.heads {
		if rest, ok := strings.CutPrefix(w, h); ok && len(rest) > 3 && (!l.elides || opens(rest)) {
			out = append(out, rest)
		}
	}
	return out
}

// base is a question's word as it is compared with others. An elided article before it has been removed already.
func (l *language) base(w string) string {
	if l.elides {
		return w
	}
	all := l.bare(w)
	return all[len(all)-1]
}

// opens says whether a word begins so that an article before it loses its vowel.
func opens(w string) bool { return w != "" && strings.IndexByte("aeiouyh", w[0]) >= 0 }

const (
	sameStem  = 1
	nearStem  = 2 // one is made from the other, or is a part of it
	shortPart = 4 // letters of a part at least
)

// kin says whether a word of a text has the stem of a question's word, or is near it.
func (l *language) kin(asked, stem, word string) int {
	best := 0
	asked = l.plain(asked)
	for _, w := range l.bare(word) {
		w = l.plain(w)
		s := l.stem(w)
		switch {
		case s == stem:
			return sameStem
		case len(stem) >= shortPart && strings.HasPrefix(w, stem), len(s) >= shortPart && len(asked) > len(s)+1 &&
			strings.HasPrefix(asked, s),
			l.glues && len(w) > shortPart && len(asked) > len(w)+3 && strings.HasSuffix(asked, w):
			best = nearStem
		}
	}
	return best
}

// begin is what the words may begin with that are kin to a question's word.
func (l *language) begin(asked, stem string) (out []string) {
	stems := []string{stem}
	for from, to := range l.other {
		if to == stem {
			stems = append(stems, from)
		}
	}
	if utf8.RuneCountInString(asked) > shortPart {
		stems = append(stems, l.plain(asked))
	}
	for _, s := range stems {
		r := []rune(s)
		if len(r) < 3 {
			continue
		}
		for _, head := range l.written(string(r[:max(3, min(shortPart, len(r)-1))])) {
			out = append(out, head)
			for _, h := range l.heads {
				if !l.elides || opens(s) {
					out = append(out, h+head)
				}
			}
		}
	}
	if l.glues {
		for i := shortPart; i+shortPart < len(asked); i++ {
			if utf8.RuneStart(asked[i]) {
				out = append(out, asked[i:])
			}
		}
	}
	return out
}

// spoken are the languages that a question is in, as far as they are known here, and whether its own words say so.
// One word alone says little, as others have it too (comment, door); it takes two, or a knowledgebase in that
// language. have says how many of its passages have each mark. A question that says nothing is in the languages of
// the knowledgebase.
func spoken(question []string, have map[string]int, total int) (list []*language, said bool) {
	most := 0
	// words of the language, and English ones that it has not
	counts, others := make([]int, len(languages)), make([]int, len(languages))
	for i, l := range languages {
		for _, w := range question {
			switch {
			case len(w) > 2 && (l.stops[w] || l.marks[w]):
				counts[i]++
			case english[w] && !l.stops[w]:
				others[i]++
			}
		}
		most = max(most, counts[i])
	}
	for i, l := range languages {
		if counts[i] == most && most >= others[i] && (most > max(1, others[i]) || l.in(have, total)) {
			list = append(list, l)
		}
	}
	return list, most > 0
}

// in says whether a knowledgebase has documents in a language: a twentieth of its passages, or, where these are a few
// documents among many others, what one word borrowed can't be.
func (l *language) in(have map[string]int, total int) bool {
	kinds, sum := 0, 0
	for m := range l.marks {
		if have[m] > 0 {
			kinds++
			sum += have[m]
		}
	}
	return kinds > 1 && 20*sum >= total || 2*kinds >= len(l.marks)
}

// english are the words that tell an English question from the others.
var english = set(`a an the is are was were do does did can could will would shall should may how what where when which who why i you we they it my your our
	me us this that these those there of to in on at by for from with and or not if any much many have has had be been am as no so than then into over under up out its
	their all about also more most use using`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// fields are words, the longest first.
func fields(s string) []string {
	list := strings.Fields(s)
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return list
}

// elided are a question's words that begin with what has lost its vowel before them, such as l'heure: by the one word
// that they are in the index, the one that was meant.
func elided(question string) map[string]string {
	var of map[string]string
	for _, m := range elision.FindAllStringSubmatch(question, 50) {
		whole, rest := "", ""
		terms(m[1]+m[2], func(w string) { whole = w })
		terms(m[2], func(w string) { rest = w })
		if whole != "" && rest != "" {
			if of == nil {
				of = map[string]string{}
			}
			of[whole] = rest
		}
	}
	return of
}

var elision = regexp.MustCompile(`(?i)(?:^|[^\pL\pN])([ldjmtscn]|qu|jusqu|lorsqu|puisqu)['’](\pL[\pL\pM]*)`)

// marks are those of all languages.
var marks = func() (all []string) {
	for _, l := range languages {
		all = slices.AppendSeq(all, maps.Keys(l.marks))
	}
	return all
}()

// telling are the words of a question without those that say nothing in its language; all of them where that leaves
// none.
func telling(question []string, elided map[string]string, asked []*language) []string {
	var out []string
	for _, w := range question {
		if !slices.ContainsFunc(asked, func(l *language) bool { return l.stops[cmp.Or(elided[w], w)] }) {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return question
	}
	return out
}

// family are the words of the vocabulary that are kin to a word of a question.
type family struct {
	same, near []Word
}

// stems are those that stand for a word in the index, in order, with spaces between.
func (f family) stems(w string) string {
	list := []string{stem(w)}
	for _, k := range f.same {
		list = append(list, stem(k.Word))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

// maxKin is how many words may stand for another that are only near it.
const maxKin = 4

// families finds those of some words of the vocabulary that are kin to each word of a question. elided says which of
// these stand for others.
func families(question []string, elided map[string]string, spoken []*language, known []Word) map[string]family {
	slices.SortFunc(known, func(a, b Word) int {
		return cmp.Or(cmp.Compare(len(a.Word), len(b.Word)), strings.Compare(a.Word, b.Word))
	})
	known = slices.CompactFunc(known, func(a, b Word) bool { return a.Word == b.Word })
	out := map[string]family{}
	for _, w := range question {
		asked := cmp.Or(elided[w], w)
		stems := make([]string, len(spoken))
		for i, l := range spoken {
			stems[i] = l.stem(l.base(asked))
		}
		var f family
		for _, k := range known {
			best := 0
			for i, l := range spoken {
				if kin := l.kin(l.base(asked), stems[i], k.Word); kin > 0 && (best == 0 || kin < best) {
					best = kin
				}
			}
			switch {
			case k.Word == w || k.Word == asked || best == sameStem:
				f.same = append(f.same, k)
			case best == nearStem && len(f.near) < maxKin:
				f.near = append(f.near, k)
			}
		}
		out[w] = f
	}
	return out
}
