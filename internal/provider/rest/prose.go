package rest

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"

	"parley/internal/ai"
)

// Prose is what a model writes, on its way to the customer: thoughts and tokens of its template are left out, and calls
// that it writes as text are made. It passes text on as it comes, but for what may be the beginning of such a thing.
type Prose struct {
	// Lone says that a thought ended whose beginning was not written: the template of this model writes it. Set before
	// the reply, everything counts as a thought until it ends; if it doesn't end, it was none.
	Lone bool

	tools []ai.Tool
	names Names
	say   func(text string) error
	call  func(name, arguments string) error

	buf     string // what is not decided yet
	state   state
	block   block
	inLine  bool // the line has begun with something other than blanks
	trim    bool // blanks are left out: nothing was said yet behind a thought
	started bool
}

type state int

const (
	speaking state = iota
	thinking       // until a thought ends
	heading        // of a message in harmony: until <|message|>
	calling        // within a block
	jsonning       // at the beginning of a line, what may be a call as JSON
	over           // the reply has ended
)

// A block is a call, or several, between marks.
type block struct {
	begin, end string
	keep       bool // the mark at its beginning is a part of the call
	bare       bool // it may be an ordinary text: then it is said
}

var (
	opens  = []string{"<think>", "<thinking>", "<reasoning>", "<thought>", "<seed:think>", "<|begin_of_thought|>", "◁think▷"}
	closes = []string{"</think>", "</thinking>", "</reasoning>", "</thought>", "</seed:think>", "<|end_of_thought|>", "◁/think▷"}
	// Behind these comes nothing that is meant for anybody.
	ends = []string{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<end_of_turn>", "<|return|>",
		"<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>"}
	tokens = []string{"</s>", "<eos>", "<|end|>", "<|call|>", "<|eom_id|>", "<|message|>", "<|assistant|>",
		"<|im_start|>assistant", "<start_of_turn>model", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "[/INST]",
		"<|start_header_id|>assistant<|end_header_id|>", "</tool_call>", "</function_calls>", "<function_calls>", "</tool_calls>",
		"<tool_calls>", "<|constrain|>json"}
	headers = []string{"<|channel|>", "<|start|>"}
	blocks  = []block{
		{begin: "<tool_call>", end: "</tool_call>"}, {begin: "<function_call>", end: "</function_call>"},
		{begin: "<|tool_call|>", end: "<|/tool_call|>"}, {begin: "<function=", end: "</function>", keep: true},
		{begin: "<invoke name=", end: "</invoke>", keep: true}, {begin: "<|python_tag|>", end: "<|eom_id|>"}, {begin: "[TOOL_CALLS]"},
		{begin: "<｜tool▁calls▁begin｜>", end: "<｜tool▁calls▁end｜>"},
		{begin: "<|tool_calls_section_begin|>", end: "<|tool_calls_section_end|>"},
	}
	fenced   = block{begin: "```", end: "```", keep: true, bare: true}
	function = block{begin: "functions.", end: "\n", keep: true, bare: true}
	heard    = block{end: "<|", keep: true} // a call of harmony
)

// maxCall is how much of a text that may be a call is held back.
const maxCall = 32 << 10

// NewProse begins a reply. say takes its text, call a call of one of the tools.
func NewProse(tools []ai.Tool, names Names, say func(text string) error, call func(name, arguments string) error) *Prose {
	return &Prose{tools: tools, names: names, say: say, call: call}
}

// Write takes the next piece.
func (p *Prose) Write(text string) error {
	if text == "" {
		return nil
	}
	if !p.started && p.Lone {
		p.state, p.Lone = thinking, false
		p.block = block{bare: true}
	}
	p.started = true
	p.buf += text
	return p.run(false)
}

// End says that nothing more comes.
func (p *Prose) End() error { return p.run(true) }

func (p *Prose) run(end bool) error {
	for {
		more, err := p.step(end)
		if err != nil || !more || p.buf == "" && !end {
			return err
		}
	}
}

// step does what can be done with what has come; more says that it may go on.
func (p *Prose) step(end bool) (more bool, err error) {
	switch p.state {
	case thinking:
		return p.think(end), nil
	case heading:
		return p.head(end), nil
	case calling:
		return p.finish(end)
	case jsonning:
		return p.json(end)
	case over:
		p.buf = ""
		return false, nil
	}
	return p.speak(end)
}

// think drops a thought.
func (p *Prose) think(end bool) (more bool) {
	at, mark := firstOf(p.buf, append(closes, headers...))
	if p.block.bare { // it may be none
		at, mark = firstOf(p.buf, closes)
	}
	if i := strings.Index(p.buf, "<|end|>"); i >= 0 && (at < 0 || i < at) && p.block.end == "harmony" {
		at, mark = i, "<|end|>"
	}
	switch {
	case at >= 0 && (mark == headers[0] || mark == headers[1]):
		p.buf = p.buf[at:]
	case at >= 0:
		p.Lone = p.block.bare
		p.buf = p.buf[at+len(mark):]
	case end && p.block.bare:
	case end:
		p.buf = ""
	case p.block.bare:
		return false
	default:
		p.buf = p.buf[max(0, len(p.buf)-32):]
		return false
	}
	p.state, p.block, p.trim = speaking, block{}, !p.inLine
	return p.buf != ""
}

// head reads the head of a message in harmony, which says whom it is for.
func (p *Prose) head(end bool) (more bool) {
	i := strings.Index(p.buf, "<|message|>")
	if i < 0 {
		if end || len(p.buf) > 400 {
			p.state = speaking
			p.buf = ""
		}
		return false
	}
	head := p.buf[:i]
	p.buf = p.buf[i+len("<|message|>"):]
	p.state, p.trim = speaking, !p.inLine
	if _, to, ok := strings.Cut(head, "to="); ok {
		name := strings.TrimPrefix(strings.Fields(strings.ReplaceAll(to, "<|", " ") + " ?")[0], "functions.")
		p.state, p.block = calling, heard
		p.buf = "functions." + name + " " + p.buf
	} else if strings.Contains(head, "analysis") {
		p.state, p.block = thinking, block{end: "harmony"}
	}
	return true
}

// speak passes text on up to what has a form of its own.
func (p *Prose) speak(end bool) (more bool, err error) {
	if p.trim {
		p.buf = strings.TrimLeftFunc(p.buf, unicode.IsSpace)
		if p.trim = p.buf == ""; p.trim {
			return false, nil
		}
	}
	inLine := p.inLine
	for i := 0; i < len(p.buf); i++ {
		c := p.buf[i]
		if c == '<' || c == '[' || c == '{' || c == '`' || c == 'f' || c == 0xe2 {
			length, enter := p.mark(p.buf[i:], !inLine)
			if enter == nil && (length == 0 || end) {
				inLine = c != '\n'
				continue
			}
			if err := p.pass(p.buf[:i]); err != nil {
				return false, err
			}
			if p.buf = p.buf[i:]; enter == nil {
				return false, nil
			}
			p.buf = p.buf[length:]
			enter()
			return true, nil
		}
		inLine = c != '\n' && (inLine || c != ' ' && c != '\t' && c != '\r')
	}
	text := p.buf
	p.buf = ""
	return false, p.pass(text)
}

func (p *Prose) pass(text string) error {
	for i := range len(text) {
		c := text[i]
		p.inLine = c != '\n' && (p.inLine || c != ' ' && c != '\t' && c != '\r')
	}
	if text == "" {
		return nil
	}
	return p.say(text)
}

// mark reads a mark at the beginning of a text: its length, and how what follows it is taken. Without a mark enter is nil,
// and length is -1 where more must come to tell.
func (p *Prose) mark(text string, lineStart bool) (length int, enter func()) {
	partial := false
	try := func(mark string) bool {
		if len(text) >= len(mark) {
			return strings.EqualFold(text[:len(mark)], mark)
		}
		partial = partial || strings.EqualFold(text, mark[:len(text)])
		return false
	}
	for _, m := range opens {
		if try(m) {
			return len(m), func() { p.state, p.block = thinking, block{} }
		}
	}
	for _, m := range closes {
		if try(m) {
			return len(m), func() { p.Lone, p.trim = true, !p.inLine }
		}
	}
	for _, m := range ends {
		if try(m) {
			return len(m), func() { p.state = over }
		}
	}
	for _, m := range headers {
		if try(m) {
			return len(m), func() { p.state = heading }
		}
	}
	for _, m := range tokens {
		if try(m) {
			return len(m), func() { p.trim = !p.inLine }
		}
	}
	for _, b := range blocks {
		if try(b.begin) {
			return p.enter(b)
		}
	}
	if lineStart && len(p.tools) > 0 {
		for _, b := range []block{fenced, function} {
			if try(b.begin) {
				return p.enter(b)
			}
		}
		rest := strings.TrimLeftFunc(text[1:], unicode.IsSpace)
		if text[0] == '{' || text[0] == '[' && strings.HasPrefix(rest, "{") {
			return 0, func() { p.state = jsonning }
		}
		partial = partial || text[0] == '[' && rest == ""
	}
	if partial {
		return -1, nil
	}
	return 0, nil
}

// enter begins a block.
func (p *Prose) enter(b block) (length int, enter func()) {
	return len(b.begin), func() {
		p.state, p.block = calling, b
		if b.keep {
			p.buf = b.begin + p.buf
		}
	}
}

// finish reads a block to its end and makes its calls. One that may be an ordinary text is said if it is no call.
func (p *Prose) finish(end bool) (more bool, err error) {
	from := 0
	if p.block.keep {
		from = min(len(p.block.begin), len(p.buf))
	}
	at := -1
	if p.block.end != "" {
		at = strings.Index(p.buf[from:], p.block.end)
	}
	if at < 0 && !end && (!p.block.bare || len(p.buf) < maxCall) {
		return false, nil
	}
	inner, whole := p.buf, len(p.buf)
	if at >= 0 {
		inner, whole = p.buf[:from+at], from+at
		if p.block.end != "\n" && p.block.end != "<|" { // these belong to what follows
			whole += len(p.block.end)
		}
	}
	text := p.buf[:whole]
	bare := p.block.bare
	p.buf, p.state, p.block = p.buf[whole:], speaking, block{}
	return p.buf != "", p.made(inner, text, bare)
}

// json reads a JSON value to its end.
func (p *Prose) json(end bool) (more bool, err error) {
	d := json.NewDecoder(strings.NewReader(p.buf))
	var v json.RawMessage
	whole := len(p.buf)
	switch err := d.Decode(&v); {
	case err == nil:
		whole = int(d.InputOffset())
	case !end && len(p.buf) < maxCall && errors.Is(err, io.ErrUnexpectedEOF):
		return false, nil
	}
	text := p.buf[:whole]
	p.buf, p.state = p.buf[whole:], speaking
	return p.buf != "", p.made(text, text, true)
}

// made makes the calls that a text holds; what is none is said if it may be.
func (p *Prose) made(inner, text string, bare bool) error {
	calls := p.written(inner)
	for _, c := range calls {
		if bare && p.tool(c.name) == nil {
			calls = nil
			break
		}
	}
	if len(calls) == 0 && bare {
		return p.pass(text)
	}
	if len(p.tools) == 0 {
		return nil
	}
	for _, c := range calls {
		if err := p.call(c.name, c.arguments); err != nil {
			return err
		}
	}
	p.trim = len(calls) > 0 && !p.inLine
	return nil
}

// firstOf is where the first of some marks stands, whatever its case; -1 where none does.
func firstOf(text string, marks []string) (at int, mark string) {
	at = -1
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // a letter has another length in lower case: then only the marks' own case counts
		lower = text
	}
	for _, m := range marks {
		if i := strings.Index(lower, m); i >= 0 && (at < 0 || i < at) {
			at, mark = i, m
		}
	}
	return at, mark
}
