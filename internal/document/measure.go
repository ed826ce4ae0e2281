package document

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// holds is what is below an element.
type holds struct {
	words        int  // of its text
	text         bool // it has any
	begins, ends bool // its text begins, ends within a word
	h1           bool
	blocks       bool // what no table of data has in a cell
}

// measure looks at every node below some once, and says what each element holds. Asking elements one by one would
// read the innermost text of a page as often as elements are nested.
func measure(nodes []*html.Node) map[*html.Node]holds {
	m := map[*html.Node]holds{}
	var look func(n *html.Node) holds
	look = func(n *html.Node) (h holds) {
		if n.Type == html.TextNode {
			return holdsText(n.Data)
		}
		paragraph := false // the element before is one
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			below := look(c)
			h.add(below)
			if c.Type != html.ElementNode {
				continue
			}
			h.h1 = h.h1 || below.h1 || c.DataAtom == atom.H1
			h.blocks = h.blocks || below.blocks || placed[c.DataAtom] || paragraph && c.DataAtom == atom.P
			paragraph = c.DataAtom == atom.P
		}
		if n.Type == html.ElementNode {
			m[n] = h
		}
		return h
	}
	for _, n := range nodes {
		look(n)
	}
	return m
}

// placed are elements that stand in tables that only place things.
var placed = map[atom.Atom]bool{atom.Table: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true,
	atom.Pre: true, atom.Article: true, atom.Section: true}

func holdsText(s string) holds {
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return holds{words: countWords(s), text: s != "", begins: s != "" && !unicode.IsSpace(first), ends: s != "" &&
		!unicode.IsSpace(last)}
}

func countWords(s string) (n int) {
	for range strings.FieldsSeq(s) {
		n++
	}
	return n
}

// wordsOf is how many words a text has, with two signs a word in scripts without spaces.
func wordsOf(s string) int {
	signs := 0
	for _, r := range s {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Khmer, unicode.Lao, unicode.Myanmar) {
			signs++
		}
	}
	return countWords(s) + signs/2
}

// add appends the text of what comes next.
func (h *holds) add(next holds) {
	if !next.text {
		return
	}
	if h.words += next.words; h.ends && next.begins {
		h.words-- // one word in two elements
	}
	if !h.text {
		h.begins = next.begins
	}
	h.text, h.ends = true, next.ends
}

// words is how many words some elements hold.
func words(s *goquery.Selection) (n int) {
	m := measure(s.Nodes)
	for _, node := range s.Nodes {
		n += m[node].words
	}
	return n
}

// mainness says whether an element, or one above it, is the page's main part.
type mainness byte

const (
	withinNone mainness = iota
	withinRole          // it only has the role
	withinMain          // an article or main
)

// ancestry looks at every element below some once, and says which of them are within a main part.
func ancestry(nodes []*html.Node) map[*html.Node]mainness {
	m := map[*html.Node]mainness{}
	var look func(n *html.Node, above mainness)
	look = func(n *html.Node, above mainness) {
		if n.Type == html.ElementNode {
			switch {
			case n.DataAtom == atom.Article, n.DataAtom == atom.Main:
				above = withinMain
			case above == withinNone && attr(n, "role") == "main":
				above = withinRole
			}
			if above != withinNone {
				m[n] = above
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			look(c, above)
		}
	}
	for _, n := range nodes {
		look(n, withinNone)
	}
	return m
}
