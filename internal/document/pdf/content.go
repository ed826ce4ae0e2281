package pdf

import "bytes"

// Bounds of a page's content.
const (
	maxOps    = 4 << 20 // operators of a page, forms included
	maxChars  = 1 << 20 // characters of a page
	maxForms  = 12      // forms within forms
	maxStates = 256     // saved graphics states
	maxArgs   = 4096
)

type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul is m followed by n.
func (m matrix) mul(n matrix) matrix {
	return matrix{m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3], m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5]}
}

// state is the part of the graphics state that places text (9.3).
type state struct {
	ctm                                    matrix
	font                                   *font
	size, charSpace, wordSpace, lead, rise float64
	stretch                                float64
}

// painter runs a page's content and collects its characters.
type painter struct {
	f      *file
	fonts  map[ref]*font
	out    []mark
	ops    int
	images int
	lost   int // characters without a text
	state
	saved  []state
	text   matrix // Tm
	line   matrix // Tlm
	actual []*string
}

// content runs a stream of operators.
func (p *painter) content(data []byte, resources dict, depth int) {
	l := &lexer{b: data, flat: true}
	var args []any
	for p.ops < maxOps && len(p.out) < maxChars {
		v := l.object(0)
		op, ok := v.(keyword)
		if !ok {
			if len(args) < maxArgs {
				args = append(args, v)
			}
			continue
		}
		if op == end {
			return
		}
		p.ops++
		switch op {
		case "BI":
			l.skipImage()
			p.images++
		case "Do":
			if len(args) > 0 {
				p.object(p.f.get(p.f.dict(resources["XObject"])[asName(args[0])]), resources, depth)
			}
		case "Tf":
			if len(args) >= 2 {
				p.font, p.size = p.pick(p.f.dict(resources["Font"])[asName(args[0])]), float(args[1])
			}
		case "gs":
			if len(args) > 0 {
				g := p.f.dict(p.f.dict(resources["ExtGState"])[asName(args[0])])
				if a := p.f.array(g["Font"]); len(a) == 2 {
					p.font, p.size = p.pick(a[0]), p.f.float(a[1])
				}
			}
		case "BDC", "BMC":
			p.begin(args, resources)
		case "EMC":
			if n := len(p.actual); n > 0 {
				p.actual = p.actual[:n-1]
			}
		default:
			p.operator(op, args)
		}
		args = args[:0]
	}
}

func asName(v any) name { n, _ := v.(name); return n }

// begin notes the text that stands for what is shown until EMC (14.9.4).
func (p *painter) begin(args []any, resources dict) {
	var actual *string
	if n := len(p.actual); n > 0 {
		actual = p.actual[n-1] // also for what is nested
	}
	if len(args) == 2 {
		d, ok := args[1].(dict)
		if n, named := args[1].(name); named {
			d, ok = p.f.dict(p.f.dict(resources["Properties"])[n]), true
		}
		if s, there := p.f.get(d["ActualText"]).(string); ok && there {
			text := textString(s)
			actual = &text
		}
	}
	if len(p.actual) < maxStates {
		p.actual = append(p.actual, actual)
	}
}

// pick is a font of the resources, read once.
func (p *painter) pick(v any) *font {
	r, ok := v.(ref)
	if t := p.fonts[r]; ok && t != nil {
		return t
	}
	d := p.f.dict(v)
	if d == nil {
		return nil
	}
	t := p.f.font(d)
	if ok {
		p.fonts[r] = t
	}
	return t
}

// object runs a form (8.10); images hold no text.
func (p *painter) object(v any, resources dict, depth int) {
	s, ok := v.(stream)
	if !ok {
		return
	}
	if p.f.name(s.dict["Subtype"]) != "Form" {
		p.images++
		return
	}
	if depth >= maxForms {
		return
	}
	data, err := p.f.decode(s)
	if err != nil {
		return
	}
	if own := p.f.dict(s.dict["Resources"]); own != nil {
		resources = own
	}
	saved, stack := p.state, p.saved
	p.saved = nil
	if m, ok := p.matrix(p.f.array(s.dict["Matrix"])); ok {
		p.ctm = m.mul(p.ctm)
	}
	p.content(data, resources, depth+1)
	p.state, p.saved = saved, stack
}

func (p *painter) matrix(a []any) (m matrix, ok bool) {
	if len(a) < 6 {
		return identity, false
	}
	for i := range m {
		m[i] = p.f.float(a[i])
	}
	return m, true
}

func (p *painter) operator(op keyword, args []any) {
	num := func(i int) float64 {
		if i < len(args) {
			return float(args[i])
		}
		return 0
	}
	switch op {
	case "q":
		if len(p.saved) < maxStates {
			p.saved = append(p.saved, p.state)
		}
	case "Q":
		if n := len(p.saved); n > 0 {
			p.state, p.saved = p.saved[n-1], p.saved[:n-1]
		}
	case "cm":
		if m, ok := p.matrix(args); ok {
			p.ctm = m.mul(p.ctm)
		}
	case "BT":
		p.text, p.line = identity, identity
	case "Tm":
		if m, ok := p.matrix(args); ok {
			p.text, p.line = m, m
		}
	case "TD":
		p.lead = -num(1)
		p.move(num(0), num(1))
	case "Td":
		p.move(num(0), num(1))
	case "T*":
		p.move(0, -p.lead)
	case "Tc":
		p.charSpace = num(0)
	case "Tw":
		p.wordSpace = num(0)
	case "TL":
		p.lead = num(0)
	case "Ts":
		p.rise = num(0)
	case "Tz":
		p.stretch = num(0) / 100
	case "Tj", "TJ", "'", "\"":
		p.showOp(op, args)
	}
}

func (p *painter) showOp(op keyword, args []any) {
	if len(args) == 0 {
		return
	}
	if op == "\"" && len(args) >= 3 {
		p.wordSpace, p.charSpace = float(args[0]), float(args[1])
	}
	if op == "'" || op == "\"" {
		p.move(0, -p.lead)
	}
	switch v := args[len(args)-1].(type) {
	case string:
		p.show(v)
	case array:
		for _, x := range v {
			if s, ok := x.(string); ok {
				p.show(s)
			} else if p.font != nil && p.font.vertical {
				p.advance(0, -float(x)/1000*p.size)
			} else {
				p.advance(-float(x)/1000*p.size*p.stretch, 0)
			}
		}
	}
}

func (p *painter) move(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.mul(p.line)
	p.text = p.line
}

func (p *painter) advance(x, y float64) { p.text = matrix{1, 0, 0, 1, x, y}.mul(p.text) }

// show places the characters of a string.
func (p *painter) show(s string) {
	if p.font == nil {
		return
	}
	p.font.chars(s, func(c char) {
		if len(p.out) >= maxChars {
			return
		}
		m := matrix{p.size * p.stretch, 0, 0, p.size, 0, p.rise}.mul(p.text).mul(p.ctm)
		extra := p.charSpace
		if c.space {
			extra += p.wordSpace
		}
		text := c.text
		if n := len(p.actual); n > 0 && p.actual[n-1] != nil {
			text, *p.actual[n-1] = *p.actual[n-1], ""
		} else if text == "" && c.width > 0 {
			p.lost++
		}
		p.out = append(p.out, newMark(m, c.width, text))
		if p.font.vertical {
			p.advance(0, -p.size+extra)
		} else {
			p.advance((c.width*p.size+extra)*p.stretch, 0)
		}
	})
}

// skipImage steps over an inline image: to an EI that stands alone and is followed by something that is text.
func (l *lexer) skipImage() {
	for {
		if k := l.token(); k == keyword("ID") {
			break
		} else if k == end {
			return
		}
	}
	for {
		k := bytes.Index(l.b[min(l.i, len(l.b)):], []byte("EI"))
		if k < 0 {
			l.i = len(l.b)
			return
		}
		at := l.i + k
		l.i = at + 2
		if at == 0 || class[l.b[at-1]] != 1 || l.i < len(l.b) && class[l.b[l.i]] != 1 {
			continue
		}
		plain := true
		for _, c := range l.b[l.i:min(l.i+16, len(l.b))] {
			plain = plain && (c >= ' ' && c < 127 || class[c] == 1 && c != 0)
		}
		if plain {
			return
		}
	}
}
