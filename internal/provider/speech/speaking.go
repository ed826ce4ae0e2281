package speech

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"parley/internal/ai"
)

// speaking is one Speak.
type speaking struct {
	v     *Voice
	ctx   context.Context
	as    ai.Speech
	yield func(ai.Sound) error

	texts  []string
	closed bool // there will be no others
	cur    int  // the text whose sound comes next: those before it are whole
	sent   int  // texts that the vendor has been given

	c        *channel // nil: there is no context
	finished bool     // it was told that no other text follows
	warm     bool     // its socket was there before
	retried  bool
	refused  error // by yield

	got    int    // samples that came in this context
	half   []byte // the first octet of a sample whose second one is still to come
	pcm    []int16
	start  int // where in the context the sound of texts[cur] begins
	heard  bool
	passed int // octets of texts[cur] of which the vendor told the time
	until  int // those of the last word that was told
	at     time.Duration
	origin int // from where the marks of this text count, in samples of the context; -1: not known yet
}

var (
	errStalled = errors.New("nothing came for too long")
	errLost    = errors.New("the context ended before its sound was there")
)

// accept takes a text, and those that are there already. It returns where others come from, nil if there are none.
func (s *speaking) accept(text string, ok bool, texts <-chan string) <-chan string {
	for ok {
		s.texts = append(s.texts, clean(text))
		select {
		case text, ok = <-texts:
		default:
			return texts
		}
	}
	s.closed = true
	return nil
}

// send gives the vendor what has come, and opens a context for it if there is none.
func (s *speaking) send() error {
	for ; s.sent < len(s.texts); s.sent++ {
		text := s.texts[s.sent]
		if !sayable(text) {
			continue
		}
		if s.c == nil {
			if err := s.open(); err != nil {
				return err
			}
		}
		if err := s.c.line.send(s.v.tongue.Say(s.c.id, s.as, text)); err != nil {
			return err
		}
	}
	if s.closed && s.c != nil && !s.finished {
		s.finished = true
		if err := s.c.line.send(s.v.tongue.Finish(s.c.id, s.as)); err != nil {
			return err
		}
	}
	return s.settle()
}

func (s *speaking) open() error {
	c, warm, err := s.v.pool.open(s.ctx, s.as)
	if err != nil {
		return err
	}
	s.c, s.warm, s.finished = c, warm, false
	s.got, s.half = 0, nil
	s.begin()
	return c.line.send(s.v.tongue.Open(c.id, s.as))
}

// begin makes ready for the sound of texts[cur].
func (s *speaking) begin() {
	s.start, s.heard, s.passed, s.until, s.at, s.origin = s.got, false, 0, 0, 0, -1
}

// settle passes over texts that are nothing to be said, and ends a context that has run out.
func (s *speaking) settle() error {
	for s.cur < s.sent && !sayable(s.texts[s.cur]) {
		if err := s.tell(ai.Sound{Last: true}); err != nil {
			return err
		}
	}
	if s.v.manners.Brief && s.c != nil && s.cur == s.sent {
		c := s.c
		s.c = nil
		if !s.finished {
			if err := c.line.send(s.v.tongue.Finish(c.id, s.as)); err != nil {
				return nil // its sound is there
			}
		}
		c.drop()
	}
	return nil
}

// tell yields a piece of texts[cur].
func (s *speaking) tell(sound ai.Sound) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	sound.Text = s.cur
	if sound.Last && s.heard && s.until > 0 && s.until < len(s.texts[s.cur]) { // what was not told was said by the end
		sound.Words = append(sound.Words, ai.Word{Until: len(s.texts[s.cur]), At: s.moment(s.got)})
	}
	if s.refused = s.yield(sound); s.refused != nil {
		return s.refused
	}
	s.heard = s.heard || len(sound.PCM) > 0
	if sound.Last {
		s.cur++
		s.begin()
	}
	return nil
}

// hear takes what has come.
func (s *speaking) hear() error {
	for {
		e, ok, err := s.c.next()
		if err != nil || !ok {
			return err
		}
		if e.Err != nil {
			return e.Err
		}
		if err := s.take(e); err != nil {
			return err
		}
		if e.Over {
			return s.over()
		}
		if err := s.settle(); err != nil || s.c == nil {
			return err
		}
	}
}

// over is the end of the context.
func (s *speaking) over() error {
	s.c = nil
	if !s.finished && s.cur < s.sent {
		return &ai.Error{Kind: ai.Interrupted, Err: errLost}
	}
	for s.cur < s.sent {
		if err := s.tell(ai.Sound{Last: true}); err != nil {
			return err
		}
	}
	return nil
}

// take yields what an event brings.
func (s *speaking) take(e Event) error {
	pcm := s.samples(e.Sound)
	from := s.got
	s.got += len(pcm)
	if s.cur == s.sent { // silence after the last text that there is
		s.start = s.got
		return nil
	}
	var words []ai.Word
	for i, m := range e.Marks {
		if i == 0 {
			s.count(m, from)
		}
		if !s.v.manners.Dones && s.follows(m.Text) { // the next text begins
			cut := min(max(s.origin+s.length(m.From)-from, 0), len(pcm))
			s.got = from + cut
			if err := s.tell(ai.Sound{PCM: pcm[:cut], Words: words, Last: true}); err != nil {
				return err
			}
			origin := s.origin
			if err := s.settle(); err != nil {
				return err
			}
			pcm, from, words = pcm[cut:], from+cut, nil
			s.start, s.origin = from, origin
			s.got = from + len(pcm)
		}
		words = s.word(words, m)
	}
	last := e.Done || !s.v.manners.Dones && !(s.finished && s.cur == s.sent-1) && s.covered()
	if len(pcm) == 0 && len(words) == 0 && !last {
		return nil
	}
	return s.tell(ai.Sound{PCM: pcm, Words: words, Last: last})
}

// quiet is how long nothing may come of texts[cur] until it counts as said.
func (s *speaking) quiet() time.Duration {
	if s.cur < s.sent && s.passed > 0 && sayable(s.texts[s.cur][s.passed:]) { // by the marks it is not
		return gapTime
	}
	return quietTime
}

// suppose takes a text as said that was heard, and of which nothing more comes.
func (s *speaking) suppose() error {
	if s.v.manners.Dones || !s.heard || s.cur == s.sent || s.finished && s.cur == s.sent-1 {
		return nil
	}
	if err := s.tell(ai.Sound{Last: true}); err != nil {
		return err
	}
	return s.settle()
}

// samples decodes sound, which may be cut anywhere.
func (s *speaking) samples(raw []byte) []int16 {
	if len(s.half) > 0 && len(raw) > 0 {
		raw = append(s.half, raw...)
		s.half = nil
	}
	s.pcm = s.pcm[:0]
	for ; len(raw) > 1; raw = raw[2:] {
		s.pcm = append(s.pcm, int16(binary.LittleEndian.Uint16(raw)))
	}
	if len(raw) == 1 {
		s.half = []byte{raw[0]}
	}
	return s.pcm
}

// again opens another context where a socket that was kept turns out to be dead, and nothing of the text was heard.
func (s *speaking) again(err error) error {
	var failure *ai.Error
	if err == nil || s.refused != nil || !errors.As(err, &failure) {
		return err
	}
	lost := failure.Kind == ai.Interrupted || failure.Kind == ai.Overloaded
	switch {
	case s.heard && failure.Retry(): // it broke in the middle
		return &ai.Error{Kind: ai.Interrupted, Err: failure.Err}
	case !lost || !s.warm || s.retried || s.heard:
		return err
	}
	s.retried = true
	s.leave()
	s.sent = s.cur
	return s.send()
}

// leave gives up the context. The vendor is told if it may still be speaking.
func (s *speaking) leave() {
	if s.c == nil {
		return
	}
	c := s.c
	s.c = nil
	if messages := s.v.tongue.Cancel(c.id, s.finished); c.live() && (s.cur < s.sent || !s.finished) {
		_ = c.line.send(messages) // a socket that fails has ended it
	}
	c.drop()
}
