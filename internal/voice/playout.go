package voice

import (
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
)

// part is a sentence on its way to the far end: its text, and its audio as far as it has arrived.
type part struct {
	reply     int
	step      int        // the step of thinking that it comes from
	aside     bool       // a filler: it is in the transcript, and not in what the model is told
	initial   bool       // it is the initial message
	keep      bool       // its sound goes into the cache
	told      bool       // the model has been told of it apart from the history
	text      string     // as it is read; the texts of a reply's parts are the reply
	speak     string     // as it is said
	again     bool       // it has failed once
	synthesis *synthesis // whose voice says it

	tape // guarded by the playout's lock once it is there
}

// tape is the audio of a part.
type tape struct {
	times
	pcm    []int16  // a known sound, whole; it is shared and never written
	blocks []*block // otherwise: what has arrived and was not played yet
	size   int      // samples that have arrived
	played int
	whole  bool // all has arrived
	ended  bool // it was played, or left out
	cut    bool // it was left out
	pace   *pace
}

// times says when the words of a part have been spoken.
type times struct {
	words []ai.Word // of the part as it is said, as far as they are known
	lead  int       // samples that were left out before its sound
}

// add adds word times as they become known, and drops those that make no sense.
func (t *times) add(spoken string, words []ai.Word) {
	for _, w := range words {
		var last ai.Word
		if n := len(t.words); n > 0 {
			last = t.words[n-1]
		}
		if w.Until > last.Until && w.Until <= len(spoken) && w.At >= last.At {
			t.words = append(t.words, w)
		}
	}
}

// block is a piece of audio. Blocks are reused: a silent call has none.
type block struct {
	samples [1600]int16
	from, n int
}

var blocks = sync.Pool{New: func() any { return new(block) }}

// put adds audio that arrived.
func (p *tape) put(pcm []int16) {
	p.size += len(pcm)
	for len(pcm) > 0 {
		var b *block
		if n := len(p.blocks); n > 0 && p.blocks[n-1].n < len(b.samples) {
			b = p.blocks[n-1]
		} else {
			b = blocks.Get().(*block)
			b.from, b.n = 0, 0
			p.blocks = append(p.blocks, b)
		}
		n := copy(b.samples[b.n:], pcm)
		b.n, pcm = b.n+n, pcm[n:]
	}
}

// take moves up to len(dst) samples into dst; with peek they stay.
func (p *tape) take(dst []int16, peek bool) int {
	if p.pcm != nil {
		n := copy(dst, p.pcm[p.played:])
		if !peek {
			p.played += n
		}
		return n
	}
	done := 0
	for i := 0; i < len(p.blocks) && done < len(dst); i++ {
		b := p.blocks[i]
		n := copy(dst[done:], b.samples[b.from:b.n])
		done += n
		if peek {
			continue
		}
		b.from += n
		if b.from == b.n {
			blocks.Put(b)
			copy(p.blocks, p.blocks[1:])
			p.blocks[len(p.blocks)-1] = nil
			p.blocks = p.blocks[:len(p.blocks)-1]
			i--
		}
	}
	if !peek {
		p.played += done
	}
	return done
}

// drop discards the audio.
func (p *tape) drop() {
	for _, b := range p.blocks {
		blocks.Put(b)
	}
	p.blocks, p.pcm, p.ended = nil, nil, true
}

// heard is the part of a text whose audio was heard, cut between words: by their times as far as they are known,
// otherwise by how much of the audio was played. rate is the sample rate, spoken the text as it was said.
func (p *tape) heard(text, spoken string, rate audio.Rate) string {
	switch {
	case p.whole && p.played >= p.size && !p.cut && p.ended:
		return text
	case p.played == 0:
		return ""
	case p.whole && p.played >= p.size:
		return text
	}
	played, size := p.played, p.size
	if p.pace != nil {
		played, size = p.pace.at(played, rate), p.pace.at(size, rate)
	}
	if !p.whole { // the rest is not there yet: guess by the usual pace
		size = max(size, len([]rune(text))*int(rate)/charsPerSecond)
	}
	if len(p.words) > 0 {
		return lang.Heard(text, spoken, p.said(spoken, size, rate))
	}
	return lang.Cut(text, float64(played)/float64(max(size, 1)))
}

// said is how many octets of the spoken text have been played, when size is the length of all of it.
func (p *tape) said(spoken string, size int, rate audio.Rate) int {
	at := func(n int) time.Duration { return time.Duration(n+p.lead) * time.Second / time.Duration(rate) }
	now, last := at(p.played), ai.Word{}
	for _, w := range p.words {
		if w.At > now {
			return last.Until
		}
		last = w
	}
	if rest := at(size) - last.At; rest > 0 { // of what follows no time is known
		return last.Until + len(lang.Cut(spoken[last.Until:], float64(now-last.At)/float64(rest)))
	}
	return last.Until
}

// charsPerSecond is how fast people, and synthetic voices, speak.
const charsPerSecond = 15

// playout is what the far end is going to hear: the parts of the current reply, in order. The owner fills and clears
// it, vendors add audio to its parts, the leg pulls frames from it. Its lock is held only as long as it takes to copy a
// piece of audio, and nothing is called under it.
type playout struct {
	rate audio.Rate

	mu     sync.Mutex
	parts  []*part
	armed  bool    // speech that begins silences it
	paused bool    // by the owner
	reflex bool    // by speech that the owner has not judged yet
	fade   bool    // the next frame goes over into silence, or out of it
	gives  bool    // somebody speaks: what is armed is fainter
	less   float64 // so much was taken off the latest frame
	notes  []note
	full   chan<- struct{} // a vendor waits for room; nil: nobody does
}

// note tells the owner what was pulled: the first audio of a part, or the last.
type note struct {
	part  *part
	ended bool
	at    time.Duration
}

// ahead is how many samples from a vendor may wait to be played.
func (o *playout) ahead() int { return int(speechAhead * time.Duration(o.rate) / time.Second) }

// pull fills a frame, and reports whether there is audio in it.
func (o *playout) pull(dst audio.Frame, now time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	silent := o.silent()
	n := 0
	for len(o.parts) > 0 && n < len(dst) {
		p := o.parts[0]
		if p.ended {
			o.shift()
			continue
		}
		was := p.played
		if silent {
			if !o.fade || was == 0 {
				break
			}
			// The audio that fades out here is played again from its beginning: nothing is lost.
			n += p.take(dst[n:], true)
			break
		}
		got := p.take(dst[n:], false)
		n += got
		if was == 0 && got > 0 {
			o.notes = append(o.notes, note{part: p, at: now})
		}
		if !p.whole || p.played < p.size {
			if n < len(dst) {
				break // more is to come
			}
			continue
		}
		p.drop()
		o.notes = append(o.notes, note{part: p, ended: true, at: now})
		o.shift()
	}
	clear(dst[n:])
	o.blend(dst, silent)
	if o.full != nil && o.buffered() < o.ahead()/2 {
		select {
		case o.full <- struct{}{}:
		default:
		}
		o.full = nil
	}
	return n > 0
}

// aside is how much of a reply is taken off while it is not clear whether who speaks over it has words: 12 dB.
const aside = 0.75

// blend has a frame begin as loud as the one before it ended, and end as loud as it is to be.
func (o *playout) blend(dst audio.Frame, silent bool) {
	was, less := 1-o.less, 0.0
	if o.armed && o.gives {
		less = aside
	}
	if o.less = less; o.fade && !silent {
		was = 0
	}
	begin, rest := dst[:len(dst)/2], dst[len(dst)/2:]
	switch {
	case o.fade && silent:
		audio.Fade(begin, was, 0)
		clear(rest)
	case was < 1 || less > 0:
		audio.Fade(begin, was, 1-less)
		audio.Fade(rest, 1-less, 1-less)
	}
	o.fade = false
}

// told appends what was pulled since the last call.
func (o *playout) told(notes []note) []note {
	o.mu.Lock()
	defer o.mu.Unlock()
	notes = append(notes, o.notes...)
	clear(o.notes)
	o.notes = o.notes[:0]
	return notes
}

func (o *playout) shift() {
	copy(o.parts, o.parts[1:])
	o.parts[len(o.parts)-1] = nil
	o.parts = o.parts[:len(o.parts)-1]
}

func (o *playout) silent() bool { return o.paused || o.reflex }

// change fades the next frame where silence begins or ends.
func (o *playout) change(paused, reflex bool) {
	was := o.silent()
	if o.paused, o.reflex = paused, reflex; o.silent() != was {
		o.fade = true
	}
}

// arm sets whether speech that begins silences the playout.
func (o *playout) arm(armed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed = armed
}

// flinch silences an armed playout from the next frame on, until the owner has judged the speech that began.
func (o *playout) flinch() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.armed {
		o.change(o.paused, true)
	}
}

// giveWay sets whether somebody speaks, so that an armed playout is fainter.
func (o *playout) giveWay(gives bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gives = gives
}

// judged leaves it to the owner again whether the playout is silent.
func (o *playout) judged() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(o.paused, false)
}

// pause silences the playout from the next frame on, or resumes it where it was paused.
func (o *playout) pause(paused bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(paused, o.reflex)
}

// add appends a part.
func (o *playout) add(p *part) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts = append(o.parts, p)
}

// clear removes everything.
func (o *playout) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.parts {
		p.cut = p.cut || !p.ended
		p.drop()
	}
	clear(o.parts)
	o.parts, o.paused, o.reflex, o.fade, o.less = o.parts[:0], false, false, false, 0
}

// put adds audio to a part as far as there is room. It returns how much it took, and whether that was the first. wanted
// is false if the part was removed. If not everything fits, room is signalled when there is space again.
func (o *playout) put(p *part, pcm []int16, room chan<- struct{}) (n int, first, wanted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.ended {
		return 0, false, false
	}
	if n = min(len(pcm), max(o.ahead()-o.buffered(), 0)); n > 0 {
		first = p.size == 0
		p.put(pcm[:n])
	}
	if n < len(pcm) {
		o.full = room
	}
	return n, first, true
}

// trim notes how many samples were left out before a part's audio.
func (o *playout) trim(p *part, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.lead += n
}

// timed adds times of a part's words.
func (o *playout) timed(p *part, words []ai.Word) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.add(p.speak, words)
}

// write adds to the text of a part whose sound comes with it. It has been said at a time of that sound; 0 where nobody knows.
func (o *playout) write(p *part, text string, at time.Duration) {
	if p.text += text; at > 0 {
		p.speak = p.text
		o.timed(p, []ai.Word{{Until: len(p.text), At: at}})
	}
}

// finish notes that all of a part's audio has arrived, and returns its times.
func (o *playout) finish(p *part) times {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.whole = true
	return p.times
}

// gone reports whether a part was removed.
func (o *playout) gone(p *part) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return p.ended
}

// empty reports whether none of a part's audio has arrived. If so it forgets the part's word times, as the part may be
// made again.
func (o *playout) empty(p *part) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.size == 0 {
		p.times = times{}
	}
	return p.size == 0
}

// heard is a part's text as far as it was heard.
func (o *playout) heard(p *part) string {
	o.mu.Lock()
	s := p.tape
	o.mu.Unlock()
	return s.heard(p.text, p.speak, o.rate)
}

// unheard counts a part as not heard at all.
func (o *playout) unheard(p *part) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.played, p.cut = 0, true
}

// buffered is how many samples from a vendor are waiting.
func (o *playout) buffered() int {
	n := 0
	for _, p := range o.parts {
		if p.pcm == nil && !p.ended {
			n += p.size - p.played
		}
	}
	return n
}
