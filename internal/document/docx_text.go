package document

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// wordWriter turns the tokens of WordprocessingML into sections.
type wordWriter struct {
	out     outline
	styles  map[string]*style
	numbers *numbering
	notes   map[string]string // by kind and id

	stack    []string // names of the open elements
	skip     int      // depth of the element whose content is dropped, 0 for none
	frames   []*frame // paragraphs: text boxes hold paragraphs within a paragraph
	tables   []*table
	fields   []bool // of the open complex fields: is their result being read
	pictures int
	listing  bool // the last paragraph was a list's item

	formulas []*formula
	tooDeep  int      // elements of a formula below the deepest that is read
	raised   bool     // the run is a superscript
	boxes    []string // of the open content controls: what stands for a check box, "" for none, told where it was written
	reading  string   // how the word before is read (ruby), until its end is known
	inRuby   bool
	formBox  string // a form's check box that is being read
}

// told stands for a check box that was written.
const told = "told"

// frame is a paragraph that is being read.
type frame struct {
	text      strings.Builder
	style     string
	level     int
	list      string
	listAt    int
	listed    bool
	footnotes []string
}

// table collects the cells of a row.
type table struct {
	cells []string
	cell  []string
	rows  []string
}

// dropped elements hold what a reader does not see: deletions of tracked changes, the twin of a drawing for older
// programs, and a paragraph's properties as they were before a change.
var dropped = map[string]bool{"del": true, "moveFrom": true, "Fallback": true, "pPrChange": true}

func (w *wordWriter) token(_ *xml.Decoder, t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		w.stack = append(w.stack, t.Name.Local)
		if w.skip == 0 && dropped[t.Name.Local] && !w.inProperties(t.Name.Local) {
			w.skip = len(w.stack)
		}
		switch {
		case w.skip != 0:
		case t.Name.Space == "m":
			w.startFormula(t)
		default:
			w.start(t)
		}
	case xml.EndElement:
		if len(w.stack) == 0 {
			return errDocx
		}
		if w.skip == 0 && t.Name.Space == "m" {
			w.endFormula()
		} else if w.skip == 0 {
			w.endElement(t.Name.Local)
		} else if w.skip == len(w.stack) {
			w.skip = 0
		}
		w.stack = w.stack[:len(w.stack)-1]
	case xml.CharData:
		if w.skip == 0 && len(w.stack) > 0 {
			w.chars(string(t))
		}
	}
	if w.out.size > maxText {
		return Fail(tooLong)
	}
	return nil
}

// within says whether the element around the innermost one has a name.
func (w *wordWriter) within(name string) bool {
	return len(w.stack) > 1 && w.stack[len(w.stack)-2] == name
}

// inProperties: <w:del/> within run or row properties marks the paragraph's end or the row as deleted and holds no
// text.
func (w *wordWriter) inProperties(name string) bool {
	return name == "del" && len(w.stack) > 1 && strings.HasSuffix(w.stack[len(w.stack)-2], "Pr")
}

func (w *wordWriter) top() *frame {
	if len(w.frames) == 0 {
		return nil
	}
	return w.frames[len(w.frames)-1]
}

func (w *wordWriter) write(s string) {
	f := w.top()
	if n := len(w.formulas); n > 0 {
		w.formulas[n-1].text.WriteString(s)
	} else if f != nil && !w.inInstruction() {
		w.endRuby(f)
		f.text.WriteString(w.superscript(f, s))
	}
}

// superscript is a run's text. A number that stands high behind a number, a letter or a bracket is a power.
func (w *wordWriter) superscript(f *frame, s string) string {
	number := strings.Trim(s, "0123456789+-−") == "" && strings.Trim(s, "+-−") != ""
	if w.raised && (number || s == "n") && ends(f.text.String(), func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || r == ')'
	}) {
		return "^" + s
	}
	return s
}

// endRuby writes how the words before are read.
func (w *wordWriter) endRuby(f *frame) {
	if w.reading != "" && !w.inRuby && f != nil {
		f.text.WriteString("(" + w.reading + ")")
		w.reading = ""
	}
}

// inInstruction says whether the innermost complex field's result has not begun.
func (w *wordWriter) inInstruction() bool {
	for _, result := range w.fields {
		if !result {
			return true
		}
	}
	return false
}

// chars takes text where WordprocessingML and DrawingML have it: in <w:t>, <a:t> and <m:t>.
func (w *wordWriter) chars(s string) {
	if w.stack[len(w.stack)-1] != "t" {
		return
	}
	if n := len(w.stack); w.inRuby && n > 2 && slices.Contains(w.stack, "rt") {
		w.reading += s
	} else if !w.checkBox() {
		w.write(s)
	}
}

// checkBox writes a content control's check box in place of the sign that it shows, and says whether there is one.
func (w *wordWriter) checkBox() bool {
	n := len(w.boxes)
	if n == 0 || w.boxes[n-1] == "" {
		return false
	}
	if box := w.boxes[n-1]; box != told {
		w.boxes[n-1] = told
		w.write(box)
	}
	return true
}

// box is a check box as text.
func box(e xml.StartElement) string {
	if v := value(e, "val"); v == "0" || v == "false" {
		return "[ ]"
	}
	return "[x]"
}

// signs are what fonts of signs have at their places.
var signs = map[string]map[uint64]string{
	"Wingdings": {0xa8: "[ ]", 0x6f: "[ ]", 0x71: "[ ]", 0xfe: "[x]", 0xfd: "[x]", 0xfc: "✓", 0xfb: "✗", 0xe0: "→", 0xdf: "←", 0x4a: "☺",
		0xa7: "▪", 0x6c: "●", 0x6e: "■", 0x76: "❖", 0xd8: "➢"},
	"Wingdings 2": {0x50: "✓", 0x4f: "✗", 0x52: "[x]", 0x53: "[x]", 0x54: "[x]", 0xa3: "[ ]", 0x2a: "[ ]"},
	"Symbol": {0x61: "α", 0x62: "β", 0x67: "γ", 0x64: "δ", 0x6c: "λ", 0x6d: "μ", 0x70: "π", 0x73: "σ", 0x77: "ω", 0x44: "Δ", 0x53: "Σ",
		0x57: "Ω", 0xa3: "≤", 0xb3: "≥", 0xb1: "±", 0xb4: "×", 0xb8: "÷", 0xb9: "≠", 0xbb: "≈", 0xd6: "√", 0xae: "→", 0xb0: "°", 0xb7: "•",
		0xa5: "∞", 0xe5: "Σ"},
}

// symbol is a character of a font. Fonts of signs have theirs where Unicode has letters, or nothing.
func symbol(font string, n uint64) string {
	if n >= 0xf000 && n <= 0xf0ff {
		n -= 0xf000
	} else if signs[font] == nil || n > 0xff {
		if n >= 0xe000 && n <= 0xf8ff {
			return ""
		}
		return string(rune(n))
	}
	return signs[font][n]
}

func (w *wordWriter) start(e xml.StartElement) {
	f := w.top()
	switch e.Name.Local {
	case "p":
		if e.Name.Space == "a" && f != nil { // a paragraph within a drawing
			w.write(" ")
			return
		}
		if len(w.frames) < 16 {
			w.frames = append(w.frames, &frame{})
		}
	case "pStyle":
		if f != nil {
			f.style = value(e, "val")
		}
	case "outlineLvl":
		if n, err := strconv.Atoi(value(e, "val")); f != nil && err == nil && n >= 0 && n < 9 {
			f.level = n + 1
		}
	case "numId":
		if f != nil {
			f.list, f.listed = value(e, "val"), true
		}
	case "ilvl":
		if n, err := strconv.Atoi(value(e, "val")); f != nil && err == nil && n >= 0 && n < 9 {
			f.listAt = n
		}
	case "tab", "ptab":
		if len(w.stack) < 2 || w.stack[len(w.stack)-2] != "tabs" {
			w.write("\t")
		}
	case "br", "cr":
		w.write("\n")
	case "noBreakHyphen":
		w.write("-")
	case "sym":
		if n, err := strconv.ParseUint(value(e, "char"), 16, 16); err == nil && !w.checkBox() {
			w.write(symbol(value(e, "font"), n))
		}
	case "vertAlign":
		w.raised = value(e, "val") == "superscript"
	case "r":
		w.raised = false
	case "ruby":
		if f != nil {
			w.inRuby = true
		}
	case "sdt":
		w.boxes = append(w.boxes, "")
	case "checkbox": // of a content control: not checked, unless it says so
		if n := len(w.boxes); n > 0 {
			w.boxes[n-1] = "[ ]"
		}
	case "checked":
		if n := len(w.boxes); n > 0 && w.boxes[n-1] != "" && w.within("checkbox") {
			w.boxes[n-1] = box(e)
		} else if f != nil && w.within("checkBox") {
			w.formBox = box(e)
		}
	case "default":
		if f != nil && w.within("checkBox") {
			w.formBox = box(e)
		}
	case "footnoteReference", "endnoteReference":
		kind := strings.TrimSuffix(e.Name.Local, "Reference") + "s"
		if note := w.notes[kind+value(e, "id")]; f != nil && note != "" {
			f.footnotes = append(f.footnotes, note)
		}
	case "fldChar":
		w.field(value(e, "fldCharType"))
	case "tbl":
		w.tables = append(w.tables, &table{})
	case "vanish": // a hidden run
		if n := len(w.stack); n > 2 && w.stack[n-2] == "rPr" && w.stack[n-3] == "r" && value(e, "val") != "0" &&
			value(e, "val") != "false" {
			w.skip = n - 2
		}
	case "drawing", "pict":
		w.pictures++
	}
}

// field follows a complex field: begin, instruction, separate, result, end. Only the result is text.
func (w *wordWriter) field(kind string) {
	n := len(w.fields)
	switch {
	case kind == "begin" && n < 64:
		w.fields = append(w.fields, false)
	case kind == "separate" && n > 0:
		w.fields[n-1] = true
	case kind == "end" && n > 0:
		w.fields = w.fields[:n-1]
	}
}

func (w *wordWriter) endElement(name string) {
	n := len(w.tables)
	switch name {
	case "p":
		w.endParagraph()
	case "r":
		w.raised = false
	case "ruby":
		w.inRuby = false
	case "sdt":
		if n := len(w.boxes); n > 0 {
			w.boxes = w.boxes[:n-1]
		}
	case "checkBox": // of a form's field, which has no text of its own
		if f := w.top(); f != nil {
			f.text.WriteString(cmp.Or(w.formBox, "[ ]"))
			w.formBox = ""
		}
	case "tc":
		if n > 0 {
			t := w.tables[n-1]
			t.cells, t.cell = append(t.cells, strings.Join(t.cell, " ")), nil
		}
	case "tr":
		if n > 0 {
			t := w.tables[n-1]
			if row := strings.Join(t.cells, " | "); strings.Trim(row, " |") != "" {
				t.rows = append(t.rows, row)
			}
			t.cells = nil
		}
	case "tbl":
		if n == 0 {
			return
		}
		t := w.tables[n-1]
		w.tables = w.tables[:n-1]
		if n > 1 { // within a cell: its rows are lines of that cell
			outer := w.tables[n-2]
			outer.cell = append(outer.cell, t.rows...)
		} else {
			w.out.paragraph(strings.Join(t.rows, "\n"))
			w.listing = false
		}
	}
}

// endParagraph writes the innermost paragraph.
func (w *wordWriter) endParagraph() {
	f := w.top()
	if f == nil {
		return
	}
	w.inRuby = false
	w.endRuby(f)
	w.frames = w.frames[:len(w.frames)-1]
	text := strings.TrimSpace(Clean(f.text.String()))
	if outer := w.top(); outer != nil { // a text box: its text goes behind that of the paragraph that holds it
		if text != "" {
			outer.footnotes = append(outer.footnotes, text)
		}
		outer.footnotes = append(outer.footnotes, f.footnotes...)
		return
	}
	level, label := w.kind(f)
	if len(w.tables) > 0 {
		t := w.tables[len(w.tables)-1]
		if text != "" {
			t.cell = append(t.cell, strings.ReplaceAll(label+text, "\n", " "))
		}
		t.cell = append(t.cell, f.footnotes...)
		return
	}
	switch {
	case text == "":
	case level > 0:
		w.out.heading(level, label+text)
	case label != "" || f.listed:
		w.item(label + text)
	default:
		w.out.paragraph(text)
		w.listing = false
	}
	w.listing = w.listing && len(f.footnotes) == 0
	for _, note := range f.footnotes {
		w.out.paragraph(note)
	}
}

// item writes an item of a list below the one before it.
func (w *wordWriter) item(s string) {
	if !w.listing || w.out.text.Len() == 0 {
		w.out.paragraph(s)
	} else {
		w.out.text.WriteString("\n" + s)
		w.out.size += len(s)
	}
	w.listing = true
}

// kind is what a paragraph's style and own properties make of it: a heading's level, a list item's label.
func (w *wordWriter) kind(f *frame) (level int, label string) {
	level = f.level
	list, at := f.list, f.listAt
	if s := w.styles[f.style]; s != nil {
		if level == 0 {
			level = s.level
		}
		if !f.listed && s.list != "" {
			list, at = s.list, max(at, s.listAt)
		}
	}
	if list == "" || list == "0" || strings.TrimSpace(f.text.String()) == "" {
		return level, ""
	}
	return level, w.numbers.next(list, at)
}

// plain is all that was written, as one text.
func (w *wordWriter) plain() string {
	w.out.flush()
	var parts []string
	for _, s := range w.out.sections {
		parts = append(append(parts, s.Heading...), s.Text)
	}
	return strings.Join(parts, "\n")
}

// numbering is how lists are counted (ECMA-376 part 1, 17.9).
type numbering struct {
	levels map[string]*[9]numberLevel // by the abstract list's id
	lists  map[string]string          // a list's id to the abstract one's
	counts map[string]*[9]int
}

type numberLevel struct {
	start  int
	format string
	text   string // "%1.%2."
}

func (d *docx) numbering(part string) (*numbering, error) {
	n := &numbering{map[string]*[9]numberLevel{}, map[string]string{}, map[string]*[9]int{}}
	var levels *[9]numberLevel
	var level *numberLevel
	num := ""
	err := d.parse(part, func(_ *xml.Decoder, t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok {
			return nil
		}
		val := value(e, "val")
		switch e.Name.Local {
		case "abstractNum":
			levels, level = new([9]numberLevel), nil
			n.levels[value(e, "abstractNumId")] = levels
		case "lvl":
			level = nil
			if i, err := strconv.Atoi(value(e, "ilvl")); levels != nil && err == nil && i >= 0 && i < 9 {
				level = &levels[i]
				level.start = 1
			}
		case "start":
			if i, err := strconv.Atoi(val); level != nil && err == nil {
				level.start = i
			}
		case "numFmt":
			if level != nil {
				level.format = val
			}
		case "lvlText":
			if level != nil {
				level.text = val
			}
		case "num":
			num, levels, level = value(e, "numId"), nil, nil
		case "abstractNumId":
			n.lists[num] = val
		}
		return nil
	})
	return n, err
}

// next counts a list on and gives the item's label, indented as deep as it is.
func (n *numbering) next(list string, at int) string {
	indent := strings.Repeat("  ", at)
	if n == nil || n.levels[n.lists[list]] == nil {
		return indent + "- "
	}
	levels, counts := n.levels[n.lists[list]], n.counts[n.lists[list]]
	if counts == nil {
		counts = new([9]int)
		for i := range counts {
			counts[i] = levels[i].start - 1
		}
		n.counts[n.lists[list]] = counts
	}
	counts[at]++
	for i := at + 1; i < 9; i++ {
		counts[i] = levels[i].start - 1
	}
	switch levels[at].format {
	case "bullet", "none", "":
		if levels[at].format == "none" {
			return ""
		}
		return indent + "- "
	}
	label := levels[at].text
	for i := range 9 {
		if key := fmt.Sprintf("%%%d", i+1); strings.Contains(label, key) {
			label = strings.ReplaceAll(label, key, counted(max(counts[i], levels[i].start), levels[i].format))
		}
	}
	if label == "" {
		return ""
	}
	return indent + label + " "
}

// counted writes a number as a list does.
func counted(n int, format string) string {
	switch format {
	case "lowerLetter", "upperLetter":
		if n < 1 || n > 26*20 {
			break
		}
		s := strings.Repeat(string(rune('a'+(n-1)%26)), 1+(n-1)/26)
		if format == "upperLetter" {
			s = strings.ToUpper(s)
		}
		return s
	case "lowerRoman", "upperRoman":
		if n < 1 || n > 3999 {
			break
		}
		s := ""
		for _, d := range []struct {
			v int
			s string
		}{{1000, "m"}, {900, "cm"}, {500, "d"}, {400, "cd"}, {100, "c"}, {90, "xc"}, {50, "l"}, {40, "xl"},
			{10, "x"}, {9, "ix"}, {5, "v"}, {4, "iv"}, {1, "i"}} {
			for n >= d.v {
				s, n = s+d.s, n-d.v
			}
		}
		if format == "upperRoman" {
			s = strings.ToUpper(s)
		}
		return s
	case "decimalZero":
		return fmt.Sprintf("%02d", n)
	}
	return strconv.Itoa(n)
}
