package deepgram

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/ai"
	"parley/internal/audio"
)

const (
	maxText     = 2000             // characters that may be sent before a Flush
	ahead       = 3                // texts that are sent before the sound of the first is there
	speechStall = 10 * time.Second // for the next message of the server
)

// synthesizer speaks over sockets that are kept open. All synthesizers of one client are equal.
type synthesizer struct{ pool *pool }

// Speak implements ai.Synthesizer.
func (s synthesizer) Speak(ctx context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch as.Rate {
	case audio.Narrow, audio.Wide, 24000, 32000, 48000:
	default:
		return &ai.Error{Kind: ai.Config, Err: fmt.Errorf("speak at %d Hz", as.Rate)}
	}
	r := &request{ctx: ctx, pool: s.pool, as: as, yield: yield, stall: time.NewTimer(speechStall)}
	defer r.stall.Stop()
	err := r.run(texts)
	r.leave(err)
	return err
}

// request is one Speak.
type request struct {
	ctx   context.Context
	pool  *pool
	as    ai.Speech
	yield func(ai.Sound) error
	stall *time.Timer

	line  *line   // nil while there is none
	next  int     // of the texts
	todo  []chunk // not sent yet
	out   []chunk // sent, in order, whose sound is not all there
	pcm   []int16
	odd   []byte // the first half of a sample
	fresh bool   // kept lines are not to be trusted any more
}

// chunk is a text, or one part of a long text.
type chunk struct {
	text  string
	index int
	last  bool // of its text
	heard int  // samples
}

// silent reports whether there is nothing to speak.
func (c chunk) silent() bool {
	return !strings.ContainsFunc(c.text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func (r *request) run(texts <-chan string) error {
	for {
		if err := r.send(); err != nil {
			return err
		}
		if len(r.todo)+len(r.out) == 0 && texts == nil {
			return nil
		}
		more := texts
		if len(r.todo) > 0 {
			more = nil
		}
		var in <-chan message
		if r.line != nil {
			in = r.line.in
		}
		var stalled <-chan time.Time
		if len(r.out) > 0 {
			stalled = r.stall.C
		}
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case text, ok := <-more:
			if !ok {
				texts = nil
				continue
			}
			r.take(text)
		case m := <-in:
			if err := r.heed(m); err != nil {
				return err
			}
		case <-stalled:
			return &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("no sound for %v%s", speechStall, r.line.warned())}
		}
	}
}

// take cuts off as much of a text as may be sent in one message, at a space.
func (r *request) take(text string) {
	for utf8.RuneCountInString(text) > maxText {
		at, n := 0, 0
		for i, c := range text {
			if n++; n > maxText {
				if at == 0 {
					at = i
				}
				break
			}
			if unicode.IsSpace(c) {
				at = i
			}
		}
		r.todo = append(r.todo, chunk{text: text[:at], index: r.next})
		text = text[at:]
	}
	r.todo = append(r.todo, chunk{text: text, index: r.next, last: true})
	r.next++
}

// send sends as much as the server accepts now.
func (r *request) send() error {
	for len(r.todo) > 0 && len(r.out) < ahead {
		c := r.todo[0]
		if c.silent() {
			if len(r.out) > 0 {
				return nil
			}
			r.todo = r.todo[1:]
			if err := r.end(c); err != nil {
				return err
			}
			continue
		}
		if r.line != nil && r.line.left(time.Now()) == 0 { // no more flushes for now: another line goes on
			if len(r.out) > 0 {
				return nil
			}
			r.pool.put(r.line)
			r.line = nil
		}
		if r.line == nil {
			var err error
			if r.line, err = r.pool.get(r.ctx, r.as, r.fresh); err != nil {
				return err
			}
		}
		r.todo = r.todo[1:]
		if len(r.out) == 0 {
			r.stall.Reset(speechStall)
		}
		r.out = append(r.out, c)
		if err := r.line.say(c.text); err != nil {
			if err = r.lost(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost decides what to do when a line is broken. If the line had been kept, it may have been dead for a long time, and
// another one is tried.
func (r *request) lost(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	untouched := r.line.kept && !r.line.answered
	idle := len(r.out) == 0
	r.pool.drop(r.line)
	r.line = nil
	if !untouched && !idle {
		return err
	}
	r.fresh = true
	r.todo = append(slices.Clone(r.out), r.todo...)
	r.out = nil
	return nil
}

// heed handles a message from the server.
func (r *request) heed(m message) error {
	if m.err != nil {
		return r.lost(m.err)
	}
	defer r.line.take()
	err := r.line.read(m, r.sound, r.flushed)
	r.stall.Reset(speechStall) // a slow yield is not the server's
	return err
}

func (r *request) end(c chunk) error {
	if !c.last {
		return nil
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return r.yield(ai.Sound{Text: c.index, Last: true})
}

// sound passes on the audio that has arrived.
func (r *request) sound(raw []byte) error {
	if len(r.out) == 0 {
		return nil // of nothing that was asked for
	}
	if len(r.odd) > 0 && len(raw) > 0 {
		raw = append(r.odd, raw...)
		r.odd = nil
	}
	r.pcm = r.pcm[:0]
	for ; len(raw) > 1; raw = raw[2:] {
		r.pcm = append(r.pcm, int16(binary.LittleEndian.Uint16(raw)))
	}
	r.odd = append(r.odd, raw...)
	c := &r.out[0]
	if c.heard += len(r.pcm); c.heard > int(r.as.Rate)*(20+utf8.RuneCountInString(c.text)/2) {
		return &ai.Error{Kind: ai.Malformed, Err: errors.New("the sound is endless")}
	}
	for pcm := r.pcm; len(pcm) > 0; {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		n := min(len(pcm), int(r.as.Rate)/10)
		if err := r.yield(ai.Sound{Text: c.index, PCM: pcm[:n]}); err != nil {
			return err
		}
		pcm = pcm[n:]
	}
	return nil
}

// flushed ends the oldest chunk that was sent.
func (r *request) flushed() error {
	r.odd = nil
	switch {
	case len(r.out) == 0:
		return nil
	case r.out[0].heard == 0 && r.line.stale > 0:
		r.line.stale-- // of a text that was cleared
		return nil
	case r.out[0].heard == 0:
		return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("no sound for %.100q%s", r.out[0].text, r.line.warned())}
	}
	r.line.stale = 0
	c := r.out[0]
	r.out = r.out[1:]
	return r.end(c)
}

// leave returns the line to the pool. Speech that was requested and not played is cancelled.
func (r *request) leave(err error) {
	if r.line == nil {
		return
	}
	switch {
	case len(r.out) == 0 && (err == nil || ai.KindOf(err) == ""):
		r.pool.put(r.line)
	case ai.KindOf(err) == "":
		r.pool.clear(r.line, len(r.out))
	default:
		r.pool.drop(r.line)
	}
}

// question returns the query with which a line is opened.
func (k kind) question() (query map[string][]string) {
	query = map[string][]string{"model": {k.voice}, "encoding": {"linear16"},
		"sample_rate": {strconv.Itoa(int(k.rate))}}
	if k.speed != "" {
		query["speed"] = []string{k.speed}
	}
	return query
}

// kindOf returns the kind of line that a request needs.
func kindOf(as ai.Speech) kind {
	k := kind{voice: as.Voice, rate: as.Rate}
	// Only English voices can change their speed.
	if (as.Language == "en" || as.Language == "es") && as.Speed != 0 && as.Speed != 1 {
		k.speed = strconv.FormatFloat(min(max(as.Speed, 0.7), 1.5), 'f', 2, 64)
	}
	return k
}

// notice is a text message of /v1/speak, with the fields that are used here.
type notice struct {
	Type        string `json:"type"`
	Code        string `json:"code"`
	Description string `json:"description"`
}

// read passes a message on.
func (l *line) read(m message, sound func([]byte) error, flushed func() error) error {
	l.answered = true
	if !m.text {
		return sound(m.data)
	}
	var n notice
	if err := json.Unmarshal(m.data, &n); err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	switch n.Type {
	case "Flushed":
		return flushed()
	case "Warning":
		// The codes are not documented. A warning that mentions flushes means that there were too many, and such a
		// flush gets no response.
		l.warning = n.Code + ": " + n.Description
		if strings.Contains(strings.ToUpper(n.Code), "FLUSH") {
			return &ai.Error{Kind: ai.RateLimited, Err: fmt.Errorf("%.300q", l.warning)}
		}
	case "Error":
		return &ai.Error{Kind: ai.Interrupted, Err: fmt.Errorf("%s: %.300q", n.Code, n.Description)}
	} // Metadata and Cleared tell nothing that is asked for
	return nil
}
