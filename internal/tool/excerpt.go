package tool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// An excerpt is JSON shortened while it is read: every object keeps its keys as far as there is room, a list its first
// entries and the number of the others, a string its beginning. It holds no more in memory than it writes.
type excerpt struct {
	in   *bufio.Reader
	out  strings.Builder
	deep int
}

const (
	deepest  = 64
	maxKeys  = 200 // of one object
	maxItems = 50  // of one list
	minRoom  = 24  // for a value: with less it is left out
	leftOut  = `"…"`
)

var errNoJSON = errors.New("it is not JSON")

// excerptJSON shortens a JSON object or list to at most size bytes. If it breaks off, the excerpt says that there is
// more; ok is false when it is no JSON.
func excerptJSON(r io.Reader, size int) (short string, ok bool) {
	e := &excerpt{in: bufio.NewReaderSize(r, 32<<10)}
	if c, err := e.next(); err != nil || c != '{' && c != '[' {
		return "", false
	}
	err := e.value(size - 2*deepest)
	if err != nil && !errors.Is(err, io.EOF) || e.out.Len() > size {
		return "", false
	}
	return e.out.String(), true
}

// next looks at the next byte that is no blank.
func (e *excerpt) next() (byte, error) {
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return 0, io.EOF // a connection that breaks off ends the answer as well
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, e.in.UnreadByte()
		}
	}
}

// value reads one value and writes about room bytes of it at most; nothing with room 0. After io.EOF what was written
// is complete.
func (e *excerpt) value(room int) error {
	c, err := e.next()
	if err != nil {
		if room > 0 {
			e.out.WriteString(leftOut)
		}
		return err
	}
	if room > 0 && room < minRoom {
		e.out.WriteString(leftOut)
		room = 0
	}
	switch c {
	case '{', '[':
		if e.deep++; e.deep > deepest {
			return errNoJSON
		}
		defer func() { e.deep-- }()
		_, _ = e.in.Discard(1)
		if c == '{' {
			return e.object(room)
		}
		return e.list(room)
	case '"':
		return e.text(room)
	}
	return e.literal(room)
}

// share is what a value may take of the room that is left: values behind it want some too.
func (e *excerpt) share(start, room int) int { return max(0, (room-(e.out.Len()-start))/2) }

func (e *excerpt) write(room int, text string) {
	if room > 0 {
		e.out.WriteString(text)
	}
}

func (e *excerpt) list(room int) error {
	start, kept, skipped := e.out.Len(), 0, 0
	e.write(room, "[")
	end := func(err error) error {
		comma := ""
		if kept > 0 {
			comma = ","
		}
		switch {
		case err != nil:
			e.write(room, comma+`"… and more"`)
		case skipped > 0:
			e.write(room, fmt.Sprintf(`%s"… and %d more"`, comma, skipped))
		}
		e.write(room, "]")
		return err
	}
	for first := true; ; first = false {
		c, err := e.next()
		if err != nil {
			return end(err)
		}
		switch {
		case c == ']':
			_, _ = e.in.Discard(1)
			return end(nil)
		case c == ',' && !first:
			_, _ = e.in.Discard(1)
		case !first:
			return errNoJSON
		}
		its := e.share(start, room)
		if kept == maxItems || its < minRoom {
			its = 0
		}
		if its == 0 {
			skipped++
		} else {
			if kept > 0 {
				e.out.WriteByte(',')
			}
			kept++
		}
		if err := e.value(its); err != nil {
			if errors.Is(err, io.EOF) {
				return end(err)
			}
			return err
		}
	}
}

func (e *excerpt) object(room int) error {
	start, kept, skipped := e.out.Len(), 0, 0
	e.write(room, "{")
	comma := func() {
		if kept > 0 && room > 0 {
			e.out.WriteByte(',')
		}
	}
	end := func(err error) error {
		switch {
		case err != nil:
			comma()
			e.write(room, `"…":"and more"`)
		case skipped > 0:
			comma()
			e.write(room, fmt.Sprintf(`"…":"and %d more"`, skipped))
		}
		e.write(room, "}")
		return err
	}
	for first := true; ; first = false {
		c, err := e.next()
		if err != nil {
			return end(err)
		}
		switch {
		case c == '}':
			_, _ = e.in.Discard(1)
			return end(nil)
		case c == ',' && !first:
			_, _ = e.in.Discard(1)
			if c, err = e.next(); err != nil {
				return end(err)
			}
		case !first:
			return errNoJSON
		}
		if c != '"' {
			return errNoJSON
		}
		its := e.share(start, room)
		if kept == maxKeys || its < 2*minRoom {
			its = 0
			skipped++
		} else {
			comma()
			kept++
		}
		if err := e.member(its); err != nil {
			if errors.Is(err, io.EOF) {
				return end(err)
			}
			return err
		}
	}
}

// member reads a key and its value.
func (e *excerpt) member(room int) error {
	before := e.out.Len()
	if err := e.text(room); err != nil {
		e.write(room, `:`+leftOut)
		return err
	}
	c, err := e.next()
	if err != nil {
		e.write(room, `:`+leftOut)
		return err
	}
	if c != ':' {
		return errNoJSON
	}
	_, _ = e.in.Discard(1)
	e.write(room, ":")
	if room > 0 {
		room = max(room-(e.out.Len()-before), 1)
	}
	return e.value(room)
}

// text reads a string. What it writes is cut between characters, and never within an escape.
func (e *excerpt) text(room int) error {
	_, _ = e.in.Discard(1)
	e.write(room, `"`)
	const more = "… (cut off)"
	full := false
	for n := 0; ; {
		c, err := e.in.ReadByte()
		if err != nil {
			e.write(room, more+`"`)
			return io.EOF
		}
		switch {
		case c == '"':
			e.write(room, `"`)
			return nil
		case c < ' ':
			return errNoJSON
		}
		piece := []byte{c}
		if c == '\\' {
			d, err := e.in.ReadByte()
			if err != nil {
				e.write(room, more+`"`)
				return io.EOF
			}
			piece = append(piece, d)
			for range 4 {
				if d != 'u' {
					break
				}
				h, err := e.in.ReadByte()
				if err != nil {
					e.write(room, more+`"`)
					return io.EOF
				}
				if !isHex(h) {
					return errNoJSON
				}
				piece = append(piece, h)
			}
		}
		if !full && room > 0 && n+len(piece)+utf8.UTFMax+len(more) > room && utf8.RuneStart(c) {
			e.out.WriteString(more)
			full = true
		}
		if !full && room > 0 {
			e.out.Write(piece)
			n += len(piece)
		}
	}
}

// literal reads a number, true, false or null.
func (e *excerpt) literal(room int) error {
	for n := 0; ; n++ {
		c, err := e.in.ReadByte()
		if err == nil && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == 'E' || c == '+' || c == '-' || c == '.') {
			if n > 400 {
				return errNoJSON
			}
			if room > 0 {
				e.out.WriteByte(c)
			}
			continue
		}
		if n == 0 {
			return errNoJSON
		}
		if err != nil {
			return io.EOF
		}
		return e.in.UnreadByte()
	}
}
