package campaign

import "strings"

// state is how the text of a record stands.
type state int

const (
	whole    state = iota
	unclosed       // a quote is not closed
	torn           // something stands between a closed quote and the next separator
)

// parser takes a record apart, line by line. A cell is quoted when a quote is the first of it but for spaces; quotes
// elsewhere are text.
type parser struct {
	comma  byte
	cells  []string
	quoted bool // a quote is open, of the cell in text
	text   strings.Builder
}

// feed takes the record's next line.
func (p *parser) feed(line string) state {
	if p.quoted {
		p.text.WriteByte('\n')
	}
	for {
		if !p.quoted {
			start := strings.TrimLeft(line, " ")
			if !strings.HasPrefix(start, `"`) {
				cell, rest, more := strings.Cut(line, string(p.comma))
				p.cells = append(p.cells, cell)
				if !more {
					return whole
				}
				line = rest
				continue
			}
			p.quoted, line = true, start[1:]
		}
		text, rest, closed := strings.Cut(line, `"`)
		p.text.WriteString(text)
		if !closed {
			return unclosed
		}
		if strings.HasPrefix(rest, `"`) {
			p.text.WriteByte('"')
			line = rest[1:]
			continue
		}
		p.cells = append(p.cells, p.text.String())
		p.quoted = false
		p.text.Reset()
		if rest = strings.TrimLeft(rest, " "); rest == "" {
			return whole
		}
		if rest[0] != p.comma {
			return torn
		}
		line = rest[1:]
	}
}
