package pdf

import (
	"unicode/utf16"
)

// cmap maps the codes in a string to text (a ToUnicode map, 9.10.3) or to the numbers of glyphs (9.7.5).
type cmap struct {
	spaces []codespace
	text   map[code]string
	ranges []textRange
	cids   []cidRange
}

// code is a character's code with its length in bytes: <41> and <0041> are two codes.
type code struct {
	value uint32
	size  int
}

type codespace struct {
	low, high uint32
	size      int
}

type textRange struct {
	low, high uint32
	size      int
	dst       []uint16
}

type cidRange struct {
	low, high uint32
	size, cid int
}

// maxMap bounds the entries of a map; a font has at most 65,536 glyphs.
const maxMap = 1 << 18

func parseCMap(data []byte) *cmap {
	m := &cmap{text: map[code]string{}}
	l := &lexer{b: data}
	var args []any
	for {
		v := l.object(0)
		op, ok := v.(keyword)
		if !ok {
			if len(args) < 4096 {
				args = append(args, v)
			}
			continue
		}
		switch op {
		case end:
			return m
		case "endcodespacerange":
			m.codespaces(args)
		case "endbfchar":
			for ; len(args) >= 2 && len(m.text) < maxMap; args = args[2:] {
				if c, ok := codeOf(args[0]); ok {
					m.text[c] = textOf(args[1])
				}
			}
		case "endbfrange":
			m.bfranges(args)
		case "endcidchar", "endcidrange":
			m.cidranges(args, op == "endcidrange")
		}
		args = args[:0]
	}
}

func (m *cmap) codespaces(args []any) {
	for ; len(args) >= 2 && len(m.spaces) < 256; args = args[2:] {
		low, ok := codeOf(args[0])
		high, ok2 := codeOf(args[1])
		if ok && ok2 && low.size == high.size {
			m.spaces = append(m.spaces, codespace{low.value, high.value, low.size})
		}
	}
}

func (m *cmap) bfranges(args []any) {
	for ; len(args) >= 3 && len(m.ranges) < maxMap; args = args[3:] {
		low, ok := codeOf(args[0])
		high, ok2 := codeOf(args[1])
		if !ok || !ok2 || high.value < low.value {
			continue
		}
		switch dst := args[2].(type) {
		case string:
			m.ranges = append(m.ranges, textRange{low.value, high.value, low.size, units(dst)})
		case array:
			for i, d := range dst {
				if len(m.text) < maxMap {
					m.text[code{low.value + uint32(i), low.size}] = textOf(d)
				}
			}
		}
	}
}

func (m *cmap) cidranges(args []any, ranges bool) {
	step := 2
	if ranges {
		step = 3
	}
	for ; len(args) >= step && len(m.cids) < maxMap; args = args[step:] {
		low, ok := codeOf(args[0])
		high, ok2 := codeOf(args[step-2])
		cid, ok3 := args[step-1].(int)
		if ok && ok2 && ok3 {
			m.cids = append(m.cids, cidRange{low.value, high.value, low.size, cid})
		}
	}
}

func codeOf(v any) (code, bool) {
	s, ok := v.(string)
	if !ok || len(s) == 0 || len(s) > 4 {
		return code{}, false
	}
	c := code{size: len(s)}
	for i := range len(s) {
		c.value = c.value<<8 | uint32(s[i])
	}
	return c, true
}

func units(s string) []uint16 {
	if len(s) == 1 {
		return []uint16{uint16(s[0])}
	}
	u := make([]uint16, 0, min(len(s)/2, 64))
	for i := 0; i+1 < len(s) && len(u) < 64; i += 2 {
		u = append(u, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return u
}

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return string(utf16.Decode(units(v)))
	case name:
		return glyphText(string(v))
	}
	return ""
}

// next cuts the next code off a string by the codespace ranges.
func (m *cmap) next(s string) (code, int) {
	c := code{}
	for n := 1; n <= 4 && n <= len(s); n++ {
		c = code{c.value<<8 | uint32(s[n-1]), n}
		for _, r := range m.spaces {
			if r.size == n && inRange(c.value, r.low, r.high, n) {
				return c, n
			}
		}
	}
	n := min(len(s), 1)
	if len(m.spaces) > 0 {
		n = min(len(s), m.spaces[0].size)
	}
	c, _ = codeOf(s[:n])
	return c, n
}

// inRange compares byte by byte, as codespaces are rectangles.
func inRange(v, low, high uint32, n int) bool {
	for ; n > 0; n-- {
		if v&255 < low&255 || v&255 > high&255 {
			return false
		}
		v, low, high = v>>8, low>>8, high>>8
	}
	return true
}

// lookup is a code's text. Maps are written with a code's size other than the string's, so the value decides where
// the size does not.
func (m *cmap) lookup(c code) (string, bool) {
	for _, size := range [...]int{c.size, 1, 2} {
		if t, ok := m.text[code{c.value, size}]; ok {
			return t, true
		}
	}
	for i := range m.ranges {
		if r := &m.ranges[i]; c.value >= r.low && c.value <= r.high && len(r.dst) > 0 {
			u := append([]uint16(nil), r.dst...)
			u[len(u)-1] += uint16(c.value - r.low)
			t := string(utf16.Decode(u))
			if len(m.text) < maxMap {
				m.text[c] = t
			}
			return t, true
		}
	}
	return "", false
}

func (m *cmap) cid(c code) int {
	for i := range m.cids {
		if r := &m.cids[i]; r.size == c.size && c.value >= r.low && c.value <= r.high {
			return r.cid + int(c.value-r.low)
		}
	}
	return 0
}
