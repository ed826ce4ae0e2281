package pdf

import (
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// mark is a character on the page, seen in its own direction of reading: x grows along it and y upwards, whatever way
// the page is turned.
type mark struct {
	text       string
	x, y       float64 // where it begins, on its baseline
	end        float64 // where the next one would begin
	size       float64
	turn       int8 // quarter turns
	whitespace bool
}

func newMark(m matrix, width float64, text string) mark {
	g := mark{text: text, size: math.Hypot(m[2], m[3]), whitespace: strings.TrimSpace(text) == "" && text != ""}
	along := width * math.Hypot(m[0], m[1])
	switch {
	case math.Abs(m[0]) >= math.Abs(m[1]) && m[0] >= 0:
		g.x, g.y = m[4], m[5]
	case math.Abs(m[0]) >= math.Abs(m[1]):
		g.x, g.y, g.turn = -m[4], -m[5], 2
	case m[1] > 0:
		g.x, g.y, g.turn = m[5], -m[4], 1
	default:
		g.x, g.y, g.turn = -m[5], m[4], 3
	}
	g.end = g.x + along
	return g
}

// Distances as shares of the character size.
const (
	wordGap  = 0.1  // apart: another word (poppler's measure)
	backStep = 0.6  // how far back a character may begin and still go on with the row: kerning, accents
	baseline = 0.5  // super- and subscripts stay in the row
	rowPitch = 1.75 // rows further apart are another paragraph's
)

// row is a line of text as it is written.
type row struct {
	text    strings.Builder
	x, end  float64
	y, size float64
	turn    int8
	last    string // the text of the last mark, and where it was
	lastAt  float64
	gap     bool // white space since
	start   int  // where the last mark begins in text
}

// goesOn says whether a mark is the next one of a row.
func (r *row) goesOn(g *mark) bool {
	size := max(r.size, g.size)
	return r.turn == g.turn && math.Abs(g.y-r.y) < baseline*size && g.x > r.end-backStep*size
}

// add puts a mark at the row's end, with a space where there is room for one.
func (r *row) add(g *mark) {
	if g.whitespace {
		r.gap, r.end = true, max(r.end, g.end)
		return
	}
	if g.text == "" {
		r.end = max(r.end, g.end)
		return
	}
	size := max(min(r.size, g.size), 0.01)
	if r.text.Len() > 0 {
		switch {
		case g.text == r.last && math.Abs(g.x-r.lastAt) < 0.1*size && !r.gap: // printed twice, to look bold
			return
		case g.x < r.end-wordGap*size && r.accent(g):
			return
		case r.gap && g.x > r.lastAt+wordGap*size/2, g.x-r.end > wordGap*size:
			r.text.WriteByte(' ')
		}
	} else {
		r.x, r.y, r.size = g.x, g.y, g.size
	}
	r.start = r.text.Len()
	r.text.WriteString(g.text)
	r.last, r.lastAt, r.gap = g.text, g.x, false
	r.end = max(r.end, g.end)
	if g.size > r.size { // a large letter or a superscript is no measure of the row
		r.y, r.size = g.y, g.size
	}
}

// spacing accents as fonts have them, and what they are above a letter.
var accents = map[string]rune{"`": 0x300, "´": 0x301, "ˆ": 0x302, "^": 0x302, "˜": 0x303, "~": 0x303, "¯": 0x304,
	"˘": 0x306, "˙": 0x307, "¨": 0x308,
	"˚": 0x30a, "˝": 0x30b, "ˇ": 0x30c, "¸": 0x327, "˛": 0x328}

// accent composes a letter and an accent that are printed over each other, as TeX's older fonts do.
func (r *row) accent(g *mark) bool {
	letter, mark := r.last, accents[g.text]
	if mark == 0 {
		letter, mark = g.text, accents[r.last]
	}
	if letter == "ı" {
		letter = "i"
	}
	if mark == 0 || len([]rune(letter)) != 1 || !unicode.IsLetter([]rune(letter)[0]) {
		return false
	}
	both := norm.NFC.String(letter + string(mark))
	if len([]rune(both)) != 1 {
		return false
	}
	kept := r.text.String()[:r.start]
	r.text.Reset()
	r.text.WriteString(kept)
	r.text.WriteString(both)
	r.last, r.lastAt, r.end = both, min(r.lastAt, g.x), max(r.end, g.end)
	return true
}

// layout makes text of a page's marks: rows by what is written on in one line, in the order of writing, with an empty
// line where the distance or the size changes.
func layout(marks []mark) string {
	var rows []*row
	var r *row
	for i := range marks {
		g := &marks[i]
		if math.IsNaN(g.x) || math.IsNaN(g.y) || math.IsInf(g.x, 0) || math.IsInf(g.y, 0) {
			continue
		}
		if r == nil || !r.goesOn(g) {
			if g.whitespace || g.text == "" {
				continue
			}
			r = &row{turn: g.turn}
			rows = append(rows, r)
			r.end = g.x
		}
		r.add(g)
	}
	rows = joinRows(rows)
	var out strings.Builder
	for i, r := range rows {
		if i > 0 {
			out.WriteString(between(rows[i-1], r))
		}
		out.WriteString(r.text.String())
	}
	return out.String()
}

// between is what parts two rows.
func between(a, b *row) string {
	size := max(a.size, b.size)
	drop := a.y - b.y
	switch {
	case a.turn == b.turn && math.Abs(drop) < baseline*size && b.x >= a.end: // one line, written in pieces: a table's row
		return " "
	case a.turn != b.turn, drop < 0, drop > rowPitch*size, math.Abs(a.size-b.size) > 0.2*size:
		return "\n\n"
	}
	return "\n"
}

// joinRows puts rows together that are pieces of one line although other things were written in between: the one
// begins where the other ends.
func joinRows(rows []*row) []*row {
	type key struct {
		turn int8
		y    int
	}
	ends := map[key][]*row{}
	at := func(r *row, d int) key { return key{r.turn, int(math.Round(clamp(r.y))) + d} }
	var out []*row
	for _, r := range rows {
		var before *row
		for d := -1; d <= 1 && before == nil; d++ {
			near := ends[at(r, d)]
			for i := len(near) - 1; i >= 0 && i >= len(near)-16; i-- {
				gap := r.x - near[i].end
				if size := min(near[i].size, r.size); math.Abs(near[i].y-r.y) < 0.1*size && gap > -wordGap*size &&
					gap < 0.4*size {
					before = near[i]
					break
				}
			}
		}
		if before == nil {
			ends[at(r, 0)] = append(ends[at(r, 0)], r)
			out = append(out, r)
			continue
		}
		if before.gap || r.x-before.end > wordGap*min(before.size, r.size) {
			before.text.WriteByte(' ')
		}
		before.text.WriteString(r.text.String())
		before.end, before.gap, before.size = r.end, r.gap, max(before.size, r.size)
	}
	return out
}

func clamp(x float64) float64 { return max(-1e6, min(1e6, x)) }
