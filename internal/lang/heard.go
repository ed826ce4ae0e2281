package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Heard is the part of a written text that has been said when the first until octets of its spoken form have: whole
// words, as far as the last that was said to its end. Text that is written differently from how it is said (a number,
// an address) counts by its share of the words.
func Heard(text, spoken string, until int) string {
	said, written := words(spoken), words(text)
	k := 0
	for k < len(said) && said[k].core <= until {
		k++
	}
	switch k {
	case 0:
		return ""
	case len(said):
		return text
	}
	// Between words that are the same in both, what is left on both sides belongs together.
	i, j := 0, 0 // what has been matched of written and said
	for _, m := range align(written, said) {
		if m.said >= k {
			return upTo(text, written, i+(k-j)*(m.written-i)/max(m.said-j, 1))
		}
		i, j = m.written+1, m.said+1
	}
	return upTo(text, written, i+(k-j)*(len(written)-i)/max(len(said)-j, 1))
}

func upTo(text string, words []word, n int) string {
	if n == 0 {
		return ""
	}
	return text[:words[n-1].end]
}

// word is a word of a text, or a character where words are not written apart.
type word struct {
	key  string // as it is compared
	core int    // where its last letter or digit ends
	end  int    // and its last sign
}

func words(text string) (list []word) {
	var w word
	begun := false
	flush := func() {
		if begun {
			list = append(list, w)
		}
		w, begun = word{}, false
	}
	for at, r := range text {
		end := at + utf8.RuneLen(r)
		if r == utf8.RuneError {
			end = at + 1
		}
		sign := !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
		switch {
		case unicode.IsSpace(r):
			flush()
			continue
		case !sign && spaceless(r) && !unicode.IsMark(r):
			flush()
		case !sign && begun && w.key != "" && spaceless(lastRune(w.key)):
			flush()
		}
		begun = true
		w.end = end
		if !sign || w.core == 0 {
			w.core = end
		}
		if !sign {
			w.key += strings.ToLower(string(r))
		}
	}
	flush()
	return list
}

// match is a word that is the same in both texts.
type match struct{ written, said int }

// align finds words that are the same in both texts, in order: those that both begin and end with, and the longest
// common sequence of what is between them. If what is between them is too long, it finds none there.
func align(written, said []word) (matches []match) {
	same := func(a, b word) bool { return a.key != "" && a.key == b.key }
	from, to := 0, 0 // how many both begin with, and end with
	for from < min(len(written), len(said)) && same(written[from], said[from]) {
		matches = append(matches, match{from, from})
		from++
	}
	for to < min(len(written), len(said))-from && same(written[len(written)-1-to], said[len(said)-1-to]) {
		to++
	}
	n, m := len(written)-to, len(said)-to
	if (n-from)*(m-from) <= maxPairs {
		for _, x := range longest(written[from:n], said[from:m], same) {
			matches = append(matches, match{from + x.written, from + x.said})
		}
	}
	for i := range to {
		matches = append(matches, match{n + i, m + i})
	}
	return matches
}

// maxPairs bounds what is compared.
const maxPairs = 1 << 16

// longest is the longest common sequence.
func longest(written, said []word, same func(a, b word) bool) (matches []match) {
	n, m := len(written), len(said)
	common := make([]int, (n+1)*(m+1)) // of what follows
	at := func(i, j int) int { return i*(m+1) + j }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if same(written[i], said[j]) {
				common[at(i, j)] = common[at(i+1, j+1)] + 1
			} else {
				common[at(i, j)] = max(common[at(i+1, j)], common[at(i, j+1)])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case same(written[i], said[j]):
			matches = append(matches, match{i, j})
			i, j = i+1, j+1
		case common[at(i+1, j)] >= common[at(i, j+1)]:
			i++
		default:
			j++
		}
	}
	return matches
}
