package rehearsal

import (
	"encoding/binary"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"parley/internal/audio"
)

// label is a moment with words to it.
type label struct {
	at   time.Duration
	text string
}

// labels are what was said and what failed, in order of the sides.
func (r *Result) labels() (caller, assistant, failed []label) {
	for _, a := range r.Timeline.Acts {
		caller = append(caller, label{a.From, string(a.Kind) + ": " + a.Text})
	}
	for _, t := range r.Record.Turns {
		if t.Speaker == "assistant" {
			assistant = append(assistant, label{ms(t.StartedAtMS), t.Text})
		}
	}
	for _, c := range r.Record.FunctionCalls {
		assistant = append(assistant, label{ms(c.AtMS), c.Name + string(c.Arguments)})
	}
	for _, v := range r.Failed() {
		failed = append(failed, label{v.At, v.What + "; " + v.Got})
	}
	return caller, assistant, failed
}

// Picture draws the call: who was heard when, what was said, and where it went wrong.
func (r *Result) Picture(w io.Writer) error {
	const second, left, lane = 90, 90, 46
	caller, assistant, failed := r.labels()
	x := func(d time.Duration) float64 { return left + d.Seconds()*second }
	width := x(r.Timeline.Ended) + 260
	height := 5*lane + 20*(len(caller)+len(assistant)+len(failed))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="8" y="18" font-size="14">%s</text>`+"\n",
		html.EscapeString(r.Title()))
	text := func(at time.Duration, y int, color, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s">%s</text>`+"\n", x(at), y, color, html.EscapeString(s))
	}
	bar := func(s Span, y int, color string) {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="24" rx="3" fill="%s"/>`+"\n", x(s.From), y,
			max(1, (s.To-s.From).Seconds()*second), color)
	}
	for at := time.Duration(0); at <= r.Timeline.Ended; at += time.Second {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="30" x2="%.1f" y2="%d" stroke="#ddd"/>`, x(at), x(at), height)
		text(at, 42, "#777", fmt.Sprintf("%.0f s", at.Seconds()))
	}
	fmt.Fprintf(&b, `<text x="8" y="%d">caller</text><text x="8" y="%d">assistant</text>`+"\n", lane+22, 2*lane+22)
	for _, a := range r.Timeline.Acts {
		if len(a.Parts) == 0 {
			bar(a.Span, lane+6, "#93c5fd")
		}
		for _, part := range a.Parts {
			bar(part, lane+6, "#2563eb")
		}
	}
	for _, u := range r.Timeline.utterances(60 * time.Millisecond) {
		bar(u, 2*lane+6, "#16a34a")
	}
	y := 3*lane + 16
	for _, side := range []struct {
		color string
		list  []label
	}{{"#2563eb", caller}, {"#15803d", assistant}, {"#dc2626", failed}} {
		for _, l := range side.list {
			if side.color == "#dc2626" {
				fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#dc2626" stroke-dasharray="4 3"/>`, x(l.at),
					lane, x(l.at), y)
			}
			text(l.at, y, side.color, l.text)
			y += 20
		}
		y += 10
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Tape writes the call as WAV, the caller left and the assistant right, with the labels as its marks.
func (r *Result) Tape(w io.Writer) error {
	var pcm []byte
	for i := range r.Heard {
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(r.Said[i]))
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(r.Heard[i]))
	}
	caller, assistant, failed := r.labels()
	marks := marks(append(append(caller, assistant...), failed...), r.Rate)
	head := audio.AppendWAVHeader(nil, int(r.Rate), 2, int64(len(pcm)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(head)-8+len(pcm)+len(marks)))
	for _, part := range [][]byte{head, pcm, marks} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// marks are the chunks cue and adtl of a WAV file.
func marks(list []label, rate audio.Rate) []byte {
	le := binary.LittleEndian
	cue, texts := le.AppendUint32(nil, uint32(len(list))), []byte("adtl")
	for i, l := range list {
		at := uint32(max(0, l.at.Seconds()) * float64(rate))
		cue = le.AppendUint32(cue, uint32(i+1))
		cue = le.AppendUint32(cue, at)
		cue = append(cue, "data"...)
		cue = append(cue, make([]byte, 8)...)
		cue = le.AppendUint32(cue, at)
		text := append([]byte(l.text), 0)
		texts = append(texts, "labl"...)
		texts = le.AppendUint32(texts, uint32(4+len(text)))
		texts = le.AppendUint32(texts, uint32(i+1))
		if texts = append(texts, text...); len(text)%2 == 1 {
			texts = append(texts, 0)
		}
	}
	out := le.AppendUint32([]byte("cue "), uint32(len(cue)))
	out = append(out, cue...)
	out = le.AppendUint32(append(out, "LIST"...), uint32(len(texts)))
	return append(out, texts...)
}

var unsafe = regexp.MustCompile(`[^\p{L}\p{N}=-]+`)

// Keep writes the sound and the picture of a failed call to a directory.
func (r *Result) Keep(dir string) error {
	if r.Passed() || r.Timeline == nil || r.Record == nil || len(r.Heard) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(dir, strings.Trim(unsafe.ReplaceAllString(r.Title(), "-"), "-"))
	for ending, write := range map[string]func(io.Writer) error{".wav": r.Tape, ".svg": r.Picture} {
		f, err := os.Create(name + ending)
		if err != nil {
			return err
		}
		err = write(f)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Name(), err)
		}
	}
	r.Files = []string{name + ".wav", name + ".svg"}
	return nil
}
