// Package search finds the passages of documents that answer a question. An [Index] ranks them by the words of the
// question as they are written, by the words as they were probably meant, and, if there is an embedder, by meaning. Its
// passages, their words and vectors have tables of their own, which [Add] and [Drop] keep up to date.
package search

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	maxTerms   = 24    // words of a question that are looked for
	maxNew     = 5_000 // candidates, after which commoner words only add to what rarer ones have found
	maxJudged  = 64    // candidates that are read and judged by their text
	closeness  = 60    // the constant of reciprocal rank fusion: how little the first ranks differ
	queryBytes = 4_000 // of a question that are looked at
)

// Index finds passages. Its fields are set before its first use.
type Index struct {
	DB *store.DB
	// Embedder is the embedding model that there is now: a key may be entered or removed while the server runs. nil, or
	// an answer of nil: passages are found by words alone.
	Embedder func() ai.Embedder

	vectors vectors
}

// Search finds the passages of one of the user's knowledgebases that answer a question, best first, at most limit. Up
// to three rankings are fused by reciprocal rank: by the words as they are written, by the words as they were
// probably meant, and, where there is an embedder, by meaning. The same text is given once, whichever documents have
// it.
func (x *Index) Search(ctx context.Context, userID, knowledgebaseID int64, query string,
	limit int) ([]parley.Passage, error) {
	revision, total, err := x.DB.KnowledgeState(ctx, userID, knowledgebaseID)
	if err != nil || total == 0 {
		return []parley.Passage{}, err
	}
	if len(query) > queryBytes {
		query = strings.ToValidUTF8(query[:queryBytes], "")
	}
	near := make(chan []int64, 1)
	go func() {
		defer crash.Contain(func(err error) {
			slog.Error("the search by meaning panicked", "knowledgebase", knowledgebaseID, "error", err)
			near <- nil
		})
		near <- x.near(ctx, knowledgebaseID, revision, query)
	}()
	rankings, chunks, err := x.byWords(ctx, knowledgebaseID, total, query)
	byMeaning := <-near
	if err != nil {
		return nil, err
	}
	if len(byMeaning) > 0 {
		rankings = append(rankings, byMeaning)
		if err := x.fetch(ctx, knowledgebaseID, byMeaning, chunks); err != nil {
			return nil, err
		}
	}
	return fuse(rankings, chunks, limit), nil
}

// Present is the embedding model that there is now, nil if there is none.
func (x *Index) Present() ai.Embedder {
	if x.Embedder == nil {
		return nil
	}
	return x.Embedder()
}

// fetch reads the passages among ids that are not in chunks yet.
func (x *Index) fetch(ctx context.Context, knowledgebaseID int64, ids []int64, chunks map[int64]*Chunk) error {
	var lack []int64
	for _, id := range ids {
		if chunks[id] == nil {
			lack = append(lack, id)
		}
	}
	list, err := passages(ctx, x.DB.Query, knowledgebaseID, lack)
	for i := range list {
		chunks[list[i].ID] = &list[i]
	}
	return err
}

// fuse makes one ranking of several by reciprocal rank. A score of 1 is first place in all of them.
func fuse(rankings [][]int64, chunks map[int64]*Chunk, limit int) []parley.Passage {
	score := map[int64]float64{}
	for _, ranking := range rankings {
		place := 0
		for _, id := range ranking {
			if chunks[id] != nil {
				place++
				score[id] += (closeness + 1) / float64(closeness+place) / float64(len(rankings))
			}
		}
	}
	ids := make([]int64, 0, len(score))
	for id := range score {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	out, seen := []parley.Passage{}, map[string]bool{}
	for _, id := range ids {
		c := chunks[id]
		if len(out) == limit {
			break
		}
		if seen[c.Text] {
			continue
		}
		seen[c.Text] = true
		out = append(out, parley.Passage{DocumentID: c.DocumentID, DocumentName: c.DocumentName, Text: c.Text,
			Score: math.Round(score[id]*1e4) / 1e4, Source: parley.NewSource(c.URL, c.Page, c.Heading)})
	}
	return out
}

// term is a word of the question: the words that stand for it, each with its weight. A meaning of several words is
// their stems, as the index has them, with spaces between.
type term struct {
	stems  map[string]float64
	exact  string // as it is written, or in another of its forms; "" when the knowledgebase has no such word
	place  int    // in the question
	common int    // the passages that have it, where they are so many that rarer words pick the candidates; else 0
}

// weighed is what is looked for: a stem, or several that are one.
type weighed struct {
	stem     string
	all      []string // the stems that it is
	idf      float64
	text     []int64 // passages that have it
	often    []int64
	heading  []int64
	common   int     // see term
	exact    float64 // what it counts in the ranking by the words as they are written
	tolerant float64 // and as they were probably meant
}

// byWords ranks by the question's words: exactly, and, where words had to be corrected, tolerantly too.
func (x *Index) byWords(ctx context.Context, knowledgebaseID int64, total int, query string) ([][]int64,
	map[int64]*Chunk, error) {
	chunks := map[int64]*Chunk{}
	list, corrected, err := x.terms(ctx, knowledgebaseID, total, query)
	if err != nil || len(list) == 0 {
		return nil, chunks, err
	}
	stems, err := x.weigh(ctx, knowledgebaseID, total, list)
	if err != nil {
		return nil, chunks, err
	}
	candidates := gather(stems)
	if err := x.fetch(ctx, knowledgebaseID, candidates, chunks); err != nil {
		return nil, nil, err
	}
	j := newScorer(stems, list)
	exact, tolerant := map[int64]float64{}, map[int64]float64{}
	for id, c := range chunks {
		exact[id], tolerant[id] = j.scorer(c)
	}
	rankings := [][]int64{ranked(tolerant)}
	if corrected {
		rankings = append(rankings, ranked(exact))
	}
	return rankings, chunks, nil
}

// ranked sorts what has a score.
func ranked(score map[int64]float64) []int64 {
	var ids []int64
	for id, s := range score {
		if s > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	return ids
}

// weigh looks up the stems of the terms: where each is, and how much it says.
func (x *Index) weigh(ctx context.Context, knowledgebaseID int64, total int, list []term) ([]*weighed, error) {
	by := map[string]*weighed{}
	var out []*weighed
	var tokens []string
	for _, t := range list {
		for s, weight := range t.stems {
			w := by[s]
			if w == nil {
				w = &weighed{stem: s, all: strings.Fields(s), common: t.common}
				by[s] = w
				out = append(out, w)
			}
			w.tolerant = max(w.tolerant, weight)
			w.common = min(w.common, t.common) // another of its spellings may be rare
			if s == t.exact {
				w.exact = 1
			}
		}
	}
	slices.SortFunc(out, func(a, b *weighed) int { return strings.Compare(a.stem, b.stem) })
	for _, w := range out {
		for _, s := range w.all {
			if tokens = append(tokens, inHeading+s); w.common == 0 {
				tokens = append(tokens, inText+s, oftenIn+s)
			}
		}
	}
	lists, err := postings(ctx, x.DB.Query, knowledgebaseID, tokens)
	if err != nil {
		return nil, err
	}
	for _, w := range out {
		for range w.all {
			if w.heading, lists = union(w.heading, lists[0]), lists[1:]; w.common == 0 {
				w.text, w.often, lists = union(w.text, lists[0]), union(w.often, lists[1]), lists[2:]
			}
		}
		df := float64(max(len(w.text), len(w.heading), w.common))
		w.idf = math.Log(1 + (max(float64(total), df)-df+0.5)/(df+0.5))
	}
	slices.SortStableFunc(out, func(a, b *weighed) int { return cmp.Compare(b.idf, a.idf) })
	return out, nil
}

// union is what either of two lists has, once.
func union(a, b []int64) []int64 {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	a = append(a, b...)
	slices.Sort(a)
	return slices.Compact(a)
}

// gather picks the passages that are worth reading: those that score best by which of the stems they have, the rarest
// stems first.
func gather(stems []*weighed) []int64 {
	score := map[int64]float64{}
	add := func(ids []int64, weight float64) {
		full := len(score) >= maxNew
		for _, id := range ids {
			if s, ok := score[id]; ok || !full {
				score[id] = s + weight
			}
		}
	}
	for _, w := range stems {
		weight := w.idf * w.tolerant
		add(w.heading, 1.5*weight)
		add(w.often, 0.4*weight)
		add(w.text, weight)
	}
	ids := make([]int64, 0, len(score))
	for id := range score {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	return ids[:min(maxJudged, len(ids))]
}

// terms are the words of a question that are looked for; corrected says that some of them are not written as they are
// in the knowledgebase.
func (x *Index) terms(ctx context.Context, knowledgebaseID int64, total int, query string) (list []term,
	corrected bool, err error) {
	words, kin, err := x.words(ctx, knowledgebaseID, total, query)
	if err != nil || len(words) == 0 {
		return nil, false, err // nothing but stop words, which nothing is found by
	}
	have := make(map[string]int, len(words))
	var strange []string
	for _, w := range words {
		for _, k := range kin[w].same {
			have[w] += k.Chunks
		}
		if have[w] == 0 {
			strange = append(strange, w)
		}
	}
	meant, err := x.meant(ctx, knowledgebaseID, strange)
	if err != nil {
		return nil, false, err
	}
	place := make(map[string]int, len(words))
	for i, w := range words {
		place[w] = i
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(have[a], have[b]) })
	read := 0
	for _, w := range words {
		s := kin[w].stems(w)
		t := term{stems: map[string]float64{s: 1}, place: place[w]}
		if have[w] > 0 {
			t.exact = s
		}
		for m, weight := range meant[w] {
			corrected = true
			t.stems[stem(m)] = max(weight, t.stems[stem(m)])
		}
		for _, k := range kin[w].near {
			t.stems[stem(k.Word)] = max(nearWeight, t.stems[stem(k.Word)])
		}
		if read += have[w]; read > maxRead(total) && len(list) > 0 {
			t.common = have[w]
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b term) int { return cmp.Compare(a.place, b.place) })
	return list, corrected, nil
}

// words are a question's words that say what is asked for, each with the words of the vocabulary that it stands for.
func (x *Index) words(ctx context.Context, knowledgebaseID int64, total int, query string) ([]string,
	map[string]family, error) {
	var all, words []string
	terms(query, func(w string) {
		if all = append(all, w); !stopwords[w] && !slices.Contains(words, w) {
			words = append(words, w)
		}
	})
	words = words[:min(maxTerms, len(words))]
	if len(words) == 0 {
		return nil, nil, nil
	}
	bare := elided(query)
	known, err := Words(ctx, x.DB.Query, knowledgebaseID,
		slices.Concat(words, slices.Collect(maps.Values(bare)), marks))
	if err != nil {
		return nil, nil, err
	}
	have := make(map[string]int, len(known))
	for _, w := range known {
		have[w.Word] = w.Chunks
	}
	spoken, said := spoken(all, have, total)
	if said {
		words = telling(words, bare, spoken)
	}
	var begin []string
	for _, w := range words {
		for _, l := range spoken {
			base := l.base(cmp.Or(bare[w], w))
			begin = append(begin, l.begin(base, l.stem(base))...)
		}
	}
	if len(begin) > 0 {
		slices.Sort(begin)
		begin = slices.Compact(begin)
		begun, err := wordsFrom(ctx, x.DB.Query, knowledgebaseID, begin[:min(maxBegun, len(begin))], maxOfBegun)
		if err != nil {
			return nil, nil, err
		}
		known = append(known, begun...)
	}
	return words, families(words, bare, spoken, known), nil
}

const (
	maxBegun   = 200 // beginnings that words are looked up by
	maxOfBegun = 500 // words that begin so
	nearWeight = 0.4 // of a word that another is made from, or a part of
)

// maxRead is how many postings a question reads of words that are not its rarest.
func maxRead(total int) int { return 2000 + total/8 }

const (
	maxGuesses = 3   // words that a misspelt one may have been
	maxLooked  = 200 // words of the vocabulary that are compared with it
)

// meant finds which words of the vocabulary strange ones were probably meant to be, with how far each can stand for it.
func (x *Index) meant(ctx context.Context, knowledgebaseID int64, strange []string) (map[string]map[string]float64,
	error) {
	var tokens []string
	from := map[string]int{}
	for _, w := range strange {
		for _, t := range wanted(w) {
			if _, ok := from[t]; !ok {
				from[t] = len(tokens)
				tokens = append(tokens, t)
			}
		}
	}
	lists, err := wordPostings(ctx, x.DB.Query, knowledgebaseID, tokens)
	if err != nil || len(tokens) == 0 {
		return nil, err
	}
	of := map[string][]int64{} // the words to be compared with each
	var all []int64
	for _, w := range strange {
		score := map[int64]float64{}
		for _, t := range wanted(w) {
			list := lists[from[t]]
			weight := 1 / math.Log(2+float64(len(list)))
			if t[:1] == missing {
				weight = 10 // a single slip
			}
			for _, id := range list {
				score[id] += weight
			}
		}
		ids := ranked(score)
		of[w] = ids[:min(maxLooked, len(ids))]
		all = append(all, of[w]...)
	}
	slices.Sort(all)
	known, err := wordsByID(ctx, x.DB.Query, knowledgebaseID, slices.Compact(all))
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*Word, len(known))
	for i := range known {
		byID[known[i].ID] = &known[i]
	}
	out := map[string]map[string]float64{}
	for _, w := range strange {
		var near []*Word
		for _, id := range of[w] {
			if k := byID[id]; k != nil {
				near = append(near, k)
			}
		}
		out[w] = guesses(w, near)
	}
	return out, nil
}

// guesses picks those of some words that are nearest to a misspelt one; of equally near ones those that begin alike,
// and the commonest.
func guesses(w string, near []*Word) map[string]float64 {
	r := []rune(w)
	most := 1
	if len(r) >= 7 {
		most = 2
	}
	type guess struct {
		word          string
		slips, chunks int
		begins        bool
	}
	var list []guess
	for _, k := range near {
		other := []rune(k.Word)
		if n := slips(r, other, most); n <= most {
			list = append(list, guess{k.Word, n, k.Chunks, other[0] == r[0]})
		}
	}
	slices.SortFunc(list, func(a, b guess) int {
		if a.begins != b.begins && a.slips == b.slips {
			return map[bool]int{true: -1, false: 1}[a.begins]
		}
		return cmp.Or(cmp.Compare(a.slips, b.slips), cmp.Compare(b.chunks, a.chunks), strings.Compare(a.word, b.word))
	})
	out := map[string]float64{}
	for i, g := range list[:min(maxGuesses, len(list))] {
		out[g.word] = 0.9 / float64(g.slips) / (1 + 0.5*float64(i))
	}
	return out
}

// near ranks by meaning, where there is an embedder. That it fails is no reason to find nothing.
func (x *Index) near(ctx context.Context, knowledgebaseID, revision int64, query string) []int64 {
	embedder := x.Present()
	if embedder == nil {
		return nil
	}
	ids, err := x.vectors.search(ctx, x.DB, embedder, knowledgebaseID, revision, query)
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "search by meaning failed; searched by words alone", "knowledgebase", knowledgebaseID,
			"error", err)
	}
	return ids
}
